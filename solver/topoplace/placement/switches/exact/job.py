"""One communication-intensive request as the search sees it: steps, leaves, states, prices.

A *state* is a leaf with a number of the request's ranks on it. All hops are integers in units of
1 / `Job.scale`; the distance of two leaves is taken to be the least that any two have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from topoplace.placement.switches.cost import CostModel
from topoplace.placement.switches.patterns import cubic_grid, pattern_steps
from topoplace.snapshot.schema import Pattern, PatternUse
from topoplace.types import BoolArray, IntArray

Dims = frozenset[int]

NEVER, NOTHING = 1 << 60, -(1 << 60)
"""Hops where there is no partner, and the value of an impossible state."""

CUBES = (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING)
GRIDS = {Pattern.STENCIL_2D: 2, Pattern.STENCIL_3D: 3}

_FLOOR_SCALE = 1 << 40
"""Unit of hops where a common denominator is too large: rounded down, so bounds stay bounds."""

_LARGEST = 1 << 50
_LARGEST_COST = 1 << 61
_MOST_STATES = 160
"""The time of a program over states grows with their square, or their cube."""


@dataclass(frozen=True)
class Family:
    """A pattern among `ranks` ranks; `steps[dim]` is the number in the job of its step `dim`."""

    pattern: Pattern
    ranks: int
    steps: tuple[int, ...]

    @property
    def num_dims(self) -> int:
        """Number of different steps."""
        return len(self.steps)

    @property
    def is_full_cube(self) -> bool:
        """Whether ranks exchange at all distances 1, 2, 4, .. below their number."""
        return self.pattern in CUBES and 1 << self.num_dims == self.ranks

    @property
    def extents(self) -> tuple[int, ...]:
        """Cells of a line of a grid, a full cube or a ring, per dim; empty for other patterns."""
        if self.pattern in GRIDS:
            grid = cubic_grid(self.ranks, GRIDS[self.pattern])
            return tuple(extent for extent in grid if extent > 1)
        if self.is_full_cube:
            return (2,) * self.num_dims
        return (self.ranks,) if self.pattern is Pattern.RING else ()

    @property
    def chains(self) -> list[tuple[int, ...]]:
        """Steps that a renumbering of the ranks can exchange: the dims of one extent."""
        own = list(zip(self.extents, self.steps, strict=False))
        alike = [tuple(step for n, step in own if n == extent) for extent in dict(own)]
        return [chain for chain in alike if len(chain) > 1]


@lru_cache(maxsize=256)
def dims_of(pattern: Pattern, ranks: int) -> tuple[IntArray, ...]:
    """Return the pairs of the different steps of a pattern, in the order they first happen."""
    found: dict[bytes, IntArray] = {}
    for step in pattern_steps(pattern, ranks):
        found.setdefault(step.pairs.tobytes(), step.pairs)
    return tuple(found.values())


def components(pattern: Pattern, ranks: int, dims: Dims) -> IntArray:
    """Return the component of every rank in the graph of some dims."""
    pairs = np.concatenate(
        [np.zeros((0, 2), dtype=np.int64), *(dims_of(pattern, ranks)[dim] for dim in dims)]
    )
    lowest = np.arange(ranks)  # a rank of the same component, the lowest in the end
    while (apart := lowest[pairs[:, 0]] != lowest[pairs[:, 1]]).any():
        near = np.sort(lowest[pairs[apart]], axis=1)
        np.minimum.at(lowest, near[:, 1], near[:, 0])
        while not np.array_equal(lower := lowest[lowest], lowest):
            lowest = lower
    return np.unique(lowest, return_inverse=True)[1]


@lru_cache(maxsize=4096)
def reachable(family: Family, kept: int, absent: int) -> BoolArray:
    """Return which numbers of ranks can keep some dims inside and take no part in others.

    Both are sets of bits; the ranks are unions of components of what is kept. One per number.
    """
    dims, ranks = dims_of(family.pattern, family.ranks), family.ranks
    label = components(
        family.pattern, ranks, frozenset(d for d in range(len(dims)) if kept >> d & 1)
    )
    size = np.bincount(label)
    for dim, pairs in enumerate(dims):
        if absent >> dim & 1:
            size[label[pairs]] = 0
    sums = 1
    for value, number in zip(*np.unique(size[size > 0], return_counts=True), strict=True):
        left, chunk = int(number), 1
        while left:
            take = min(chunk, left)
            sums |= sums << (take * int(value))
            left -= take
            chunk *= 2
    return np.array([sums >> x & 1 for x in range(ranks + 1)], dtype=bool)


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
        return int(self.model.scale) * 7 * int(self.model.machine.common_level.max()) < _LARGEST

    @cached_property
    def scale(self) -> int:
        """Units per hop."""
        return int(self.model.scale) if self.exact else _FLOOR_SCALE

    @cached_property
    def leaves(self) -> tuple[IntArray, ...]:
        """Leaves of the domain by type: equal in size, L_comm and free nodes."""
        size = self.model.machine.leaf_sizes
        kinds = np.stack([size, self.comm, self.free], axis=1)[self.domain]
        types, number = np.unique(kinds, axis=0, return_inverse=True)
        return tuple(self.domain[number.ravel() == t] for t in range(len(types)))

    @cached_property
    def states(self) -> States:
        """All states of all types of leaves."""
        leaf = np.array([leaves[0] for leaves in self.leaves], dtype=np.int64)
        most = np.minimum(self.free[leaf], self.ranks)
        leaf_type = np.repeat(np.arange(len(leaf)), most)
        ranks = np.concatenate([np.arange(1, m + 1) for m in most])
        size = self.model.machine.leaf_sizes[leaf[leaf_type]]
        busy = self.comm[leaf[leaf_type]] + ranks
        own = busy * self.scale // size
        shared = (busy[:, None] + busy) * self.scale // (2 * (size[:, None] + size))
        levels = self.model.machine.common_level[np.ix_(self.domain, self.domain)]
        apart = levels[~np.eye(len(levels), dtype=bool)]
        least = int(apart.min()) if len(apart) else 2
        hops = 2 * least * (self.scale + own[:, None] + own + shared)
        num_leaves = np.array([len(leaves) for leaves in self.leaves], dtype=np.int64)
        return states_of(ranks, leaf_type, 2 * (self.scale + own), hops, num_leaves)

    @cached_property
    def values(self) -> IntArray:
        """All values that a step can have at the least distance, ascending."""
        return np.unique(np.concatenate([self.states.inside, self.states.apart.ravel()]))

    @cached_property
    def gap(self) -> int:
        """The position in `values` of the least value between two leaves."""
        return int(np.searchsorted(self.values, self.states.apart.min()))

    @cached_property
    def chains(self) -> list[tuple[int, ...]]:
        """Steps that a renumbering of the ranks can exchange: their thresholds may ascend."""
        return [chain for family in self.families for chain in family.chains]

    @cached_property
    def prices(self) -> IntArray:
        """Prices of the steps, in units of `price_unit`; those of a chain with the dearest first.

        As thresholds ascend along it, that is the least they can cost (the rearrangement
        inequality).
        """
        found = np.array([step.price // self.price_unit for step in self.steps], dtype=np.int64)
        for chain in self.chains:
            found[list(chain)] = np.sort(found[list(chain)])[::-1]
        return found

    @cached_property
    def price_unit(self) -> int:
        """A common divisor of all prices; so large that costs fit 64 bits, be it none.

        Rounded down, prices still bound the cost.
        """
        prices = [step.price for step in self.steps]
        return max(1, math.gcd(*prices), sum(prices) * int(self.values[-1]) // _LARGEST_COST + 1)

    @cached_property
    def is_countable(self) -> bool:
        """Whether hops are exact, and states few enough for programs over them."""
        return self.exact and len(self.states.ranks) <= _MOST_STATES

    def units(self, leaf_of_rank: IntArray) -> int:
        """Return the cost of an assignment in units of `price_unit` / (100 `scale`), rounded up."""
        cost = self.cost(leaf_of_rank) * self.scale // int(self.model.scale)
        return -(-cost // self.price_unit)

    def cost(self, leaf_of_rank: IntArray) -> int:
        """Return the cost of an assignment in units of 1 / (100 `model.scale`), exactly."""
        comm = self.comm + np.bincount(leaf_of_rank, minlength=len(self.comm))
        total = 0
        for step in self.steps:
            ends = leaf_of_rank[step.pairs]
            total += step.price * int(self.model.scaled_hops(ends[:, 0], ends[:, 1], comm).max())
        return total


class States(NamedTuple):
    """States by type of leaf, ranks ascending.

    Attributes
    ----------
    first
        First state of every type, and the end, shape ``(num_types + 1,)``.
    ranks, leaf_type
        Per state, ranks on the leaf and its type.
    inside
        Per state, hops within the leaf.
    key
        Per state, hops between two leaves in that state: the higher, the worse a partner.
    apart
        Hops between leaves in two states, shape ``(num_states, num_states)``.
    pair
        The same, but `NEVER` where there is only one leaf of the type.
    multiplicity
        Leaves per type.
    """

    first: IntArray
    ranks: IntArray
    leaf_type: IntArray
    inside: IntArray
    key: IntArray
    apart: IntArray
    pair: IntArray
    multiplicity: IntArray


def states_of(
    ranks: IntArray, leaf_type: IntArray, inside: IntArray, apart: IntArray, multiplicity: IntArray
) -> States:
    """Return states of types in order."""
    lone = (leaf_type[:, None] == leaf_type) & (multiplicity == 1)[leaf_type]
    return States(
        np.searchsorted(leaf_type, np.arange(len(multiplicity) + 1)),
        ranks,
        leaf_type,
        inside,
        apart.diagonal().copy(),
        apart,
        np.where(lone, NEVER, apart),
        multiplicity,
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
