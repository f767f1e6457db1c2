"""Bounds of grids by the bytes that must leave blocks of routers: families and certificates."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace.machine import Torus
from topoplace.mapping.bounds.losses import Directions, directions_of, inside_units
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Fraction as FractionModel
from topoplace.result import mapping as schema
from topoplace.solving import Bound
from topoplace.types import IntArray

# ---- How often a box of a family has which capacity, by summed-area tables -----------------------


@dataclass(frozen=True)
class Family:
    """A family of tilings as the bound sees it.

    `rates` are the shares of the tilings in which a plane is present, per dimension; `counts` the
    boxes of each of the distinct `capacities` over all tilings, ascending, none above the number of
    tasks.
    """

    extents: tuple[int, ...]
    rates: tuple[Fraction, ...]
    capacities: IntArray
    counts: IntArray
    num_tilings: int


class BoxSums:
    """Capacities of boxes, which may wrap."""

    def __init__(self, torus: Torus, capacity: IntArray) -> None:
        self._torus = torus
        table = capacity.reshape(torus.shape)
        for d, wraps in enumerate(torus.wrap):
            if wraps:
                table = np.concatenate([table, table], axis=d)
            table = np.cumsum(table, axis=d)
            pad = [(int(k == d), 0) for k in range(torus.num_dims)]
            table = np.pad(table, pad)
        self._table = table

    def family(self, extents: tuple[int, ...], num_tasks: int) -> Family | None:
        """Return a family; None if it has too many boxes to justify the time."""
        pieces = pieces_of_all(self._torus, extents)
        if math.prod(len(p.starts) for p in pieces) > MAX_BOXES:
            return None
        sums = self._table
        times = np.ones((), dtype=np.int64)
        for d, piece in enumerate(pieces):
            sums = sums.take(piece.ends, axis=d) - sums.take(piece.starts, axis=d)
            times = np.multiply.outer(times, piece.counts)
        capacities, where = np.unique(np.minimum(sums, num_tasks).ravel(), return_inverse=True)
        counts = np.zeros(len(capacities), dtype=np.int64)
        np.add.at(counts, where.ravel(), times.ravel())
        return Family(
            extents,
            tuple(p.rate for p in pieces),
            capacities,
            counts,
            math.prod(p.num_patterns for p in pieces),
        )


# ---- The best price of a task for a family: the bound is concave and piecewise linear in it ------

MAX_ROUNDS = 60
LARGEST = 1 << 62


def best_slope(psi: IntArray, num_tasks: int, family: Family) -> Fraction:
    """Return a slope L that makes `emitted` large; every slope is valid, so floats search.

    Newton's method on the tangents of both ends of a bracket; the breakpoints are slopes of
    psi, so the last one is rounded to a small denominator.
    """
    top = int(family.capacities[-1])
    part = psi[: top + 1].astype(float)
    sizes = np.arange(top + 1, dtype=float)
    weights = family.counts / family.num_tilings

    def tangent(slope: float) -> tuple[float, float]:
        """Return value and derivative of ``L n + average F_L`` (to be made small)."""
        worth = part - slope * sizes
        best = np.maximum.accumulate(worth)
        new = np.flatnonzero(worth == best)
        at = new[np.searchsorted(new, family.capacities, side="right") - 1]
        value = slope * num_tasks + float(weights @ worth[at])
        return value, num_tasks - float(weights @ sizes[at])

    low, high = 0.0, (float((part[1:] / sizes[1:]).max()) if top else 0.0) + 1
    low_value, low_rise = tangent(low)
    high_value, high_rise = tangent(high)
    best = low if low_rise >= 0 else high
    for _ in range(MAX_ROUNDS if low_rise < 0 < high_rise else 0):
        best = (high_value - low_value + low_rise * low - high_rise * high) / (low_rise - high_rise)
        value, rise = tangent(best)
        floor = low_value + low_rise * (best - low)
        if value <= floor + 1e-9 * max(1.0, abs(value)):
            break
        if rise < 0:
            low, low_value, low_rise = best, value, rise
        else:
            high, high_value, high_rise = best, value, rise
    return _simple(best, psi, top)


def _simple(slope: float, psi: IntArray, top: int) -> Fraction:
    """Return a fraction close to a slope that keeps `emitted` within 64 bits."""
    largest = max(1, int(psi[: top + 1].max()), top)
    room = LARGEST // (4 * largest * max(1, top))
    exact = Fraction(slope).limit_denominator(max(1, min(top, room)))
    return max(Fraction(0), exact)


def emitted(psi: IntArray, total: int, num_tasks: int, family: Family, slope: Fraction) -> Fraction:
    """Return S: the least bytes that leave the boxes of a family, on average over its tilings."""
    top = int(family.capacities[-1])
    p, q = slope.numerator, slope.denominator
    worth = q * psi[: top + 1] - p * np.arange(top + 1, dtype=np.int64)
    best = np.maximum.accumulate(worth)[family.capacities]
    inside = sum(c * f for c, f in zip(family.counts.tolist(), best.tolist(), strict=True))
    return total - slope * num_tasks - Fraction(inside, q * family.num_tilings)


# ---- Which families to add up: a small packing program, solved in rationals ----------------------

Row = list[Fraction]


def best_multipliers(values: list[Fraction], rates: list[tuple[Fraction, ...]]) -> Row:
    """Return the mu >= 0 that maximise ``sum mu * value`` with ``sum mu * rate <= 1``.

    The simplex method with exact fractions and Bland's rule: as many rows as the machine has
    dimensions, and the multipliers come out valid as they are. Each family has a value, a rate in
    every dimension, and one of these is positive.
    """
    num = len(values)
    dims = len(rates[0]) if rates else 0
    rows = [
        [rate[d] for rate in rates] + [Fraction(int(k == d)) for k in range(dims)] + [Fraction(1)]
        for d in range(dims)
    ]
    gains = [*values, *[Fraction(0)] * (dims + 1)]
    basis = [num + d for d in range(dims)]
    while True:
        rising = [c for c in range(num + dims) if gains[c] > 0]
        if not rising:
            break
        column = rising[0]
        leaving = [r for r in range(dims) if rows[r][column] > 0]
        pivot = min(leaving, key=lambda r: (rows[r][-1] / rows[r][column], basis[r]))
        rows[pivot] = [x / rows[pivot][column] for x in rows[pivot]]
        rows = [
            row if r == pivot else _eliminate(row, rows[pivot], column)
            for r, row in enumerate(rows)
        ]
        gains = _eliminate(gains, rows[pivot], column)
        basis[pivot] = column
    found = [Fraction(0)] * num
    for r, column in enumerate(basis):
        if column < num:
            found[column] = rows[r][-1]
    return found


def _eliminate(row: Row, pivot: Row, column: int) -> Row:
    return [x - row[column] * y for x, y in zip(row, pivot, strict=True)] if row[column] else row


# ---- Families of tilings: which blocks to try, and the boxes they cut a machine into -------------

SINGLE_CUT = 0
MAX_BOXES = 1 << 18


@dataclass(frozen=True)
class Pieces:
    """The intervals that the patterns of one dimension cut it into.

    `starts` and `ends` (exclusive; on a ring they may pass its size) are the distinct intervals,
    and each occurs in `counts` of the `num_patterns` patterns; a plane is present in a share `rate`
    of them.
    """

    starts: IntArray
    ends: IntArray
    counts: IntArray
    num_patterns: int
    rate: Fraction


def pieces_of(size: int, extent: int, *, wraps: bool) -> Pieces:
    """Return the intervals of one dimension (docs/proofs/mapping.md, "Blocks")."""
    found: Counter[tuple[int, int]] = Counter()
    if extent == size:
        found[0, size] = 1
        patterns, rate = 1, Fraction(0)
    elif wraps:
        patterns, rate = size, Fraction(-(-size // extent), size)
        # as each pattern starts at another router, all intervals of a length occur equally often
        for start in range(size):
            found[start, start + extent] = size // extent
            if size % extent:
                found[start, start + size % extent] += 1
    else:
        patterns = size - 1 if extent == SINGLE_CUT else extent
        rate = Fraction(1, patterns)
        for t in range(1, patterns + 1):
            step = size if extent == SINGLE_CUT else extent
            marks = [0, *range(t, size, step), size]
            found.update(itertools.pairwise(marks))
    bounds = np.asarray(sorted(found), dtype=np.int64)
    counts = np.asarray([found[a, b] for a, b in bounds.tolist()], dtype=np.int64)
    return Pieces(bounds[:, 0], bounds[:, 1], counts, patterns, rate)


def candidate_extents(torus: Torus) -> list[tuple[int, ...]]:
    """Return the block extents to try, a few dozen.

    Cubes of all small sizes; slabs of every thickness up to half a dimension, and single cuts.
    """
    shape = torus.shape
    wide = [d for d, n in enumerate(shape) if n > 1]
    found: dict[tuple[int, ...], None] = {}
    for a in range(1, max(shape) // 2 + 1):
        if a <= 4 or a & (a - 1) == 0 or all(n % a == 0 for n in shape):
            found[tuple(min(a, n) for n in shape)] = None
    for d in wide:
        slabs = {a for a in range(1, shape[d] // 2 + 1) if a <= 4 or shape[d] % a == 0}
        slabs.add(max(1, shape[d] // 2))
        if not torus.wrap[d]:
            slabs.add(SINGLE_CUT)
        for a in sorted(slabs):
            found[(*shape[:d], a, *shape[d + 1 :])] = None
    found.pop(shape, None)
    return list(found)


def pieces_of_all(torus: Torus, extents: tuple[int, ...]) -> list[Pieces]:
    """Return the intervals of every dimension."""
    return [
        pieces_of(n, a, wraps=w) for n, a, w in zip(torus.shape, extents, torus.wrap, strict=True)
    ]


# ---- From a mapping problem to a blocks certificate (docs/proofs/mapping.md, "Blocks") -----------

MAX_WORK = 40_000_000
LARGEST_NUMBER = 1 << 61


def blocks_bound(problem: MappingProblem) -> Bound | None:
    """Return the best bound of the candidate families, in bytes x hops.

    None if the problem is not one of a grid on a torus or mesh, or bytes are too large to add up.
    """
    if problem.grid is None or problem.machine.torus is None:
        return None
    directions, n = directions_of(problem.grid), problem.num_tasks
    if directions.weight * directions.unit * n >= LARGEST_NUMBER:
        return None
    families = _families(problem, directions)
    if not families:
        return Bound(0, schema.BlocksCertificate(families=[]))
    psi = inside_units(directions, max(int(f.capacities[-1]) for f in families))
    slopes = [best_slope(psi, n, family) for family in families]
    values = [
        emitted(psi, problem.graph.total_bytes // directions.unit, n, family, slope)
        for family, slope in zip(families, slopes, strict=True)
    ]
    multipliers = best_multipliers(values, [family.rates for family in families])
    proven = sum((m * s for m, s in zip(multipliers, values, strict=True)), Fraction(0))
    used = [
        schema.BlockFamily(
            extents=list(family.extents),
            slope=FractionModel.of(slope * directions.unit),
            multiplier=FractionModel.of(m),
        )
        for family, slope, m in zip(families, slopes, multipliers, strict=True)
        if m
    ]
    value = directions.unit * max(0, math.ceil(proven))
    return Bound(value, schema.BlocksCertificate(families=used))


def _families(problem: MappingProblem, directions: Directions) -> list[Family]:
    """Return the candidate families whose boxes are small enough for the inside bound."""
    n = directions.grid.num_tasks
    largest = _largest_set(directions)
    sums = BoxSums(problem.torus, problem.capacity)
    found = []
    for extents in candidate_extents(problem.torus):
        family = sums.family(extents, n)
        if family is not None and int(family.capacities[-1]) <= largest:
            found.append(family)
    return found


def _largest_set(directions: Directions) -> int:
    """Return how large a set the inside bound can treat in a moment (sets x widest layer)."""
    grid = directions.grid
    open_sizes = [m for m, wraps in zip(grid.shape, grid.periodic, strict=True) if not wraps]
    widest = max((grid.num_tasks // m for m in open_sizes), default=128)
    return min(grid.num_tasks, max(1 << 10, MAX_WORK // widest))
