"""Good allocations to start from: parts of the job spread evenly, then annealed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.bounding.structure import GRIDS, Dims, Family, components
from topoplace.placement.tree.exact.building._kernels import anneal
from topoplace.placement.tree.exact.job import Job
from topoplace.snapshot.schema import Pattern

IntArray = NDArray[np.int64]

_MOVES_AT_ONCE = 4000
_HOT = 0.02


@dataclass(frozen=True)
class Parts:
    """A job whose ranks are moved in parts: sets of ranks that stay on one leaf.

    Attributes
    ----------
    part_of_rank
        Shape ``(ranks,)``.
    """

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
        nodes = job.model.tree.nodes_per_leaf
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

    def improve(self, leaf: IntArray, moves: int, hot: float, seed: int) -> IntArray:
        """Return the best assignment met by annealing from one, as leaf per part."""
        job, tree = self.job, self.job.model.tree
        nodes = tree.nodes_per_leaf
        sizes, kind = np.unique(nodes, return_inverse=True)
        taken = np.bincount(leaf, weights=self.size, minlength=len(nodes)).astype(np.int64)
        pairs, first = self.pairs
        prices = np.array([float(step.price) for step in job.steps])
        best: IntArray = anneal(
            leaf.copy(),
            self.size,
            job.free - taken,
            job.comm + taken,
            pairs,
            first,
            prices / prices.max(),
            1.0 / nodes,
            1.0 / (2.0 * (sizes[:, None] + sizes)),
            kind.ravel(),
            2.0 * tree.common_level,
            job.domain,
            moves,
            hot,
            seed,
        )
        return best


def annealed(job: Job, leaf_of_rank: IntArray, cooling: int, seed: int) -> IntArray:
    """Return the best assignment met by annealing ranks one by one and in runs.

    The heat at the start is that of `best_start` divided by `cooling`.
    """
    unit = float(int(job.model.scale) * max(step.price for step in job.steps))
    hot = _HOT / cooling * job.cost(leaf_of_rank) / unit
    return Parts(job, np.arange(job.ranks)).improve(leaf_of_rank, _MOVES_AT_ONCE, hot, seed)


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
    if family.is_cube:
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
            hot = _HOT * cost / unit / (1 << turn)
            better = parts.improve(leaf, _MOVES_AT_ONCE, hot, seed + turn)
            reached = job.cost(better[parts.part_of_rank])
            if reached < cost:
                contenders[at] = (reached, number, parts, better)
            if reached < best[0]:
                best = (reached, better[parts.part_of_rank])
    return best[1]
