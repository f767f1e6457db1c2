"""Whether given numbers of leaves can be cut into the fibers of a family."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import lru_cache

from ortools.sat.python import cp_model

from topoplace.placement.tree.exact.fibers.patterns import patterns

_MOST_COLUMNS = 3000
_SECONDS = 1.0


@lru_cache(maxsize=100_000)
def fits(dims: int, fibers: int, bad: tuple[tuple[int, int], ...], other: int) -> bool:
    """Tell whether fibers may be cut so; what takes too long may be.

    Parameters
    ----------
    bad
        Of every bad state, units on a leaf and number of leaves.
    other
        Units on leaves that may not be next to bad ones.
    """
    columns: set[tuple[tuple[int, ...], tuple[int, ...], int]] = set()
    for components, apart in patterns(dims):
        for owners in itertools.product(range(len(bad)), repeat=len(components)):
            if any(size > bad[own][0] for size, own in zip(components, owners, strict=True)):
                continue
            cells: Counter[int] = Counter()
            for size, own in zip(components, owners, strict=True):
                cells[own] += size
            pieces = Counter(owners)
            every = range(len(bad))
            columns.add((tuple(cells[s] for s in every), tuple(pieces[s] for s in every), apart))
        if len(columns) > _MOST_COLUMNS:
            return True
    model = cp_model.CpModel()
    number = {column: model.new_int_var(0, fibers, "") for column in sorted(columns)}
    model.add(sum(number.values()) == fibers)
    for s, (units, leaves) in enumerate(bad):
        model.add(sum(cells[s] * v for (cells, _, _), v in number.items()) == units * leaves)
        least = -(-units // (1 << dims)) * leaves
        model.add(sum(pieces[s] * v for (_, pieces, _), v in number.items()) >= least)
    model.add(sum(apart * v for (_, _, apart), v in number.items()) >= other)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = _SECONDS
    solver.parameters.num_workers = 1
    return bool(solver.solve(model) != cp_model.INFEASIBLE)
