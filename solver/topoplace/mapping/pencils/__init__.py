"""Pencil placements: which routers of every pencil hold the levels of a layout.

Enos 2014 IV.B takes the leftmost usable routers of every pencil; the best choice is a minimum cut
(docs/proofs/mapping.md, "Pencils").
"""
