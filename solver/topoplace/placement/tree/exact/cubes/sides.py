"""States of a cube no two of which may be neighbours, and what their pairs need of the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding.isoperimetry import cube_pairs
from topoplace.placement.tree.exact.lines.tables import Standing, Tables

IntArray = NDArray[np.int64]

_MOST_KEYS = 6


class Side(NamedTuple):
    """Bad states: no two may be neighbours at the lowest distances.

    They are those whose own hops are `least` or more, without those that may be neighbours of
    one of these.

    Attributes
    ----------
    dims
        How many distances.
    least
        Hops between two leaves in one state.
    """

    dims: int
    least: int


def row_of(tables: Tables, key: IntArray, view: Standing, side: Side) -> IntArray | None:
    """Return, per state, what leaves of bad states need beyond what leaves of others can give.

    In ranks; over all leaves they add up to 0 or less (docs/proofs-tree.md, "Relaxation"). None
    if that says nothing.

    Parameters
    ----------
    key
        Per state, hops between two leaves in it.
    view
        Of thresholds that ascend.
    """
    high = view.alive & (key >= side.least)
    bad = high & ~view.pairs[side.dims - 1][:, high].any(axis=1)
    closed = int(view.keeps[: side.dims, bad].all(axis=1).sum()) if bad.any() else side.dims
    if closed == side.dims:
        return None
    near = view.pairs[closed : side.dims][:, :, bad].any(axis=2)
    row: IntArray = -tables.ranks * near.sum(axis=0)
    # all bad states keep the lowest distances, if any
    pairs = _pairs(tables.cells, closed, side.dims)[tables.ranks]
    row[bad] = ((side.dims - closed) * tables.ranks - 2 * pairs)[bad]
    return row


def sides_of(
    tables: Tables, key: IntArray, view: Standing, thresholds: IntArray
) -> Iterator[tuple[Side, IntArray]]:
    """Yield sides and their rows, for any number of distances and some of the keys."""
    for dims in range(1, len(thresholds) + 1):
        keys = np.unique(key[view.alive & (key > thresholds[dims - 1])])
        for least in keys[:: max(1, -(-len(keys) // _MOST_KEYS))].tolist():
            side = Side(dims, least)
            row = row_of(tables, key, view, side)
            if row is not None:
                yield side, row


@lru_cache(maxsize=256)
def _pairs(ranks: int, closed: int, dims: int) -> IntArray:
    """Return the most pairs of the distances after some that x ranks keep inside."""
    return cube_pairs(ranks, frozenset(range(closed, dims)), frozenset(range(closed)))
