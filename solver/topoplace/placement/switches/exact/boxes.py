"""Boxes of thresholds, kept by the cost of their low corners and cut by what is impossible."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.switches.exact._boxes import (
    DONE,
    FULL,
    PAUSED,
    below,
    ceiling,
    cut_boxes,
    mark,
    members,
    no_less,
    push,
)
from topoplace.placement.switches.exact.job import Job
from topoplace.types import IntArray

WordArray = NDArray[np.uint64]
Box = tuple[IntArray, IntArray]
"""Least and largest thresholds, by number."""

_MOST_CUTS = 1 << 10
"""Boxes cut between two looks at the clock: some milliseconds."""


class Corners:
    """Vectors of thresholds by number."""

    def __init__(self, num_steps: int) -> None:
        self._all = np.zeros((64, num_steps), dtype=np.int64)
        self.sets: WordArray = np.zeros((num_steps, 1, 1), dtype=np.uint64)
        self._num = 0

    def __len__(self) -> int:
        return self._num

    @property
    def all(self) -> IntArray:
        """Shape ``(len(self), num_steps)``."""
        return self._all[: self._num]

    def add(self, corner: IntArray) -> None:
        """Add a vector."""
        if self._num == len(self._all):
            self._all = np.concatenate([self._all, np.zeros_like(self._all)])
            self.sets = np.concatenate([self.sets, np.zeros_like(self.sets)], axis=2)
        room = int(corner.max()) + 2 - self.sets.shape[1]
        if room > 0:
            self.sets = np.pad(self.sets, ((0, 0), (0, 2 * room), (0, 0)))
        self._all[self._num] = corner
        mark(self.sets, self._num, corner)
        self._num += 1

    def no_less(self, at: IntArray) -> IntArray:
        """Return the numbers of those that are nowhere below a vector."""
        found: IntArray = members(no_less(self.sets, self._num, at))
        return found

    def below(self, at: IntArray) -> bool:
        """Tell whether one is nowhere above a vector."""
        return bool(below(self.sets, self._num, at))

    def ceiling(self, at: IntArray, step: int, top: int) -> int:
        """Return the largest value of a step, up to `top`, with which none is below a vector."""
        return int(ceiling(self.all, self.sets, at, step, top))


class Boxes:
    """Boxes of thresholds by number, in a heap by the cost of their low corners."""

    def __init__(self, job: Job) -> None:
        self._values, self._prices = job.values, job.prices
        num, room = len(job.prices), 1024
        self._chain = np.full((2, num), -1, dtype=np.int64)
        for chain in job.chains:
            self._chain[0, list(chain[1:])] = chain[:-1]
            self._chain[1, list(chain[:-1])] = chain[1:]
        self._low = np.zeros((room, num), dtype=np.int64)
        self._high = np.zeros((room, num), dtype=np.int64)
        self._cost = np.zeros(room, dtype=np.int64)
        self._heap = np.zeros(room, dtype=np.int64)
        self._size = np.zeros(2, dtype=np.int64)

    def add(self, low: IntArray, high: IntArray) -> None:
        """Add a box; there are a few hundred at most to begin with."""
        if self._size[1] == len(self._cost):
            self._grow()
        num, box = self._size.tolist()
        self._low[box], self._high[box] = low, high
        self._cost[box] = self._prices @ self._values[low]
        push(self._heap, self._cost, num, box)
        self._size += 1

    def cheapest(
        self, nogoods: Corners, to_beat: int, deadline: float = math.inf
    ) -> tuple[int, IntArray, IntArray] | None:
        """Cut boxes by nogoods; return the cheapest that is under none: cost, low, high.

        Highs are cut to what is affordable. None if all cost `to_beat` or more. After the deadline
        the cheapest one may be under a nogood, and its cost is still what no other box is below.
        """
        while True:
            found = cut_boxes(
                self._low, self._high, self._cost, self._heap, self._size,
                nogoods.all, nogoods.sets, self._values, self._prices, self._chain, to_beat,
                _MOST_CUTS,
            )  # fmt: skip
            if found == FULL:
                self._grow()
            elif found == DONE:
                return None
            elif found != PAUSED or clock.now() > deadline:
                box = self._heap[0]
                return int(self._cost[box]), self._low[box].copy(), self._high[box].copy()

    def _grow(self) -> None:
        """Double the room, after what is not on the heap any more is let go."""
        num = int(self._size[0])
        kept = self._heap[:num]
        room = 2 * max(num, 512)
        for name in ("_low", "_high", "_cost"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), dtype=np.int64)
            new[:num] = old[kept]
            setattr(self, name, new)
        # a heap may be copied in its order
        self._heap = np.concatenate([np.arange(num), np.zeros(room - num, dtype=np.int64)])
        self._size[1] = num
