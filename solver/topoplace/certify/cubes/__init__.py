"""The checker of placements on pods of cubes: `instance`, `oracle`, and the claims in `check`."""
