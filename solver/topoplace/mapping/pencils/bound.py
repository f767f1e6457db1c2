"""Lower bounds on the hop-bytes of every window of a layout, without a cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from topoplace.mapping.graph import IntArray
from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.layouts import Layout
from topoplace.mapping.pencils.terms import CellTerms


@dataclass(frozen=True)
class StretchBound:
    """Hop-bytes of a window are at least ``base + sum over pencils of price x stretch``.

    `price` has one entry per pencil; the stretch of a pencil is the number of holes inside the
    narrowest run of usable positions that holds its levels.
    """

    base: int
    price: IntArray


def stretch_bound(terms: CellTerms, slack: int) -> StretchBound:
    """Return a bound for windows with `slack` positions more than levels.

    Let d(k) >= 1 be the step from level k to k + 1 of a pencil. A pair on one pencil costs w
    times the steps between its levels (far: ring minus them). Of two pencils v and u, the pairs
    (v,k)-(u,l) and (v,l)-(u,k) together cost at least the steps from k to l on both, as
    |a| + |b| >= a + b (far: exactly the rings minus these). So each step has a price; all steps
    are at least 1, those of a pencil add up to at least ``levels - 1 + stretch`` and at most
    ``depth - 1``, and whatever exceeds 1 costs at least the pencil's lowest price. Weight
    without such a partner, and of mixed pairs, costs the least distance that the levels allow.
    """
    levels, gap, weight = terms.levels, terms.gap, terms.weight
    apart = gap > 0
    low, high, gap, weight = terms.low[apart], terms.high[apart], gap[apart], weight[apart]
    far, mixed = terms.far(slack)[apart], terms.mixed(slack)[apart]
    own = low // levels == high // levels
    paired = np.where(own, weight, np.minimum(weight, _partners(terms, low, high, weight)))
    paired[mixed] = 0
    rest = weight - paired
    least = np.maximum(gap - slack * ~own, 0)
    if terms.ring is not None:
        least = np.minimum(least, terms.ring - gap - slack)
    price = np.zeros((terms.num_pencils, levels), dtype=np.int64)
    signed = np.where(far, -paired, paired)
    np.add.at(price.reshape(-1), low, signed)
    np.subtract.at(price, (low // levels, high % levels), signed)
    price = price.cumsum(axis=1)[:, :-1]
    cheapest = price.min(axis=1) if levels > 1 else np.zeros(terms.num_pencils, dtype=np.int64)
    base = terms.fixed + int(rest @ least) + int(price.sum())
    base += slack * int(np.minimum(cheapest, 0).sum())
    if terms.ring is not None:
        base += terms.ring * int(paired[far].sum())
    return StretchBound(base, np.maximum(cheapest, 0))


def _partners(terms: CellTerms, low: IntArray, high: IntArray, weight: IntArray) -> IntArray:
    """Return the weight of the pair of the same pencils with the levels exchanged."""
    levels, size = terms.levels, terms.num_pencils * terms.levels
    keys = low * size + high
    order = np.argsort(keys)
    partner = (high - high % levels + low % levels) * size + low - low % levels + high % levels
    at = np.minimum(np.searchsorted(keys, partner, sorter=order), len(keys) - 1)
    found = order[at] if len(keys) else at
    matched: IntArray = np.where(keys[found] == partner, weight[found], 0)
    return matched


def bytes_between_cells(layouts: Sequence[Layout], grid: VirtualGrid) -> list[int]:
    """Return for every layout the bytes between its cells, each of which goes one hop at least.

    Equal to `layouts.off_router_bytes`, for many layouts that share the partitions of a dimension.
    """

    @cache
    def counts(dim: int, step: int, size: int) -> tuple[int, int]:
        """Return the neighbours at a step along a dimension, and those in the same part."""
        length, at = grid.shape[dim], np.arange(grid.shape[dim])
        to = at + step
        if grid.periodic[dim]:
            to %= length
        inside = (to >= 0) & (to < length)
        return int(inside.sum()), int((inside & (at // size == to // size)).sum())

    @cache
    def total(sizes: tuple[int, ...]) -> int:
        between = 0
        for offset, size in grid.offsets:
            pairs = [
                counts(d, step, n) for d, (step, n) in enumerate(zip(offset, sizes, strict=True))
            ]
            between += size * (math.prod(p for p, _ in pairs) - math.prod(s for _, s in pairs))
        return between

    dims = range(grid.num_dims)
    return [
        total(tuple(layout.partitions_of(d, grid.shape[d]) for d in dims)) for layout in layouts
    ]
