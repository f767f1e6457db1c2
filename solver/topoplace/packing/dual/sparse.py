"""Stored prices: there are thousands of them, each of tens of thousands of rows, mostly 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace.types import FloatArray, IntArray


@dataclass(frozen=True)
class SparsePrices:
    """The prices of rows that are not zero, integers in as few bits as they need.

    A point of a 24^3 machine takes some 20 to 100 kB, a dense one half a megabyte.
    """

    num_rows: int
    rows: NDArray[Any]
    prices: NDArray[Any]

    @property
    def num_bytes(self) -> int:
        """What they take."""
        return self.rows.nbytes + self.prices.nbytes

    @classmethod
    def of(cls, dense: IntArray | FloatArray) -> SparsePrices:
        """Return prices of all rows, integers of 64 bits or floats, shape ``(num_rows,)``."""
        rows = np.flatnonzero(dense != 0)  # of Booleans that takes a fifth of the time
        return cls.at(len(dense), rows, dense[rows])

    @classmethod
    def at(cls, num_rows: int, rows: IntArray, prices: IntArray | FloatArray) -> SparsePrices:
        """Return prices given for some rows, ascending, and 0 for the others."""
        there = np.flatnonzero(prices != 0)
        rows, prices = rows[there], prices[there]
        kept = prices if prices.dtype == np.float64 else _narrow(prices)
        return cls(num_rows, rows.astype(np.uint16 if num_rows <= 1 << 16 else np.int32), kept)

    def dense(self) -> NDArray[Any]:
        """Return the prices of all rows as they were given."""
        kind = np.float64 if self.prices.dtype == np.float64 else np.int64
        dense = np.zeros(self.num_rows, dtype=kind)
        dense[self.rows] = self.prices
        return dense


def _narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return integers in as few bits as they need."""
    least, most = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    kinds = (np.uint16, np.int32, np.int64)
    kind = next(k for k in kinds if np.iinfo(k).min <= least and most <= np.iinfo(k).max)
    return numbers.astype(kind)
