"""Checking a placement on a torus or mesh: from its instance and its prisms alone.

`instance` reads what is there, and `check` the solution and its explanations; `oracle` tells the
walk through a certificate (`certify.packing`) the best candidates; `shapes` has sums over prisms.
"""
