"""Windows of a machine that pencils are chosen in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class PencilWindow:
    """The pencils of a box of routers (docs/proofs-mapping.md, "Pencils").

    Attributes
    ----------
    routers
        Router at every position, shape ``(num_pencils, depth)``; pencils are numbered row-major
        over the window's dimensions without the one along them.
    usable
        Whether a level may go there, same shape.
    levels
        Levels that every pencil has to hold.
    """

    routers: IntArray
    usable: BoolArray
    levels: int

    @property
    def num_pencils(self) -> int:
        """Number of pencils."""
        return len(self.usable)

    @property
    def depth(self) -> int:
        """Positions per pencil."""
        return int(self.usable.shape[1])

    @property
    def slack(self) -> int:
        """Positions that every pencil leaves free."""
        return self.depth - self.levels

    @cached_property
    def feasible(self) -> bool:
        """Whether every pencil has a usable position for every level."""
        return bool((self.usable.sum(axis=1) >= self.levels).all())

    @cached_property
    def earliest(self) -> IntArray:
        """First position each level can take, shape ``(num_pencils, levels)``."""
        return _first_usable(self.usable, self.levels)

    @cached_property
    def latest(self) -> IntArray:
        """Last position each level can take, shape ``(num_pencils, levels)``."""
        mirrored = _first_usable(self.usable[:, ::-1], self.levels)
        return self.depth - 1 - mirrored[:, ::-1]

    def routers_of(self, selection: IntArray) -> IntArray:
        """Return the router of every cell, shape ``(num_pencils, levels)``."""
        chosen: IntArray = np.take_along_axis(self.routers, selection, axis=1)
        return chosen


def _first_usable(usable: BoolArray, levels: int) -> IntArray:
    """Return the first `levels` usable positions of every row, which has at least so many."""
    order = np.argsort(~usable, axis=1, kind="stable")  # usable ones first, in their order
    return order[:, :levels].astype(np.int64)


def window_at(
    torus: Torus,
    whole: BoolArray,
    logical: tuple[int, ...],
    pencil: int,
    origin: tuple[int, ...],
    depth: int,
) -> PencilWindow:
    """Return a window of a machine.

    Parameters
    ----------
    torus
        The machine.
    whole
        Routers that may be used, shape ``(num_routers,)``.
    logical
        Logical routers per machine dimension.
    pencil
        The dimension along the pencils.
    origin
        Lowest corner; the window goes on at 0 on a ring.
    depth
        Positions along the pencils; at most the machine's extent.
    """
    extents = [depth if d == pencil else n for d, n in enumerate(logical)]
    routers = np.zeros((1,) * len(extents), dtype=np.int64)
    for d, extent in enumerate(extents):
        at = (origin[d] + np.arange(extent, dtype=np.int64)) % torus.shape[d] * torus.strides[d]
        routers = routers + at.reshape([-1 if k == d else 1 for k in range(len(extents))])
    routers = np.moveaxis(routers, pencil, -1).reshape(-1, depth)
    return PencilWindow(routers, whole[routers], logical[pencil])
