"""Sums over many boxes of routers at once, by look-ups in a table of prefix sums."""

from __future__ import annotations

import numpy as np

from topoplace.machine import Torus
from topoplace.types import IntArray

_SIGNS = np.array([1, -1, 1])  # of the three corners that a dimension has (see `inside`)


class BoxCounts:
    """Sums of a number per router over boxes of a machine.

    Parameters
    ----------
    per_router
        Integers, shape ``(num_routers,)``.
    """

    def __init__(self, torus: Torus, per_router: IntArray) -> None:
        self._shape = torus.shape
        self._table = np.zeros([n + 1 for n in torus.shape], dtype=np.int64)
        part = self._table[tuple(slice(1, None) for _ in torus.shape)]
        part[...] = per_router.reshape(torus.shape)
        for d in range(torus.num_dims):
            np.cumsum(part, axis=d, out=part)

    def inside(self, origins: IntArray, extents: IntArray) -> IntArray:
        """Return the sum over each box, shape ``(num_boxes,)``.

        Parameters
        ----------
        origins, extents
            Shape ``(num_boxes, num_dims)``; a box may run past the end of a ring, and an extent
            of 0 makes it empty.
        """
        # what a box holds along a dimension: up to its end, not before its origin, and what runs
        # past the last coordinate, from 0 on
        index = np.zeros((len(origins), 1), dtype=np.int64)
        signs = np.ones(1, dtype=np.int64)
        for d, n in enumerate(self._shape):
            origin, end = origins[:, d], origins[:, d] + extents[:, d]
            corners = np.stack([np.minimum(end, n), origin, np.maximum(end - n, 0)], axis=1)
            used = corners.any(axis=0)  # the table is 0 at 0; else eight dimensions take gigabytes
            corners = corners[:, used]
            signs = (signs[:, None] * _SIGNS[used]).ravel()
            index = index[:, :, None] * (n + 1) + corners[:, None, :]
            index = index.reshape(len(origins), len(signs))
        sums: IntArray = self._table.ravel()[index] @ signs
        return sums
