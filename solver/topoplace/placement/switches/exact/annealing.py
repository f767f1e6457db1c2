"""Allocations of one request: spread, and annealed by cost.

The cost of eq. (6) is a sum of maxima: most exchanges of two ranks do not change it, so that a
search by cost has little slope to follow; at thresholds there is more of one (`settling`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace import clock
from topoplace.placement.switches.exact._annealing import Hops, anneal
from topoplace.placement.switches.exact.job import CUBES, GRIDS, Dims, Family, Job, components
from topoplace.snapshot.schema import Pattern
from topoplace.types import IntArray

_MOVES_AT_ONCE = 4000
_MOST_PRICED = 1 << 26
"""Moves, and pairs priced by them, between two looks at the clock."""

_HOT_BY_COST = 0.02


# ---- By cost -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """A job whose ranks are moved in parts: sets of ranks that stay on one leaf."""

    job: Job
    part_of_rank: IntArray

    @cached_property
    def size(self) -> IntArray:
        """Ranks of every part."""
        return np.bincount(self.part_of_rank)

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Different pairs of parts of all steps, and where each step's begin and end."""
        ends = [np.sort(self.part_of_rank[step.pairs], axis=1) for step in self.job.steps]
        found = [np.unique(pairs, axis=0) for pairs in ends]
        first = np.cumsum([0, *(len(pairs) for pairs in found)])
        return np.ascontiguousarray(np.concatenate(found)), first

    def spread(self) -> IntArray | None:
        """Return the leaf of every part, leaves filled evenly; None if they do not fit."""
        job = self.job
        unit = int(self.size.max())
        nodes = job.model.machine.leaf_sizes
        taken = np.zeros(len(nodes), dtype=np.int64)
        domain = job.domain
        for _ in self.size:
            after = taken[domain] + unit
            fits = after <= job.free[domain]
            if not fits.any():
                return None
            share = np.where(fits, (job.comm[domain] + after) / nodes[domain], np.inf)
            taken[domain[share.argmin()]] += unit
        parts = taken // unit
        # Whole runs of 2^n parts first, so that they begin at multiples of their length.
        order = sorted(np.flatnonzero(parts).tolist(), key=lambda at: -int(parts[at] & -parts[at]))
        return np.repeat(order, parts[order])

    def improve(self, leaf: IntArray, hot: float, seed: int) -> IntArray:
        """Return the best assignment met by annealing from one, as leaf per part."""
        job = self.job
        nodes = job.model.machine.leaf_sizes
        taken = np.bincount(leaf, weights=self.size, minlength=len(nodes)).astype(np.int64)
        pairs, first = self.pairs
        prices = np.array([float(step.price) for step in job.steps])
        shared = np.divide(0.5, nodes[:, None] + nodes, dtype=np.float64)
        hops = Hops(2 * job.model.machine.common_level, 1.0 / nodes, shared)
        moves = min(_MOVES_AT_ONCE, 1 + _MOST_PRICED // len(pairs))
        room, busy = job.free - taken, job.comm + taken
        best: IntArray = anneal(
            leaf.copy(), self.size, room, busy, pairs, first, prices / prices.max(), hops,
            job.domain, moves, hot, seed,
        )  # fmt: skip
        return best


def partitions(job: Job) -> Iterator[IntArray]:
    """Yield divisions of the ranks into parts that keep some steps inside, the finest last."""
    seen = set()
    for family in job.families:
        for dims in _kept(family):
            part = components(family.pattern, job.ranks, dims)
            _, first, part = np.unique(part, return_index=True, return_inverse=True)
            part = np.argsort(np.argsort(first))[part.ravel()]
            if part.tobytes() not in seen:
                seen.add(part.tobytes())
                yield part
    finest = np.arange(job.ranks)
    if finest.tobytes() not in seen:
        yield finest


def _kept(family: Family) -> list[Dims]:
    dims = range(family.num_dims)
    if family.pattern in CUBES:
        # ranks that only hand their part to a neighbour stay with it
        least = family.num_dims - (family.ranks.bit_length() - 1)
        return [frozenset(dims[:n]) for n in range(len(dims), least - 1, -1)]
    if family.pattern is Pattern.BINOMIAL:
        return [frozenset(dims[n:]) for n in range(len(dims) + 1)]
    if family.pattern in GRIDS:
        subsets = [frozenset(d for d in dims if at >> d & 1) for at in range(1 << len(dims))]
        return sorted(subsets, key=len, reverse=True)
    return [frozenset(dims), frozenset()]


def best_start(job: Job, deadline: float, seed: int) -> IntArray | None:
    """Return a good assignment of ranks to leaves, or None if the ranks do not fit.

    Every division is tried evenly spread; the most promising are annealed until the deadline.
    """
    found: list[tuple[int, int, Parts, IntArray]] = []
    for number, part in enumerate(partitions(job)):
        if found and clock.now() > deadline:
            break
        parts = Parts(job, part)
        leaf = parts.spread()
        if leaf is not None:
            found.append((job.cost(leaf[part]), number, parts, leaf))
    if not found:
        return None
    found.sort(key=lambda item: item[:2])
    least = found[0][0]
    best = (least, found[0][3][found[0][2].part_of_rank])
    contenders = [item for item in found if 4 * item[0] <= 5 * least and len(item[2].size) > 1]
    if not job.steps:
        return best[1]
    unit = float(int(job.model.scale) * max(step.price for step in job.steps))
    for turn in range(6):
        for at, (cost, number, parts, leaf) in enumerate(contenders):
            if clock.now() > deadline:
                return best[1]
            hot = _HOT_BY_COST * cost / unit / (1 << turn)
            better = parts.improve(leaf, hot, seed + turn)
            reached = job.cost(better[parts.part_of_rank])
            if reached < cost:
                contenders[at] = (reached, number, parts, better)
            if reached < best[0]:
                best = (reached, better[parts.part_of_rank])
    return best[1]


def turned(job: Job, leaves: IntArray) -> IntArray:
    """Return an allocation with the distances of a full cube exchanged to the least cost.

    Any order of the bits of the ranks' numbers is the same pattern with its steps in another
    order (the rearrangement inequality says which is best). Other jobs are left as they are.
    """
    if len(job.families) != 1 or not job.families[0].is_full_cube:
        return leaves
    comm = job.comm + np.bincount(leaves, minlength=len(job.comm))
    hops, bits = [], []
    for step in job.steps:
        ends = leaves[step.pairs]
        hops.append(int(job.model.scaled_hops(ends[:, 0], ends[:, 1], comm).max()))
        bits.append(int(step.pairs[0, 0] ^ step.pairs[0, 1]))
    by_hops = np.argsort(hops, kind="stable")
    by_price = np.argsort([-step.price for step in job.steps], kind="stable")
    ranks = np.arange(job.ranks)
    came = np.zeros(job.ranks, dtype=np.int64)
    for old, new in zip(by_hops.tolist(), by_price.tolist(), strict=True):
        came += np.where(ranks & bits[new], bits[old], 0)
    found: IntArray = leaves[came]
    return found


def realised(job: Job, leaves: IntArray, wanted: int, deadline: float, seed: int) -> IntArray:
    """Return the best allocation found by annealing from one, until a cost or the time is reached.

    One on leaves of another domain is not annealed: one rank after the other would go to leaves
    without a common switch with those of the others.
    """
    best, start = leaves, leaves
    if not np.isin(leaves, job.domain).all():
        other = best_start(job, clock.now(), seed)
        if other is None:
            return leaves
        start = other
    unit = float(int(job.model.scale) * max(step.price for step in job.steps))
    for turn in itertools.count():
        # first as it is; then with less and less heat, and all over again
        found = start
        if turn:
            hot = _HOT_BY_COST / (1 << turn % 5) * job.cost(start) / unit
            found = Parts(job, np.arange(job.ranks)).improve(start, hot, seed + turn)
        if job.cost(found) < job.cost(best):
            best = start = found
        if job.units(best) <= wanted or clock.now() > deadline:
            break
    return best
