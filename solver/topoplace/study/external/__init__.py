"""Allocators that are not ours: run, held to the rules, and scored like our own methods."""
