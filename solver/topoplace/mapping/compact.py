"""Tasks in one order onto routers in another, and the compact set of routers to use."""

from __future__ import annotations

import numpy as np

from topoplace.machine import MatrixMachine, Torus
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem

MOST_CENTRES = 16
"""Routers tried as the middle of the tasks, where there are more places than tasks."""


def fill(problem: MappingProblem, tasks: IntArray, routers: IntArray) -> IntArray:
    """Return the router of every task when tasks fill routers to the last place, in order.

    Parameters
    ----------
    problem
        The instance.
    tasks
        All tasks, in the order in which they are placed.
    routers
        Routers in the order in which they are filled; together they have room for all tasks.
    """
    room = np.minimum(problem.capacity[routers], problem.num_tasks)
    needed = int(np.searchsorted(np.cumsum(room), problem.num_tasks)) + 1
    found = np.empty(problem.num_tasks, dtype=np.int64)
    found[tasks] = np.repeat(routers[:needed], room[:needed])[: problem.num_tasks]
    return found


def compact_routers(problem: MappingProblem) -> tuple[IntArray, int]:
    """Return the routers to use if only as many are used as are needed, and their middle.

    They are the routers nearest to the middle, nearest first; of some middles, that with the
    nearest routers is taken.
    """
    usable = np.flatnonzero(problem.capacity)
    step = max(1, len(usable) // MOST_CENTRES)
    best: tuple[int, IntArray, int] | None = None
    for centre in usable[step // 2 :: step].tolist():
        away = distances_from(problem.machine, centre)[usable]
        order = np.argsort(away, kind="stable")
        room = np.cumsum(problem.capacity[usable[order]])
        needed = int(np.searchsorted(room, problem.num_tasks)) + 1
        total = int(away[order[:needed]].sum())
        if best is None or total < best[0]:
            best = (total, usable[order[:needed]], centre)
    assert best is not None
    return best[1], best[2]


def distances_from(machine: Torus | MatrixMachine, router: int) -> IntArray:
    """Return the distance from a router to every router."""
    if isinstance(machine, Torus):
        return machine.distances_from(router)
    found: IntArray = machine.distances[router]
    return found
