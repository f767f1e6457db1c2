"""A small mapping problem as the branch and bound sees it: two matrices and room."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem

MAX_TASKS, MAX_ROUTERS = 24, 256
"""Largest problem taken; whether it can be solved is another matter."""

MAX_COST = 1 << 60
"""Twice the largest hop-bytes, so that sums of dual values stay exact in 64 bits."""


@dataclass(frozen=True)
class SmallProblem:
    """Tasks that send or receive, routers with room, and the cost of any two pairs of them.

    Task i on router r and task j on router s cost ``unit`` times the sum over k of
    ``weight[k, i, j] * distance[k, r, s]``: both directions, k being one sum of both where
    distances are symmetric, else the direction.

    Attributes
    ----------
    tasks, routers
        Their numbers in the problem, shapes ``(n,)`` and ``(m,)``.
    room
        Most tasks per router, none above n, shape ``(m,)``.
    weight, distance
        Shapes ``(k, n, n)`` and ``(k, m, m)``.
    unit
        Greatest common divisor of all weights.
    """

    tasks: IntArray
    routers: IntArray
    room: IntArray
    weight: IntArray
    distance: IntArray
    unit: int

    def cost(self, at: IntArray) -> int:
        """Return the cost, in units, of tasks at positions in `routers`."""
        total = sum(
            int((weight * distance[np.ix_(at, at)]).sum())
            for weight, distance in zip(self.weight, self.distance, strict=True)
        )
        return total // 2


def small_problem(problem: MappingProblem) -> SmallProblem | None:
    """Return the problem without silent tasks and useless routers; None if it is too large."""
    graph, machine = problem.graph, problem.machine
    tasks = np.union1d(graph.sources, graph.targets)
    routers = np.flatnonzero(problem.capacity)
    if len(tasks) > MAX_TASKS or len(routers) > MAX_ROUTERS:
        return None
    sent = np.zeros((len(tasks), len(tasks)), dtype=np.int64)
    ends = np.searchsorted(tasks, graph.sources), np.searchsorted(tasks, graph.targets)
    np.add.at(sent, ends, graph.bytes)
    hops = machine.hops(routers[:, None], routers[None, :])
    symmetric = bool((hops == hops.T).all())
    weight = np.array([sent + sent.T] if symmetric else [sent, sent.T])
    distance = np.array([hops] if symmetric else [hops, hops.T])
    unit = max(1, math.gcd(*weight.ravel().tolist()))
    if 2 * graph.total_bytes // unit * max(1, machine.diameter) >= MAX_COST:
        return None
    room = np.minimum(problem.capacity[routers], len(tasks))
    return SmallProblem(tasks, routers, room, weight // unit, distance, unit)
