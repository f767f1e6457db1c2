"""Sums over the prisms of one shape, from all origins at once.

So the best candidates of requests with a geometry are found, which have few shapes, and on small
machines what explanations say of all prisms.
"""

from __future__ import annotations

import numpy as np

from topoplace.certify.torus.instance import Instance, Request
from topoplace.certify.torus.solution import ShapeTables
from topoplace.certify.torus.sweep import (
    NONE,
    Gains,
    Group,
    faces,
    num_origins,
    padded,
    prefix_sums,
    windows,
)
from topoplace.types import BoolArray, IntArray


class Box:
    """The prisms of one shape; results are grids of their canonical origins."""

    def __init__(self, instance: Instance, extents: tuple[int, ...]) -> None:
        self.tables = ShapeTables(instance)
        self.instance, self.extents = instance, extents
        self._torus = instance.torus
        self._num_origins = [
            num_origins(n, wraps, e)
            for n, wraps, e in zip(self._torus.shape, self._torus.wrap, extents, strict=True)
        ]

    def _along(self, grid: IntArray, dim: int, length: int) -> IntArray:
        prefix = prefix_sums(grid, dim, self._torus.wrap[dim])
        return windows(prefix, dim, length, self._num_origins[dim])

    def _others(self, grid: IntArray, left_out: int) -> IntArray:
        for d, e in enumerate(self.extents):
            if d != left_out:
                grid = self._along(grid, d, e)
        return grid

    def sums(self, values: IntArray | BoolArray) -> IntArray:
        """Return the sums over the routers inside."""
        grid = self._others(values.astype(np.int64).reshape(self._torus.shape), 0)
        return self._along(grid, 0, self.extents[0])

    def links(self, values: IntArray | BoolArray) -> IntArray:
        """Return the sums over the links in use."""
        grids = values.astype(np.int64).reshape(-1, *self._torus.shape)
        total = np.zeros(self._num_origins, dtype=np.int64)
        for d, e in enumerate(self.extents):
            if e > 1:
                length = self.tables.link_length(d, e)
                total += self._along(self._others(grids[d], d), d, length)
        return total

    def faces(self, values: BoolArray) -> IntArray:
        """Return the sums over the far ends of the links that lead out."""
        grid = values.astype(np.int64).reshape(self._torus.shape)
        total = np.zeros(self._num_origins, dtype=np.int64)
        for d, e in enumerate(self.extents):
            if e < self._torus.shape[d]:
                beside = padded(self._others(grid, d), d, self._torus.wrap[d])
                total += faces(beside, d, e, self._num_origins[d])
        return total

    def enough(self, request: Request) -> BoolArray:
        """Tell where prisms of this shape hold what a request wants (rules 2 and 3)."""
        counts = self.sums(self.instance.usable_counts[request.class_idx])
        if not request.geometries:
            return np.asarray(counts >= request.nodes)
        found = np.zeros(counts.shape, dtype=bool)
        for geometry in request.geometries:
            if self.extents[:-1] == geometry.extents[:-1] and self.extents[-1] in geometry.depths:
                if geometry.max_depth is None:
                    found |= counts >= request.nodes
                else:
                    found |= self._whole_pencils(request, geometry.extents[-1])
        return found

    def _whole_pencils(self, request: Request, wanted: int) -> BoolArray:
        """Tell where every pencil holds so many whole routers."""
        last = self._torus.num_dims - 1
        whole = self.instance.whole(request.class_idx).astype(np.int64)
        depth = self._along(whole.reshape(self._torus.shape), last, self.extents[last])
        short = (depth < wanted).astype(np.int64)
        return np.asarray(self._others(short, last) == 0)

    def candidates(self, request: Request) -> BoolArray:
        """Tell which prisms of this shape are candidates of a request."""
        good: BoolArray = self.enough(request) & (self.sums(~self.instance.allowed(request)) == 0)
        closed = self.instance.closed(request.sharing)
        return good & (self.links(closed) == 0) if closed.any() else good

    def best(self, request: Request, group: Group, gains: Gains, inside: frozenset[int]) -> int:
        """Return the largest gain of a candidate that covers some routers, `NONE` without one."""
        cover = np.zeros(self._torus.num_routers, dtype=np.int64)
        cover[sorted(inside)] = 1
        good = self.enough(request) & (self.sums(cover) == len(inside))
        good &= self.sums(group.blocked) == 0
        if group.closed is not None:
            good &= self.links(group.closed) == 0
        if not good.any():
            return NONE
        score = int(self.tables.scores(np.array([self.extents], dtype=np.int64))[0])
        per_node = gains.to_shape * self.instance.snapshot.weights.idle
        found = gains.to_shape * score - per_node * self.sums(group.usable)
        found -= self.sums(gains.router_prices)
        if group.link_prices is not None:
            found -= self.links(group.link_prices)
        if gains.to_boundary:
            found -= gains.to_boundary * self.faces(self.instance.free)
        return int(found[good].max())


def best_of_shapes(
    instance: Instance, request: Request, group: Group, gains: Gains, inside: frozenset[int]
) -> int:
    """Return the largest gain of a request with a geometry, `NONE` without a candidate.

    Parameters
    ----------
    inside
        Routers that its prism must cover.
    """
    shapes = {(*g.extents[:-1], depth) for g in request.geometries for depth in g.depths}
    return max(Box(instance, shape).best(request, group, gains, inside) for shape in sorted(shapes))
