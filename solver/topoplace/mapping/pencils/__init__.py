"""Pencil placements: which routers of every pencil hold the levels of a layout (DESIGN 5).

Enos 2014 IV.B takes the leftmost usable routers of every pencil; the best choice is a minimum cut
(docs/proofs-mapping.md, "Pencils").
"""

from topoplace.mapping.pencils.cut import PencilCut, cut_selection
from topoplace.mapping.pencils.leftmost import leftmost_selection
from topoplace.mapping.pencils.terms import CellTerms, cell_terms
from topoplace.mapping.pencils.window import PencilWindow, window_at

__all__ = [
    "CellTerms",
    "PencilCut",
    "PencilWindow",
    "cell_terms",
    "cut_selection",
    "leftmost_selection",
    "window_at",
]
