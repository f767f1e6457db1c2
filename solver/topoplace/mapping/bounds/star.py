"""Bounds from pairs: every task alone, with its heaviest partners on the nearest places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topoplace.machine import Network, Torus
from topoplace.machine.matrix import MatrixMachine
from topoplace.mapping.graph import Rows, rows_of
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import STAR_ROUTERS, StarCertificate
from topoplace.solving import Bound
from topoplace.types import IntArray

# ---- The star bound with prices of routers: Gilmore and Lawler's (docs/proofs/graphs.md, "Star") -
# A task's messages cost least when its heaviest partners are on the nearest places. This holds for
# every single task; the prices make tasks share the good routers, and with the dual values of the
# assignment problem the bound is Gilmore's (1962) and Lawler's (1963).

MAX_TABLE = 1 << 26
"""Most entries of a table of partners or of costs; larger problems have no star bound."""

MAX_PRICED = 1 << 22
"""Most pairs of task and place for which prices are computed."""

LARGEST = 1 << 46
"""Costs beyond this have no prices: sums of them would exceed 64 bits."""


def star_bound(problem: MappingProblem) -> Bound | None:
    """Return the star bound, in bytes x hops, with the best prices unless those are too costly.

    None if the graph is too large and too dense for tables.
    """
    capacity, num = problem.capacity, problem.num_tasks
    routers = np.flatnonzero(capacity)
    ways = _ways(problem, routers)
    most = [int(rows.degree.max()) for rows, _ in ways]
    width = max(most)
    if max(num, len(routers)) * width > MAX_TABLE:
        return None
    lists = [np.stack(list(nearest_places(way, capacity, width))) for _, way in ways]
    # routers with the same nearest places are of one kind
    kinds, kind = np.unique(np.concatenate(lists, axis=1), axis=0, return_inverse=True)
    if num * len(kinds) > MAX_TABLE:
        return None
    costs = np.zeros((num, len(kinds)), dtype=np.int64)
    for k, (rows, _) in enumerate(ways):
        order = np.lexsort((-rows.weight, rows.owner))
        table = np.zeros((num, most[k]), dtype=np.int64)
        table[rows.owner, np.arange(len(order)) - rows.first[rows.owner]] = rows.weight[order]
        costs += table @ kinds[:, k * width : k * width + most[k]].T
    every: list[int] = []
    twice = sum(costs.min(axis=1).tolist())
    if len(kinds) > 1 and num * int(capacity.sum()) <= MAX_PRICED:
        of_router = costs[:, kind.ravel()]
        prices = _prices(of_router, capacity[routers])
        paid = sum((capacity[routers] * prices).tolist())
        priced = sum((of_router + prices).min(axis=1).tolist()) - paid
        if priced > twice:
            twice = priced
            spread = np.zeros(len(capacity), dtype=np.int64)
            spread[routers] = prices
            every = spread.tolist()
    unit = ways[0][0].unit
    return Bound(unit * max(0, -(-twice // (2 * unit))), StarCertificate(prices=every))


def _ways(problem: MappingProblem, routers: IntArray) -> list[tuple[Rows, Network]]:
    """Return bytes with their distances: both ways at once if these are symmetric."""
    graph, machine = problem.graph, problem.machine
    if isinstance(machine, MatrixMachine):
        between = machine.distances[np.ix_(routers, routers)]
        if not np.array_equal(between, between.T):
            back = MatrixMachine(machine.distances.T)
            sent = rows_of(graph.num_tasks, graph.sources, graph.targets, graph.bytes)
            received = rows_of(graph.num_tasks, graph.targets, graph.sources, graph.bytes)
            return [(sent, machine), (received, back)]
    return [(graph.exchanged, machine)]


def nearest_places(machine: Network, capacity: IntArray, width: int) -> Iterator[IntArray]:
    """Yield the distances from every router with places to the nearest other places, ascending.

    Lists have `width` entries. There is one list for all routers of a torus if they are equivalent,
    or more than `STAR_ROUTERS`: that of a torus of the same size with the most places on every
    router.
    """
    routers = np.flatnonzero(capacity)
    owners = routers
    if isinstance(machine, Torus):
        alike = all(machine.wrap) and len(np.unique(capacity)) == 1
        if alike or len(routers) > STAR_ROUTERS:
            machine, routers = Torus(machine.shape), np.arange(machine.num_routers)
            capacity, owners = np.full(len(routers), capacity.max()), routers[:1]
    for owner in owners[:, None]:
        distances = machine.hops(owner, routers)
        order = np.argsort(distances, kind="stable")
        places = (capacity[routers] - (routers == owner))[order]
        enough = int(np.searchsorted(np.cumsum(places), width)) + 1
        # a router alone may have more places than any task has partners
        shown = np.minimum(places[:enough], width)
        yield np.repeat(distances[order[:enough]], shown)[:width]


def _prices(costs: IntArray, capacity: IntArray) -> IntArray:
    """Return the dual prices of routers in the assignment of tasks to places, at least 0.

    Minus the prices are the lengths of shortest paths in the graph of moves: a task on router r
    moves to t for ``cost[t] - cost[r]``; every path may start anywhere at length 0. They are
    integers, as the costs are. Costs that are too large for that have no prices.
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
