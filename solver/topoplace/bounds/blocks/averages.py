"""How often a box of a family has which capacity, by summed-area tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace.bounds.blocks.families import MAX_BOXES, pieces_of_all
from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray


@dataclass(frozen=True)
class Family:
    """A family of tilings as the bound sees it.

    Attributes
    ----------
    extents
        Block extents per machine dimension.
    rates
        Share of the tilings in which a plane is present, per dimension.
    capacities
        Distinct box capacities, ascending, none above the number of tasks.
    counts
        Boxes of each capacity over all tilings.
    num_tilings
        Number of tilings.
    """

    extents: tuple[int, ...]
    rates: tuple[Fraction, ...]
    capacities: IntArray
    counts: IntArray
    num_tilings: int


class BoxSums:
    """Capacities of boxes, any of which may wrap."""

    def __init__(self, torus: Torus, capacity: IntArray) -> None:
        self._torus = torus
        table = capacity.reshape(torus.shape)
        for d, wraps in enumerate(torus.wrap):
            if wraps:
                table = np.concatenate([table, table], axis=d)
            table = np.cumsum(table, axis=d)
            pad = [(int(k == d), 0) for k in range(torus.num_dims)]
            table = np.pad(table, pad)
        self._table = table

    def family(self, extents: tuple[int, ...], num_tasks: int) -> Family | None:
        """Return a family; None if it has too many boxes to be worth the time."""
        pieces = pieces_of_all(self._torus, extents)
        if math.prod(len(p.starts) for p in pieces) > MAX_BOXES:
            return None
        sums = self._table
        times = np.ones((), dtype=np.int64)
        for d, piece in enumerate(pieces):
            sums = sums.take(piece.ends, axis=d) - sums.take(piece.starts, axis=d)
            times = np.multiply.outer(times, piece.counts)
        capacities, where = np.unique(np.minimum(sums, num_tasks).ravel(), return_inverse=True)
        counts = np.zeros(len(capacities), dtype=np.int64)
        np.add.at(counts, where.ravel(), times.ravel())
        return Family(
            extents,
            tuple(p.rate for p in pieces),
            capacities,
            counts,
            math.prod(p.num_patterns for p in pieces),
        )
