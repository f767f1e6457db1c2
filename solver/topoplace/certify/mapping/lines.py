"""Directions of messages, each with its opposite, and the lines they run along."""

from __future__ import annotations

import math
from dataclasses import dataclass

from topoplace.certify.mapping.instance import Grid, Vector


@dataclass(frozen=True)
class Lines:
    """The lines of one direction.

    Attributes
    ----------
    vector
        The direction, its first entry other than 0 positive.
    size
        Units that a task inside the grid sends both ways along it.
    longest
        Tasks on the longest line.
    bounded
        Whether its lines lose a message for every line touched but not held whole.
    """

    vector: Vector
    size: int
    longest: int
    bounded: bool

    @property
    def moved(self) -> int:
        """Number of dimensions it moves in."""
        return sum(map(abs, self.vector))


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
        lines.append(Lines(vector, size // unit, longest, bounded))
    return sorted(lines, key=lambda line: (line.moved, tuple(-x for x in line.vector))), unit
