"""How long a job runs on the nodes it got on a torus, from their bisection bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism, Torus, bisection_per_node

IntArray = NDArray[np.int64]


class ShapeModel:
    """Run times by bisection bandwidth per node (Fiedler 2014, "Bisection Bandwidth").

    A job's cost is the number of nodes of its prism that share a unit of the prism's bisection
    bandwidth. The reference is the cheapest prism of the empty machine with enough nodes, down
    and service ones included: the dedicated system of Enos 2014, section III.A. Nodes that form
    no prism are priced as the smallest prism around them, all of whose nodes, also those of
    others, send through the same bisection.
    """

    def __init__(self, torus: Torus) -> None:
        self._torus = torus

    def cost(self, extents: tuple[int, ...]) -> Fraction:
        """Return the cost of a prism: its nodes per unit of bisection bandwidth."""
        return 1 / bisection_per_node(self._torus, extents)

    def least_cost(self, num_nodes: int) -> Fraction:
        """Return the cost of the best prism with room for so many nodes."""
        volumes, costs = self._best
        least = -(-num_nodes // self._torus.nodes_per_router)
        return costs[int(np.searchsorted(volumes, least))]

    @cached_property
    def _best(self) -> tuple[IntArray, Sequence[Fraction]]:
        """Volumes of prisms, ascending, and the least cost from each on."""
        torus = self._torus
        # The bandwidth per node of a prism is the least over its dimensions (`shape_parts`), so
        # that a line's in each dimension, ranked exactly, stands for all prisms.
        lines = [
            [
                bisection_per_node(Torus((n,), (wraps,), (width,), torus.nodes_per_router), (e,))
                for e in range(1, n + 1)
            ]
            for n, wraps, width in zip(torus.shape, torus.wrap, torus.bandwidth, strict=True)
        ]
        values = sorted({value for line in lines for value in line})
        rank = {value: k for k, value in enumerate(values)}
        ranks = np.full(torus.shape, len(values), dtype=np.int64)
        volumes = np.ones(torus.shape, dtype=np.int64)
        for d, line in enumerate(lines):
            along = [1] * torus.num_dims
            along[d] = len(line)
            np.minimum(ranks, np.array([rank[value] for value in line]).reshape(along), out=ranks)
            volumes *= np.arange(1, len(line) + 1).reshape(along)
        order = np.argsort(volumes, axis=None)
        widest = np.maximum.accumulate(ranks.ravel()[order][::-1])[::-1]
        cost_of = [1 / value for value in values]
        return volumes.ravel()[order], [cost_of[k] for k in widest.tolist()]


def box_around(torus: Torus, routers: IntArray) -> Prism:
    """Return the smallest prism around routers; on a ring it spans all but the widest gap."""
    origin, extents = [], []
    for d, n in enumerate(torus.shape):
        at = np.unique(torus.coordinates[routers, d])
        if torus.wrap[d]:
            gaps = np.diff(at, append=at[0] + n)
            widest = int(gaps.argmax())
            extent = n - int(gaps[widest]) + 1
            start = int(at[(widest + 1) % len(at)])
        else:
            extent, start = int(at[-1] - at[0]) + 1, int(at[0])
        origin.append(0 if torus.wrap[d] and extent == n else start)
        extents.append(extent)
    return Prism(tuple(origin), tuple(extents))
