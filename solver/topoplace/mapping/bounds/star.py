"""Bounds from pairs: every task by itself, its heaviest partners on the nearest places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topoplace.machine import Torus
from topoplace.machine.matrix import MatrixMachine
from topoplace.mapping.graph import IntArray, TaskGraph
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import STAR_ROUTERS, StarCertificate
from topoplace.solving import Bound

# ---- The bytes between pairs of tasks, as all bounds for graphs need them ------------------------


@dataclass(frozen=True)
class Pairs:
    """Bytes from tasks to their partners, every pair once.

    Attributes
    ----------
    tasks, partners, sizes
        Who sends, to whom, and how much in all; ascending by task, then partner.
    """

    num_tasks: int
    tasks: IntArray
    partners: IntArray
    sizes: IntArray

    @property
    def unit(self) -> int:
        """Greatest common divisor of all bytes, 1 if there are none: hop-bytes are multiples."""
        return int(np.gcd.reduce(self.sizes)) or 1 if len(self.sizes) else 1

    def matrix(self, size: int) -> IntArray:
        """Return the bytes as a square matrix, with silent tasks up to `size`."""
        dense = np.zeros((size, size), dtype=np.int64)
        dense[self.tasks, self.partners] = self.sizes
        return dense

    @property
    def most(self) -> int:
        """Partners of the task that has most."""
        return int(np.bincount(self.tasks).max(initial=0))

    def descending(self) -> IntArray:
        """Return every task's sizes from the largest, shape ``(num_tasks, most)``."""
        order = np.lexsort((-self.sizes, self.tasks))
        tasks = self.tasks[order]
        firsts = np.searchsorted(tasks, np.arange(self.num_tasks))
        table = np.zeros((self.num_tasks, self.most), dtype=np.int64)
        table[tasks, np.arange(len(tasks)) - firsts[tasks]] = self.sizes[order]
        return table


def sent(graph: TaskGraph) -> Pairs:
    """Return the bytes every task sends to each of its partners."""
    return _summed(graph.num_tasks, graph.sources, graph.targets, graph.bytes)


def received(graph: TaskGraph) -> Pairs:
    """Return the bytes every task gets from each of its partners."""
    return _summed(graph.num_tasks, graph.targets, graph.sources, graph.bytes)


def exchanged(graph: TaskGraph) -> Pairs:
    """Return the bytes between tasks in both directions, every pair listed at both its ends."""
    return _summed(
        graph.num_tasks,
        np.concatenate((graph.sources, graph.targets)),
        np.concatenate((graph.targets, graph.sources)),
        np.concatenate((graph.bytes, graph.bytes)),
    )


def _summed(num_tasks: int, tasks: IntArray, partners: IntArray, sizes: IntArray) -> Pairs:
    keys, places = np.unique(tasks * num_tasks + partners, return_inverse=True)
    sums = np.zeros(len(keys), dtype=np.int64)
    np.add.at(sums, places, sizes)
    return Pairs(num_tasks, keys // num_tasks, keys % num_tasks, sums)


# ---- The star bound with prices of routers: Gilmore and Lawler's (docs/proofs-graphs.md, "Star") -
# A task's messages cost least when its heaviest partners are on the nearest places. That holds for
# every task by itself; the prices make tasks share the good routers, and with the dual values of
# the assignment problem the bound is Gilmore's (1962) and Lawler's (1963).

MAX_TABLE = 1 << 26
"""Most entries of a table of partners or of costs; larger problems go without the bound."""

MAX_PRICED = 1 << 22
"""Most pairs of task and place for which prices are computed."""

LARGEST = 1 << 46
"""Costs beyond this are not priced: sums of them would leave 64 bits."""


def star_bound(problem: MappingProblem) -> Bound | None:
    """Return the star bound with the best prices, or without where those are too costly.

    Returns
    -------
    Bound or None
        In bytes x hops; None if the graph is too large and too dense for tables.
    """
    routers = np.flatnonzero(problem.capacity)
    lists = _Lists(problem, routers)
    width = max(pairs.most for pairs in lists.pairs)
    if max(problem.num_tasks, len(routers)) * width > MAX_TABLE:
        return None
    kinds, costs = lists.costs(width)
    if costs is None:
        return None
    capacity = problem.capacity[routers]
    every: list[int] = []
    twice = sum(costs.min(axis=1).tolist())
    if costs.shape[1] > 1 and len(costs) * int(capacity.sum()) <= MAX_PRICED:
        prices = _prices(costs[:, kinds], capacity)
        paid = sum((capacity * prices).tolist())
        priced = sum((costs[:, kinds] + prices).min(axis=1).tolist()) - paid
        if priced > twice:
            twice = priced
            spread = np.zeros(len(problem.capacity), dtype=np.int64)
            spread[routers] = prices
            every = spread.tolist()
    value = lists.unit * max(0, -(-twice // (2 * lists.unit)))
    return Bound(value, StarCertificate(prices=every))


class _Lists:
    """The messages at the ends of every task, and the nearest places of every router.

    Where distances are symmetric there is one kind of list; else one for messages sent and one
    for messages received.
    """

    def __init__(self, problem: MappingProblem, routers: IntArray) -> None:
        self._machine = problem.machine
        self._capacity = problem.capacity
        self._routers = routers
        both = True
        if isinstance(problem.machine, MatrixMachine):
            between = problem.machine.distances[np.ix_(routers, routers)]
            both = np.array_equal(between, between.T)
        graph = problem.graph
        self.pairs = [exchanged(graph)] if both else [sent(graph), received(graph)]
        self.unit = self.pairs[0].unit

    def costs(self, width: int) -> tuple[IntArray, IntArray | None]:
        """Return which kind every router is, and the cost of every task on every kind.

        Routers with the same `width` nearest places are of one kind. None if there are too many
        costs.
        """
        nearest = self._nearest(width)
        kinds, of_router = np.unique(nearest, axis=0, return_inverse=True)
        num_tasks = self.pairs[0].num_tasks
        if num_tasks * len(kinds) > MAX_TABLE:
            return of_router.ravel(), None
        costs = np.zeros((num_tasks, len(kinds)), dtype=np.int64)
        for way, pairs in enumerate(self.pairs):
            table, first = pairs.descending(), way * width
            costs += table @ kinds[:, first : first + table.shape[1]].T
        return of_router.ravel(), costs

    def _nearest(self, width: int) -> IntArray:
        """Return per router the distances to its nearest `width` other places, ways in a row."""
        machine = self._machine
        if isinstance(machine, MatrixMachine):
            rows = machine.distances[self._routers]
            columns = machine.distances[:, self._routers].T
            ways = [rows, columns][: len(self.pairs)]
            found = [self._sorted(way, self._routers, self._capacity, width) for way in ways]
            return np.concatenate(found, axis=1)
        alike = all(machine.wrap) and len(np.unique(self._capacity)) == 1
        if alike or len(self._routers) > STAR_ROUTERS:
            return self._ideal(machine, width)
        rows = np.stack([machine.distances_from(r) for r in self._routers.tolist()])
        return self._sorted(rows, self._routers, self._capacity, width)

    def _ideal(self, machine: Torus, width: int) -> IntArray:
        """Return the one list of a torus as large with the most places on every router."""
        rows = Torus(machine.shape).distances_from(0)[None]
        capacity = np.full(machine.num_routers, self._capacity.max())
        one = self._sorted(rows, np.zeros(1, dtype=np.int64), capacity, width)
        return np.repeat(one, len(self._routers), axis=0)

    @staticmethod
    def _sorted(rows: IntArray, own: IntArray, capacity: IntArray, width: int) -> IntArray:
        found = np.zeros((len(rows), width), dtype=np.int64)
        for k, (row, router) in enumerate(zip(rows, own.tolist(), strict=True)):
            places = capacity.copy()
            places[router] -= 1
            order = np.argsort(row, kind="stable")
            # a router alone may have more places than anyone has partners
            order = order[: int(np.searchsorted(np.cumsum(places[order]), width)) + 1]
            found[k] = np.repeat(row[order], np.minimum(places[order], width))[:width]
        return found


def _prices(costs: IntArray, capacity: IntArray) -> IntArray:
    """Return the dual prices of routers in the assignment of tasks to places, at least 0.

    Minus the prices are the lengths of shortest paths in the graph of moves: a task on router r
    moves to t for ``cost[t] - cost[r]``; every path may start anywhere at length 0. They are
    integers, as the costs are. Costs too large for that are not priced at all.
    """
    if int(costs.max(initial=0)) >= LARGEST:
        return np.zeros(len(capacity), dtype=np.int64)
    place_router = np.repeat(np.arange(len(capacity)), np.minimum(capacity, len(costs)))
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - heavy

    tasks, places = linear_sum_assignment(costs[:, place_router])
    chosen = place_router[places]
    moves = np.full((len(capacity), len(capacity)), LARGEST, dtype=np.int64)
    for task, router in zip(tasks.tolist(), chosen.tolist(), strict=True):
        np.minimum(moves[router], costs[task] - costs[task, router], out=moves[router])
    lengths = np.zeros(len(capacity), dtype=np.int64)
    for _ in range(len(capacity)):
        shorter = np.minimum(lengths, (lengths[:, None] + moves).min(axis=0))
        if np.array_equal(shorter, lengths):
            break
        lengths = shorter
    return -lengths
