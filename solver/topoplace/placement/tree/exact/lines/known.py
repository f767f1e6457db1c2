"""The lines that programs have met so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_MOST_LINES = 250


class KnownLines:
    """The lines of one dimension met so far, as codes of segments, and when they were used."""

    def __init__(self, extent: int) -> None:
        self.codes = np.zeros((0, extent), dtype=np.int64)
        self.used = np.zeros(0, dtype=np.int64)
        self._number: dict[bytes, int] = {}

    def latest(self, fits: BoolArray, since: int) -> IntArray:
        """Return lines among some: those used since, and others used last up to a number."""
        found = np.flatnonzero(fits)
        most = max(_MOST_LINES, int((self.used[found] >= since).sum()))
        if len(found) > most:
            found = found[np.argsort(-self.used[found], kind="stable")[:most]]
        return found

    def add(self, codes: IntArray, now: int, there: IntArray) -> bool:
        """Add lines; return whether any was not among those there."""
        new: list[IntArray] = []
        again: set[int] = set()
        for own in codes:
            number = self._number.setdefault(own.tobytes(), len(self.used) + len(new))
            if number >= len(self.used) + len(new):
                new.append(own)
            elif number < len(self.used):
                again.add(number)
        self.used[list(again)] = now
        if new:
            self.codes = np.concatenate([self.codes, np.stack(new)])
            self.used = np.concatenate([self.used, np.full(len(new), now)])
        return bool(new) or not again <= set(there.tolist())
