"""All windows of a layout's form at once: where they fit, and how far holes stretch their pencils.

Every table has the machine's shape and says something of the window, or the pencil, that begins
at a router.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray
from topoplace.mapping.pencils.window import BoolArray


class WindowTables:
    """Tables of a machine and its usable routers, for windows along one dimension.

    Parameters
    ----------
    torus
        The machine.
    whole
        Routers that may be used, shape ``(num_routers,)``.
    pencil
        The dimension along the pencils.
    """

    def __init__(self, torus: Torus, whole: BoolArray, pencil: int) -> None:
        self.torus = torus
        self.pencil = pencil
        self._whole = whole.reshape(torus.shape)
        self._stretch = lru_cache(maxsize=64)(self._measure_stretch)

    def num_begins(self, extents: tuple[int, ...]) -> int:
        """Return the number of routers that a box with these extents may begin at."""
        return math.prod(self._rooms(extents))

    def _rooms(self, extents: tuple[int, ...]) -> list[int]:
        """Return per dimension the number of coordinates a box may begin at."""
        torus = self.torus
        return [
            max(0, n - extent + 1) if extent > n or not wraps else n
            for extent, n, wraps in zip(extents, torus.shape, torus.wrap, strict=True)
        ]

    def fits(self, logical: tuple[int, ...], depth: int) -> BoolArray:
        """Tell which windows have a usable position for every level of every pencil."""
        extents = box_of(logical, self.pencil, depth)
        inside = np.zeros(self.torus.shape, dtype=bool)
        inside[tuple(map(slice, self._rooms(extents)))] = True
        if not inside.any():
            return inside
        short = self.stretch(logical[self.pencil], depth) < 0
        missing = _box_sums(short.astype(np.int64), _across(logical, self.pencil))
        fits: BoolArray = inside & (missing == 0)
        return fits

    def stretch(self, levels: int, depth: int) -> IntArray:
        """Return the holes inside the narrowest run of `levels` usable positions of each pencil.

        The pencil takes `depth` positions from the router; -1 where it holds too few usable ones.
        """
        return self._stretch(levels, depth)

    def _measure_stretch(self, levels: int, depth: int) -> IntArray:
        slack = depth - levels
        stretch = np.full(self.torus.shape, -1, dtype=np.int64)
        usable = self._whole.astype(np.int64)
        for holes in range(slack, -1, -1):
            count = _run_sums(usable, self.pencil, levels + holes)
            found = _run_sums((count >= levels).astype(np.int64), self.pencil, slack - holes + 1)
            stretch[found > 0] = holes
        return stretch

    def blocked(self, logical: tuple[int, ...], depth: int) -> IntArray:
        """Return the fewest unusable routers of a box with the layout's extents in each window."""
        holes = _box_sums((~self._whole).astype(np.int64), dict(enumerate(logical)))
        slack = depth - logical[self.pencil]
        fewest = holes
        for start in range(1, slack + 1):
            fewest = np.minimum(fewest, np.roll(holes, -start, axis=self.pencil))
        return fewest

    def weighted_stretch(self, logical: tuple[int, ...], depth: int, price: IntArray) -> IntArray:
        """Return the sum over the pencils of each window of stretch x price.

        `price` has one entry per pencil.
        """
        stretch = np.moveaxis(self.stretch(logical[self.pencil], depth), self.pencil, -1)
        extents = list(_across(logical, self.pencil).values())
        for d, extent in enumerate(extents):
            stretch = np.concatenate((stretch, np.take(stretch, range(extent - 1), d)), axis=d)
        axes = tuple(range(len(extents)))
        boxes = np.lib.stride_tricks.sliding_window_view(stretch, extents, axis=axes)
        dims = self.torus.num_dims
        total: IntArray = np.einsum(
            boxes,
            [*range(dims), *range(dims, 2 * dims - 1)],
            price.reshape(extents),
            list(range(dims, 2 * dims - 1)),
            list(range(dims)),
        )
        return np.moveaxis(total, -1, self.pencil)


def box_of(logical: tuple[int, ...], pencil: int, depth: int) -> tuple[int, ...]:
    """Return the extents of a window."""
    return tuple(depth if d == pencil else n for d, n in enumerate(logical))


def _across(logical: tuple[int, ...], pencil: int) -> dict[int, int]:
    return {d: n for d, n in enumerate(logical) if d != pencil}


def _box_sums(values: IntArray, extents: dict[int, int]) -> IntArray:
    """Add up over the box that begins at each router, round all rings."""
    for dim, extent in extents.items():
        values = _run_sums(values, dim, extent)
    return values


def _run_sums(values: IntArray, dim: int, extent: int) -> IntArray:
    """Add up over `extent` routers, at most the ring's, from each one on."""
    rows = np.moveaxis(values, dim, -1)
    n = rows.shape[-1]
    sums = np.zeros((*rows.shape[:-1], n + extent), dtype=np.int64)
    np.cumsum(np.concatenate((rows, rows[..., : extent - 1]), axis=-1), axis=-1, out=sums[..., 1:])
    return np.moveaxis(sums[..., extent:] - sums[..., :n], -1, dim)
