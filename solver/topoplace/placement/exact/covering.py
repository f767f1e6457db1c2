"""Few columns that cover all rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NONE = -1
"""What `few_that_cover` says of a row that nothing covers."""


def few_that_cover(covers: NDArray[np.bool_]) -> list[int]:
    """Choose for every row a column that covers it, few columns in all; NONE where none does."""
    chosen = np.full(len(covers), NONE)
    left = covers.any(axis=1)
    while left.any():
        column = int(covers[left].sum(axis=0).argmax())
        chosen[left & covers[:, column]] = column
        left &= ~covers[:, column]
    return [int(column) for column in chosen]
