"""Prefix sums over two periods of a machine, from which a box across a ring's end is one sum."""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math

import numpy as np

from topoplace.kernels import kernel
from topoplace.types import IntArray


def periodic_sums(per_router: IntArray, num_summed: int) -> IntArray:
    """Return prefix sums along the first dimensions of a table, which goes on periodically there.

    Parameters
    ----------
    per_router
        Integers, of the machine's shape.
    num_summed
        How many dimensions to sum along. One of size n has size ``2 * n + 1`` in the result:
        entry k is the sum of the k routers before it.
    """
    shape = per_router.shape
    table: IntArray = np.ascontiguousarray(per_router, dtype=np.int64)
    done: tuple[int, ...] = ()
    for d in range(num_summed):
        inner = math.prod(shape[d + 1 :])
        table = _sums_along(table.reshape(math.prod(done), shape[d], inner))
        done = (*done, 2 * shape[d] + 1)
    return table.reshape(*done, *shape[num_summed:])


@kernel()
def _sums_along(table):
    """Return the prefix sums of two periods along the middle one of three dimensions."""
    outer, n, inner = table.shape
    sums = np.empty((outer, 2 * n + 1, inner), np.int64)
    for o in range(outer):
        for i in range(inner):
            sums[o, 0, i] = 0
        for k in range(2 * n):
            layer = table[o, k if k < n else k - n]
            for i in range(inner):
                sums[o, k + 1, i] = sums[o, k, i] + layer[i]
    return sums
