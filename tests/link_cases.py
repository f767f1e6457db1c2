"""The least largest link load of all mappings of tiny problems, one by one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from tiny_objects import links_of
from topoplace.machine import Torus
from topoplace.machine.links import route_links
from topoplace.mapping.graph import TaskGraph
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import MessageTree

MOST = 1200
"""Mappings of an instance that are tried."""


def least_load(
    torus: Torus,
    graph: TaskGraph,
    ways: Iterable[tuple[int, ...]],
    trees: Sequence[MessageTree] = (),
) -> Fraction | None:
    """Return the least largest link load of mappings, given as routers of tasks; None of none."""
    routers = range(torus.num_routers)
    every = np.array([*itertools.product(routers, routers)], dtype=np.int64)
    routes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for at, link, way in zip(*(x.tolist() for x in route_links(torus, *every.T)), strict=True):
        routes.setdefault(tuple(every[at].tolist()), []).append((link, way))
    best: Fraction | None = None
    sent = [*zip(graph.sources.tolist(), graph.targets.tolist(), graph.bytes.tolist(), strict=True)]
    for way in ways:
        loads: Counter[tuple[int, int]] = Counter()
        for a, b, size in sent:
            loads.update(dict.fromkeys(routes.get((way[a], way[b]), []), size))
        for tree in trees:
            for at, d, step in links_of(torus, way[tree.root], [way[m] for m in tree.members]):
                to = tuple((x + step) % torus.shape[d] if k == d else x for k, x in enumerate(at))
                ends = torus.router(at), torus.router(to)
                ends = ends[::-1] if tree.kind == "reduction" else ends
                loads.update(dict.fromkeys(routes[ends], tree.bytes))
        most = max(
            (Fraction(x, torus.bandwidth[at[0] // torus.num_routers]) for at, x in loads.items()),
            default=Fraction(0),
        )
        best = most if best is None else min(best, most)
    return best


def ways_of_tasks(problem: MappingProblem) -> list[tuple[int, ...]]:
    """Return all mappings as routers of tasks; none if there are too many."""
    routers, num = np.flatnonzero(problem.capacity).tolist(), problem.num_tasks
    if len(routers) ** num > MOST:
        return []
    every = itertools.product(routers, repeat=num)
    room = problem.capacity.tolist()
    return [way for way in every if all(n <= room[r] for r, n in Counter(way).items())]


def fits(problem: MappingProblem, nodes: np.ndarray) -> bool:  # type: ignore[type-arg]
    """Return whether no cap has more load than it takes."""
    return bool((problem.filled(problem.cells_of(nodes)) <= problem.cells.room).all())


def ways_of_objects(problem: MappingProblem) -> list[tuple[int, ...]]:
    """Return all mappings of objects within the caps as routers; none if there are too many."""
    if len(problem.nodes) ** problem.num_tasks > MOST:
        return []
    found = []
    for nodes in itertools.product(problem.nodes.tolist(), repeat=problem.num_tasks):
        at = np.array(nodes)
        if (at == problem.home)[problem.fixed].all() and fits(problem, at):
            found.append(tuple((at // problem.machine.nodes_per_router).tolist()))
    return found
