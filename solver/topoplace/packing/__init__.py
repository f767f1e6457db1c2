"""The certified branch-and-price engine, on rows, requests and an oracle.

A machine is a plug-in (`problem.PackingProblem`), and `search.Search` solves it: `dual` bounds by
prices of rows, `tree` branches where those leave a gap, `primal` looks for placements.
"""
