"""64-bit integers that cannot wrap round: every bound is stated, and what exceeds it is refused.

numpy adds, multiplies and shifts 64-bit integers modulo 2^64 without a word. The checker therefore
does arithmetic on arrays either through the functions of this file, or under a bound of all
operands and results that it has stated to `require_room`. Figures that are claimed or proven are
Python integers and fractions, which have any size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.report import RefusedError
from topoplace.types import IntArray

ROOM = 1 << 62
"""Absolute values stay below it, so that the sum of two of them still fits."""

EXACT_FLOATS = 1 << 53
"""Sums of integers below it are exact in floating point, in whatever order they are added."""


def require_room(bound: int, what: str, room: int = ROOM) -> None:
    """Refuse numbers that may be too large, `bound` being no less than any of them."""
    if bound >= room:
        raise RefusedError(f"{what}: up to {bound}, at most {room - 1} fits")


def largest(*arrays: IntArray) -> int:
    """Return the largest absolute value of all entries, 0 if there are none."""
    return max((max(int(a.max()), -int(a.min())) for a in arrays if a.size), default=0)


def times(array: IntArray, factor: int, what: str) -> IntArray:
    """Return an array with every entry multiplied."""
    require_room(abs(factor), what)
    require_room(largest(array) * abs(factor), what)
    product: IntArray = array * np.int64(factor)
    return product


def total(array: IntArray, what: str) -> int:
    """Return the sum of all entries."""
    require_room(largest(array) * array.size, what)
    return int(array.sum(dtype=np.int64))


def row_sums(array: IntArray, what: str) -> IntArray:
    """Return the sums over the last axis."""
    require_room(largest(array) * array.shape[-1], what)
    sums: IntArray = array.sum(axis=-1, dtype=np.int64)
    return sums


def product(one: IntArray, other: IntArray, what: str) -> IntArray:
    """Return a product of matrices or vectors."""
    require_room(largest(one) * largest(other) * one.shape[-1], what)
    found: IntArray = np.asarray(one @ other, dtype=np.int64)
    return found


def added_at(size: int, at: NDArray[Any], amounts: IntArray, what: str) -> IntArray:
    """Return `size` sums: of the amounts at each place, 0 where there are none."""
    require_room(largest(amounts) * len(amounts), what)
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, at, amounts)
    return sums


def whole(floats: NDArray[np.floating[Any]], limit: int) -> IntArray | None:
    """Return rounded floats as integers, None if one of them is not below a limit."""
    rounded = np.rint(floats)
    if not (np.abs(rounded) < limit).all():
        return None
    integers: IntArray = rounded.astype(np.int64)
    return integers


def square_of(factor: IntArray, rows: slice, what: str) -> IntArray:
    """Return some rows of R R' of an integer matrix R.

    If the squares of every row of R add up to less than 2^53, so do by Cauchy and Schwarz the
    absolute products of any two rows, and of any parts of them. Every intermediate sum is then an
    integer that floating point holds exactly, so that its fast product may be taken.
    """
    require_room(largest(factor) ** 2 * factor.shape[1], what)
    require_room(int((factor * factor).sum(axis=1).max(initial=0)), what, EXACT_FLOATS)
    floats = factor.astype(np.float64)
    return np.asarray(floats[rows] @ floats.T).astype(np.int64)
