"""One communication-intensive request as the search sees it: steps, leaves, states, prices.

A *state* is a leaf with a number of the request's ranks on it; its *kind* is what prices it: the
leaf's size and its communication-intensive nodes, the request's included. All hops are integers
in units of 1 / `Job.scale`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.cost import CostModel
from topoplace.placement.tree.exact.bounding.structure import CUBES, Family
from topoplace.placement.tree.patterns import pattern_steps
from topoplace.snapshot.schema import Pattern, PatternUse

IntArray = NDArray[np.int64]

_FLOOR_SCALE = 1 << 40
"""Unit of hops where a common denominator is too large: rounded down, so bounds stay bounds."""

_LARGEST = 1 << 50


@dataclass(frozen=True)
class JobStep:
    """Pairs of ranks that talk at the same time; `price` x hops / 100 is what the step costs."""

    pairs: IntArray
    price: int


@dataclass(frozen=True)
class Job:
    """A request of `ranks` ranks and the leaves it may use.

    Attributes
    ----------
    steps
        The steps of all patterns, equal ones of a family joined.
    families
        The structure of the patterns, over the numbers of the steps.
    comm, free
        L_comm without the request and free nodes, of all leaves of the machine.
    domain
        Leaves with free nodes that may be used together: any two have a common switch.
    """

    model: CostModel
    ranks: int
    steps: tuple[JobStep, ...]
    families: tuple[Family, ...]
    comm: IntArray
    free: IntArray
    domain: IntArray

    @cached_property
    def exact(self) -> bool:
        """Whether `scale` is a common denominator of all hops."""
        return int(self.model.scale) * 7 * int(self.model.tree.common_level.max()) < _LARGEST

    @cached_property
    def scale(self) -> int:
        """Units per hop."""
        return int(self.model.scale) if self.exact else _FLOOR_SCALE

    @cached_property
    def states(self) -> States:
        """All states of all leaves of the domain, equal leaves once."""
        return _states(self)

    def cost(self, leaf_of_rank: IntArray) -> int:
        """Return the cost of an assignment in units of 1 / (100 `model.scale`), exactly."""
        comm = self.comm + np.bincount(leaf_of_rank, minlength=len(self.comm))
        total = 0
        for step in self.steps:
            ends = leaf_of_rank[step.pairs]
            total += step.price * int(self.model.scaled_hops(ends[:, 0], ends[:, 1], comm).max())
        return total


@dataclass(frozen=True)
class States:
    """States by type of leaf (equal size, L_comm and free nodes), counts ascending.

    Attributes
    ----------
    first
        First state of every type, and the end, shape ``(num_types + 1,)``.
    leaves
        Leaves of every type.
    count, kind, type
        Per state.
    key
        Per state, hops between two leaves in that state: the higher, the worse a partner.
    crossing
        Hops between leaves of two kinds at the least distance, shape ``(num_kinds, num_kinds)``.
    inside
        Hops within a leaf of a kind.
    """

    first: IntArray
    leaves: tuple[IntArray, ...]
    count: IntArray
    kind: IntArray
    type: IntArray
    key: IntArray
    crossing: IntArray
    inside: IntArray

    @cached_property
    def multiplicity(self) -> IntArray:
        """Leaves per type."""
        return np.array([len(leaves) for leaves in self.leaves], dtype=np.int64)


def _states(job: Job) -> States:
    leaf_size = job.model.tree.nodes_per_leaf
    leaves = np.stack([leaf_size, job.comm, job.free], axis=1)[job.domain]
    types, type_of_leaf = np.unique(leaves, axis=0, return_inverse=True)
    most = np.minimum(types[:, 2], job.ranks)
    type_ = np.repeat(np.arange(len(types)), most)
    count = np.concatenate([np.arange(1, m + 1) for m in most])
    pairs = np.stack([types[type_, 0], types[type_, 1] + count], axis=1)
    kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
    kind = kind.ravel()
    size, busy = kinds.T
    own = busy * job.scale // size
    shared = (busy[:, None] + busy) * job.scale // (2 * (size[:, None] + size))
    levels = job.model.tree.common_level[np.ix_(job.domain, job.domain)]
    apart = levels[~np.eye(len(levels), dtype=bool)]
    least = int(apart.min()) if len(apart) else 2
    crossing = 2 * least * (job.scale + own[:, None] + own + shared)
    return States(
        first=np.concatenate([[0], np.cumsum(most)]),
        leaves=tuple(job.domain[type_of_leaf.ravel() == t] for t in range(len(types))),
        count=count,
        kind=kind,
        type=type_,
        key=crossing[kind, kind],
        crossing=crossing,
        inside=2 * (job.scale + own),
    )


def job_of(
    model: CostModel,
    patterns: Sequence[PatternUse],
    ranks: int,
    comm: IntArray,
    free: IntArray,
    domain: IntArray,
) -> Job:
    """Return a request on the leaves of a domain; leaves without free nodes are left out."""
    number: dict[tuple[Pattern, bytes], int] = {}
    steps: list[JobStep] = []
    families: dict[Pattern, Family] = {}
    for use in patterns:
        # Both exchanges are the same cube: their steps differ in weight only.
        pattern = CUBES[0] if use.pattern in CUBES else use.pattern
        dims: list[int] = []
        for step in pattern_steps(use.pattern, ranks):
            idx = number.setdefault((pattern, step.pairs.tobytes()), len(steps))
            if idx == len(steps):
                steps.append(JobStep(step.pairs, 0))
            price = use.share * use.message_bytes * step.weight
            steps[idx] = JobStep(step.pairs, steps[idx].price + price)
            if idx not in dims:
                dims.append(idx)
        if dims:
            families[pattern] = Family(pattern, ranks, tuple(dims))
    usable = domain[free[domain] > 0]
    return Job(model, ranks, tuple(steps), tuple(families.values()), comm, free, usable)
