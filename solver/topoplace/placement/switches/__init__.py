"""Placement on switch trees: patterns, costs, the published algorithms, and the optimum."""
