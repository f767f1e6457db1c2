"""Bounds that hold for any placement or mapping, each with evidence of its own."""
