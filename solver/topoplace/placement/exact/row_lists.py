"""The rows of many columns in one array, for compiled loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact import _prism_rows

IntArray = NDArray[np.int64]
Unsigned = NDArray[np.uint32]


class RowLists:
    """Lists of row numbers, one after the other; the arrays double when they are full.

    Numbers are unsigned: compiled loops need not ask whether an index counts from the end.

    Parameters
    ----------
    num_rows
        What row numbers are less than.
    """

    def __init__(self, num_rows: int) -> None:
        self._every_row = np.ones(num_rows, dtype=bool)
        self._num = 0
        self._starts = np.zeros(1 << 10, dtype=np.uint32)
        self._rows = np.zeros(1 << 16, dtype=np.uint32)

    def append(self, rows: IntArray) -> None:
        """Add a list."""
        start = int(self._starts[self._num])
        end = start + len(rows)
        if self._num + 2 > len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        while end > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[start:end] = rows
        self._num += 1
        self._starts[self._num] = end

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget all lists but those marked."""
        which = np.flatnonzero(kept)
        starts, rows = self.among(which, self._every_row)
        self._num = len(which)
        self._starts[: len(starts)] = starts
        self._rows[: len(rows)] = rows

    def among(self, which: IntArray, marked: NDArray[np.bool_]) -> tuple[Unsigned, Unsigned]:
        """Return some of the lists without the rows that are not marked: starts and rows."""
        found: tuple[Unsigned, Unsigned] = _prism_rows.marked_rows(
            self._starts, self._rows, which, marked
        )
        return found
