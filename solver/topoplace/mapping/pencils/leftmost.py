"""Topaware's selection: the leftmost usable routers of every pencil (Enos 2014 IV.B)."""

from __future__ import annotations

from topoplace.mapping.graph import IntArray
from topoplace.mapping.pencils.window import PencilWindow


def leftmost_selection(window: PencilWindow) -> IntArray:
    """Return the first usable positions of every pencil of a feasible window.

    Returns
    -------
    ndarray
        Shape ``(num_pencils, levels)``: the position of every level along the window.
    """
    if not window.feasible:
        raise ValueError("a pencil has fewer usable positions than levels")
    return window.earliest
