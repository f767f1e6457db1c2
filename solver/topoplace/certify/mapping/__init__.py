"""Checking a mapping: from its instance and the nodes of its tasks alone.

`instance` reads what is there, `check` recomputes the figures and has the table of certificates:
`blocks` of grids, `graphs` of any application. `pencils` checks layouts and what is claimed among
pencil placements.
"""
