"""The message directions of a grid, and which of them bound one another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from topoplace.mapping.grids import VirtualGrid

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Direction:
    """An offset and its opposite, taken together.

    Attributes
    ----------
    vector
        One of the two offsets, its first entry other than 0 positive.
    weight
        Bytes of both, in units of `Directions.unit`.
    length
        Most tasks on a line of this direction.
    is_lattice
        Whether its lines are lines of the integer lattice (docs/proofs-mapping.md, "Blocks").
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
    """All directions of a grid in which messages are sent.

    Attributes
    ----------
    grid
        The grid.
    unit
        Greatest common divisor of all directions' bytes: every hop-bytes value is a multiple.
    all
        The directions, those that move in fewer dimensions first.
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
    def total(self) -> int:
        """Units of all messages together (W)."""
        units = 0
        for direction in self.all:
            senders = 1
            for step, n, wraps in zip(
                direction.vector, self.grid.shape, self.grid.periodic, strict=True
            ):
                senders *= n if wraps or step == 0 else n - 1
            units += senders * direction.weight
        return units

    @cached_property
    def diagonal_groups(self) -> tuple[tuple[Direction, ...], ...]:
        """Lattice diagonals in groups of linearly independent ones, first fit in their order."""
        groups: list[list[Direction]] = []
        for direction in self.all:
            if direction.is_axis or not direction.is_lattice:
                continue
            for group in groups:
                if _independent([*(member.vector for member in group), direction.vector]):
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
    """Tell whether some task has another task at an offset."""
    moved = [d for d, step in enumerate(offset) if step]
    exists = all(grid.periodic[d] or grid.shape[d] > 1 for d in moved)
    return exists and any(grid.shape[d] > 1 for d in moved)


def _independent(vectors: list[Vector]) -> bool:
    """Tell whether vectors are linearly independent (elimination over the rationals)."""
    rows = [list(map(Fraction, vector)) for vector in vectors]
    rank = 0
    for column in range(len(vectors[0])):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] / rows[rank][column]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank == len(vectors)
