"""Sums over the prisms of one shape, from all origins at once, and the value of a shape.

They are used to judge solutions, and to find the best candidates of requests with a geometry, which
have few shapes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.certify.torus.instance import Instance, Request
from topoplace.machine import Torus, uses_whole_ring
from topoplace.snapshot.geometry import Geometry
from topoplace.types import BoolArray, IntArray


def num_origins(n: int, wraps: bool, extent: int) -> int:
    """Return the number of canonical origins of an extent along a dimension of size `n`."""
    return 1 if extent == n else n if wraps else n - extent + 1


def link_length(torus: Torus, dim: int, extent: int) -> int:
    """Return how many links of each of its rows a prism uses along a dimension."""
    return torus.shape[dim] if uses_whole_ring(torus, dim, extent) else extent - 1


def prefix_sums(values: IntArray, axis: int, wraps: bool) -> IntArray:
    """Return the prefix sums of an array along an axis, twice round where it is a ring."""
    n = values.shape[axis]
    shape = list(values.shape)
    shape[axis] = (2 * n if wraps else n) + 1
    prefix = np.zeros(shape, dtype=np.int64)
    np.cumsum(values, axis=axis, out=_cut(prefix, axis, 1, n + 1))
    if wraps:
        once = _cut(prefix, axis, n, n + 1)
        np.add(_cut(prefix, axis, 1, n + 1), once, out=_cut(prefix, axis, n + 1, 2 * n + 1))
    return prefix


def windows(prefix: IntArray, axis: int, length: int, num: int) -> IntArray:
    """Return the sums over `length` positions from the first `num` origins, from prefix sums."""
    return _cut(prefix, axis, length, length + num) - _cut(prefix, axis, 0, num)


def padded(values: IntArray, axis: int, wraps: bool) -> IntArray:
    """Return an array extended before its first position and after its last."""
    n = values.shape[axis]
    if wraps:
        return np.concatenate([_cut(values, axis, n - 1, n), values, values], axis=axis)
    edge = np.zeros_like(_cut(values, axis, 0, 1))
    return np.concatenate([edge, values, edge], axis=axis)


def faces(padded_values: IntArray, axis: int, extent: int, num: int) -> IntArray:
    """Return what lies at both ends of an interval from the first `num` origins."""
    after = _cut(padded_values, axis, extent + 1, extent + 1 + num)
    return _cut(padded_values, axis, 0, num) + after


def beside(values: IntArray, axis: int, wraps: bool, extent: int, num: int) -> IntArray | int:
    """Return what lies next to an interval from the first `num` origins, no position twice.

    If one position of a ring is left out, it lies at both ends.
    """
    n = values.shape[axis]
    if extent == n:
        return 0
    around = padded(values, axis, wraps)
    if wraps and extent == n - 1:
        return _cut(around, axis, 0, num)
    return faces(around, axis, extent, num)


def of_routers(torus: Torus, routers: Collection[int]) -> IntArray:
    """Return 1 for some routers and 0 for others, shape ``(num_routers,)``."""
    found = np.zeros(torus.num_routers, dtype=np.int64)
    found[sorted(routers)] = 1
    return found


def _cut(array: IntArray, axis: int, start: int, stop: int) -> IntArray:
    return array[(slice(None),) * axis + (slice(start, stop),)]


@dataclass(frozen=True)
class ShapeTables:
    """What every single extent adds to the shape score.

    A prism's bisection per node is the least over the dimensions of
    ``bandwidth * f / (extent * nodes_per_router)`` (the other extents cancel), so it and
    the penalties are put together from one table per dimension, indexed by extent.
    """

    instance: Instance

    @cached_property
    def bisection(self) -> list[IntArray]:
        """Thousandths of the slowest link per node, rounded down; the prism's is the least."""
        torus = self.instance.torus
        tables = []
        for n, wraps, bandwidth in zip(torus.shape, torus.wrap, torus.bandwidth, strict=True):
            table = np.zeros(n + 1, dtype=np.int64)
            for e in range(1, n + 1):
                up, down = 1, 1
                if wraps and n > 1:
                    if e == n:
                        up = 2
                    elif 2 * e > n:
                        up, down = 2 * (e - 1), n - 1
                below = down * e * torus.nodes_per_router * min(torus.bandwidth)
                table[e] = 1000 * bandwidth * up // below
            tables.append(table)
        return tables

    @cached_property
    def penalties(self) -> list[IntArray]:
        """What hops inside and traffic that leaves cost by extent; the prism's is the sum."""
        torus, weights = self.instance.torus, self.instance.snapshot.weights
        tables = []
        for d, (n, wraps) in enumerate(zip(torus.shape, torus.wrap, strict=True)):
            hops = np.minimum(np.maximum(np.arange(n + 1) - 1, 0), n // 2 if wraps else n)
            leaves = [e < n and uses_whole_ring(torus, d, e) for e in range(n + 1)]
            tables.append(weights.hops * hops + weights.wrap * np.array(leaves, dtype=np.int64))
        return tables

    def scores(self, extents: IntArray) -> IntArray:
        """Return the shape scores, idle nodes left out, of rows of extents."""
        weights = self.instance.snapshot.weights
        dims = range(self.instance.torus.num_dims)
        bisection = np.min([self.bisection[d][extents[:, d]] for d in dims], axis=0)
        penalties = np.sum([self.penalties[d][extents[:, d]] for d in dims], axis=0)
        volumes = extents.prod(axis=1)
        return np.asarray(weights.bisection * bisection - weights.volume * volumes - penalties)

    @cached_property
    def largest(self) -> int:
        """An upper bound on the absolute shape score of any candidate."""
        weights, torus = self.instance.snapshot.weights, self.instance.torus
        return (
            weights.bisection * max(int(table.max()) for table in self.bisection)
            + weights.volume * torus.num_routers
            + weights.hops * sum(torus.shape)
            + weights.idle * torus.num_nodes
            + weights.wrap * torus.num_dims
        )


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
                length = link_length(self._torus, d, e)
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
        """Return where prisms of this shape hold enough for a request (rule 3)."""
        if request.geometries:
            some = [self.fits(request, geometry) for geometry in request.geometries]
            return np.asarray(np.any(some, axis=0))
        usable = self.sums(self.instance.usable_counts[request.class_idx])
        return np.asarray(usable >= request.nodes)

    def near(self, request: Request) -> BoolArray:
        """Return where prisms of this shape have the routers near them that a request asks for."""
        least, routers = request.near or (0, frozenset())
        there = self.sums(own := of_routers(self._torus, routers))
        for d, e in enumerate(self.extents):
            grid = self._others(own.reshape(self._torus.shape), d)
            there += beside(grid, d, self._torus.wrap[d], e, self._num_origins[d])
        return np.asarray(there >= least)

    def fits(self, request: Request, geometry: Geometry) -> BoolArray:
        """Tell where an alternative of a request's geometry fits."""
        *footprint, depth = self.extents
        if footprint != [*geometry.extents[:-1]] or depth not in geometry.depths:
            return np.zeros(self._num_origins, dtype=bool)
        if geometry.max_depth is None:
            counts = self.sums(self.instance.usable_counts[request.class_idx])
            return np.asarray(counts >= request.nodes)
        # every pencil holds this number of whole routers
        whole = self.instance.whole(request.class_idx).astype(np.int64)
        last = self._torus.num_dims - 1
        short = self._along(whole.reshape(self._torus.shape), last, depth) < geometry.extents[-1]
        return np.asarray(self._others(short.astype(np.int64), last) == 0)

    @property
    def score(self) -> int:
        """The shape score, idle nodes left out."""
        return int(self.tables.scores(np.array([self.extents], dtype=np.int64))[0])
