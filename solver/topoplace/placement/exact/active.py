"""Which packing rows take part in the linear programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact.program import Column, matrix_of
from topoplace.placement.exact.rows import PackingRows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MOST_NEW = 40  # rows that enter after one program
_MOST_IDLE = 4  # programs in a row that a row may have no price
_ALIKE = 0.7  # rows that share so much of the smaller one's columns do not enter together


class ActiveRows:
    """The rows in the programs: all routers, and the links that a solution has violated.

    Once lazy, routers enter like links, and rows without a price leave: of the rows of a large
    program few bind, and a program over those alone is solved many times faster.

    Attributes
    ----------
    marks
        Per row, whether it takes part.
    """

    def __init__(self, rows: PackingRows) -> None:
        self.marks = np.zeros(rows.num_rows, dtype=bool)
        self.marks[: rows.num_routers] = True
        self._lazy = False
        self._left_once = np.zeros(rows.num_rows, dtype=bool)
        self._idle = np.zeros(rows.num_rows, dtype=np.int64)

    def start_lazily(self) -> None:
        """Begin anew without any row, and be lazy from now on."""
        if not self._lazy:
            self._lazy = True
            self.marks[:] = False

    def update(
        self,
        load: FloatArray,
        priced: NDArray[np.bool_],
        hashes: IntArray,
        columns: Sequence[Column],
    ) -> bool:
        """Take in violated rows; return whether there were none.

        Parameters
        ----------
        load, priced
            Per row, how much of it the solution uses, and whether it has a price.
        hashes
            Equal for rows that no column tells apart.
        columns
            All columns.
        """
        violated = np.flatnonzero((load > 1 + 1e-6) & ~self.marks)
        if not self._lazy:
            self.marks[violated] = True
            return not len(violated)
        self._drop_idle(priced)
        if len(violated):
            violated = violated[np.argsort(-load[violated], kind="stable")]
            first = np.unique(hashes[violated], return_index=True)[1]
            self._take(violated[np.sort(first)], columns)
        return not len(violated)

    def _drop_idle(self, priced: NDArray[np.bool_]) -> None:
        """Take out rows that have had no price for some time, but each only once."""
        self._idle[priced] = 0
        self._idle[~priced] += 1
        gone = self.marks & ~self._left_once & (self._idle >= _MOST_IDLE)
        self.marks &= ~gone
        self._left_once |= gone

    def _take(self, rows: IntArray, columns: Sequence[Column]) -> None:
        """Take in some rows, the first of those much alike."""
        row_of = np.full(len(self.marks), -1, dtype=np.int64)
        row_of[rows] = np.arange(len(rows))
        matrix = matrix_of(columns, row_of, len(rows))
        size = np.diff(matrix.indptr)
        left = np.ones(len(rows), dtype=bool)
        for _ in range(_MOST_NEW):
            chosen = int(left.argmax())
            if not left[chosen]:
                break
            self.marks[rows[chosen]] = True
            self._idle[rows[chosen]] = 0
            common = (matrix @ matrix[chosen].T).toarray().ravel()
            left &= common < _ALIKE * np.minimum(size, size[chosen])
            left[chosen] = False
