"""The losses of blocks of routers: directions, insides and losses of block families."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.graph import VirtualGrid
from topoplace.types import FloatArray, IntArray

# ---- Compiled loop of the layer bound ------------------------------------------------------------

FAR = np.int64(1 << 62)


@kernel()
def add_layers(inner, weight, num_layers, limit):
    """Return the least loss of 0..limit tasks in layers, given the least loss in one layer.

    The largest layer has `widest` tasks and costs ``weight * widest``; `split` is the least loss
    inside layers of at most `widest` tasks, an unbounded knapsack that grows by one size per round.
    `num_layers` layers must suffice.
    """
    least = np.full(limit + 1, FAR)
    least[0] = 0
    split = np.full(limit + 1, FAR)
    split[0] = 0
    for widest in range(1, min(len(inner) - 1, limit) + 1):
        price = weight * widest
        loss = inner[widest]
        for s in range(widest, limit + 1):
            split[s] = min(split[s], split[s - widest] + loss)
        last = min(limit, widest * num_layers)
        worst = np.int64(0)
        for s in range(1, limit + 1):
            if widest <= s <= last:
                least[s] = min(least[s], price + split[s])
            worst = max(worst, least[s])
        if price >= worst:  # wider layers are nowhere better
            break
    return least


# ---- The message directions of a grid, and which of them bound one another -----------------------

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Direction:
    """An offset and its opposite, taken together.

    Of the two offsets `vector` is the one whose first entry other than 0 is positive. `weight` are
    the bytes of both, in units of `Directions.unit`, `length` the most tasks on a line of this
    direction; `is_lattice` tells whether its lines are lines of the integer lattice
    (docs/proofs/mapping.md, "Blocks").
    """

    vector: Vector
    weight: int
    length: int
    is_lattice: bool

    @property
    def is_axis(self) -> bool:
        """Whether it moves in one dimension."""
        return sum(map(abs, self.vector)) == 1


@dataclass(frozen=True)
class Directions:
    """All directions of a grid in which messages are sent, those of fewer moves first.

    Every hop-bytes value is a multiple of `unit`, the greatest common divisor of their bytes.
    """

    grid: VirtualGrid
    unit: int
    all: tuple[Direction, ...]

    @property
    def weight(self) -> int:
        """Units that a task inside the grid sends in all directions together."""
        return sum(direction.weight for direction in self.all)

    @cached_property
    def axis_weights(self) -> Vector:
        """Weight of every axis of the grid, 0 where nothing is sent."""
        weights = [0] * self.grid.num_dims
        for direction in self.all:
            if direction.is_axis:
                weights[direction.vector.index(1)] = direction.weight
        return tuple(weights)

    @cached_property
    def diagonal_groups(self) -> tuple[tuple[Direction, ...], ...]:
        """Lattice diagonals in groups of linearly independent ones, first fit in their order."""
        groups: list[list[Direction]] = []
        for direction in self.all:
            if direction.is_axis or not direction.is_lattice:
                continue
            for group in groups:
                vectors = [*(member.vector for member in group), direction.vector]
                if np.linalg.matrix_rank(vectors) == len(vectors):
                    group.append(direction)
                    break
            else:
                groups.append([direction])
        return tuple(map(tuple, groups))


def directions_of(grid: VirtualGrid) -> Directions:
    """Return the directions of a grid; those in which nothing is sent are left out."""
    size: dict[Vector, int] = {}
    for offset, sent in grid.offsets:
        if not _sends(offset, grid):
            continue
        leading = next(step for step in offset if step)
        vector = offset if leading > 0 else tuple(-step for step in offset)
        size[vector] = size.get(vector, 0) + sent
    unit = math.gcd(*size.values()) or 1
    ordered = sorted(size, key=lambda vector: (sum(map(abs, vector)), [-x for x in vector]))
    found = []
    for vector in ordered:
        moved = [d for d, step in enumerate(vector) if step]
        lattice = len(moved) == 1 or not any(grid.periodic[d] for d in moved)
        length = min(grid.shape[d] for d in moved)
        found.append(Direction(vector, size[vector] // unit, length, lattice))
    return Directions(grid, unit, tuple(found))


def _sends(offset: Vector, grid: VirtualGrid) -> bool:
    """Return whether some task has another task at an offset."""
    moved = [d for d, step in enumerate(offset) if step]
    exists = all(grid.periodic[d] or grid.shape[d] > 1 for d in moved)
    return exists and any(grid.shape[d] > 1 for d in moved)


# ---- The inside bound psi: most bytes that stay between s tasks of a grid ------------------------


@lru_cache(maxsize=8)
def inside_units(directions: Directions, limit: int) -> IntArray:
    """Return psi(s) for s = 0..limit: no set of s tasks has more between its members.

    In units of the directions; read-only, kept for the next call. Source: docs/proofs/mapping.md,
    "Blocks".
    """
    sizes = np.arange(limit + 1, dtype=np.int64)
    psi = directions.weight * sizes
    psi -= axes_loss(directions, limit) + diagonals_loss(directions, limit)
    psi[:2] = 0  # a single task has no partner to send to
    psi.setflags(write=False)
    return psi


# ---- Least messages that a set of tasks must lose: by layers, on rings, and by projections -------
# The *loss* of a set along a direction is its weight times the lines touched less the lines
# held whole (docs/proofs/mapping.md, "Blocks"). Roots are taken in floating point and rounded
# down by more than their error, so every figure is a valid lower bound.

GUARD = 1e-11


def axes_loss(directions: Directions, limit: int) -> IntArray:
    """Return lower bounds on the loss along the axes of 0..limit tasks.

    Rings come first, then the open dimensions as layers of what came before.
    """
    grid, weights = directions.grid, directions.axis_weights
    real = [d for d in range(grid.num_dims) if grid.shape[d] > 1]
    rings = [d for d in real if grid.periodic[d] and weights[d]]
    table = np.zeros(2, dtype=np.int64)
    tasks = 1
    for k, d in enumerate(rings):
        n = grid.shape[d]
        tasks *= n
        open_loss = add_layers(table, weights[d], n, min(n - 1, limit))
        used = [(grid.shape[e], weights[e]) for e in rings[: k + 1]]
        table = _ring_table(used, tasks, open_loss, limit)
    for d in real:
        if d not in rings:
            tasks *= grid.shape[d]
            table = add_layers(table, weights[d], grid.shape[d], min(tasks, limit))
    return table


def _ring_table(
    rings: list[tuple[int, int]], tasks: int, open_loss: IntArray, limit: int
) -> IntArray:
    """Bollobas and Leader 1991 with weights; fewer tasks than layers hold no line whole."""
    sizes = np.arange(min(tasks, limit) + 1, dtype=np.int64)
    lesser = np.minimum(sizes, tasks - sizes)
    least = np.full(len(sizes), np.inf)
    for r in range(1, len(rings) + 1):
        for chosen in itertools.combinations(rings, r):
            ratio = math.prod(w / n for n, w in chosen) * tasks
            least = np.minimum(least, r * (ratio * lesser.astype(float) ** (r - 1)) ** (1 / r))
    table = _up(least)
    table[lesser == 0] = 0
    for few in (sizes, tasks - sizes):
        is_few = few < len(open_loss)
        table[is_few] = np.maximum(table[is_few], open_loss[few[is_few]])
    return table


def diagonals_loss(directions: Directions, limit: int) -> IntArray:
    """Return lower bounds on the loss along all diagonals of 0..limit tasks."""
    total = np.zeros(limit + 1, dtype=np.int64)
    full = sum(n > 1 for n in directions.grid.shape)
    for group in directions.diagonal_groups:
        total += _projected(group, limit, whole=len(group) == full)
    return total


def _projected(group: tuple[Direction, ...], limit: int, *, whole: bool) -> IntArray:
    """Loomis and Whitney 1949, and no fewer lines than the longest ones can be."""
    sizes = np.arange(limit + 1, dtype=np.int64)
    least = sum((v.weight * -(-sizes // v.length) for v in group), np.zeros_like(sizes))
    if whole:
        num = len(group)
        product = sizes.astype(float) ** (num - 1) * math.prod(v.weight for v in group)
        least[1:] = np.maximum(least[1:], _up(num * product[1:] ** (1 / num)))
    return least


def _up(values: FloatArray) -> IntArray:
    """Round up what is more than rounding error above an integer."""
    return np.ceil(values * (1 - GUARD)).astype(np.int64)
