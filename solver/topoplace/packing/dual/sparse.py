"""Prices as they are kept: by the thousand, each of tens of thousands of rows, most of them 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace.types import FloatArray, IntArray


@dataclass(frozen=True)
class SparsePrices:
    """The prices of rows that are not zero: of integers, those of 32 bits where these do.

    A point of a 24^3 machine takes some 30 to 100 kB, a dense one half a megabyte.
    """

    num_rows: int
    rows: NDArray[np.int32]
    prices: NDArray[Any]

    @property
    def num_bytes(self) -> int:
        """What they take."""
        return self.rows.nbytes + self.prices.nbytes

    @classmethod
    def of(cls, dense: IntArray | FloatArray) -> SparsePrices:
        """Return prices of all rows, integers of 64 bits or floats, shape ``(num_rows,)``."""
        rows = np.flatnonzero(dense)
        prices: NDArray[Any] = dense[rows]
        if prices.dtype == np.int64 and np.abs(prices).max(initial=0) < 1 << 31:
            prices = prices.astype(np.int32)
        return cls(len(dense), rows.astype(np.int32), prices)

    def dense(self) -> NDArray[Any]:
        """Return the prices of all rows as they were given."""
        kind = np.float64 if self.prices.dtype == np.float64 else np.int64
        dense = np.zeros(self.num_rows, dtype=kind)
        dense[self.rows] = self.prices
        return dense
