"""The certified branch-and-price engine: rows, requests and an oracle, no machine.

A machine is a plug-in (`problem.PackingProblem`), and `search.Search` solves it: `dual` bounds by
prices of rows, `tree` splits what those leave open, `primal` looks for placements.
"""
