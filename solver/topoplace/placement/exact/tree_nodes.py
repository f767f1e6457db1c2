"""Nodes of a branch-and-bound tree, what it stands on, and the certificate of its leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact.branching import WriteBranch
from topoplace.placement.exact.cut_pool import (
    FINENESS,
    NONE,
    CutPool,
    StartsBelow,
    few_that_cover,
)
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import DualPoint, Relaxation, Subproblem
from topoplace.placement.torus.problem import Candidate
from topoplace.result import LeafRef, SharedLeaves
from topoplace.result.certificate import CertificateNode
from topoplace.types import FloatArray, IntArray


@dataclass(frozen=True)
class TreeContext:
    """What a tree stands on.

    Attributes
    ----------
    relaxation, master, pool
        All of the same problem; the pool takes in the points that the relaxation evaluates.
    lower
        Returns what the bound is lowered to: the incumbent's objective.
    groups
        Alike requests, each of which needs the same nodes in the problem (see `alike`).
    """

    relaxation: Relaxation
    master: Master
    pool: CutPool
    lower: Callable[[], int]
    groups: tuple[tuple[int, ...], ...] = ()


def new_pool(relaxation: Relaxation) -> CutPool:
    """Return a pool that takes in the points that are evaluated from now on."""
    requests = relaxation.problem.requests
    free = DualPoint(np.zeros(relaxation.rows.num_rows))
    best = relaxation.evaluate(Subproblem(), free, 1).priced.best
    startable = frozenset(q for q in range(len(requests)) if best[q] > 0)
    values = np.array([request.value for request in requests], dtype=float)
    relaxation.pool = CutPool(relaxation.scale, relaxation.rows.num_rows, values, startable)
    return relaxation.pool


Amounts = list[tuple[float, Candidate]]

NOTHING = -1
"""The bound of a leaf that has no placement."""


@dataclass(frozen=True)
class _Closed:
    """The integer prices of a leaf that are not zero, and its bound."""

    bound: int
    scale: int
    rows: NDArray[np.int32]
    prices: IntArray

    @classmethod
    def of(cls, bounded: Bounded) -> _Closed:
        """Return what is left of a dual point."""
        scale, row_prices, _ = bounded.value.leaf_parts
        rows = np.flatnonzero(row_prices)
        own = bounded.value.certified
        bound = NOTHING if own is None else own
        return cls(bound, scale, rows.astype(np.int32), row_prices[rows])


@dataclass(eq=False)
class Leaf:
    """A leaf, or what was one before it was split.

    Attributes
    ----------
    pooled
        The bound by every point of the pool that was seen so far.
    bounded
        The best prices of its own; None as long as the pool bounds it.
    amounts
        The fractional solution that belongs to them.
    step_size
        Of the bundle that lowers it (see `Bundle`).
    converged
        Whether the bundle will do no more.
    own, starts
        Points that hold where it limits places, and who starts as these bound it.
    closed
        What is left of `bounded` once the leaf is not worked on any more.
    above
        What the leaf it was split from certified, which holds for it as well.
    """

    sub: Subproblem
    pooled: FloatArray
    above: int
    depth: int
    bounded: Bounded | None = None
    amounts: Amounts | None = None
    step_size: float = 0.0
    converged: bool = False
    own: CutPool | None = None
    starts: StartsBelow | None = None
    children: tuple[Leaf, Leaf] | None = None
    write: WriteBranch | None = None
    closed: _Closed | None = None

    @property
    def bound(self) -> int:
        """What is certified without the children."""
        bound = min(self.above, int(np.floor(self.pooled.min())))
        if self.starts is not None:
            bound = min(bound, self.starts.bound)
        if self.closed is not None:
            return min(bound, self.closed.bound)
        if self.bounded is not None:
            own = self.bounded.value.certified
            bound = min(bound, NOTHING if own is None else own)
        return bound

    def close(self) -> None:
        """Keep only what a certificate needs: dense prices and columns take megabytes."""
        if self.bounded is not None:
            self.closed = _Closed.of(self.bounded)
        self.bounded = self.amounts = self.own = None

    def leaves(self, bound: int) -> Iterator[Leaf]:
        """Yield the topmost of those below, or itself, that certify a bound."""
        if self.children is None or self.bound <= bound:
            yield self
        else:
            for child in self.children:
                yield from child.leaves(bound)

    def refresh(self, pool: CutPool) -> None:
        """Look at the points that joined the pool since."""
        new = pool.bounds(self.sub.forced, self.sub.excluded, len(self.pooled))
        if len(new):
            self.pooled = np.concatenate([self.pooled, new])


def shared_points(leaves: list[Leaf], bound: int, pool: CutPool) -> list[int]:
    """Return the point of the pool that bounds each leaf so, few in all; NONE where none does."""
    for leaf in leaves:
        leaf.refresh(pool)
    return few_that_cover(np.array([np.floor(leaf.pooled) <= bound for leaf in leaves]))


def certificate_of(
    top: Leaf,
    bound: int,
    pool: CutPool,
    relaxation: Relaxation,
    groups: Sequence[tuple[int, ...]] = (),
) -> SharedLeaves:
    """Return a tree as a certificate of a bound; the leaves that the pool bounds are shared."""
    leaves = list(top.leaves(bound))
    numbers = shared_points(leaves, bound, pool)
    shared = sorted(set(numbers) - {NONE})
    number_of = {id(leaf): number for leaf, number in zip(leaves, numbers, strict=True)}

    def written(leaf: Leaf) -> CertificateNode:
        if id(leaf) not in number_of:
            assert leaf.children is not None
            assert leaf.write is not None
            low, high = leaf.children
            return leaf.write(written(low), written(high))
        number = number_of[id(leaf)]
        if number == NONE:
            closed = leaf.closed
            if leaf.starts is not None and leaf.starts.bound <= bound:
                first = len(prices)
                prices.extend(
                    relaxation.leaf_of(pool.scale, point.dense(relaxation.rows.num_rows))
                    for point in leaf.starts.points
                )
                return leaf.starts.written(names, first)
            if closed is None:
                assert leaf.bounded is not None, "what no point bounds has prices of its own"
                closed = _Closed.of(leaf.bounded)
            dense = np.zeros(relaxation.rows.num_rows, dtype=np.int64)
            dense[closed.rows] = closed.prices
            return relaxation.leaf_of(closed.scale, dense)
        sides = pool.sides(leaf.sub.forced, leaf.sub.excluded)
        _, times = pool.knapsacks(number).of(slice(1)).bounds(pool.values, *sides)
        return LeafRef(leaf=shared.index(number), times=int(times[0]), over=FINENESS)

    prices = [relaxation.leaf_of(pool.scale, pool.row_prices(number)) for number in shared]
    names = [request.id for request in relaxation.problem.requests]
    alike = [[names[q] for q in group] for group in groups]
    tree = written(top)
    return SharedLeaves(alike=alike, leaves=prices, tree=tree)
