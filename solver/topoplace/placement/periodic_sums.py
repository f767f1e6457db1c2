"""Prefix sums over two periods of a machine, from which a box across a ring's end is one sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


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
    sizes = [2 * n + 1 if d < num_summed else n for d, n in enumerate(shape)]
    table = np.zeros(sizes, dtype=np.int64)
    done = tuple(slice(1, n + 1) if d < num_summed else slice(None) for d, n in enumerate(shape))
    part = table[done]
    part[...] = per_router
    for d in range(num_summed):
        np.cumsum(part, axis=d, out=part)
    for d in range(num_summed):  # the second period is the first, a whole one further
        n = shape[d]
        before = [slice(None) if k < d else done[k] for k in range(len(shape))]
        first, last, second = list(before), list(before), list(before)
        first[d], last[d], second[d] = slice(1, n + 1), slice(n, n + 1), slice(n + 1, None)
        np.add(table[tuple(first)], table[tuple(last)], out=table[tuple(second)])
    return table
