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
from typing import TYPE_CHECKING

import numpy as np

from topoplace.placement.exact.branching import place_branch
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.integer import least_losses, losses_at
from topoplace.placement.exact.preferences import Preferences
from topoplace.placement.exact.price_pool import PricePool
from topoplace.placement.exact.relaxation import DualPoint, Subproblem
from topoplace.placement.exact.start_leaves import NOTHING, Leaf, certificate_of
from topoplace.result import SharedLeaves
from topoplace.result.schema import DEEPEST

if TYPE_CHECKING:
    from topoplace.placement.exact.branching import Node
    from topoplace.placement.exact.search import ExactSearch

_LARGE = 0.02  # of the bound: requests of less value wait until the bundle can do no more
_MOST_STEPS = 200  # of the bundle, for a leaf
_MOST_COLUMNS = 2000
_LOOKED_AT = 16  # points of the pool, when a request to split is chosen
_MOST_TRIED = 40  # requests, the largest ones, of which that is
_SETTLED = 0.95  # of a request on one prism: its place is not split


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
        self._decided = NOTHING  # the largest bound of leaves that are not worked on any more
        search.relaxation.evaluate(root.sub, root.bounded.point, 1)  # into the pool
        pooled = self._pool.bounds(root.sub.forced, root.sub.excluded)
        self._top = Leaf(root.sub, pooled, int(np.floor(pooled.min())), 0)
        self._push(self._top)
        root.below = self

    @property
    def bound(self) -> int:
        """What the tree certifies."""
        return max(self._decided, -self._open[0][0] if self._open else NOTHING)

    def certificate(self) -> SharedLeaves:
        """Return the tree as a certificate of its bound."""
        return certificate_of(self._top, self.bound, self._pool, self._search.relaxation)

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
            leaf.refresh(self._pool)
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

    def _split_start(self, leaf: Leaf, among: frozenset[int], least_fall: float = -np.inf) -> bool:
        """Split the request whose two sides the pool bounds best, if both fall by so much."""
        pool, sub = self._pool, leaf.sub
        left = among - sub.forced - sub.excluded
        if not left:
            return False
        undecided = np.array(sorted(left, key=lambda q: (-pool.values[q], q))[:_MOST_TRIED])
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
        leaf.refresh(self._pool)

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
