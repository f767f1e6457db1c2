"""Sums over windows of consecutive positions along an axis, from all origins at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def num_origins(n: int, wraps: bool, extent: int) -> int:
    """Return the number of canonical origins of an extent along a dimension of size `n`."""
    return 1 if extent == n else n if wraps else n - extent + 1


@dataclass(frozen=True)
class Windows:
    """Prefix sums along one axis, twice round where it is a ring."""

    prefix: IntArray
    axis: int

    def sums(self, length: int, first: int, stop: int) -> IntArray:
        """Return the sums over `length` positions from the origins ``first..stop-1``."""
        return _cut(self.prefix, self.axis, first + length, stop + length) - _cut(
            self.prefix, self.axis, first, stop
        )


def windows(values: IntArray, axis: int, wraps: bool) -> Windows:
    """Return the prefix sums of an array along an axis."""
    n = values.shape[axis]
    shape = list(values.shape)
    shape[axis] = (2 * n if wraps else n) + 1
    prefix = np.zeros(shape, dtype=np.int64)
    np.cumsum(values, axis=axis, out=_cut(prefix, axis, 1, n + 1))
    if wraps:
        once = _cut(prefix, axis, n, n + 1)
        np.add(_cut(prefix, axis, 1, n + 1), once, out=_cut(prefix, axis, n + 1, 2 * n + 1))
    return Windows(prefix, axis)


@dataclass(frozen=True)
class Faces:
    """An array along one axis with what lies before its first position and after its last."""

    padded: IntArray
    axis: int

    def sums(self, extent: int, first: int, stop: int) -> IntArray:
        """Return what lies at both ends of an interval from the origins ``first..stop-1``."""
        return _cut(self.padded, self.axis, first, stop) + _cut(
            self.padded, self.axis, first + extent + 1, stop + extent + 1
        )


def faces(values: IntArray, axis: int, wraps: bool) -> Faces:
    """Return an array padded for face sums: by itself on a ring, by nothing on a line."""
    n = values.shape[axis]
    if wraps:
        parts: Sequence[IntArray] = (_cut(values, axis, n - 1, n), values, values)
    else:
        edge = np.zeros_like(_cut(values, axis, 0, 1))
        parts = (edge, values, edge)
    return Faces(np.concatenate(parts, axis=axis), axis)


def _cut(array: IntArray, axis: int, start: int, stop: int) -> IntArray:
    return array[(slice(None),) * axis + (slice(start, stop),)]
