"""Pencil placements: which routers of every pencil hold the levels of a layout.

Enos 2014 IV.B takes the leftmost usable routers of every pencil; the best choice is a minimum cut
(docs/proofs-mapping.md, "Pencils").
"""

from topoplace.mapping.pencils.network import PencilCut, cut_selection, leftmost_selection
from topoplace.mapping.pencils.space import CellTerms, PencilWindow, cell_terms, window_at

__all__ = [
    "CellTerms",
    "PencilCut",
    "PencilWindow",
    "cell_terms",
    "cut_selection",
    "leftmost_selection",
    "window_at",
]
