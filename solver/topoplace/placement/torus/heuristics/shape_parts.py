"""Shape scores of all extents at once."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from topoplace.machine import Torus, uses_whole_ring
from topoplace.snapshot.schema import ShapeWeights
from topoplace.types import IntArray


def shape_parts(torus: Torus, weights: ShapeWeights) -> IntArray:
    """Return `PlacementProblem.shape_part` of every extents vector, exactly.

    Shape ``torus.shape``; entry ``[e_1 - 1, .., e_D - 1]`` belongs to those extents. Everything
    but the product of the extents splits by dimension: the bisection bandwidth per node is the
    least over the dimensions d of ``bandwidth_d * f_d / e_d``, and the floor of the least is the
    least floor.
    """
    return _tabulated(torus, weights).copy()


@lru_cache(maxsize=4)
def largest_shape_part(torus: Torus, weights: ShapeWeights) -> int:
    """Return an upper bound on the absolute shape score of any prism but for its idle nodes."""
    widest = max(_per_node(torus, d, e + 1) for d, n in enumerate(torus.shape) for e in range(n))
    return (
        weights.bisection * widest
        + weights.volume * torus.num_routers
        + weights.hops * sum(torus.shape)
        + weights.wrap * torus.num_dims
    )


@lru_cache(maxsize=4)
def _tabulated(torus: Torus, weights: ShapeWeights) -> IntArray:
    """Return the table, made once: a replay asks for it at every decision."""
    shape = torus.shape
    bisection = np.full(shape, np.iinfo(np.int64).max, dtype=np.int64)
    volume = np.ones(shape, dtype=np.int64)
    others = np.zeros(shape, dtype=np.int64)
    for d, n in enumerate(shape):
        along = [1] * len(shape)
        along[d] = n
        per_node = [_per_node(torus, d, e) for e in range(1, n + 1)]
        np.minimum(bisection, np.array(per_node).reshape(along), out=bisection)
        volume *= np.arange(1, n + 1).reshape(along)
        others += np.array(
            [
                weights.hops * (min(e - 1, n // 2) if torus.wrap[d] else e - 1)
                + weights.wrap * (e < n and uses_whole_ring(torus, d, e))
                for e in range(1, n + 1)
            ],
            dtype=np.int64,
        ).reshape(along)
    return np.asarray(weights.bisection * bisection - weights.volume * volume - others)


def _per_node(torus: Torus, dim: int, extent: int) -> int:
    """Return one dimension's bisection per node in thousandths of the slowest link."""
    ring = torus.shape[dim]
    factor = Fraction(1)
    if torus.wrap[dim] and ring > 1:
        if extent == ring:
            factor = Fraction(2)
        elif 2 * extent > ring:
            factor = Fraction(2 * (extent - 1), ring - 1)
    width = 1000 * torus.bandwidth[dim] * factor / extent
    return int(width / (torus.nodes_per_router * min(torus.bandwidth)))
