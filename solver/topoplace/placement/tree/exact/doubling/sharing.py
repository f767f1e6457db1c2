"""Boxes that a part with none left takes over from another."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.doubling.sides import Box

IntArray = NDArray[np.int64]


class Gift(NamedTuple):
    """Boxes, and thresholds that their part knows to be impossible."""

    boxes: list[Box]
    impossible: IntArray


class Sharing:
    """Where parts, known by number, wait for boxes of others when they have none left."""

    def __init__(self, num_parts: int) -> None:
        self._working = set(range(num_parts))
        self._num_waiting = 0
        self._gifts: deque[Gift] = deque()
        self._changed = threading.Condition()

    @property
    def wanted(self) -> bool:
        """Whether a part waits."""
        return self._num_waiting > len(self._gifts)

    def give(self, gift: Gift) -> None:
        """Hand boxes over to a part that waits."""
        with self._changed:
            self._gifts.append(gift)
            self._changed.notify_all()

    def take(self, part: int) -> Gift | None:
        """Wait for boxes; return None once no part works on any."""
        with self._changed:
            self._working.discard(part)
            self._num_waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._gifts or not self._working)
            self._num_waiting -= 1
            if not self._gifts:
                return None
            self._working.add(part)
            return self._gifts.popleft()

    def leave(self, part: int) -> None:
        """Say that a part has ended, with boxes or without."""
        with self._changed:
            self._working.discard(part)
            self._changed.notify_all()
