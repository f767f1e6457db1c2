"""The allocation of least cost on a tree, with a bound and what supports it."""
