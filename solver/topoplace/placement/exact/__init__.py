"""Exact placement by column generation, with integer prices as the certificate."""
