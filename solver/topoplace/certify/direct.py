"""Best priced candidates of requests with a geometry on large machines: few shapes, all origins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.column import NONE
from topoplace.certify.instance import Instance, Wish
from topoplace.certify.score import ShapeTables
from topoplace.certify.sweep import Gains, Group
from topoplace.certify.windows import faces, num_origins, windows

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def best_of_shapes(
    instance: Instance, wish: Wish, group: Group, gains: Gains, inside: frozenset[int]
) -> int:
    """Return the largest gain of a request with a geometry (`column.NONE`: no candidate).

    Parameters
    ----------
    inside
        Routers that its prism must cover.
    """
    cover = np.zeros(instance.torus.num_routers, dtype=np.int64)
    cover[sorted(inside)] = 1
    wanted: dict[tuple[int, ...], set[int]] = {}
    for geometry in wish.geometries:
        for depth in geometry.depths:
            extents = (*geometry.extents[:-1], depth)
            whole = 0 if geometry.max_depth is None else geometry.extents[-1]
            wanted.setdefault(extents, set()).add(whole)
    best = NONE
    for extents, rules in wanted.items():
        box = _Box(instance, extents)
        good = box.sums(cover) == len(inside)
        best = max(best, _best_of_shape(box, wish, group, gains, good=good, rules=rules))
    return best


def _best_of_shape(
    box: _Box, wish: Wish, group: Group, gains: Gains, *, good: BoolArray, rules: set[int]
) -> int:
    """Return the largest gain of one shape from good origins.

    `rules` are the whole routers wanted per pencil. Rule 0 stands for a geometry without maxz:
    enough usable nodes, wherever they are.
    """
    instance = box.instance
    counts = box.sums(group.usable)
    enough = np.zeros(counts.shape, dtype=bool)
    for rule in rules:
        enough |= counts >= wish.nodes if rule == 0 else box.whole_pencils(wish, rule)
    good = good & enough
    good &= box.sums(group.blocked.astype(np.int64)) == 0
    if group.closed is not None:
        good &= box.links(group.closed.astype(np.int64)) == 0
    if not good.any():
        return NONE
    extents = np.array([box.extents], dtype=np.int64)
    score = int(box.tables.scores(extents)[0])
    per_node = gains.to_shape * instance.snapshot.weights.idle
    found = gains.to_shape * score - per_node * counts - box.sums(gains.router_prices)
    if group.link_prices is not None:
        found -= box.links(group.link_prices)
    if gains.to_boundary:
        found -= gains.to_boundary * box.faces(instance.free.astype(np.int64))
    return int(found[good].max())


class _Box:
    """Sums over one shape from all origins."""

    def __init__(self, instance: Instance, extents: tuple[int, ...]) -> None:
        self.tables = ShapeTables(instance)
        self.instance, self.extents = instance, extents
        self._torus = instance.torus
        self._num_origins = [
            num_origins(n, wraps, e)
            for n, wraps, e in zip(self._torus.shape, self._torus.wrap, extents, strict=True)
        ]

    def _along(self, grid: IntArray, dim: int, length: int) -> IntArray:
        return windows(grid, dim, self._torus.wrap[dim]).sums(length, 0, self._num_origins[dim])

    def _others(self, grid: IntArray, left_out: int) -> IntArray:
        for d, e in enumerate(self.extents):
            if d != left_out:
                grid = self._along(grid, d, e)
        return grid

    def sums(self, values: IntArray) -> IntArray:
        """Return the sums over the routers inside."""
        grid = self._others(values.reshape(self._torus.shape), 0)
        return self._along(grid, 0, self.extents[0])

    def links(self, values: IntArray) -> IntArray:
        """Return the sums over the links in use."""
        grids = values.reshape(-1, *self._torus.shape)
        total = np.zeros(self._num_origins, dtype=np.int64)
        for d, e in enumerate(self.extents):
            if e > 1:
                length = self.tables.link_length(d, e)
                total += self._along(self._others(grids[d], d), d, length)
        return total

    def faces(self, values: IntArray) -> IntArray:
        """Return the sums over the far ends of the links that lead out."""
        grid = values.reshape(self._torus.shape)
        total = np.zeros(self._num_origins, dtype=np.int64)
        for d, e in enumerate(self.extents):
            if e < self._torus.shape[d]:
                padded = faces(self._others(grid, d), d, self._torus.wrap[d])
                total += padded.sums(e, 0, self._num_origins[d])
        return total

    def whole_pencils(self, wish: Wish, wanted: int) -> BoolArray:
        """Return where every pencil holds so many whole routers."""
        last = self._torus.num_dims - 1
        whole = self.instance.whole(wish.class_idx).astype(np.int64)
        depth = self._along(whole.reshape(self._torus.shape), last, self.extents[last])
        short = (depth < wanted).astype(np.int64)
        return np.asarray(self._others(short, last) == 0)
