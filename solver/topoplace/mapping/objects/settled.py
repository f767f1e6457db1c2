"""What all methods for objects share: finding free cells for objects, and keeping the best."""

from __future__ import annotations

import math
from bisect import bisect_left, insort

import numpy as np

from topoplace import clock
from topoplace.mapping.local_search import arrays_of, homes_of
from topoplace.mapping.objects._kernels import settle
from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray


def space_left(problem: MappingProblem, at: IntArray) -> IntArray:
    """Return the load that every pool still has room for, given those of tasks, -1 of some."""
    left, known = problem.pools.room.copy(), at >= 0
    np.subtract.at(left, at[known], problem.loads[known])
    return left


SETTLE_WORK = 1 << 22
"""Objects times cells between two looks at the clock."""


def settled(
    problem: MappingProblem,
    wanted: IntArray,
    order: IntArray | None = None,
    stop: float = math.inf,
) -> IntArray | None:
    """Return a cell for every object, on its wanted router or near it; None if one does not fit.

    Objects come in an `order`; by default, and if that leaves an object without a cell, the largest
    first. Those that have no cell when the clock shows `stop` go to the emptiest ones.
    """
    cells, largest = problem.pools, np.argsort(-problem.loads, kind="stable")
    machine, wanted = arrays_of(problem), wanted.astype(np.int64)
    step = max(1, SETTLE_WORK // len(cells.room))
    for way in ([] if order is None else [order]) + [largest]:
        found = homes_of(problem)
        left = space_left(problem, found)
        for k in range(0, len(way), step):
            if clock.now() >= stop:
                return emptiest_first(problem, found)
            some = way[k : k + step].astype(np.int64)
            settle(machine, cells.first, cells.router, problem.loads, wanted, some, found, left)
        if (found >= 0).all():
            return found
    return emptiest_first(problem)


def emptiest_first(problem: MappingProblem, known: IntArray | None = None) -> IntArray | None:
    """Return cells, the largest object first, each in the emptiest cell; None if one does not fit.

    This ignores messages (Graham 1969, "Bounds on multiprocessing timing anomalies"). If an object
    does not fit then, each goes to the fullest cell where it fits, the largest first, which wastes
    least. Objects with a `known` cell, not -1, keep it; by default fixed ones.
    """
    known = homes_of(problem) if known is None else known
    found = one_by_one(problem, known, fullest=False)
    return one_by_one(problem, known, fullest=True) if found is None else found


def one_by_one(problem: MappingProblem, known: IntArray, *, fullest: bool) -> IntArray | None:
    """Return cells, the largest object first, each in the emptiest or the fullest that it fits."""
    found, loads, width = known.copy(), problem.loads.tolist(), problem.pools.width.tolist()
    left = space_left(problem, known).tolist()
    sign = 1 if fullest else -1
    ranks = sorted(
        (sign * room / wide, k) for k, (room, wide) in enumerate(zip(left, width, strict=True))
    )
    for one in np.argsort(-problem.loads, kind="stable").tolist():
        if found[one] >= 0:
            continue
        begin = bisect_left(ranks, (loads[one] / max(width), -1)) if fullest else 0
        fits = (k for k in range(begin, len(ranks)) if left[ranks[k][1]] >= loads[one])
        at = next(fits, None)
        if at is None:
            return None
        _, cell = ranks.pop(at)
        found[one] = cell
        left[cell] -= loads[one]
        insort(ranks, (sign * left[cell] / width[cell], cell))
    return found
