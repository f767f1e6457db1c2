"""Branching on which requests start and where, if linear programs are too slow to guide it.

The relaxation likes to start a bit of every large request where there is no room for a whole one,
or leaves out a bit of each. Most leaves need no prices of their own: every point that the bundle
has tried bounds each set of starts (`price_pool`). The leaf of the largest bound comes first. If
large requests are undecided there, the one is split for which the pool lowers both sides most. If
all are decided, the bundle lowers the bound until it is no longer the largest; its points join
the pool, where they bound many other leaves. Once the bundle can do no more, the place of a
request that starts is split.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact.branching import WriteBranch, place_branch
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.integer import least_losses, losses_at
from topoplace.placement.exact.preferences import Preferences
from topoplace.placement.exact.price_pool import FINENESS, PricePool
from topoplace.placement.exact.relaxation import DualPoint, Subproblem
from topoplace.placement.problem import Candidate
from topoplace.result import LeafRef, SharedLeaves
from topoplace.result.schema import DEEPEST, CertificateNode

if TYPE_CHECKING:
    from topoplace.placement.exact.branching import Node
    from topoplace.placement.exact.search import ExactSearch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Amounts = list[tuple[float, Candidate]]

_LARGE = 0.02  # of the bound: requests of less value wait until the bundle can do no more
_MOST_STEPS = 200  # of the bundle, for a leaf
_MOST_COLUMNS = 2000
_LOOKED_AT = 16  # points of the pool, when a request to split is chosen
_SETTLED = 0.95  # of a request on one prism: its place is not split
_NOTHING = -1  # the bound of a leaf that has no placement

NONE = -1
"""What `few_that_cover` says of a row that nothing covers."""


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
    settled
        Whether the bundle can do no more.
    above
        What the leaf it was split from certified, which holds for it as well.
    """

    sub: Subproblem
    pooled: FloatArray
    above: int
    depth: int
    bounded: Bounded | None = None
    amounts: Amounts | None = None
    settled: bool = False
    children: tuple[Leaf, Leaf] | None = None
    write: WriteBranch | None = None

    @property
    def bound(self) -> int:
        """What is certified without the children."""
        bound = min(self.above, int(np.floor(self.pooled.min())))
        if self.bounded is not None:
            own = self.bounded.value.certified
            bound = min(bound, _NOTHING if own is None else own)
        return bound

    def leaves(self, bound: int) -> Iterator[Leaf]:
        """Yield the topmost of those below, or itself, that certify a bound."""
        if self.children is None or self.bound <= bound:
            yield self
        else:
            for child in self.children:
                yield from child.leaves(bound)


def start_pool(search: ExactSearch, root: Node) -> None:
    """Let a pool take in the points that are tried from now on."""
    relaxation, requests = search.relaxation, search.problem.requests
    free = DualPoint(np.zeros(search.rows.num_rows))
    best = relaxation.evaluate(root.sub, free, 1).priced.best
    startable = frozenset(q for q in range(len(requests)) if best[q] > 0)
    values = np.array([request.value for request in requests], dtype=float)
    relaxation.pool = PricePool(relaxation.scale, search.rows.num_rows, values, startable)


class StartTree:
    """A best-first tree below the root of the first level; may be run again and again.

    The root's bound and certificate are the tree's from then on.
    """

    def __init__(self, search: ExactSearch, root: Node) -> None:
        assert search.relaxation.pool is not None, "the pool takes in the bundle's points before"
        self._search, self._pool = search, search.relaxation.pool
        self._open: list[tuple[int, int, Leaf]] = []
        self._ticket = itertools.count()
        self._amounts = search.master.amounts()
        least = _LARGE * root.bounded.value.bound
        requests = search.problem.requests
        self._large = frozenset(q for q in self._pool.startable if requests[q].value >= least)
        self._preferring = Preferences(search.problem, self._pool.startable)
        self._decided = _NOTHING  # the largest bound of leaves that are not worked on any more
        search.relaxation.evaluate(root.sub, root.bounded.point, 1)  # into the pool
        pooled = self._pool.bounds(root.sub.forced, root.sub.excluded)
        self._top = Leaf(root.sub, pooled, int(np.floor(pooled.min())), 0)
        self._push(self._top)
        root.below = self

    @property
    def bound(self) -> int:
        """What the tree certifies."""
        return max(self._decided, -self._open[0][0] if self._open else _NOTHING)

    def certificate(self) -> SharedLeaves:
        """Return the tree as a certificate of its bound."""
        bound, pool = self.bound, self._pool
        leaves = list(self._top.leaves(bound))
        for leaf in leaves:
            self._refresh(leaf)
        numbers = few_that_cover(np.array([np.floor(leaf.pooled) <= bound for leaf in leaves]))
        shared = sorted(set(numbers) - {NONE}) or [0]
        number_of = {id(leaf): number for leaf, number in zip(leaves, numbers, strict=True)}
        relaxation = self._search.relaxation

        def written(leaf: Leaf) -> CertificateNode:
            if id(leaf) not in number_of:
                assert leaf.children is not None
                assert leaf.write is not None
                low, high = leaf.children
                return leaf.write(written(low), written(high))
            number = number_of[id(leaf)]
            if number == NONE:
                assert leaf.bounded is not None, "what no point bounds has prices of its own"
                return relaxation.leaf(leaf.bounded.value)
            sides = pool.sides(leaf.sub.forced, leaf.sub.excluded)
            _, times = pool.knapsacks(number).of(slice(1)).bounds(pool.values, *sides)
            return LeafRef(leaf=shared.index(number), times=int(times[0]), over=FINENESS)

        prices = [relaxation.leaf_of(pool.scale, pool.row_prices(number)) for number in shared]
        return SharedLeaves(leaves=prices, tree=written(self._top))

    def run(self, until: float) -> None:
        """Work on the leaf of the largest bound, again and again."""
        amounts = self._search.master.amounts()
        while time.perf_counter() < until and (leaf := self._pop()) is not None:
            if self._large - leaf.sub.forced - leaf.sub.excluded:
                self._split_start(leaf, self._large)
            elif not leaf.settled:
                self._lower(leaf, until)
                self._push(leaf)
            elif not self._split_start(leaf, self._pool.startable, 1.0):
                self._split_place(leaf)
        self._search.master.set_amounts(amounts)  # the bundle of the root goes on from them

    def highest(self) -> Leaf | None:
        """Return the leaf of the largest bound if it has prices of its own."""
        leaf = self._open[0][2] if self._open else None
        return None if leaf is None or leaf.bounded is None else leaf

    def _pop(self) -> Leaf | None:
        """Take the leaf of the largest bound; None if no work on leaves lowers the tree's."""
        while self._open and -self._open[0][0] > max(self._decided, self._search.objective(0)):
            key, _, leaf = heapq.heappop(self._open)
            self._refresh(leaf)
            if leaf.bound == -key:
                return leaf
            self._push(leaf)
        return None

    def _push(self, leaf: Leaf) -> None:
        bound = leaf.bound
        if bound > self._search.objective(0) and leaf.depth < DEEPEST:
            heapq.heappush(self._open, (-bound, next(self._ticket), leaf))
        else:
            self._decided = max(self._decided, bound)

    def _refresh(self, leaf: Leaf) -> None:
        """Look at the points that joined the pool since."""
        new = self._pool.bounds(leaf.sub.forced, leaf.sub.excluded, len(leaf.pooled))
        if len(new):
            leaf.pooled = np.concatenate([leaf.pooled, new])

    def _split_start(self, leaf: Leaf, among: frozenset[int], least_fall: float = -np.inf) -> bool:
        """Split the request whose two sides the pool bounds best, if both fall by so much."""
        pool, sub = self._pool, leaf.sub
        undecided = np.array(sorted(among - sub.forced - sub.excluded))
        if not len(undecided):
            return False
        tight = np.argsort(leaf.pooled, kind="stable")[:_LOOKED_AT]
        forced, free = (
            np.repeat(side, len(undecided), axis=0)[:, None, :]
            for side in pool.sides(sub.forced, sub.excluded)
        )
        at = np.arange(len(undecided))
        free[at, 0, undecided] = False
        knapsacks = pool.knapsacks().of(tight)
        out, _ = knapsacks.bounds(pool.values, forced, free)
        forced[at, 0, undecided] = True
        into, _ = knapsacks.bounds(pool.values, forced, free)
        highest = leaf.pooled.min()
        enough = highest - self._search.objective(0)
        falls = np.array([highest - side.min(axis=1) for side in (out, into)])
        use = np.clip(falls, 1e-3, enough).prod(axis=0)
        chosen = int(np.lexsort((pool.values[undecided], use))[-1])
        if falls[:, chosen].min() < least_fall:
            return False
        subs, leaf.write = self._preferring.branch(sub, int(undecided[chosen]))
        low, high = (
            Leaf(sub, pool.bounds(sub.forced, sub.excluded), leaf.bound, leaf.depth + 1)
            for sub in subs
        )
        self._branch(leaf, (low, high))
        return True

    def _branch(self, leaf: Leaf, children: tuple[Leaf, Leaf]) -> None:
        leaf.children, leaf.amounts = children, None
        for child in children:
            self._push(child)

    def _lower(self, leaf: Leaf, until: float) -> None:
        """Lower the bound by the bundle, for a fiftieth of its gap at least."""
        search, sub = self._search, leaf.sub
        lower, bound = search.objective(0), leaf.bound
        following = -self._open[0][0] if self._open else lower
        goal = max(lower, min(following, bound - 1 - (bound - lower) // 50))
        if leaf.bounded is None:
            best = int(leaf.pooled.argmin())
            start = self._bounded(sub, DualPoint(self._pool.row_prices(best) / self._pool.scale))
        else:
            start = leaf.bounded
        self._trim(sub, start)
        search.master.set_amounts(leaf.amounts or self._amounts)
        bundle = Bundle(search.relaxation, search.master, sub)
        leaf.bounded = bundle.run(start, goal, deadline=until, max_steps=_MOST_STEPS)
        leaf.settled = bundle.settled
        leaf.amounts = search.master.amounts()
        self._refresh(leaf)

    def _trim(self, sub: Subproblem, at: Bounded) -> None:
        """Forget the columns that lose most at some prices: steps grow with them."""
        search = self._search
        if len(search.master.columns) > 1.5 * _MOST_COLUMNS:
            losses = losses_at(search.relaxation, sub, search.master.columns, at)
            search.master.keep(least_losses(losses, _MOST_COLUMNS))

    def _split_place(self, leaf: Leaf) -> None:
        """Split the places of the largest request that is spread over several."""
        requests, sub = self._search.problem.requests, leaf.sub
        assert leaf.bounded is not None
        for q in sorted(sub.forced, key=lambda q: (-requests[q].value, q)):
            mine = [(c, amount) for amount, c in leaf.amounts or [] if c.request_idx == q]
            parts = place_branch(self._search.problem, sub, q, mine)
            if parts is None or max(amount for _, amount in mine) > _SETTLED:
                continue
            subs, leaf.write = parts
            point = leaf.bounded.point
            low, high = (
                Leaf(
                    sub,
                    leaf.pooled,
                    leaf.bound,
                    leaf.depth + 1,
                    self._bounded(sub, point),
                    leaf.amounts,
                )
                for sub in subs
            )
            self._branch(leaf, (low, high))
            return
        self._decided = max(self._decided, leaf.bound)

    def _bounded(self, sub: Subproblem, point: DualPoint) -> Bounded:
        return Bounded(self._search.relaxation.evaluate(sub, point, 4), point)


def few_that_cover(covers: NDArray[np.bool_]) -> list[int]:
    """Choose for every row a column that covers it, few columns in all; NONE where none does."""
    chosen = np.full(len(covers), NONE)
    left = covers.any(axis=1)
    while left.any():
        column = int(covers[left].sum(axis=0).argmax())
        chosen[left & covers[:, column]] = column
        left &= ~covers[:, column]
    return [int(column) for column in chosen]
