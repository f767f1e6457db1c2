"""Checking a placement on a torus or mesh: from its instance and its prisms alone.

`instance` reads the instance, and `check` the solution and its explanations; `oracle` gives the
walk through a certificate (`certify.packing`) the best candidates; `shapes` has sums over prisms.
"""
