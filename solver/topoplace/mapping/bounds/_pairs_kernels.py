"""The least costs of pairs of assignments, compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.exact._kernels import assign
from topoplace.types import IntArray

# mypy: allow-untyped-defs, allow-untyped-calls
# Kernels are compiled for the array types they are called with; annotations would be noise.


class Work(NamedTuple):
    """Memory of assignments, as `assign` needs it."""

    row_of: IntArray
    u: IntArray
    v: IntArray
    late: IntArray
    length: IntArray
    before: IntArray
    scanned: IntArray


def work_of(num: int) -> Work:
    """Return memory for assignments of `num` tasks and places."""
    fields: Any = (np.zeros(num, dtype=np.int64) for _ in Work._fields)
    return Work(*fields)


@kernel()
def least_of_orbits(costs, firsts, kind, work):
    """Return the least sum of ``costs[i, a, j, q]`` over tasks i, j and their places a, q.

    Orbit a represents all places p with ``kind[p] == a``; the first of them is ``firsts[a]``.
    """
    num = costs.shape[0]
    others = np.empty((num, num), dtype=np.int64)
    leaders = np.empty((num, firsts.shape[0]), dtype=np.int64)
    each = np.arange(num)
    for i in range(num):
        for a in range(firsts.shape[0]):
            p = firsts[a]
            for j in range(num):
                row = j - (j > i)
                if j != i:
                    for q in range(num):
                        if q != p:
                            others[row, q - (q > p)] = costs[i, a, j, q]
            least = assign(others, each, num - 1, num - 1, work)
            leaders[i, a] = costs[i, a, i, p] + least
    return assign(leaders, kind, num, num, work)
