"""Searches for placements."""
