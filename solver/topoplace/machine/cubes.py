"""Pods of cubes that optical switches connect: any cubes form a torus, a part stays inside one."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from topoplace.errors import number_of
from topoplace.types import IntArray

Extents = tuple[int, ...]


@dataclass(frozen=True)
class Cubes:
    """Equal cubes of chips, numbered cube by cube, the last dimension fastest.

    Attributes
    ----------
    num_cubes
        How many there are.
    side
        Chips of a cube along each dimension.
    """

    num_cubes: int
    side: Extents

    @property
    def volume(self) -> int:
        """Chips of a cube."""
        return math.prod(self.side)

    @property
    def num_chips(self) -> int:
        """Chips of the machine."""
        return self.num_cubes * self.volume

    @property
    def text(self) -> str:
        """Number and side of the cubes, such as ``64 cubes of 4x4x4``."""
        return f"{number_of(self.num_cubes, 'cube')} of {'x'.join(map(str, self.side))}"

    def origins(self, extents: Extents) -> list[Extents]:
        """Return where in a cube a part of some extents may begin, at multiples of them."""
        pairs = zip(self.side, extents, strict=True)
        return list(itertools.product(*(range(0, n - e + 1, e) for n, e in pairs)))

    def inside(self, origin: Extents, extents: Extents) -> IntArray:
        """Return the chips of a part, numbered from 0 within its cube, ascending."""
        chips = np.arange(self.volume).reshape(self.side)
        ranges = (slice(o, o + e) for o, e in zip(origin, extents, strict=True))
        return chips[tuple(ranges)].ravel()

    def chips_of(self, cube: int) -> IntArray:
        """Return the chips of a cube."""
        return np.arange(cube * self.volume, (cube + 1) * self.volume)
