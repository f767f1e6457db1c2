"""Checking a placement on a torus or mesh: from its instance and its prisms alone.

`instance` and `solution` read what is there; `leaf` and `tree` find what a certificate proves,
with the best candidates from `sweep` and, for requests with a geometry, `shapes`.
"""
