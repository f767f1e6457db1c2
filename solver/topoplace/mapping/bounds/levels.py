"""Bounds on trees and hierarchies: level by level, the bytes that must leave their domain."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from topoplace import clock
from topoplace.machine import LevelMachine
from topoplace.mapping.bounds.bisection import bisection, height
from topoplace.mapping.bounds.losses import directions_of, inside_units
from topoplace.mapping.bounds.spreading import Shells, routed
from topoplace.mapping.parallelism import Line, lines_of_axes, lines_of_grid
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Fraction as FractionModel
from topoplace.result.mapping import (
    CUT_TASKS,
    MOST_LAYERS,
    DegreesLevel,
    InsideLevel,
    LevelBound,
    LevelsCertificate,
    RoutesLevel,
    SpectralLevel,
)
from topoplace.snapshot.schema import GraphApplication, GridApplication, ParallelismApplication
from topoplace.solving import Bound
from topoplace.types import IntArray

ROUTES_SHARE = 0.3
"""Share of a time limit for the routes of all levels, where a spectrum comes after them."""

# ---- A bound for every level, which add up (docs/proofs/levels.md) -------------------------------

Found = tuple[int, LevelBound]
"""The least bytes that leave their domain, and the proof."""


def levels_bound(
    problem: MappingProblem, time_limit: float | None = None, target: int | None = None
) -> Bound | None:
    """Return the sum of the bytes that must leave the domains of every level, in bytes x cost.

    Without a time limit the semidefinite part has as many steps each time; with one, in seconds,
    the levels that could gain most come first. None if the machine is not a tree or hierarchy.
    """
    machine = problem.machine.levels
    if machine is None or not machine.steps.any():
        return None
    search, stop = _Levels(problem, machine), clock.deadline(time_limit)
    search.quick()
    if target is None or search.bound.value < target:
        search.routes(time_limit)
        search.spectral(stop)
    return search.bound


class _Levels:
    """The best known bound of every level of a problem."""

    def __init__(self, problem: MappingProblem, machine: LevelMachine) -> None:
        self.problem, self.machine = problem, machine
        self.total, self.unit = problem.graph.total_bytes, problem.graph.exchanged.unit
        self.rooms = [
            np.bincount(row, problem.capacity).astype(np.int64) for row in machine.domain_of[:-1]
        ]
        nothing: Found = (0, DegreesLevel())
        self.best = [nothing] * machine.num_levels

    @property
    def paid(self) -> list[int]:
        """The levels whose domains a byte pays to leave."""
        return np.flatnonzero(self.machine.steps).tolist()

    @property
    def bound(self) -> Bound:
        """The bound proven so far."""
        steps = self.machine.steps.tolist()
        value = sum(step * least for step, (least, _) in zip(steps, self.best, strict=True))
        return Bound(value, LevelsCertificate(levels=[part for _, part in self.best]))

    def _offer(self, level: int, proven: int, part: LevelBound) -> None:
        least = self.unit * max(0, -(-proven // self.unit))
        if least > self.best[level][0]:
            self.best[level] = least, part

    def quick(self) -> None:
        """Bound every level by the degrees of tasks, and by the shape of a product."""
        for level in self.paid:
            room = int(self.rooms[level].max())
            self._offer(level, self.total - degrees_inside(self.problem, room), DegreesLevel())
        for order, psi in self._insides():
            for level in self.paid:
                rooms = np.minimum(self.rooms[level], self.problem.num_tasks)
                if int(rooms.max()) < len(psi):
                    slope, inside = best_slope(psi, rooms, self.problem.num_tasks)
                    part = InsideLevel(slope=FractionModel.of(slope), order=list(order))
                    self._offer(level, math.ceil(self.total - inside), part)

    def _insides(self) -> Iterator[tuple[tuple[int, ...], IntArray]]:
        """Yield limits of the bytes inside sets of tasks, and how lines were put together."""
        limit = int(min(self.problem.num_tasks, max(self.rooms[k].max() for k in self.paid)))
        if self.problem.grid is not None:
            found = directions_of(self.problem.grid)
            yield (), found.unit * inside_units(found, limit)
        lines = lines_of(self.problem)
        for order in orders_of(lines or ()):
            psi = inside_of_product([lines[k] for k in order], limit) if lines else None
            if psi is not None:
                yield order, psi

    def routes(self, time_limit: float | None) -> None:
        """Bound levels by what does not fit into a domain, wherever no product says more."""
        rows, num = self.problem.graph.exchanged, self.problem.num_tasks
        open_ = [k for k in self.paid if not (self._is_product and self.best[k][0])]
        for level in open_:
            room = int(self.rooms[level].max())
            if room < num and len(rows.weight):
                share = ROUTES_SHARE if num <= CUT_TASKS else 1.0
                limit = time_limit and share * time_limit / len(open_)
                shells = Shells(np.ones(1, dtype=np.int64), np.array([room]))
                found = routed(rows, self.problem.loads, shells, limit)
                if found is not None:
                    self._offer(level, math.ceil(found[0]), RoutesLevel(**dict(found[1])))

    def spectral(self, end: float) -> None:
        """Bound levels by a semidefinite relaxation, those first where most may be gained."""
        num = self.problem.num_tasks
        if not (self.total and 2 <= num <= CUT_TASKS) or self._is_product:
            return
        steps = self.machine.steps.tolist()
        gains = [(steps[k] * (self.total - self.best[k][0]), k) for k in self.paid]
        order = [k for gain, k in sorted(gains, reverse=True) if gain and self._parts(k) > 1]
        for done, level in enumerate(order):
            now = clock.now()
            share = (end - now) / (len(order) - done)
            room = int(min(self.rooms[level].max(), num))
            found = spectral_level(self.problem, room, now + share)
            if found is not None:
                self._offer(level, *found)

    @property
    def _is_product(self) -> bool:
        """Whether the shape of the application bounds the bytes inside sets of its tasks."""
        return not isinstance(self.problem.instance.application, GraphApplication)

    def _parts(self, level: int) -> int:
        return int(np.count_nonzero(self.rooms[level]))


def lines_of(problem: MappingProblem) -> tuple[Line, ...] | None:
    """Return the lines whose product the application is; None if it is not a product."""
    application = problem.instance.application
    if isinstance(application, ParallelismApplication):
        return lines_of_axes(application)
    if isinstance(application, GridApplication) and application.stencil == "nearest":
        assert problem.grid is not None
        return lines_of_grid(problem.grid)
    return None


# ---- Degrees: a task keeps its heaviest partners at most -----------------------------------------


def degrees_inside(problem: MappingProblem, room: int) -> int:
    """Return the most bytes inside domains of `room` places, by what each task could keep."""
    rows = problem.graph.exchanged
    order = np.lexsort((-rows.weight, rows.owner))
    rank = np.arange(len(order)) - np.repeat(rows.first[:-1], rows.degree)
    return int(sum(rows.weight[order][rank < room - 1].tolist())) // 2


# ---- Products of lines: a set of tasks in layers (docs/proofs/levels.md, "Products") -------------

MOST_ORDERS = 24
"""Orders of lines that are tried."""


def orders_of(lines: Sequence[Line]) -> Iterator[tuple[int, ...]]:
    """Yield orders in which lines are put together, those of more than one task alone."""
    real = [k for k, line in enumerate(lines) if line.size > 1]
    seen: set[tuple[Line, ...]] = set()
    for order in itertools.permutations(sorted(real, key=lambda k: -lines[k].weight)):
        if len(seen) < MOST_ORDERS and (alike := tuple(lines[k] for k in order)) not in seen:
            seen.add(alike)
            yield order


def inside_of_product(lines: Sequence[Line], limit: int) -> IntArray | None:
    """Return psi(s) for s = 0..limit (less if there are fewer tasks): bytes inside any s tasks.

    None if the layers are too many to try.
    """
    psi = np.zeros(2, dtype=np.int64)
    for line in lines:
        widest = min(len(psi) - 1, limit)
        most = min(limit, widest * line.size)
        if line.size * widest * (most + 1) > MOST_LAYERS:
            return None
        psi = _in_layers(psi[: widest + 1], line, most)
    return psi


def _in_layers(psi: IntArray, line: Line, most: int) -> IntArray:
    """Return psi of layers along a line, the largest layer first, by dynamic programming.

    ``best[m, s]`` is the most of s tasks in the layers from one on, none larger than m.
    """
    nothing = np.full(most + 1, -(1 << 62))
    nothing[0] = 0
    best = np.tile(nothing, (len(psi), 1))
    for share in line.shares[::-1].tolist():
        before, best = best, np.empty_like(best)
        best[0] = nothing
        for m in range(1, len(psi)):
            best[m] = best[m - 1]
            own = int(psi[m]) + line.weight * share * m
            np.maximum(best[m, m:], before[m, : most + 1 - m] + own, out=best[m, m:])
    return np.asarray(best[-1], dtype=np.int64)


def best_slope(psi: IntArray, rooms: IntArray, num_tasks: int) -> tuple[Fraction, Fraction]:
    """Return the price of a task that gives the least bytes inside domains, and these bytes.

    Any price is valid: domains hold the tasks of the highest value at the price, whose sum is paid.
    The inside is convex in the price and bends at the slopes of the hull of psi.
    """
    counts = Counter(rooms[rooms > 0].tolist())
    slopes = sorted({Fraction(-1 - 2 * int(psi.max())), *_hull_slopes(psi[: max(counts) + 1])})

    def inside(slope: Fraction) -> Fraction:
        worth = np.maximum.accumulate(
            slope.denominator * psi.astype(object)
            - slope.numerator * np.arange(len(psi)).astype(object)
        )
        kept = sum(number * int(worth[room]) for room, number in counts.items())
        return Fraction(kept, slope.denominator) + slope * num_tasks

    low, high = 0, len(slopes) - 1
    while low < high:
        middle = (low + high) // 2
        if inside(slopes[middle]) <= inside(slopes[middle + 1]):
            high = middle
        else:
            low = middle + 1
    return slopes[low], inside(slopes[low])


def _hull_slopes(psi: IntArray) -> list[Fraction]:
    """Return the slopes of the least concave function above psi."""
    hull: list[tuple[int, int]] = []
    for point in enumerate(psi.tolist()):
        while len(hull) > 1:
            (a, u), (b, v) = hull[-2:]
            if (v - u) * (point[0] - b) > (point[1] - v) * (b - a):
                break
            hull.pop()
        hull.append(point)
    return [Fraction(v - u, b - a) for (a, u), (b, v) in itertools.pairwise(hull)]


# ---- Semidefinite: domains as the blocks of a matrix of ones (docs/proofs/levels.md) -------------


def spectral_level(problem: MappingProblem, room: int, stop: float) -> Found | None:
    """Return the bytes between domains of `room` tasks, by multipliers that pass the test.

    None if there are none when the clock shows `stop`.
    """
    num, rows = problem.num_tasks, problem.graph.exchanged
    ones = np.ones(num, dtype=np.int64)
    found = bisection(rows, ones, math.isqrt(room * num), stop=stop)
    if found is None:
        return None
    twice = height(found, num, 0) - found.balance * room * num
    return -(-twice // (2 * found.scale)), SpectralLevel(**dict(found))
