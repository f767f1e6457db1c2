"""The subcubes of a cube that thresholds say something about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.fibers.patterns import MOST_DIMS
from topoplace.placement.tree.exact.lines.tables import Standing, Tables

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_ALWAYS = 2  # distances of a cube that count although the next one has the same threshold


@dataclass(frozen=True)
class Family:
    """All subcubes (*fibers*) of some distances, and what states are to each other in them.

    Numbers of ranks are in units: what the distances that all states keep inside join.

    Attributes
    ----------
    dims
        Number of distances.
    fibers
        Number of subcubes.
    bad
        States no two of which may be neighbours there.
    other
        Of the rest, those that may not be neighbours of a bad one.
    """

    dims: int
    fibers: int
    bad: BoolArray
    other: BoolArray

    @property
    def size(self) -> int:
        """Units in a fiber."""
        return 1 << self.dims


def families_of(
    tables: Tables, key: IntArray, thresholds: IntArray, view: Standing
) -> tuple[int, list[Family]]:
    """Return the ranks per unit, and families of the lowest distances that may cross.

    Parameters
    ----------
    key
        Per state, hops between two leaves in it.
    thresholds
        Per distance, ascending.
    """
    alive = np.flatnonzero(view.alive)
    inside = int(view.keeps[:, alive].all(axis=1).sum())
    crossing = thresholds[inside:].tolist()
    found = []
    for dims in range(1, min(MOST_DIMS, len(crossing)) + 1):
        top = crossing[dims - 1]
        alike = dims < len(crossing) and crossing[dims] == top
        above = np.unique(key[alive][key[alive] > top])
        if not len(above) or (alike and _ALWAYS < dims < MOST_DIMS):
            continue
        fibers = tables.cells >> inside >> dims
        for least in sorted({int(above[0]), int(above[len(above) // 2]), int(above[-1])}):
            high = view.alive & (key >= least)
            bad = high & ~(tables.pair[:, high] <= top).any(axis=1)
            near = (tables.pair[:, bad] <= top).any(axis=1)
            found.append(Family(dims, fibers, bad, view.alive & ~bad & ~near))
    return 1 << inside, found
