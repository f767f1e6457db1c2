"""Branching on which requests start and where, if linear programs are too slow to guide it.

The relaxation tends to start a fraction of every large request where there is no space for a whole
one, or leaves out a fraction of each. Most leaves need no prices of their own: every point that the
bundle has tried bounds each set of starts (`cut_pool`). The leaf of the largest bound comes first.
If large requests are undecided there, the one is split for which the pool lowers both sides most.
If all are decided, the bundle lowers the bound until it is no longer the largest; its points join
the pool, where they bound many other leaves. Once the bundle makes no more progress, the place of a
request that starts is split (`branching`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from topoplace.packing import steering
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.cut_pool import (
    MOST_TRIED,
    NONE,
    SEARCH_WORK,
    CutPool,
    KnapsackSearch,
    StartsBelow,
)
from topoplace.packing.dual.generation import Bounded, keep_least
from topoplace.packing.dual.relaxation import DualPoint, Relaxation
from topoplace.packing.problem import Subproblem
from topoplace.packing.tree.best_first import BestFirstTree
from topoplace.packing.tree.nodes import (
    Branch,
    Dominance,
    Node,
    shared_points,
    split_cover,
    split_start,
)
from topoplace.result.certificate import DEEPEST

_TIGHT = 16  # points of the pool: with those a leaf's own begin, and a request to split is chosen
_STEPS_AT_ONCE = 4  # of the bundle, until it is seen who may start
_PATIENT_STEPS = 200  # of the bundle
_AT_ONCE = 4  # leaves that two threads share, as one is often done much sooner than another


@dataclass(frozen=True)
class Plan:
    """How a tree works on a leaf.

    Attributes
    ----------
    large
        Share of the bound: starts of less value wait until the bundle makes no more progress.
    patient
        Whether the bundle stops as soon as the leaf is not the highest any more, to go on when it
        is again, and whether then starts of small requests come before places. Else the places
        are split after a few steps.
    """

    large: float
    patient: bool


STARTS_FIRST = Plan(steering.SMALL, patient=True)
PLACES_FIRST = Plan(steering.LARGE, patient=False)


class NodeBounding:
    """Lowers the bounds of leaves by the bundle.

    Points that it evaluates join the relaxation's pool, those of a leaf that is not lowered
    patiently a pool of its own.
    """

    def __init__(
        self, relaxation: Relaxation, pool: CutPool, columns: Columns, dominance: Dominance
    ) -> None:
        self._relaxation, self._pool = relaxation, pool
        self._starts = KnapsackSearch(pool.values, (dominance.worse, dominance.better))
        self._amounts = columns.amounts()
        # of each of several leaves at once
        others = (Columns(columns.problem) for _ in range(1, _AT_ONCE))
        self._columns = (columns, *others)

    def lower(self, leaf: Node, plan: Plan, goal: int, until: float, place: int = 0) -> None:
        """Lower a leaf's bound until it meets the goal, or the plan or the time is up.

        Parameters
        ----------
        place
            The number of the leaf, of several at once.
        """
        relaxation, sub, columns = self._relaxation, leaf.sub, self._columns[place]
        start = self.begin(leaf)
        keep_least(relaxation, sub, columns, start, steering.COLUMNS)
        columns.set_amounts(leaf.amounts or self._amounts)
        own = None if plan.patient else self._own_pool(leaf)
        filling = relaxation if own is None else relaxation.filling(own)
        bundle = Bundle(filling, columns, sub, leaf.step_size)
        found: StartsBelow | None = None
        at_once = _PATIENT_STEPS if own is None else _STEPS_AT_ONCE
        for _ in range(0, _PATIENT_STEPS if own is None else steering.STEPS, at_once):
            bounded = bundle.run(start, goal, until=until, max_steps=at_once)
            leaf.bounded = start = bounded
            certified = bounded.value.certified
            done = bundle.converged or certified is None or certified <= goal
            if own is not None and not (certified is None or certified <= goal):
                relaxation.budget.spend(SEARCH_WORK)
                found = self._starts.below(
                    sub.forced, sub.excluded, own, goal, DEEPEST - leaf.depth
                )
                if leaf.starts is None or found.bound < leaf.starts.bound:
                    leaf.starts = found
                done |= found.bound <= goal
            if done or relaxation.budget.now() >= until:
                break
        if own is not None and found is not None:  # to go on with where it is split
            leaf.own = own.under(sub.covers, found.numbers)
        leaf.bounded = replace(start, point=DualPoint.rounded(start.value))
        leaf.step_size = bundle.step_size
        leaf.converged = bundle.converged or not plan.patient
        leaf.amounts = columns.amounts()

    def begin(self, leaf: Node) -> Bounded:
        """Give a leaf prices of its own if it has none: those that bound it best; return them."""
        if leaf.bounded is None:
            leaf.bounded = self.at(leaf.sub, self.point(int(leaf.pooled.argmin())))
        return leaf.bounded

    def at(self, sub: Subproblem, point: DualPoint) -> Bounded:
        """Return a point as the prices of a subproblem."""
        return Bounded(self._relaxation.evaluate(sub, point, 4), point)

    def point(self, number: int) -> DualPoint:
        """Return a point of the pool."""
        return DualPoint(self._pool.point(number).dense() / self._pool.scale)

    def _own_pool(self, leaf: Node) -> CutPool:
        """Return the pool that takes in the points that lower a leaf."""
        if leaf.own is None:
            tight = np.argsort(leaf.pooled)[:_TIGHT]
            leaf.own = self._pool.under(leaf.sub.covers, tight.tolist())
        return leaf.own


class BranchAndBound(BestFirstTree):
    """A tree of the first level.

    It asks which of the large requests start before it asks where, except below `unsettled` sets
    of starts. If the relaxation can start such a set completely, in pieces, no bound falls until
    the places of the pieces are decided. There the tree branches on the places of the largest
    requests, while the relaxation may start the others in part, so that bounds show what to branch
    on next.

    Parameters
    ----------
    pool
        That of the relaxation.
    start
        Prices to begin with.
    unsettled
        The sets that another tree could not exclude; below leaves that agree with one of them,
        places come first.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        pool: CutPool,
        columns: Columns,
        start: DualPoint,
        lower: Callable[[], int],
        groups: tuple[tuple[int, ...], ...] = (),
        unsettled: Sequence[Subproblem] = (),
        *,
        room: int,
    ) -> None:
        bound = relaxation.evaluate(Subproblem(), start, 1).bound  # and into the pool
        self._pool, self._columns, self._unsettled = pool, columns, unsettled
        self._large = {
            plan: frozenset(q for q in pool.startable if pool.values[q] >= plan.large * bound)
            for plan in (STARTS_FIRST, PLACES_FIRST)
        }
        self._dominance = Dominance(relaxation.problem, pool.startable)
        self._bounding = NodeBounding(relaxation, pool, columns, self._dominance)
        pooled = pool.bounds(frozenset(), frozenset())
        top = Node(Subproblem(), int(np.floor(pooled.min())), pooled=pooled)
        named = frozenset(q for group in groups for q in group)
        equal = relaxation.problem.equal_groups(pool.startable - named)
        super().__init__(relaxation, top, lower, (*groups, *equal), room=room)

    def points(self) -> list[DualPoint]:
        """Return the points of the pool that bound the leaves."""
        numbers = shared_points(list(self.top.leaves(self.bound)), self.bound, self._pool)
        return [self._bounding.point(number) for number in sorted(set(numbers) - {NONE})]

    def unsettled(self) -> list[Subproblem]:
        """Return the leaves above the incumbent."""
        return [leaf.sub for leaf in self.open_leaves() if leaf.bound > self.lower()]

    def highest(self) -> Node | None:
        """Return the leaf of the largest bound if it has prices of its own."""
        leaf = next(self.open_leaves(), None)
        return None if leaf is None or leaf.bounded is None else leaf

    def refresh(self, node: Node) -> None:
        """Look at the points that joined the pool since."""
        node.refresh(self._pool)

    def run(self, until: float) -> None:
        """Work on the leaf of the largest bound, again and again."""
        amounts = self._columns.amounts()
        super().run(until)
        self._columns.set_amounts(amounts)  # the bundle of the root goes on from them

    def work_on(self, node: Node, until: float) -> None:
        """Bound a leaf better or split it."""
        plan, startable = self._plan_of(node), self._pool.startable
        large = self._large[plan]
        if not plan.patient:
            self._in_places(node, until)
        elif large - node.sub.decided:
            self._split_start(node, large)
        elif not node.converged:
            self._lower(node, until)
        elif not (
            self._split_start(node, startable, 1.0)
            or self._split_cover(node)
            or self._split_start(node, startable)
        ):
            self.settle(node)

    def _plan_of(self, leaf: Node) -> Plan:
        """Return how to work on a leaf, by whether its starts agree with an unsettled set."""
        agree = any(
            not (leaf.sub.forced & sub.excluded or leaf.sub.excluded & sub.forced)
            for sub in self._unsettled
        )
        return PLACES_FIRST if agree else STARTS_FIRST

    def _split_start(self, leaf: Node, among: frozenset[int], least_fall: float = -np.inf) -> bool:
        """Split the request whose two sides the pool bounds best, if both fall enough."""
        pool, sub = self._pool, leaf.sub
        left = among - sub.decided
        if not left:
            return False
        undecided = np.array(sorted(left, key=lambda q: (-pool.values[q], q))[:MOST_TRIED])
        tight = np.argsort(leaf.pooled, kind="stable")[:_TIGHT]
        states = np.repeat(pool.state(sub.forced, sub.excluded)[None], len(undecided), axis=0)
        at = np.arange(len(undecided))
        knapsacks = pool.knapsacks().of(tight)
        states[at, undecided] = -1
        out, _ = knapsacks.bounds(pool.values, states)
        states[at, undecided] = 1
        into, _ = knapsacks.bounds(pool.values, states)
        highest = leaf.pooled.min()
        falls = np.array([highest - side.min(axis=1) for side in (out, into)])
        use = np.clip(falls, 1e-3, highest - self.lower()).prod(axis=0)
        chosen = int(np.lexsort((pool.values[undecided], use))[-1])
        if falls[:, chosen].min() < least_fall:
            return False
        problem, q = self.relaxation.problem, int(undecided[chosen])
        branch = split_start(problem, sub, q, self._dominance)
        low, high = (
            Node(side, leaf.bound, leaf.depth + 1, pool.bounds(side.forced, side.excluded))
            for side in branch.sides
        )
        self.split(leaf, branch, (low, high))
        return True

    def _lower(self, leaf: Node, until: float) -> None:
        """Lower a leaf patiently, by at least a fiftieth of its gap."""
        lower, bound = self.lower(), leaf.bound
        goal = max(lower, min(self.highest_open, bound - 1 - (bound - lower) // 50))
        self._bounding.lower(leaf, STARTS_FIRST, goal, until)
        leaf.refresh(self._pool)
        self.push(leaf)

    def _split_cover(self, leaf: Node) -> bool:
        """Split the places of requests that are spread over several, if any are."""
        branch = self._cover_of(leaf)
        if branch is None:
            return False
        point, sides = self._bounding.begin(leaf).point, self._sides(leaf, branch)

        def begin(child: Node) -> None:
            child.bounded = self._bounding.at(child.sub, point)

        self.relaxation.budget.shared(begin, sides)
        for child in sides:
            child.refresh(self._pool)
        self.split(leaf, branch, sides)
        return True

    def _in_places(self, node: Node, until: float) -> None:
        """Work on the highest leaves whose places come first, until two threads have some to lower.

        These are new leaves, and the sides of those that were lowered before.
        """
        large, lower = self._large[PLACES_FIRST], self.lower()
        tasks: list[tuple[Node, DualPoint | None]] = []  # leaves to lower, and where sides begin
        split: list[tuple[Node, Branch, tuple[Node, Node]]] = []
        leaf: Node | None = node
        while leaf is not None:
            if self._plan_of(leaf) is not PLACES_FIRST:
                self.push(leaf)
                break
            if large - leaf.sub.decided:
                self._split_start(leaf, large)
            elif not leaf.converged:
                self._bounding.begin(leaf)  # not at once: its point may join the pool
                tasks.append((leaf, None))
            elif (branch := self._cover_of(leaf)) is not None:
                sides, point = self._sides(leaf, branch), self._bounding.begin(leaf).point
                tasks += [(side, point) for side in sides]
                split.append((leaf, branch, sides))
            elif not self._split_start(leaf, self._pool.startable):
                self.settle(leaf)
            leaf = self.pop() if len(tasks) < _AT_ONCE - 1 else None

        def work(place: int) -> None:
            one, point = tasks[place]
            if point is not None:
                one.bounded = self._bounding.at(one.sub, point)
            self._bounding.lower(one, PLACES_FIRST, lower, until, place)

        if tasks:
            self.relaxation.budget.shared(work, range(len(tasks)))
        for one, start in tasks:
            one.refresh(self._pool)
            if start is None:
                self.push(one)
        for parent, branch, sides in split:
            self.split(parent, branch, sides)

    def _cover_of(self, leaf: Node) -> Branch | None:
        """Return a branch on the places of requests that a leaf spreads over several."""
        return split_cover(self.relaxation.problem, leaf.sub, leaf.amounts or [], self.groups)

    def _sides(self, leaf: Node, branch: Branch) -> tuple[Node, Node]:
        """Return the sides of a branch on places, which begin where the leaf has come to."""
        low, high = (
            Node(
                sub,
                leaf.bound,
                leaf.depth + 1,
                leaf.pooled,
                amounts=leaf.amounts,
                step_size=leaf.step_size,
            )
            for sub in branch.sides
        )
        if leaf.own is not None:
            for child in (low, high):
                child.own = leaf.own.under(child.sub.covers, range(len(leaf.own)))
        return low, high
