"""Positions of routers, and orders in which places are filled."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import eigsh

from topoplace.machine import LevelMachine, MatrixMachine, Network, Torus
from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray

# ---- Routers as points: coordinates for curves and cuts on any machine, and symmetric distances --

SCALED_DIMS, SCALED_SIDE = 3, 255
"""Dimensions, and the largest coordinate, of a machine that has none of its own."""

SMALL = 64
"""Routers up to which all eigenvectors are computed at once."""


def positions(machine: Network) -> tuple[IntArray, IntArray]:
    """Return coordinates of all routers, and which dimensions are rings.

    Coordinates, not negative, have a row per router; a dimension is the length of its ring, 0 for
    a line. A machine given by its distances gets the coordinates of classical scaling (Torgerson
    1952), rounded: near routers get near points. A tree or hierarchy has a dimension per level, and
    steps on a higher level are always longer.
    """
    if isinstance(machine, LevelMachine):
        return _level_positions(machine), np.zeros(machine.num_levels, dtype=np.int64)
    if isinstance(machine, Torus):
        lengths = [n if wraps else 0 for n, wraps in zip(machine.shape, machine.wrap, strict=True)]
        return machine.coordinates, np.asarray(lengths, dtype=np.int64)
    points = _scaled(machine)
    low = points.min(axis=0)
    span = max(float((points - low).max()), 1e-9)
    rounded = np.rint((points - low) * (SCALED_SIDE / span)).astype(np.int64)
    return rounded, np.zeros(points.shape[1], dtype=np.int64)


def _level_positions(machine: LevelMachine) -> IntArray:
    """Return by level, top first, the number of a leaf's domain among those of the domain above."""
    columns, unit = [], 1
    for below, above in itertools.pairwise(machine.domain_of):
        first = np.full(int(above.max()) + 1, machine.num_routers, dtype=np.int64)
        np.minimum.at(first, above, below)
        number = below - first[above]
        columns.append(number * min(unit, WIDEST))
        unit *= int(number.max()) + 1
    return np.stack(columns[::-1], axis=1)


WIDEST = 1 << 40
"""Longest step between two domains: sums of coordinates stay far below 2^63."""


def symmetric(problem: MappingProblem) -> MappingProblem:
    """Return the problem, with distances that differ by direction replaced by their mean.

    The mean is rounded down: good enough to search with, and never to be reported.
    """
    machine = problem.machine
    if machine.is_symmetric or not isinstance(machine, MatrixMachine):
        return problem
    mean = (machine.distances + machine.distances.T) // 2
    return replace(problem, machine=MatrixMachine(mean))


def _scaled(machine: MatrixMachine) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the points of classical scaling, shape ``(num_routers, SCALED_DIMS)``."""
    squares = ((machine.distances + machine.distances.T) / 2.0) ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    n = machine.num_routers
    if n <= SMALL:
        values, vectors = np.linalg.eigh(-centred / 2)
        values, vectors = values[-SCALED_DIMS:], vectors[:, -SCALED_DIMS:]
    else:
        # a fixed start vector: the same machine gives the same points
        start = np.cos(np.arange(n, dtype=float))
        values, vectors = eigsh(-centred / 2, k=SCALED_DIMS, which="LA", v0=start)
    points = vectors * np.sqrt(np.maximum(values, 0))
    return np.asarray(points[:, ::-1], dtype=np.float64)


# ---- Tasks in one order onto routers in another, and the compact set of routers to use -----------

MOST_CENTRES = 16
"""Routers tried as the middle of the tasks, where there are more places than tasks."""


def fill(problem: MappingProblem, tasks: IntArray, routers: IntArray) -> IntArray:
    """Return the router of every task if all, in order, fill routers completely."""
    room = np.minimum(problem.capacity[routers], problem.num_tasks)
    needed = int(np.searchsorted(np.cumsum(room), problem.num_tasks)) + 1
    found = np.empty(problem.num_tasks, dtype=np.int64)
    found[tasks] = np.repeat(routers[:needed], room[:needed])[: problem.num_tasks]
    return found


def compact_routers(problem: MappingProblem) -> tuple[IntArray, int]:
    """Return a minimal set of routers to use, and their middle.

    They are the routers nearest to the middle, nearest first; several middles are tried, and the
    one with the nearest routers is taken.
    """
    usable = np.flatnonzero(problem.capacity)
    step = max(1, len(usable) // MOST_CENTRES)
    best: tuple[int, IntArray, int] | None = None
    for centre in usable[step // 2 :: step].tolist():
        away = problem.machine.distances_from(centre)[usable]
        order = np.argsort(away, kind="stable")
        room = np.cumsum(problem.capacity[usable[order]])
        needed = int(np.searchsorted(room, problem.num_tasks)) + 1
        total = int(away[order[:needed]].sum())
        if best is None or total < best[0]:
            best = (total, usable[order[:needed]], centre)
    assert best is not None
    return best[1], best[2]
