"""Branching on which requests start and where, if linear programs are too slow to guide it.

The relaxation likes to start a bit of every large request where there is no room for a whole one,
or leaves out a bit of each. Most leaves need no prices of their own: every point that the bundle
has tried bounds each set of starts (`price_pool`). The leaf of the largest bound comes first. If
large requests are undecided there, the one is split for which the pool lowers both sides most. If
all are decided, the bundle lowers the bound until it is no longer the largest; its points join
the pool, where they bound many other leaves. Once the bundle can do no more, the place of a
request that starts is split (`splits`).
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.covering import NONE
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.integer import least_losses, losses_at
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.preferences import Preferences
from topoplace.placement.exact.price_pool import PricePool
from topoplace.placement.exact.relaxation import DualPoint, Relaxation, Subproblem
from topoplace.placement.exact.splits import split_place
from topoplace.placement.exact.start_leaves import (
    NOTHING,
    Leaf,
    certificate_of,
    shared_points,
)
from topoplace.placement.exact.starts import StartSearch
from topoplace.result import SharedLeaves
from topoplace.result.schema import DEEPEST

_LOOKED_AT = 16  # points of the pool, when a request to split is chosen
_STEPS_AT_ONCE = 4  # of the bundle, until it is seen who may start
_MOST_TRIED = 40  # requests, the largest ones, of which that is


@dataclass(frozen=True)
class _Plan:
    """How a tree goes about a leaf.

    Attributes
    ----------
    large
        Share of the bound: starts of less value wait until the bundle can do no more.
    most_steps
        Of the bundle.
    most_columns
        That it begins with, about: steps grow with them.
    patient
        Whether the bundle stops as soon as the leaf is not the highest any more, to go on when it
        is again, and whether then starts of small requests come before places. Else the places
        are split once the steps are done.
    """

    large: float
    most_steps: int
    most_columns: int
    patient: bool


_STARTS_FIRST = _Plan(0.02, most_steps=200, most_columns=2000, patient=True)
_PLACES_FIRST = _Plan(0.1, most_steps=16, most_columns=800, patient=False)


@dataclass(frozen=True)
class Ground:
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
    pool: PricePool
    lower: Callable[[], int]
    groups: tuple[tuple[int, ...], ...] = ()


def new_pool(relaxation: Relaxation) -> PricePool:
    """Return a pool that takes in the points that are evaluated from now on."""
    requests = relaxation.problem.requests
    free = DualPoint(np.zeros(relaxation.rows.num_rows))
    best = relaxation.evaluate(Subproblem(), free, 1).priced.best
    startable = frozenset(q for q in range(len(requests)) if best[q] > 0)
    values = np.array([request.value for request in requests], dtype=float)
    relaxation.pool = PricePool(relaxation.scale, relaxation.rows.num_rows, values, startable)
    return relaxation.pool


class StartTree:
    """A best-first tree of the first level; may be run again and again.

    It asks which of the large requests start before it asks where, except below `unsettled` sets
    of starts. What the relaxation can start as a whole, if in pieces, has no bound to lower until
    it is known where the pieces are; there the tree asks where the largest requests go while the
    relaxation is free to start the others in part, so that bounds tell what to ask next.

    Parameters
    ----------
    start
        Prices to begin with.
    unsettled
        What another tree could not exclude; below leaves that agree with one of them, places come
        first.
    """

    def __init__(
        self, ground: Ground, start: DualPoint, unsettled: Sequence[Subproblem] = ()
    ) -> None:
        bound = ground.relaxation.evaluate(Subproblem(), start, 1).bound  # and into the pool
        self._ground, self._pool, self._unsettled = ground, ground.pool, unsettled
        self._open: list[tuple[int, int, Leaf]] = []
        self._ticket = itertools.count()
        self._amounts = ground.master.amounts()
        self._thread = ThreadPoolExecutor(1)
        self._second_master = Master(ground.relaxation.rows)
        values = self._pool.values
        self._large = {
            plan: frozenset(q for q in self._pool.startable if values[q] >= plan.large * bound)
            for plan in (_STARTS_FIRST, _PLACES_FIRST)
        }
        self._preferring = Preferences(ground.relaxation.problem, self._pool.startable)
        self._starts = StartSearch(values, self._preferring)
        self._decided = NOTHING  # the largest bound of leaves that are not worked on any more
        pooled = self._pool.bounds(frozenset(), frozenset())
        self._top = Leaf(Subproblem(), pooled, int(np.floor(pooled.min())), 0)
        self._push(self._top)

    @property
    def bound(self) -> int:
        """What the tree certifies."""
        return max(self._decided, self._highest_open())

    def certificate(self) -> SharedLeaves:
        """Return the tree as a certificate of its bound."""
        ground = self._ground
        return certificate_of(self._top, self.bound, self._pool, ground.relaxation, ground.groups)

    def points(self) -> list[DualPoint]:
        """Return the points of the pool that bound the leaves."""
        numbers = shared_points(list(self._top.leaves(self.bound)), self.bound, self._pool)
        return [self._point(number) for number in sorted(set(numbers) - {NONE})]

    def run(self, until: float) -> None:
        """Work on the leaf of the largest bound, again and again."""
        master = self._ground.master
        amounts = master.amounts()
        while time.perf_counter() < until and (leaf := self._pop()) is not None:
            plan = self._plan_of(leaf)
            if self._large[plan] - leaf.sub.forced - leaf.sub.excluded:
                self._split_start(leaf, self._large[plan])
            elif not leaf.settled:
                self._lower_first(leaf, plan, until)
            elif plan.patient and self._split_start(leaf, self._pool.startable, 1.0):
                continue
            elif not (
                self._split_place(leaf, until) or self._split_start(leaf, self._pool.startable)
            ):
                self._decided = max(self._decided, leaf.bound)
        master.set_amounts(amounts)  # the bundle of the root goes on from them

    def unsettled(self) -> list[Subproblem]:
        """Return the leaves above the incumbent."""
        return [leaf.sub for _, _, leaf in self._open if leaf.bound > self._ground.lower()]

    def highest(self) -> Leaf | None:
        """Return the leaf of the largest bound if it has prices of its own."""
        leaf = self._open[0][2] if self._open else None
        return None if leaf is None or leaf.bounded is None else leaf

    def _highest_open(self) -> int:
        return -self._open[0][0] if self._open else NOTHING

    def _done(self) -> int:
        """Return the bound that no work on leaves goes below."""
        return max(self._decided, self._ground.lower())

    def _plan_of(self, leaf: Leaf) -> _Plan:
        """Return how to go about a leaf, by whether its starts agree with an unsettled set."""
        agree = any(
            not (leaf.sub.forced & sub.excluded or leaf.sub.excluded & sub.forced)
            for sub in self._unsettled
        )
        return _PLACES_FIRST if agree else _STARTS_FIRST

    def _pop(self) -> Leaf | None:
        """Take the leaf of the largest bound; None if no work on leaves lowers the tree's."""
        while self._highest_open() > self._done():
            key, _, leaf = heapq.heappop(self._open)
            leaf.refresh(self._pool)
            if leaf.bound == -key:
                return leaf
            self._push(leaf)
        return None

    def _push(self, leaf: Leaf) -> None:
        bound = leaf.bound
        if bound > self._ground.lower() and leaf.depth < DEEPEST:
            heapq.heappush(self._open, (-bound, next(self._ticket), leaf))
        else:
            self._decided = max(self._decided, bound)
            leaf.close()

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
        enough = highest - self._ground.lower()
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
        leaf.children = children
        leaf.close()
        for child in children:
            self._push(child)

    def _lower_first(self, leaf: Leaf, plan: _Plan, until: float) -> None:
        """Lower the bound of a leaf, unless patient of the next one at once, in a thread each."""
        after = None if plan.patient else self._pop()
        if after is not None and not self._may_lower(after, plan):
            self._push(after)
            after = None
        if after is not None:
            other = self._thread.submit(self._lower, after, plan, until, self._second_master)
        self._lower(leaf, plan, until, self._ground.master)
        self._push(leaf)
        if after is not None:
            other.result()
            self._push(after)

    def _may_lower(self, leaf: Leaf, plan: _Plan) -> bool:
        """Tell whether the bundle is next at a leaf, under the same plan."""
        undecided = self._large[plan] - leaf.sub.forced - leaf.sub.excluded
        return not (leaf.settled or undecided) and self._plan_of(leaf) is plan

    def _lower(self, leaf: Leaf, plan: _Plan, until: float, master: Master) -> None:
        """Lower the bound by the bundle; if patient, for a fiftieth of its gap at least."""
        ground, sub = self._ground, leaf.sub
        lower, bound = ground.lower(), leaf.bound
        goal = lower
        if plan.patient:
            goal = max(lower, min(self._highest_open(), bound - 1 - (bound - lower) // 50))
        start = leaf.bounded
        if start is None:
            start = self._bounded(sub, self._point(int(leaf.pooled.argmin())))
        if len(master.columns) > 1.5 * plan.most_columns:
            losses = losses_at(ground.relaxation, sub, master.columns, start)
            master.keep(least_losses(losses, plan.most_columns))
        master.set_amounts(leaf.amounts or self._amounts)
        own = None if plan.patient else self._own_pool(leaf)
        relaxation = ground.relaxation if own is None else ground.relaxation.filling(own)
        bundle = Bundle(relaxation, master, sub, leaf.softness)
        leaf.bounded = start
        at_once = plan.most_steps if own is None else _STEPS_AT_ONCE
        for _ in range(0, plan.most_steps, at_once):
            leaf.bounded = bundle.run(leaf.bounded, goal, deadline=until, max_steps=at_once)
            certified = leaf.bounded.value.certified
            done = bundle.settled or certified is None or certified <= goal
            if own is not None and not (certified is None or certified <= goal):
                leaf.starts = self._starts.below(sub, own, lower, DEEPEST - leaf.depth)
                done |= leaf.starts.bound <= lower
            if done or time.perf_counter() >= until:
                break
        leaf.softness = bundle.softness
        leaf.settled = bundle.settled or not plan.patient
        leaf.amounts = master.amounts()
        leaf.refresh(self._pool)

    def _own_pool(self, leaf: Leaf) -> PricePool:
        """Return what takes in the points that lower a leaf."""
        if leaf.own is None:
            tight = np.argsort(leaf.pooled)[:_LOOKED_AT]
            leaf.own = self._pool.under(leaf.sub.limits, tight.tolist())
        return leaf.own

    def _split_place(self, leaf: Leaf, until: float) -> bool:
        """Split the places of requests that are spread over several, if any are.

        Both sides are bounded at once, each in a thread, and unless patient lowered, too.
        """
        ground, plan = self._ground, self._plan_of(leaf)
        assert leaf.bounded is not None
        parts = split_place(ground.relaxation.problem, leaf.sub, leaf.amounts or [], ground.groups)
        if parts is None:
            return False
        subs, leaf.write = parts
        point = leaf.bounded.point
        low, high = (
            Leaf(
                sub,
                leaf.pooled,
                leaf.bound,
                leaf.depth + 1,
                amounts=leaf.amounts,
                softness=leaf.softness,
            )
            for sub in subs
        )
        if leaf.own is not None and leaf.starts is not None:
            for child in (low, high):
                child.own = leaf.own.under(child.sub.limits, leaf.starts.numbers)

        def begin(child: Leaf, master: Master) -> None:
            child.bounded = self._bounded(child.sub, point)
            if not plan.patient:
                self._lower(child, plan, until, master)

        other = self._thread.submit(begin, high, self._second_master)
        begin(low, ground.master)
        other.result()
        self._branch(leaf, (low, high))
        return True

    def _bounded(self, sub: Subproblem, point: DualPoint) -> Bounded:
        return Bounded(self._ground.relaxation.evaluate(sub, point, 4), point)

    def _point(self, number: int) -> DualPoint:
        return DualPoint(self._pool.row_prices(number) / self._pool.scale)
