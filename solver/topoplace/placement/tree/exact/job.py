"""One communication-intensive request as the search sees it: steps, leaves, states, prices.

A *state* is a leaf with a number of the request's ranks on it; a *kind* is what prices it: the
leaf's size and its communication-intensive nodes. All hops are integers in units of
1 / `Job.scale`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.cost import CostModel
from topoplace.placement.tree.exact.structure import Family, family_of
from topoplace.placement.tree.patterns import pattern_steps
from topoplace.snapshot.schema import PatternUse

IntArray = NDArray[np.int64]

_FLOOR_SCALE = 1 << 40
"""Unit of hops where no common denominator fits: rounded down, so bounds stay bounds."""

_LARGEST = 1 << 50


@dataclass(frozen=True)
class JobStep:
    """Pairs of ranks that talk at the same time; `price` x hops / 100 is the step's cost."""

    pairs: IntArray
    price: int


@dataclass(frozen=True)
class Job:
    """A request of `ranks` ranks and the leaves it may use.

    Attributes
    ----------
    steps
        Of all patterns, equal ones joined.
    families
        The structure of each pattern, over the numbers of its steps.
    comm, free, sizes
        L_comm without the request, free nodes, and L_nodes, of all leaves of the machine.
    domain
        Leaves that may be used together: any two have a common switch.
    """

    model: CostModel
    ranks: int
    steps: tuple[JobStep, ...]
    families: tuple[Family, ...]
    comm: IntArray
    free: IntArray
    domain: IntArray

    @cached_property
    def sizes(self) -> IntArray:
        """Nodes of every leaf."""
        return self.model.tree.nodes_per_leaf

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

    def counts_of(self, leaf_of_rank: IntArray) -> IntArray:
        """Return the ranks on every leaf."""
        return np.bincount(leaf_of_rank, minlength=len(self.comm))

    def cost(self, leaf_of_rank: IntArray) -> int:
        """Return the cost of an assignment in units of 1 / (100 `model.scale`), exactly."""
        comm = self.comm + self.counts_of(leaf_of_rank)
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
        Hops between leaves of two kinds at the least distance, shape ``(num_kinds,) * 2``.
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
    keys = np.stack([job.sizes, job.comm, job.free], axis=1)[job.domain]
    types, type_of_leaf = np.unique(keys, axis=0, return_inverse=True)
    type_of_leaf = type_of_leaf.ravel()
    most = np.minimum(types[:, 2], job.ranks)
    count = np.concatenate([np.arange(1, m + 1) for m in most])
    type_ = np.repeat(np.arange(len(types)), most)
    pairs = np.stack([types[type_, 0], types[type_, 1] + count], axis=1)
    kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
    kind = kind.ravel()
    size, busy = kinds[:, 0], kinds[:, 1]
    scale = job.scale
    own = busy * scale // size
    shared = (busy[:, None] + busy) * scale // (2 * (size[:, None] + size))
    levels = job.model.tree.common_level[np.ix_(job.domain, job.domain)]
    apart = levels[~np.eye(len(levels), dtype=bool)]
    least = int(apart.min()) if len(apart) else 2
    crossing = 2 * least * (scale + own[:, None] + own + shared)
    return States(
        first=np.concatenate([[0], np.cumsum(most)]),
        leaves=tuple(job.domain[type_of_leaf == t] for t in range(len(types))),
        count=count,
        kind=kind,
        type=type_,
        key=crossing[kind, kind],
        crossing=crossing,
        inside=2 * (scale + own),
    )


def job_of(
    model: CostModel,
    patterns: Sequence[PatternUse],
    ranks: int,
    comm: IntArray,
    free: IntArray,
    domain: IntArray,
) -> Job:
    """Return a request on the leaves of a domain; those without free nodes are left out."""
    number: dict[bytes, int] = {}
    pairs: list[IntArray] = []
    prices: list[int] = []
    families: list[Family] = []
    for use in patterns:
        dims = []
        for step in pattern_steps(use.pattern, ranks):
            name = step.pairs.tobytes()
            if name not in number:
                number[name] = len(pairs)
                pairs.append(step.pairs)
                prices.append(0)
            idx = number[name]
            prices[idx] += use.share * use.message_bytes * step.weight
            if idx not in dims:
                dims.append(idx)
        if dims:
            families.append(family_of(use.pattern, ranks, tuple(dims)))
    steps = tuple(JobStep(p, price) for p, price in zip(pairs, prices, strict=True))
    unique = {family.dims: family for family in families}
    usable = domain[free[domain] > 0]
    return Job(model, ranks, steps, tuple(unique.values()), comm, free, usable)
