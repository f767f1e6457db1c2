"""Requests for prisms of a torus or mesh: what every method shares, and the engine's plug-in.

Read `problem` and `outcome` first, then `heuristics`, `explain`, `minizinc`, and last `oracle`.
"""
