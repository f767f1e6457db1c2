"""What a blocks certificate proves (docs/proofs-mapping.md, "Blocks")."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace.certify.integers import ROOM, IntArray, largest
from topoplace.certify.mapping.inside import inside_bound
from topoplace.certify.mapping.instance import Grid, Instance
from topoplace.certify.mapping.lines import lines_of
from topoplace.certify.report import RefusedError
from topoplace.machine.matrix import MatrixMachine
from topoplace.result import Fraction as FractionModel
from topoplace.result import mapping as schema

MOST_BOXES = 1 << 20

Boxes = Counter[tuple[int, int]]
"""Intervals of one dimension, as (first router, routers), with the patterns they occur in."""


@dataclass(frozen=True)
class Cut:
    """How a family cuts one dimension: its intervals, patterns, and the rate of a plane."""

    boxes: Boxes
    patterns: int
    rate: Fraction


def total_value(instance: Instance) -> int:
    """Return the bound that no two tasks on one router prove; raise where two fit."""
    fullest = int(instance.capacity.max())
    if fullest > 1:
        raise RefusedError(f"a router takes {fullest} tasks, so messages may stay on it")
    if isinstance(instance.machine, MatrixMachine):
        apart = ~np.eye(instance.machine.num_routers, dtype=bool)
        if not instance.machine.distances[apart].all():
            raise RefusedError("two routers lie at distance 0")
    return instance.total


def blocks_value(instance: Instance, certificate: schema.BlocksCertificate) -> int:
    """Return the hop-bytes that a blocks certificate proves of any mapping."""
    grid = instance.grid
    if grid is None:
        raise RefusedError("a blocks certificate is for grids")
    cuts = [_cuts(instance, family) for family in certificate.families]
    multipliers = [_exact(family.multiplier) for family in certificate.families]
    if any(m < 0 for m in multipliers):
        raise RefusedError("a multiplier is negative")
    for d in range(instance.torus.num_dims):
        used = sum((m * cut[d].rate for m, cut in zip(multipliers, cuts, strict=True)), Fraction(0))
        if used > 1:
            raise RefusedError(f"the multipliers count hops of dimension {d} {used} times")
    counts = [_capacities(instance, [one.boxes for one in cut]) for cut in cuts]
    psi = inside_bound(grid, max((max(count) for count in counts), default=0))
    proven = Fraction(0)
    for family, multiplier, cut, count in zip(
        certificate.families, multipliers, cuts, counts, strict=True
    ):
        slope = _exact(family.slope)
        inside = _inside(psi, slope, count) / math.prod(one.patterns for one in cut)
        proven += multiplier * (instance.total - slope * instance.num_tasks - inside)
    return _rounded(grid, proven)


def _rounded(grid: Grid, proven: Fraction) -> int:
    """Round up to the unit that all hop-bytes are multiples of."""
    unit = lines_of(grid)[1]
    return max(0, unit * math.ceil(proven / unit))


def _exact(number: FractionModel) -> Fraction:
    return Fraction(number.numerator, number.denominator)


def _cuts(instance: Instance, family: schema.BlockFamily) -> list[Cut]:
    """Return how a family cuts every dimension.

    Planes are named by the router before them; on a ring the last plane follows the last
    router.
    """
    torus = instance.torus
    if len(family.extents) != torus.num_dims:
        raise RefusedError(f"extents {family.extents} are not of {torus.num_dims} dimensions")
    found = []
    for n, wraps, extent in zip(torus.shape, torus.wrap, family.extents, strict=True):
        if extent > n or (extent == 0 and (wraps or n < 2)):
            raise RefusedError(f"extent {extent} in a dimension of {n} routers")
        boxes: Boxes = Counter()
        planes = Counter[int]()
        if extent == n:
            boxes[0, n] = 1
            patterns = 1
        elif wraps:
            patterns = n
            # patterns are turns of the first one, so count each of its boxes at every start
            lengths = [min(extent, n - at) for at in range(0, n, extent)]
            for length, times in Counter(lengths).items():
                boxes.update({(start, length): times for start in range(n)})
            planes[0] = len(lengths)
        else:
            patterns = extent or n - 1
            for first in range(1, patterns + 1):
                ends = [end for end in range(first, n, extent or n) if end < n]
                boxes.update((a, b - a) for a, b in itertools.pairwise([0, *ends, n]))
                planes.update(ends)
        found.append(Cut(boxes, patterns, Fraction(max(planes.values(), default=0), patterns)))
    return found


def _capacities(instance: Instance, boxes: list[Boxes]) -> Counter[int]:
    """Return how often boxes of each capacity, at most all tasks, occur over all tilings."""
    torus = instance.torus
    if math.prod(map(len, boxes)) > MOST_BOXES:
        raise RefusedError("a family has too many boxes to check")
    sums = instance.capacity.reshape(torus.shape)
    times = np.ones((1,) * torus.num_dims, dtype=object)
    for d, intervals in enumerate(boxes):
        sums = _interval_sums(sums, d, list(intervals))
        shape = [-1 if k == d else 1 for k in range(torus.num_dims)]
        times = times * np.asarray(list(intervals.values()), dtype=object).reshape(shape)
    found: Counter[int] = Counter()
    room = np.minimum(sums, instance.num_tasks)
    for capacity, number in zip(room.ravel().tolist(), times.ravel().tolist(), strict=True):
        found[capacity] += number
    return found


def _interval_sums(table: IntArray, dim: int, intervals: list[tuple[int, int]]) -> IntArray:
    """Add up a table over intervals of one dimension, each router one by one."""
    n = table.shape[dim]
    front = np.moveaxis(table, dim, 0)
    rows = [(start + np.arange(length)) % n for start, length in intervals]
    firsts = np.cumsum([0, *map(len, rows[:-1])])
    sums: IntArray = np.add.reduceat(front[np.concatenate(rows)], firsts, axis=0)
    return np.moveaxis(sums, 0, dim)


def _inside(psi: IntArray, slope: Fraction, counts: Counter[int]) -> Fraction:
    """Return the sum of F_L over all boxes of all tilings."""
    p, q = slope.numerator, slope.denominator
    worth = psi[: max(counts) + 1]
    sizes = np.arange(len(worth))
    if q * largest(worth) + abs(p) * len(worth) >= ROOM:
        worth, sizes = worth.astype(object), sizes.astype(object)
    best = np.maximum.accumulate(q * worth - p * sizes)
    return Fraction(sum(number * int(best[c]) for c, number in counts.items()), q)
