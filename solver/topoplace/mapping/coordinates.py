"""Recursive coordinate bisection of tasks and routers together (after Deveci 2019).

Routers are halved by a plane across the longest side of the box they fill, tasks by one across
theirs, in proportion to the capacity on both sides, again and again. It takes tenths of a second
for tens of thousands of tasks, works around unusable routers, and cuts a grid into boxes where
these fit.
"""

from __future__ import annotations

import numpy as np

from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray


def bisect_coordinates(problem: MappingProblem, origin: tuple[int, ...]) -> IntArray:
    """Return a router for every task; coordinates of routers count from an origin on round rings.

    Tasks of a graph that is not a grid have their numbers as coordinates.
    """
    torus, grid = problem.torus, problem.grid
    tasks = np.arange(problem.num_tasks)[:, None] if grid is None else grid.coordinates()
    routers = np.flatnonzero(problem.capacity)
    at = (torus.coordinates[routers] - np.array(origin)) % np.array(torus.shape)
    return _bisected(tasks, routers, at, problem.capacity[routers])


def _bisected(tasks: IntArray, routers: IntArray, at: IntArray, room: IntArray) -> IntArray:
    found = np.empty(len(tasks), dtype=np.int64)
    todo = [(np.arange(len(tasks)), np.arange(len(routers)))]
    while todo:
        mine, places = todo.pop()
        if len(places) == 1 or not len(mine):
            found[mine] = routers[places[:1]]
            continue
        places, planes = _along_longest(places, at)
        cut = _nearest(planes, len(places) / 2, 1, len(places) - 1)
        first, second = places[:cut], places[cut:]
        here, there = int(room[first].sum()), int(room[second].sum())
        mine, planes = _along_longest(mine, tasks)
        share = len(mine) * here / (here + there)
        cut = _nearest(planes, share, max(0, len(mine) - there), min(len(mine), here))
        todo += [(mine[:cut], first), (mine[cut:], second)]
    return found


def _along_longest(chosen: IntArray, at: IntArray) -> tuple[IntArray, IntArray]:
    """Return points in order along the longest side of their box, and where a plane ends."""
    own = at[chosen]
    longest = int((own.max(axis=0) - own.min(axis=0)).argmax())
    keys = [own[:, d] for d in range(own.shape[1]) if d != longest]
    order = np.lexsort((*keys, own[:, longest]))
    planes = np.flatnonzero(np.diff(own[order, longest])) + 1
    return chosen[order], np.concatenate([[0], planes, [len(chosen)]])


def _nearest(planes: IntArray, share: float, least: int, most: int) -> int:
    """Return the end of a plane nearest to a share, or the share where none is in between."""
    between = planes[(planes >= least) & (planes <= most)]
    if not len(between):
        return min(max(round(share), least), most)
    return int(between[np.abs(between - share).argmin()])
