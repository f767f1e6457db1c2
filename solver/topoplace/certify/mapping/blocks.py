"""What a blocks certificate proves of any mapping of a grid (docs/proofs/mapping.md, "Blocks")."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import ROOM, largest, require_room, times
from topoplace.certify.mapping.instance import Grid, Instance, Vector
from topoplace.certify.report import RefusedError, fraction_of
from topoplace.errors import number_of
from topoplace.machine.matrix import MatrixMachine
from topoplace.result import mapping as schema
from topoplace.types import IntArray

MOST_BOXES = 1 << 20

Boxes = Counter[tuple[int, int]]
"""Intervals of one dimension, as (first router, routers), with the patterns they occur in."""


@dataclass(frozen=True)
class Cut:
    """How a family cuts one dimension: its intervals, patterns, and the rate of a plane."""

    boxes: Boxes
    patterns: int
    rate: Fraction


def total_value(instance: Instance, _: schema.TotalCertificate) -> int:
    """Return the bound that no two tasks on one router prove; raise where two fit."""
    if instance.machine.levels is not None:
        raise RefusedError("on trees and hierarchies there are certificates of levels")
    fullest = int(instance.capacity.max())
    if fullest > 1:
        raise RefusedError(
            f"a router takes {number_of(fullest, 'task')}, so messages may stay on it"
        )
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
    counts = [_capacities(instance, [one.boxes for one in cut]) for cut in cuts]
    psi = inside_bound(grid, max((max(count) for count in counts), default=0))
    proven = Fraction(0)
    used = [Fraction(0)] * instance.torus.num_dims
    for family, cut, count in zip(certificate.families, cuts, counts, strict=True):
        slope, multiplier = fraction_of(family.slope), fraction_of(family.multiplier)
        if multiplier < 0:
            raise RefusedError("a multiplier is negative")
        inside = _inside(psi, slope, count) / math.prod(one.patterns for one in cut)
        proven += multiplier * (instance.total - slope * instance.num_tasks - inside)
        used = [x + multiplier * one.rate for x, one in zip(used, cut, strict=True)]
    if max(used) > 1:
        raise RefusedError(f"the multipliers count the hops of a dimension {max(used)} times")
    unit = lines_of(grid)[1]  # all hop-bytes are multiples of it
    return max(0, unit * math.ceil(proven / unit))


def _cuts(instance: Instance, family: schema.BlockFamily) -> list[Cut]:
    """Return how a family cuts every dimension; every plane is in equally many patterns."""
    torus = instance.torus
    if len(family.extents) != torus.num_dims:
        raise RefusedError(
            f"extents {family.extents} are not of {number_of(torus.num_dims, 'dimension')}"
        )
    found = []
    for n, wraps, extent in zip(torus.shape, torus.wrap, family.extents, strict=True):
        if extent > n or (extent == 0 and (wraps or n < 2)):
            raise RefusedError(f"extent {extent} in a dimension of {number_of(n, 'router')}")
        boxes: Boxes = Counter()
        patterns, rate = 1, Fraction(0)
        if extent == n:
            boxes[0, n] = 1
        elif wraps:
            # patterns are turns of the first one, so count each of its boxes at every start
            lengths = [min(extent, n - at) for at in range(0, n, extent)]
            for length, number in Counter(lengths).items():
                boxes.update({(start, length): number for start in range(n)})
            patterns, rate = n, Fraction(len(lengths), n)
        else:
            patterns = extent or n - 1
            for first in range(1, patterns + 1):
                ends = range(first, n, extent or n)
                boxes.update((a, b - a) for a, b in itertools.pairwise([0, *ends, n]))
            rate = Fraction(1, patterns)
        found.append(Cut(boxes, patterns, rate))
    return found


def _capacities(instance: Instance, boxes: list[Boxes]) -> Counter[int]:
    """Return how often boxes of each capacity, at most all tasks, occur over all tilings."""
    shape = instance.torus.shape
    if math.prod(map(len, boxes)) > MOST_BOXES:
        raise RefusedError("a family has too many boxes to check")
    sums = instance.capacity.reshape(shape)
    times = np.ones((), dtype=object)
    for d, intervals in enumerate(boxes):
        rows = [(start + np.arange(length)) % shape[d] for start, length in intervals]
        firsts = np.cumsum([0, *map(len, rows[:-1])])
        sums = np.add.reduceat(sums.take(np.concatenate(rows), axis=d), firsts, axis=d)
        times = np.multiply.outer(times, np.asarray(list(intervals.values()), dtype=object))
    found: Counter[int] = Counter()
    room = np.minimum(sums, instance.num_tasks)
    for capacity, number in zip(room.ravel().tolist(), times.ravel().tolist(), strict=True):
        found[capacity] += number
    return found


def _inside(psi: IntArray, slope: Fraction, counts: Counter[int]) -> Fraction:
    """Return the sum of F_L over all boxes of all tilings."""
    p, q = slope.numerator, slope.denominator
    worth = psi[: max(counts) + 1]
    sizes = np.arange(len(worth))
    if q * largest(worth) + abs(p) * len(worth) >= ROOM:
        worth, sizes = worth.astype(object), sizes.astype(object)
    best = np.maximum.accumulate(q * worth - p * sizes)
    return Fraction(sum(number * int(best[c]) for c, number in counts.items()), q)


@dataclass(frozen=True)
class Lines:
    """The lines of one direction, whose first entry other than 0 is positive.

    They move in these dimensions. A task inside the grid sends `size` units both ways along it,
    and the longest line has `longest` tasks. Lines are `bounded` if they lose a message when
    touched but not held whole.
    """

    vector: Vector
    moved: int
    size: int
    longest: int
    bounded: bool


def lines_of(grid: Grid) -> tuple[list[Lines], int]:
    """Return the directions in which tasks send, and the unit of all their bytes.

    Hop-bytes are a multiple of the unit, the greatest common divisor of what pairs of tasks
    send each other. Directions of fewer moves come first, then the larger vector.
    """
    found: dict[Vector, int] = {}
    for offset, size in grid.sent.items():
        vector = max(offset, tuple(-x for x in offset))
        reach = [n > 1 or wraps for n, wraps in zip(grid.shape, grid.periodic, strict=True)]
        apart = any(x and n > 1 for x, n in zip(vector, grid.shape, strict=True))
        if apart and all(r for x, r in zip(vector, reach, strict=True) if x):
            found[vector] = found.get(vector, 0) + size
    unit = math.gcd(*found.values()) or 1
    lines = []
    for vector, size in found.items():
        steps = [d for d, x in enumerate(vector) if x]
        bounded = len(steps) == 1 or not any(grid.periodic[d] for d in steps)
        longest = min(grid.shape[d] for d in steps)
        lines.append(Lines(vector, len(steps), size // unit, longest, bounded))
    return sorted(lines, key=lambda line: (line.moved, tuple(-x for x in line.vector))), unit


MOST_WORK = 4_000_000_000
"""Additions for one dimension of a grid, some 20 seconds: larger certificates are refused."""

Exact = NDArray[Any]
"""Python integers of any size."""


def inside_bound(grid: Grid, limit: int) -> IntArray:
    """Return psi(s), in bytes, for s = 0..limit."""
    lines, unit = lines_of(grid)
    per_task = sum(line.size for line in lines)
    # no loss is above all bytes of the tasks, so that neither are sums of losses along the way
    require_room(2 * unit * per_task * max(limit, math.prod(grid.shape)), "the bytes inside blocks")
    sizes = np.arange(limit + 1, dtype=np.int64)
    psi = per_task * sizes - _axes(grid, lines, limit)
    dims = sum(n > 1 for n in grid.shape)
    for group in _groups([line for line in lines if line.moved > 1 and line.bounded]):
        psi -= _group_loss(group, limit, complete=len(group) == dims)
    psi[:2] = 0
    return times(psi, unit, "the bytes inside blocks")


def _axes(grid: Grid, lines: list[Lines], limit: int) -> IntArray:
    """Return the least loss along the axes: rings first, then layers of open dimensions."""
    size = {line.vector.index(1): line.size for line in lines if line.moved == 1}
    wide = [d for d, n in enumerate(grid.shape) if n > 1]
    rings = [d for d in wide if grid.periodic[d] and d in size]
    least = np.zeros(2, dtype=np.int64)
    for done, d in enumerate(rings, 1):
        part = [(grid.shape[e], size[e]) for e in rings[:done]]
        few = _stacked(least, size[d], grid.shape[d], min(limit, grid.shape[d] - 1))
        least = _closed(part, few, limit)
    tasks = math.prod(grid.shape[d] for d in rings)
    for d in wide:
        if d not in rings:
            tasks *= grid.shape[d]
            least = _stacked(least, size.get(d, 0), grid.shape[d], min(limit, tasks))
    return least


def _stacked(layer: IntArray, size: int, num_layers: int, limit: int) -> IntArray:
    """Return the least loss of sets in layers, none larger than one that pays for all."""
    least: IntArray = np.full(limit + 1, ROOM, dtype=np.int64)
    least[0] = 0
    cheapest = least.copy()
    for widest in range(1, min(len(layer) - 1, limit) + 1):
        if widest * limit > MOST_WORK:
            raise RefusedError(f"more than {MOST_WORK} additions for the tasks inside blocks")
        columns = np.full(-(-(limit + 1) // widest) * widest, ROOM, dtype=np.int64)
        columns[: limit + 1] = cheapest
        stack = columns.reshape(-1, widest)
        steps = times(np.arange(len(stack)), int(layer[widest]), "the loss of layers")[:, None]
        stack = np.minimum.accumulate(stack - steps, axis=0) + steps
        cheapest = np.minimum(stack.ravel()[: limit + 1], ROOM)
        reach = slice(widest, min(limit, widest * num_layers) + 1)
        least[reach] = np.minimum(least[reach], size * widest + cheapest[reach])
        if size * widest >= least.max():
            break
    return least


def _closed(rings: list[tuple[int, int]], few: IntArray, limit: int) -> IntArray:
    """Return the least loss on a torus grid (Bollobas and Leader 1991, with weights)."""
    tasks = math.prod(n for n, _ in rings)
    sets = np.arange(min(tasks, limit) + 1)
    smaller: Exact = np.minimum(sets, tasks - sets).astype(object)
    shares = []
    for count in range(1, len(rings) + 1):
        for chosen in itertools.combinations(rings, count):
            over = math.prod(n for n, _ in chosen)
            under = count**count * tasks * math.prod(w for _, w in chosen)
            shares.append(root_up(under * smaller ** (count - 1), over, count))
    least: IntArray = np.minimum.reduce(shares).astype(np.int64)
    least[smaller == 0] = 0
    without_whole = np.flatnonzero(smaller < len(few))
    known = few[smaller[without_whole].astype(np.int64)]
    least[without_whole] = np.maximum(least[without_whole], known)
    return least


def _groups(lines: list[Lines]) -> list[list[Lines]]:
    """Put each direction into the first group it is linearly independent of."""
    groups: list[list[Lines]] = []
    for line in lines:
        for group in groups:
            vectors = [*(other.vector for other in group), line.vector]
            # Gram's determinant: not 0 just for independent vectors
            if _determinant([[sum(map(mul, v, w)) for w in vectors] for v in vectors]):
                group.append(line)
                break
        else:
            groups.append([line])
    return groups


def _determinant(rows: list[list[int]]) -> int:
    if not rows:
        return 1
    return sum(
        (-1) ** c * entry * _determinant([row[:c] + row[c + 1 :] for row in rows[1:]])
        for c, entry in enumerate(rows[0])
        if entry
    )


def _group_loss(group: list[Lines], limit: int, *, complete: bool) -> IntArray:
    """Return the least loss along independent directions (Loomis and Whitney 1949)."""
    sets: Exact = np.arange(1, limit + 1).astype(object)
    least: Exact = sum((line.size * -(-sets // line.longest) for line in group), 0 * sets)
    if complete:
        num = len(group)
        product = num**num * sets ** (num - 1) * math.prod(line.size for line in group)
        least = np.maximum(least, root_up(product, 1, num))
    return np.concatenate([[0], least]).astype(np.int64)


def root_up(numerator: Exact, denominator: Exact | int, power: int) -> Exact:
    """Return the least integers x with ``x ** power * denominator >= numerator``.

    Floating point guesses; integers decide.
    """
    ratio = (numerator / denominator).astype(float)
    x: Exact = np.asarray([int(v) for v in np.floor(ratio ** (1 / power))], dtype=object)

    def falls_short(x: Exact) -> NDArray[np.bool_]:
        short: NDArray[np.bool_] = (x**power * denominator < numerator).astype(bool)
        return short

    while (short := falls_short(x)).any():
        x = x + short.astype(object) * 1
    while (spare := (x > 0).astype(bool) & ~falls_short(x - 1)).any():
        x = x - spare.astype(object) * 1
    return x
