"""What all methods for objects share: objects settle where there is room, and the best is kept."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.local_search import Machine, machine_arrays
from topoplace.mapping.mapped import REPORT_SECONDS, SLACK
from topoplace.mapping.objects._kernels import settle
from topoplace.mapping.objects.problem import ObjectsProblem
from topoplace.solving import Options, Outcome
from topoplace.types import BoolArray, IntArray


def arrays_of(problem: ObjectsProblem) -> Machine:
    """Return the machine as kernels have it; `InputError` if distances are not symmetric."""
    return machine_arrays(problem.machine, np.diff(problem.cells.first))


class Branches(NamedTuple):
    """Trees as kernels have them (`Trees`), the torus they are on, and marks.

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
    """Return the trees as kernels have them; a machine without links has none."""
    trees, machine = problem.trees, problem.machine
    torus = machine if isinstance(machine, Torus) else Torus((1,))
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


def settled(
    problem: ObjectsProblem, wanted: IntArray, order: IntArray | None = None
) -> IntArray | None:
    """Return a cell for every object, in the router it wants or near it; None if one finds no room.

    Objects come in an `order`, by default, and where that leaves one without room, the largest
    first.
    """
    cells, largest = problem.cells, np.argsort(-problem.loads, kind="stable")
    for way in ([] if order is None else [order]) + [largest]:
        found = settle(
            arrays_of(problem),
            cells.first,
            cells.router,
            cells.room,
            problem.loads,
            homes_of(problem),
            way.astype(np.int64),
            wanted.astype(np.int64),
        )
        if (found >= 0).all():
            return np.asarray(found, dtype=np.int64)
    return emptiest_first(problem)


def emptiest_first(problem: ObjectsProblem) -> IntArray | None:
    """Return cells, the largest object first, each in the emptiest cell; None without room.

    That knows nothing of messages (Graham 1969, "Bounds on multiprocessing timing anomalies").
    Where it leaves an object without room, the largest objects come first and each goes to the
    fullest cell that it fits, which wastes least.
    """
    found = _one_by_one(problem, fullest=False)
    return _one_by_one(problem, fullest=True) if found is None else found


def _one_by_one(problem: ObjectsProblem, *, fullest: bool) -> IntArray | None:
    """Return cells, the largest object first, each in the emptiest or the fullest that it fits."""
    found, cells, loads = homes_of(problem), problem.cells, problem.loads
    left = cells.room - problem.filled_by(problem.fixed, found)
    for one in np.argsort(-loads, kind="stable").tolist():
        if found[one] >= 0:
            continue
        fits = np.flatnonzero(left >= loads[one])
        if not len(fits):
            return None
        per_node = left[fits] / cells.width[fits]
        cell = int(fits[per_node.argmin() if fullest else per_node.argmax()])
        found[one] = cell
        left[cell] -= loads[one]
    return found


class Keeper:
    """Keeps the best mapping offered, and reports it."""

    def __init__(self, problem: ObjectsProblem, options: Options) -> None:
        self.problem, self.options = problem, options
        self.deadline = clock.deadline(options.time_limit)
        self.worth: tuple[int, int] | None = None
        self.cells: IntArray | None = None
        self.source = ""
        self._next_report = 0.0

    @property
    def left(self) -> float:
        """Seconds left; a great many without a time limit."""
        return self.deadline - clock.now()

    @property
    def done(self) -> bool:
        """Whether the time is over, or nothing is left to gain."""
        return self.left <= SLACK or (self.worth is not None and self.worth[0] == 0)

    def offer(self, cells: IntArray | None, source: str) -> bool:
        """Take a mapping if it is better than all before; tell whether it is."""
        if cells is None:
            return False
        nodes = self.problem.nodes_of(cells)
        worth = worth_of(self.problem, nodes)
        if self.worth is not None and worth >= self.worth:
            return False
        self.worth, self.cells, self.source = worth, cells.copy(), source
        self.options.report(nodes, worth)
        self.options.say(source)
        self._next_report = time.perf_counter() + REPORT_SECONDS
        return True

    def offer_sometimes(self, cells: IntArray, source: str) -> None:
        """Do as `offer`, unless something was reported a moment ago."""
        if time.perf_counter() >= self._next_report:
            self.offer(cells, source)

    def outcome(self, **more: Any) -> Outcome:
        """Return the best mapping as what a method hands back."""
        nodes = None if self.cells is None else self.problem.nodes_of(self.cells)
        return Outcome(nodes, time_limit_hit=self.left <= SLACK, **more)


def worth_of(problem: ObjectsProblem, nodes: IntArray) -> tuple[int, int]:
    """Return hop-bytes and largest load of a mapping, given the node of every object."""
    return hop_bytes(problem, nodes), problem.largest_load(problem.cells_of(nodes))
