"""What all methods for objects share: finding free cells for objects, and keeping the best."""

from __future__ import annotations

import math
import time
from bisect import bisect_left, insort
from typing import Any, NamedTuple

import numpy as np

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.local_search import Machine, machine_arrays
from topoplace.mapping.mapped import REPORT_SECONDS, SLACK
from topoplace.mapping.objects._kernels import settle
from topoplace.mapping.objects.bounds import load_bound
from topoplace.mapping.objects.problem import ObjectsProblem
from topoplace.solving import Options, Outcome
from topoplace.types import BoolArray, IntArray


def arrays_of(problem: ObjectsProblem) -> Machine:
    """Return the machine in the form of kernels; `InputError` if distances are not symmetric."""
    return machine_arrays(problem.machine, np.diff(problem.cells.first))


class Branches(NamedTuple):
    """Trees in the form of kernels (`Trees`), the torus they are on, and marks.

    The last of the marks of routers, `at`, and of trees, `seen`, is the one in use.
    """

    shape: IntArray
    strides: IntArray
    wraps: BoolArray
    root: IntArray
    first: IntArray
    member: IntArray
    bytes: IntArray
    of_first: IntArray
    of: IntArray
    at: IntArray
    seen: IntArray


def branches_of(problem: ObjectsProblem) -> Branches:
    """Return the trees in the form of kernels; a machine without links has none."""
    trees, machine = problem.trees, problem.machine
    torus = machine.torus or Torus((1,))
    return Branches(
        np.array(torus.shape),
        np.array(torus.strides),
        np.array(torus.wrap),
        *(trees.root, trees.first, trees.member, trees.bytes, trees.of_first, trees.of),
        np.zeros(torus.num_routers + 1, dtype=np.int64),
        np.zeros(len(trees.root) + 1, dtype=np.int64),
    )


def homes_of(problem: ObjectsProblem) -> IntArray:
    """Return the cell of every fixed object, -1 of others."""
    home = np.full(problem.num_objects, -1, dtype=np.int64)
    home[problem.fixed] = problem.cells_of(problem.home[problem.fixed])
    return home


SETTLE_WORK = 1 << 22
"""Objects times cells between two looks at the clock."""


def settled(
    problem: ObjectsProblem,
    wanted: IntArray,
    order: IntArray | None = None,
    stop: float = math.inf,
) -> IntArray | None:
    """Return a cell for every object, on its wanted router or near it; None if one does not fit.

    Objects come in an `order`; by default, and if that leaves an object without a cell, the largest
    first. Those that have no cell when the clock shows `stop` go to the emptiest ones.
    """
    cells, largest = problem.cells, np.argsort(-problem.loads, kind="stable")
    machine, wanted = arrays_of(problem), wanted.astype(np.int64)
    step = max(1, SETTLE_WORK // len(cells.room))
    for way in ([] if order is None else [order]) + [largest]:
        found = homes_of(problem)
        left = cells.room - problem.filled_by(problem.fixed, found)
        for k in range(0, len(way), step):
            if clock.now() >= stop:
                return emptiest_first(problem, found)
            some = way[k : k + step].astype(np.int64)
            settle(machine, cells.first, cells.router, problem.loads, wanted, some, found, left)
        if (found >= 0).all():
            return found
    return emptiest_first(problem)


def emptiest_first(problem: ObjectsProblem, known: IntArray | None = None) -> IntArray | None:
    """Return cells, the largest object first, each in the emptiest cell; None if one does not fit.

    This ignores messages (Graham 1969, "Bounds on multiprocessing timing anomalies"). If an object
    does not fit then, each goes to the fullest cell where it fits, the largest first, which wastes
    least. Objects with a `known` cell, not -1, keep it; by default fixed ones.
    """
    known = homes_of(problem) if known is None else known
    found = one_by_one(problem, known, fullest=False)
    return one_by_one(problem, known, fullest=True) if found is None else found


def one_by_one(problem: ObjectsProblem, known: IntArray, *, fullest: bool) -> IntArray | None:
    """Return cells, the largest object first, each in the emptiest or the fullest that it fits."""
    found, loads, width = known.copy(), problem.loads.tolist(), problem.cells.width.tolist()
    left = (problem.cells.room - problem.filled_by(known >= 0, known)).tolist()
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


class Keeper:
    """Keeps the best mapping offered, and reports it."""

    def __init__(self, problem: ObjectsProblem, options: Options) -> None:
        self.problem, self.options = problem, options
        self.deadline = clock.deadline(options.time_limit)
        self.floor = load_bound(problem)
        self.worth: tuple[int, int] | None = None
        self.cells: IntArray | None = None
        self.source = ""
        self._next_report = 0.0

    @property
    def left(self) -> float:
        """Seconds left; a very large number without a time limit."""
        return self.deadline - clock.now()

    @property
    def done(self) -> bool:
        """Whether the time is over, or the mapping is proven optimal."""
        return self.left <= SLACK or (self.worth is not None and self.worth[0] == 0)

    def offer(self, cells: IntArray | None, source: str) -> bool:
        """Take a mapping if it is better than all before; return whether it is."""
        if cells is None:
            return False
        nodes = self.problem.nodes_of(cells)
        worth = worth_of(self.problem, nodes)
        if self.worth is not None and worth >= self.worth:
            return False
        self.worth, self.cells, self.source = worth, cells.copy(), source
        self.options.report(nodes, worth, [None, self.floor])
        self.options.say(source)
        self._next_report = time.perf_counter() + REPORT_SECONDS
        return True

    def offer_sometimes(self, cells: IntArray, source: str) -> None:
        """Do as `offer`, unless something was reported a moment ago."""
        if time.perf_counter() >= self._next_report:
            self.offer(cells, source)

    def outcome(self, **more: Any) -> Outcome:
        """Return the best mapping as the outcome of a method."""
        nodes = None if self.cells is None else self.problem.nodes_of(self.cells)
        return Outcome(nodes, time_limit_hit=self.left <= SLACK, **more)


def worth_of(problem: ObjectsProblem, nodes: IntArray) -> tuple[int, int]:
    """Return hop-bytes and largest load of a mapping, given the node of every object."""
    return problem.hop_bytes(nodes), problem.largest_load(problem.cells_of(nodes))
