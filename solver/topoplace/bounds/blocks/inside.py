"""The inside bound psi: most bytes that stay between s tasks of a grid."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from topoplace.bounds.blocks.directions import Directions, directions_of
from topoplace.bounds.blocks.losses import axes_loss, diagonals_loss
from topoplace.mapping.graph import IntArray
from topoplace.mapping.grids import VirtualGrid


def inside_bound(grid: VirtualGrid, limit: int) -> IntArray:
    """Return psi(s) for s = 0..limit: no set of s tasks has more bytes between its members.

    Parameters
    ----------
    grid
        The virtual grid.
    limit
        Largest set wanted, at most the number of tasks.

    Returns
    -------
    ndarray
        Shape ``(limit + 1,)``, bytes. Source: docs/proofs-mapping.md, "Blocks".
    """
    directions = directions_of(grid)
    return directions.unit * inside_units(directions, limit)


def inside_units(directions: Directions, limit: int) -> IntArray:
    """Return psi(s) in units of the directions; read-only, kept for the next call."""
    return _inside(directions.grid, limit)


@lru_cache(maxsize=8)
def _inside(grid: VirtualGrid, limit: int) -> IntArray:
    directions = directions_of(grid)
    sizes = np.arange(limit + 1, dtype=np.int64)
    psi = directions.weight * sizes
    psi -= axes_loss(directions, limit) + diagonals_loss(directions, limit)
    psi[:2] = 0  # a task alone has nobody to send to
    psi.setflags(write=False)
    return psi
