"""The points that bounded a later level: each bounds every set of started requests.

At any prices and multipliers, a set of started requests has at most the value of all capacities and
the sum of its requests' largest gains (docs/proofs/placement.md, "A leaf"). The gains do not depend
on the other requests, so a point that was evaluated once bounds all other sets without another call
of the oracle, as those of the first level do (`cut_pool`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.packing.dual.sparse import SparsePrices
from topoplace.packing.problem import NO_VALUE
from topoplace.types import BoolArray, FloatArray, IntArray

MOST_BYTES = 1 << 26
"""Limit of the prices in a pool; a point of a 24^3 machine takes 30 to 100 kB."""

_ROOM = 64  # points, to begin with

LeafParts = tuple[int, SparsePrices, tuple[int, ...]]
"""Scale, row prices and multipliers, all integers."""


class LaterPool:
    """A pool of points of one later level, evaluated without limits of places.

    Parameters
    ----------
    level
        The level.
    num_requests
        How many requests there are.
    """

    covers = fixed = ()

    def __init__(self, level: int, num_requests: int) -> None:
        self.level = level
        self._points: list[LeafParts] = []
        self._num_bytes = 0
        self._totals = np.zeros(_ROOM, dtype=np.int64)
        self._scales = np.ones(_ROOM, dtype=np.int64)
        self._gains = np.zeros((_ROOM, num_requests), dtype=np.int64)

    @property
    def startable(self) -> frozenset[int]:
        """The requests that have a candidate."""
        return frozenset(np.flatnonzero(self._gains[0] != NO_VALUE).tolist() if len(self) else ())

    def __len__(self) -> int:
        return len(self._points)

    def add(self, parts: LeafParts, total: int, gains: IntArray) -> None:
        """Take in an evaluated point, unless the pool is full.

        Parameters
        ----------
        total
            The value of the capacities without what earlier levels must reach, in `scale`-fold
            units.
        gains
            Largest (value - price) per request in these units, shape ``(num_requests,)``.
        """
        number = len(self)
        if self._num_bytes >= MOST_BYTES:
            return
        if number == len(self._totals):
            self._totals, self._scales = np.tile(self._totals, 2), np.tile(self._scales, 2)
            self._gains = np.tile(self._gains, (2, 1))
        self._totals[number], self._scales[number], self._gains[number] = total, parts[0], gains
        self._points.append(parts)
        self._num_bytes += parts[1].num_bytes

    def extend(self, other: LaterPool) -> None:
        """Take in the points of another pool of the level."""
        for k, parts in enumerate(other._points):
            self.add(parts, int(other._totals[k]), other._gains[k])

    def parts(self, number: int) -> LeafParts:
        """Return what a leaf with the prices of a point has."""
        return self._points[number]

    def gains(self, number: int) -> IntArray:
        """Return the largest gain per request of a point, in its units."""
        gains: IntArray = self._gains[number]
        return gains

    def multiple(
        self, number: int, forced: frozenset[int], excluded: frozenset[int]
    ) -> tuple[int, int]:
        """Return which multiple of a point bounds a set of starts: the point itself."""
        return 1, 1

    def sides(
        self, forced: frozenset[int], excluded: frozenset[int]
    ) -> tuple[BoolArray, BoolArray]:
        """Return which requests must start, and which may, shape ``(num_requests,)`` each."""
        must, may = np.zeros((2, self._gains.shape[1]), dtype=bool)
        must[list(forced)] = True
        may[:] = ~must
        may[list(excluded)] = False
        return must, may

    def bounds(
        self, forced: frozenset[int], excluded: frozenset[int], first: int = 0
    ) -> FloatArray:
        """Return the bounds of all points, from the first on, on a set of starts."""
        numbers = np.arange(first, len(self))
        return self.bounds_of(numbers, *self.sides(forced, excluded))

    def bounds_of(
        self, numbers: IntArray | Sequence[int], forced: BoolArray, free: BoolArray
    ) -> FloatArray:
        """Return the bounds of some points on sets of starts.

        Parameters
        ----------
        forced, free
            Which requests must start, and which may, shape ``(..., num_requests)``.

        Returns
        -------
        Shape ``(..., num_points)``: integers, `NO_VALUE` where a request that must start has no
        candidate.
        """
        gains = self._gains[numbers]
        none = gains == NO_VALUE
        gains = np.where(none, 0, gains)
        sums = forced.astype(np.int64) @ gains.T + free.astype(np.int64) @ np.maximum(0, gains).T
        bounds = ((self._totals[numbers] + sums) // self._scales[numbers]).astype(float)
        bounds[(forced.astype(np.int64) @ none.T.astype(np.int64)) > 0] = NO_VALUE
        return bounds
