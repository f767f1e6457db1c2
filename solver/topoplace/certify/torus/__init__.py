"""Checking a placement on a torus or mesh: from its instance and its prisms alone.

`instance` and `solution` read what is there; `oracle` tells the walk through a certificate
(`certify.packing`) the best candidates, from `sweep` and, for requests with a geometry, `shapes`.
"""
