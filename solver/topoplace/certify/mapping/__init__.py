"""Checking a mapping: from its instance and the nodes of its tasks alone.

`instance` and `figures` read what is there and recompute it; `pencils` checks layouts and what is
claimed among pencil placements; the others find what the certificates prove: `blocks` of grids,
`star` and `distance_classes` of graphs, `cuts` of both.
"""
