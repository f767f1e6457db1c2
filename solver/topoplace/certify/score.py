"""The values of a candidate on the three levels, from tables over single extents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.instance import Instance, Wish
from topoplace.machine import Prism, uses_whole_ring

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ShapeTables:
    """What every single extent adds to the shape score.

    A prism's bisection per node is the least over the dimensions of
    ``bandwidth * f / (extent * nodes_per_router)`` (the other extents cancel), so it, the hops
    and the wraps are put together from one table per dimension, indexed by extent.
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
    def hops(self) -> list[IntArray]:
        """Largest distance inside along the dimension; the prism's is the sum."""
        torus = self.instance.torus
        return [
            np.minimum(np.maximum(np.arange(n + 1) - 1, 0), n // 2 if wraps else n)
            for n, wraps in zip(torus.shape, torus.wrap, strict=True)
        ]

    @cached_property
    def wraps(self) -> list[IntArray]:
        """Whether traffic leaves the prism along the dimension; the prism's is the sum."""
        torus = self.instance.torus
        return [
            np.array([e < n and uses_whole_ring(torus, d, e) for e in range(n + 1)], dtype=np.int64)
            for d, n in enumerate(torus.shape)
        ]

    def link_length(self, dim: int, extent: int) -> int:
        """Return how many links of each of its rows a prism uses along a dimension."""
        n = self.instance.torus.shape[dim]
        return n if uses_whole_ring(self.instance.torus, dim, extent) else extent - 1

    def scores(self, extents: IntArray) -> IntArray:
        """Return the shape scores, idle nodes left out, of rows of extents."""
        weights = self.instance.snapshot.weights
        dims = range(self.instance.torus.num_dims)
        bisection = np.min([self.bisection[d][extents[:, d]] for d in dims], axis=0)
        hops = np.sum([self.hops[d][extents[:, d]] for d in dims], axis=0)
        wraps = np.sum([self.wraps[d][extents[:, d]] for d in dims], axis=0)
        return np.asarray(
            weights.bisection * bisection
            - weights.volume * extents.prod(axis=1)
            - weights.hops * hops
            - weights.wrap * wraps
        )

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


def values(instance: Instance, wish: Wish, prism: Prism) -> tuple[int, int, int]:
    """Return the values of a candidate on the three levels, all to be maximised."""
    inside = prism.routers(instance.torus)
    idle = int(instance.usable_counts[wish.class_idx][inside].sum()) - wish.nodes
    extents = np.array([prism.extents], dtype=np.int64)
    part = int(ShapeTables(instance).scores(extents)[0])
    shape = part - instance.snapshot.weights.idle * idle
    return wish.value, shape, -boundary(instance, inside)


def boundary(instance: Instance, inside: IntArray) -> int:
    """Count the links that lead from a router set to free routers outside it."""
    torus = instance.torus
    within = np.zeros(torus.num_routers, dtype=bool)
    within[inside] = True
    open_to = (instance.free & ~within).reshape(torus.shape)
    grid = within.reshape(torus.shape)
    total = 0
    for d, n in enumerate(torus.shape):
        for step in (1, -1):
            neighbour = np.roll(open_to, -step, axis=d)
            if not torus.wrap[d]:  # the routers at the end of a line have no neighbour there
                edge: list[slice | int] = [slice(None)] * torus.num_dims
                edge[d] = n - 1 if step == 1 else 0
                neighbour[tuple(edge)] = False
            total += int((grid & neighbour).sum())
    return total
