"""Branching on which requests start and where, if linear programs are too slow to guide it.

The relaxation likes to start a bit of every large request where there is no room for a whole one,
or leaves out a bit of each. Most leaves need no prices of their own: every point that the bundle
has tried bounds each set of starts (`cut_pool`). The leaf of the largest bound comes first. If
large requests are undecided there, the one is split for which the pool lowers both sides most. If
all are decided, the bundle lowers the bound until it is no longer the largest; its points join
the pool, where they bound many other leaves. Once the bundle can do no more, the place of a
request that starts is split (`branching`).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from topoplace import clock
from topoplace.placement.exact.branching import split_place
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.cut_pool import NONE, CutPool, KnapsackSearch
from topoplace.placement.exact.dominance import Dominance
from topoplace.placement.exact.generation import Bounded, least_reduced_costs, reduced_costs_at
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import DualPoint, Subproblem
from topoplace.placement.exact.tree_nodes import (
    NOTHING,
    Leaf,
    TreeContext,
    certificate_of,
    shared_points,
)
from topoplace.result import SharedLeaves
from topoplace.result.certificate import DEEPEST

_TIGHT = 16  # points of the pool that a leaf's own points begin with
_STEPS_AT_ONCE = 4  # of the bundle, until it is seen who may start


@dataclass(frozen=True)
class Plan:
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


STARTS_FIRST = Plan(0.02, most_steps=200, most_columns=2000, patient=True)
PLACES_FIRST = Plan(0.1, most_steps=16, most_columns=800, patient=False)


class NodeBounding:
    """Lowers the bounds of a tree's leaves by the bundle, one leaf or two at once.

    Points that it evaluates join the context's pool, those of a leaf that is not lowered patiently
    a pool of its own.
    """

    def __init__(self, context: TreeContext, dominance: Dominance) -> None:
        self._context = context
        self._starts = KnapsackSearch(context.pool.values, (dominance.worse, dominance.better))
        self._amounts = context.master.amounts()
        self._second_master = Master(context.relaxation.rows)
        self._thread = ThreadPoolExecutor(1)

    def at_once(self, work: Callable[[Leaf, Master], None], leaves: Sequence[Leaf]) -> None:
        """Work on one leaf or two, each in a thread with a master of its own."""
        others = [self._thread.submit(work, leaf, self._second_master) for leaf in leaves[1:]]
        work(leaves[0], self._context.master)
        for other in others:
            other.result()

    def lower(
        self, leaf: Leaf, plan: Plan, goal: int, until: float, master: Master | None = None
    ) -> None:
        """Lower a leaf's bound until it meets the goal, or the plan or the time is up.

        Parameters
        ----------
        master
            Whose columns the bundle uses, by default the context's.
        """
        context, sub = self._context, leaf.sub
        master = master or context.master
        start = leaf.bounded
        if start is None:
            start = self.bounded(sub, self.point(int(leaf.pooled.argmin())))
        if len(master.columns) > 1.5 * plan.most_columns:
            reduced_costs = reduced_costs_at(context.relaxation, sub, master.columns, start)
            master.keep(least_reduced_costs(reduced_costs, plan.most_columns))
        master.set_amounts(leaf.amounts or self._amounts)
        own = None if plan.patient else self._own_pool(leaf)
        relaxation = context.relaxation if own is None else context.relaxation.filling(own)
        bundle = Bundle(relaxation, master, sub, leaf.step_size)
        leaf.bounded = start
        at_once = plan.most_steps if own is None else _STEPS_AT_ONCE
        for _ in range(0, plan.most_steps, at_once):
            leaf.bounded = bundle.run(leaf.bounded, goal, deadline=until, max_steps=at_once)
            certified = leaf.bounded.value.certified
            done = bundle.converged or certified is None or certified <= goal
            if own is not None and not (certified is None or certified <= goal):
                leaf.starts = self._starts.below(
                    sub.forced, sub.excluded, own, goal, DEEPEST - leaf.depth
                )
                done |= leaf.starts.bound <= goal
            if done or clock.now() >= until:
                break
        leaf.step_size = bundle.step_size
        leaf.converged = bundle.converged or not plan.patient
        leaf.amounts = master.amounts()
        leaf.refresh(context.pool)

    def bounded(self, sub: Subproblem, point: DualPoint) -> Bounded:
        """Return a point as the prices of a leaf."""
        return Bounded(self._context.relaxation.evaluate(sub, point, 4), point)

    def point(self, number: int) -> DualPoint:
        """Return a point of the context's pool."""
        pool = self._context.pool
        return DualPoint(pool.row_prices(number) / pool.scale)

    def _own_pool(self, leaf: Leaf) -> CutPool:
        """Return what takes in the points that lower a leaf."""
        if leaf.own is None:
            tight = np.argsort(leaf.pooled)[:_TIGHT]
            leaf.own = self._context.pool.under(leaf.sub.limits, tight.tolist())
        return leaf.own


_LOOKED_AT = 16  # points of the pool, when a request to split is chosen
_MOST_TRIED = 40  # requests, the largest ones, of which that is


class BranchAndBound:
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
        self, context: TreeContext, start: DualPoint, unsettled: Sequence[Subproblem] = ()
    ) -> None:
        bound = context.relaxation.evaluate(Subproblem(), start, 1).bound  # and into the pool
        self._context, self._pool, self._unsettled = context, context.pool, unsettled
        self._open: list[tuple[int, int, Leaf]] = []
        self._ticket = itertools.count()
        values = self._pool.values
        self._large = {
            plan: frozenset(q for q in self._pool.startable if values[q] >= plan.large * bound)
            for plan in (STARTS_FIRST, PLACES_FIRST)
        }
        self._dominance = Dominance(context.relaxation.problem, self._pool.startable)
        self._bounding = NodeBounding(context, self._dominance)
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
        context = self._context
        return certificate_of(self._top, self.bound, self._pool, context.relaxation, context.groups)

    def points(self) -> list[DualPoint]:
        """Return the points of the pool that bound the leaves."""
        numbers = shared_points(list(self._top.leaves(self.bound)), self.bound, self._pool)
        return [self._bounding.point(number) for number in sorted(set(numbers) - {NONE})]

    def run(self, until: float) -> None:
        """Work on the leaf of the largest bound, again and again."""
        master = self._context.master
        amounts = master.amounts()
        while clock.now() < until and (leaf := self._pop()) is not None:
            plan = self._plan_of(leaf)
            if self._large[plan] - leaf.sub.forced - leaf.sub.excluded:
                self._split_start(leaf, self._large[plan])
            elif not leaf.converged:
                self._lower(leaf, plan, until)
            elif plan.patient and self._split_start(leaf, self._pool.startable, 1.0):
                continue
            elif not (
                self._split_place(leaf, until) or self._split_start(leaf, self._pool.startable)
            ):
                self._decided = max(self._decided, leaf.bound)
        master.set_amounts(amounts)  # the bundle of the root goes on from them

    def unsettled(self) -> list[Subproblem]:
        """Return the leaves above the incumbent."""
        return [leaf.sub for _, _, leaf in self._open if leaf.bound > self._context.lower()]

    def highest(self) -> Leaf | None:
        """Return the leaf of the largest bound if it has prices of its own."""
        leaf = self._open[0][2] if self._open else None
        return None if leaf is None or leaf.bounded is None else leaf

    def _highest_open(self) -> int:
        return -self._open[0][0] if self._open else NOTHING

    def _done(self) -> int:
        """Return the bound that no work on leaves goes below."""
        return max(self._decided, self._context.lower())

    def _plan_of(self, leaf: Leaf) -> Plan:
        """Return how to go about a leaf, by whether its starts agree with an unsettled set."""
        agree = any(
            not (leaf.sub.forced & sub.excluded or leaf.sub.excluded & sub.forced)
            for sub in self._unsettled
        )
        return PLACES_FIRST if agree else STARTS_FIRST

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
        if bound > self._context.lower() and leaf.depth < DEEPEST:
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
        enough = highest - self._context.lower()
        falls = np.array([highest - side.min(axis=1) for side in (out, into)])
        use = np.clip(falls, 1e-3, enough).prod(axis=0)
        chosen = int(np.lexsort((pool.values[undecided], use))[-1])
        if falls[:, chosen].min() < least_fall:
            return False
        subs, leaf.write = self._dominance.branch(sub, int(undecided[chosen]))
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

    def _lower(self, leaf: Leaf, plan: Plan, until: float) -> None:
        """Lower a leaf, if patient by a fiftieth of its gap at least, else the next one as well."""
        bounding, lower, bound = self._bounding, self._context.lower(), leaf.bound
        if plan.patient:
            goal = max(lower, min(self._highest_open(), bound - 1 - (bound - lower) // 50))
            bounding.lower(leaf, plan, goal, until)
            self._push(leaf)
            return
        leaves = [leaf]
        after = self._pop()
        if after is not None and self._may_lower(after, plan):
            leaves.append(after)
        elif after is not None:
            self._push(after)
        bounding.at_once(
            lambda leaf, master: bounding.lower(leaf, plan, lower, until, master), leaves
        )
        for lowered in leaves:
            self._push(lowered)

    def _may_lower(self, leaf: Leaf, plan: Plan) -> bool:
        """Tell whether the bundle is next at a leaf, under the same plan."""
        undecided = self._large[plan] - leaf.sub.forced - leaf.sub.excluded
        return not (leaf.converged or undecided) and self._plan_of(leaf) is plan

    def _split_place(self, leaf: Leaf, until: float) -> bool:
        """Split the places of requests that are spread over several, if any are.

        Both sides are bounded at once, each in a thread, and unless patient lowered, too.
        """
        context, bounding, plan = self._context, self._bounding, self._plan_of(leaf)
        assert leaf.bounded is not None
        parts = split_place(
            context.relaxation.problem, leaf.sub, leaf.amounts or [], context.groups
        )
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
                step_size=leaf.step_size,
            )
            for sub in subs
        )
        if leaf.own is not None and leaf.starts is not None:
            for child in (low, high):
                child.own = leaf.own.under(child.sub.limits, leaf.starts.numbers)

        def begin(child: Leaf, master: Master) -> None:
            child.bounded = bounding.bounded(child.sub, point)
            if not plan.patient:
                bounding.lower(child, plan, context.lower(), until, master)

        bounding.at_once(begin, (low, high))
        self._branch(leaf, (low, high))
        return True
