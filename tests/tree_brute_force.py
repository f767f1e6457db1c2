"""The slow truth about small trees, written from docs/proofs/tree.md alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from topoplace.machine.hierarchy import Hierarchy
from topoplace.snapshot.hierarchy_state import HierarchyRequest, HierarchyState, prepare_contention
from topoplace.snapshot.schema import Pattern, PatternUse, Snapshot

Counts = tuple[int, ...]
Steps = list[tuple[list[tuple[int, int]], int]]


def steps_of(pattern: Pattern, p: int) -> Steps:
    """Return (pairs, weight) of every step with pairs."""
    if pattern in (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING):
        found = _exchanges(p, doubling=pattern is Pattern.VECTOR_DOUBLING)
    elif pattern is Pattern.BINOMIAL:
        k = (p - 1).bit_length()
        found = []
        for n in range(k):
            span = 2 ** (k - n)
            found.append(([(r, r + span // 2) for r in range(0, p, span) if r + span // 2 < p], 1))
    elif pattern is Pattern.RING:
        pairs = {tuple(sorted((r, (r + 1) % p))) for r in range(p) if p > 1}
        found = [(sorted(pairs), p - 1)]
    else:
        found = _halo(p, 2 if pattern is Pattern.STENCIL_2D else 3)
    return [(pairs, weight) for pairs, weight in found if pairs]


def _exchanges(p: int, doubling: bool) -> Steps:
    k = p.bit_length() - 1
    e = p - 2**k
    ranks = [2 * i + 1 for i in range(e)] + list(range(2 * e, p))
    found: Steps = []
    for b in range(k):
        pairs = [(ranks[r], ranks[r ^ 2**b]) for r in range(2**k) if r < r ^ 2**b]
        found.append((pairs, 2 ** (k - 1 - b) if doubling else 1))
    if e:
        fold = [(2 * i, 2 * i + 1) for i in range(e)]
        found = [(fold, 1), *found, (fold, 2**k if doubling else 1)]
    return found


def _halo(p: int, dims: int) -> Steps:
    shapes = [
        shape
        for shape in itertools.product([n for n in range(1, p + 1) if p % n == 0], repeat=dims)
        if math.prod(shape) == p and list(shape) == sorted(shape, reverse=True)
    ]
    shape = min(shapes, key=lambda s: (sum(s), s))
    cells = list(itertools.product(*(range(n) for n in shape)))
    number = {cell: r for r, cell in enumerate(cells)}
    found: Steps = []
    for d in range(dims):
        pairs = []
        for cell in cells:
            after = (*cell[:d], cell[d] + 1, *cell[d + 1 :])
            if after in number:
                pairs.append((number[cell], number[after]))
        found.append((pairs, 1))
    return found


def hops(tree: Hierarchy, comm: Sequence[int], a: int, b: int) -> Fraction:
    """Return Hops of nodes on leaves a and b (eqs. 2, 3 and 5)."""
    nodes = tree.leaf_sizes.tolist()
    contention = Fraction(comm[a], nodes[a])
    if a != b:
        contention += Fraction(comm[b], nodes[b])
        contention += Fraction(comm[a] + comm[b], 2 * (nodes[a] + nodes[b]))
    return 2 * int(tree.common_level[a, b]) * (1 + contention)


def cost_of(
    tree: Hierarchy, comm: Sequence[int], patterns: Sequence[PatternUse], leaves: Sequence[int]
) -> Fraction:
    """Return eq. (6); `comm` counts the job itself."""
    table = {(a, b): hops(tree, comm, a, b) for a in set(leaves) for b in set(leaves)}
    total = Fraction(0)
    for use in patterns:
        for pairs, weight in steps_of(use.pattern, len(leaves)):
            worst = max(table[leaves[i], leaves[j]] for i, j in pairs)
            total += Fraction(use.share, 100) * use.message_bytes * weight * worst
    return total


@lru_cache(maxsize=4096)
def _orders(counts: Counts) -> NDArray[np.int8]:
    """Return the leaf of every rank in all orders of so many ranks per leaf."""
    found = set(_orders_of(counts))
    return np.array(sorted(found), dtype=np.int8).reshape(len(found), sum(counts))


def _orders_of(counts: Counts) -> Iterator[tuple[int, ...]]:
    if not any(counts):
        yield ()
    for leaf, count in enumerate(counts):
        if count:
            fewer = (*counts[:leaf], count - 1, *counts[leaf + 1 :])
            for rest in _orders_of(fewer):
                yield (leaf, *rest)


class Truth:
    """What brute force knows of a state: ranks per leaf, and every order of them."""

    def __init__(self, state: HierarchyState) -> None:
        self.machine, self.requests = state.machine, state.requests
        leaf_of = self.machine.leaf_of
        free = state.free[:, 0] > 0
        self.free = [int(free[leaf_of == n].sum()) for n in range(self.machine.num_leaves)]
        self.names = [
            [str(self.machine.host_names[k]) for k in np.flatnonzero(free & (leaf_of == n))]
            for n in range(self.machine.num_leaves)
        ]
        self.running = tuple(int(n) for n in state.comm)

    @cached_property
    def costs(self) -> dict[int, Fraction]:
        """Return the least cost by priority-weighted nodes started."""
        found: dict[int, Fraction] = {}
        for starts in itertools.product((False, True), repeat=len(self.requests)):
            started = [one for one, start in zip(self.requests, starts, strict=True) if start]
            worth = sum(one.value for one in started)
            for cost in self.costs_of(started):
                if worth not in found or cost < found[worth]:
                    found[worth] = cost
        return found

    @property
    def most(self) -> int:
        """Return the most priority-weighted nodes that can start."""
        return max(self.costs)

    def least(self, worth: int) -> Fraction:
        """Return the least cost of all allocations worth at least as much."""
        return min(cost for own, cost in self.costs.items() if own >= worth)

    def costs_of(self, started: Sequence[HierarchyRequest]) -> Iterator[Fraction]:
        """Yield the least cost for all ranks per leaf that the requests can have."""
        for placed in self._placed(started, self.free):
            comm = self.with_ranks(started, placed)
            yield sum(
                (
                    self._least_of(one, counts, comm)
                    for one, counts in zip(started, placed, strict=True)
                    if one.intensive
                ),
                Fraction(0),
            )

    def with_ranks(self, started: Sequence[HierarchyRequest], placed: Sequence[Counts]) -> Counts:
        """Return the communicating nodes per leaf with requests that start."""
        own = [counts for one, counts in zip(started, placed, strict=True) if one.intensive]
        return tuple(map(sum, zip(self.running, *own, strict=True)))

    def _placed(
        self, started: Sequence[HierarchyRequest], free: Sequence[int]
    ) -> Iterator[list[Counts]]:
        if not started:
            yield []
            return
        for counts in self.counts(started[0], free):
            left = [room - count for room, count in zip(free, counts, strict=True)]
            for rest in self._placed(started[1:], left):
                yield [counts, *rest]

    def counts(self, request: HierarchyRequest, free: Sequence[int]) -> Iterator[Counts]:
        """Yield the ranks per leaf that a request can have."""
        for counts in _sums(request.nodes, free):
            used = {leaf for leaf, count in enumerate(counts) if count}
            if any(used.issubset(root.tolist()) for root in self.machine.roots):
                yield counts

    def _least_of(self, request: HierarchyRequest, counts: Counts, comm: Counts) -> Fraction:
        """Return the least cost over all orders of the ranks."""
        prices = [
            Fraction(use.share, 100) * use.message_bytes * weight
            for use in request.patterns
            for _, weight in steps_of(use.pattern, request.nodes)
        ]
        return min(
            sum((p * h for p, h in zip(prices, own, strict=True)), Fraction(0))
            for own in self.profiles(request, counts, comm)
        )

    def profiles(
        self, request: HierarchyRequest, counts: Counts, comm: Counts, level: int | None = None
    ) -> set[tuple[Fraction, ...]]:
        """Return what the dearest hops of all steps can be, over all orders of the ranks.

        With `level` all leaves are taken to be below a switch of that level.
        """
        used = [leaf for leaf, count in enumerate(counts) if count]
        table = {(a, b): hops(self.machine, comm, a, b) for a in used for b in used}
        if level is not None:
            for a, b in itertools.permutations(used, 2):
                table[a, b] *= Fraction(level, int(self.machine.common_level[a, b]))
        values = sorted(set(table.values()))
        numbers = np.zeros([len(counts)] * 2, dtype=np.int64)
        for pair, value in table.items():
            numbers[pair] = values.index(value)
        orders = _orders(counts)
        code = np.zeros(len(orders), dtype=np.int64)
        steps = [
            pairs for use in request.patterns for pairs, _ in steps_of(use.pattern, request.nodes)
        ]
        for pairs in steps:
            i, j = np.array(pairs).T
            code = code * len(values) + numbers[orders[:, i], orders[:, j]].max(axis=1)
        found = set()
        powers = [len(values) ** n for n in reversed(range(len(steps)))]
        for one in np.unique(code).tolist():
            found.add(tuple(values[one // power % len(values)] for power in powers))
        return found


def _sums(total: int, most: Sequence[int]) -> Iterator[Counts]:
    """Yield numbers up to some most that add up to a total."""
    if not most:
        if total == 0:
            yield ()
        return
    for first in range(min(total, most[0]) + 1):
        for rest in _sums(total - first, most[1:]):
            yield (first, *rest)


def least_cost(state: HierarchyState) -> tuple[int, Fraction]:
    """Return the best of both levels over every choice of requests and leaf of every rank."""
    truth = Truth(state)
    return truth.most, truth.least(truth.most)


def state_of(snapshot: Snapshot) -> HierarchyState:
    return prepare_contention(snapshot)
