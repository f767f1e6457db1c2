"""Placement on pods of cubes: the problem, its packing, heuristics, and what is written of it."""
