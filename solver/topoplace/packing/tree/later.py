"""Branching on a later level of a large problem: which requests start, then where.

The levels before leave many sets of requests open, and linear programs start parts of each. Every
point that the bundle has tried bounds all sets (`LaterPool`), so a tree of starts grows without
calls of the oracle. Where the pool's bounds do not fall any more, the bundle lowers those of a
leaf, and its points bound other leaves too.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topoplace.packing import steering
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.generation import Bounded, is_met, keep_least
from topoplace.packing.dual.later_pool import LaterPool
from topoplace.packing.dual.relaxation import DualPoint, DualValue, Relaxation
from topoplace.packing.primal.program import Cancel
from topoplace.packing.problem import Priced, Subproblem
from topoplace.packing.tree.best_first import BestFirstTree
from topoplace.packing.tree.nodes import (
    Dominance,
    Node,
    Root,
    bound_of,
    split_columns,
    split_cover,
    split_start,
)
from topoplace.types import FloatArray

_TIGHT = 16  # points of the pool by which a request to split is chosen
_FIRST_STEPS = 2  # of the bundle at a leaf: if they gain nothing, more will not
_STEPS = 8  # of the bundle, until it is seen what they gained
_LEAST_STEP = 0.005  # of the gap, that some steps have to gain
_COLUMNS = 2  # of each request that a step adds
_LEAST_LIFTED = 2  # level; of the first, those that start reach it
_FACTORS = (1, 10, 100)  # by which prices of the level before are added
_STEPS_BEFORE = 60  # of the bundle for that level
_INTEGRAL = 0.02  # parts of starts up to this are errors of the bundle
_MOST_PLACES = 4  # splits of places without a time limit: a checker prices all anew at each
_AT_ONCE = 4  # leaves, by a thread
_SPLITS = 8  # of leaves that prices do not lower any more, until others are lowered
_LONGEST = 0.25  # seconds at a leaf, until it is seen which one is the highest
_AT_ONCE_FOUND = 0.1  # seconds in which most placements are found that are found at all
_COMPLETING = 0.5  # nominal seconds for placements, until they are waited for
_LEAST_FALL = 0.02  # of the gap, on both sides of a split of starts that needs no prices


def lifted(
    relaxation: Relaxation,
    columns: Columns,
    sub: Subproblem,
    bounded: Bounded,
    before: DualPoint,
    until: float,
) -> Bounded:
    """Return a dual point that also pays for what the level before has to reach.

    Where it is decided who starts, few placements reach the level before, and the multiplier of
    that level has to be large. So prices that prove it for these starts are added to those of a
    point, many times.

    Parameters
    ----------
    bounded
        The point; it is returned if the sums are no better.
    before
        Prices of the level before, from which a proof for these starts is sought.
    """
    if sub.level < _LEAST_LIFTED or sub.reached[-1] is None:
        return bounded
    plain, lower = (
        relaxation.filling(None),
        replace(sub, level=sub.level - 1, reached=sub.reached[:-1]),
    )
    start = Bounded(plain.evaluate(lower, before, _COLUMNS), before)
    steps, amounts = Bundle(plain, columns, lower), columns.amounts()
    proof = steps.run(start, sub.reached[-1] - 1, until=until, max_steps=_STEPS_BEFORE)
    columns.set_amounts(amounts)
    if (proof.value.certified or 0) > sub.reached[-1]:
        return bounded  # many times what is open there is more than the prices gain
    point = bounded.point
    for factor in _FACTORS:
        multipliers = zip(point.multipliers, (*proof.point.multipliers, 1.0), strict=True)
        sum_of_both = DualPoint(
            point.row_prices + factor * proof.point.row_prices,
            tuple(own + factor * more for own, more in multipliers),
        )
        found = Bounded(relaxation.evaluate(sub, sum_of_both, _COLUMNS), sum_of_both)
        bounded = min(bounded, found, key=lambda one: one.value.bound)
    return bounded


Decided = tuple[Subproblem, Bounded]
"""A subproblem in which all starts are decided, and its bound."""

Complete = Callable[[Subproblem, Bounded, Cancel], list[list[Any]]]
"""Looks for placements where all starts are decided; may be ended by another thread."""


@dataclass
class _Completing:
    """A look for placements that is under way in another thread.

    Attributes
    ----------
    due
        When it is waited for, where work counts.
    """

    sub: Subproblem
    found: futures.Future[tuple[list[list[Any]], float]]
    cancel: Cancel
    due: float


class LaterTree(BestFirstTree):
    """A tree of a later level.

    Parameters
    ----------
    pool
        The relaxation's, with the points that led to the root.
    before
        Prices of the level before.
    complete
        Looks for placements where all starts are decided.
    offer
        Takes a placement found.
    same
        The starts of the best placement known, and their bound.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        pool: LaterPool,
        columns: Columns,
        root: Root,
        lower: Callable[[], int],
        before: DualPoint,
        complete: Complete,
        offer: Callable[[list[Any]], object],
        same: Decided,
    ) -> None:
        problem, level = relaxation.problem, root.sub.level
        self._pool, self._before, self._complete, self._offer = pool, before, complete, offer
        self._to_complete: list[Decided] = [same]
        self._completing: _Completing | None = None
        self._num_split_places = 0
        self._columns = (columns, Columns(problem))  # of each of two leaves at once
        self._amounts = columns.amounts()
        every = frozenset(range(len(problem.names)))
        self._startable = pool.startable
        self._dominance = Dominance(problem, every, level)
        pooled = pool.bounds(root.sub.forced, root.sub.excluded)
        top = Node(root.sub, bound_of(root.bounded.value), pooled=pooled, bounded=root.bounded)
        top.step_size = root.step_size
        groups = tuple(problem.equal_groups(every))
        super().__init__(relaxation, top, lower, groups, room=root.room)

    def refresh(self, node: Node) -> None:
        """Look at the points that joined the pool since."""
        node.refresh(self._pool)

    def work_on(self, node: Node, until: float) -> None:
        """Bound a leaf better or split it."""
        if self._split_by_pool(node):
            return
        if node.converged and not self._waits(node):
            self._branch(node)
        else:
            self._lower(node, until)

    def _waits(self, leaf: Node) -> bool:
        """Return whether a placement is still to be looked for at a leaf."""
        under_way = self._completing is not None and leaf.sub is self._completing.sub
        return under_way or any(leaf.sub is sub for sub, _ in self._to_complete)

    def _branch(self, node: Node) -> None:
        """Split a leaf that prices do not lower any more."""
        part, undecided = self._parts(node), sorted(self._startable - node.sub.decided)
        parted = part > _INTEGRAL
        fresh = node.bounded is not None
        if undecided and (fresh or parted[undecided].any() or not parted.any()):
            values = self.relaxation.problem.values
            self._split_start(
                node, max(undecided, key=lambda q: (parted[q] * part[q] * values[q], values[q], -q))
            )
        elif node.bounded is None:  # that it had no more to gain was taken from the node above
            node.converged = False
            self.push(node)
        elif not self._split_cover(node):
            self.settle(node)

    def _parts(self, leaf: Node) -> FloatArray:
        """Return how much of each start the bundle's solution leaves open."""
        problem = self.relaxation.problem
        started = np.zeros(len(problem.names))
        for amount, candidate in leaf.amounts or ():
            started[candidate.request_idx] += amount
        parts: FloatArray = np.abs(started - np.rint(started))
        return parts

    def _split_by_pool(self, leaf: Node) -> bool:
        """Split the request whose two sides the pool bounds best, if both fall enough."""
        least_fall = _LEAST_FALL * (leaf.bound - self.lower())
        pool, sub = self._pool, leaf.sub
        undecided = np.array(sorted(self._startable - sub.decided), dtype=np.int64)
        if not len(undecided) or not len(leaf.pooled):
            return False
        tight = np.argsort(leaf.pooled, kind="stable")[:_TIGHT]
        forced, free = (
            np.repeat(side[None], len(undecided), axis=0)
            for side in pool.sides(sub.forced, sub.excluded)
        )
        at = np.arange(len(undecided))
        free[at, undecided] = False
        out = pool.bounds_of(tight, forced, free).min(axis=1)
        forced[at, undecided] = True
        into = pool.bounds_of(tight, forced, free).min(axis=1)
        highest = leaf.bound
        falls = np.clip([highest - out, highest - into], 0.0, highest - self.lower())
        chosen = int(falls.prod(axis=0).argmax())
        if falls[:, chosen].min() < least_fall:
            return False
        self._split_start(leaf, int(undecided[chosen]))
        return True

    def _split_start(self, leaf: Node, q: int) -> None:
        branch = split_start(self.relaxation.problem, leaf.sub, q, self._dominance)
        low, high = (self._child(leaf, side) for side in branch.sides)
        self.split(leaf, branch, (low, high))

    def _child(self, leaf: Node, sub: Subproblem) -> Node:
        """Return a side; if the pool's bound hardly falls there, prices of its own would not."""
        child = Node(
            sub, leaf.bound, leaf.depth + 1, self._pool.bounds(sub.forced, sub.excluded),
            amounts=leaf.amounts, step_size=leaf.step_size,
        )  # fmt: skip
        falls = leaf.bound - child.bound >= _LEAST_FALL * (leaf.bound - self.lower())
        child.converged = leaf.converged and not falls
        return child

    def run(self, until: float) -> None:
        """Work on the leaf of the largest bound, and complete what is left to complete."""
        budget = self.relaxation.budget
        try:
            super().run(until)
            while self.bound > self.lower() and budget.now() < until and self._begin_completing():
                self._end_completing(wait=True)
                super().run(until)
        finally:
            if self._completing is not None:
                if self.bound <= self.lower() or not budget.counts_work:
                    self._completing.cancel()
                self._end_completing(wait=True)

    def _begin_completing(self) -> bool:
        """Look for placements of the next leaf in another thread; return if one is under way."""
        if self._completing is None and self._to_complete:
            budget, cancel = self.relaxation.budget, Cancel()
            sub, bounded = self._to_complete.pop(0)
            found = budget.aside(lambda: self._complete(sub, bounded, cancel))
            if not budget.counts_work:  # many are found at once, and the tree needs them
                futures.wait([found], _AT_ONCE_FOUND)
            self._completing = _Completing(sub, found, cancel, budget.now() + _COMPLETING)
        return self._completing is not None

    def _end_completing(self, *, wait: bool) -> None:
        """Take the placements found in another thread, if it is done or to be waited for.

        Where work counts, that is so at the same time whatever the load.
        """
        own, budget = self._completing, self.relaxation.budget
        if own is None:
            return
        if wait or (budget.now() >= own.due if budget.counts_work else own.found.done()):
            for placement in budget.awaited(own.found):
                self._offer(placement)
            self._completing = None

    def _next(self) -> Node | None:
        """Take the leaf of the largest bound that the pool does not split."""
        while (node := self.pop()) is not None and self._split_by_pool(node):
            pass
        return node

    def _lower(self, leaf: Node, until: float) -> None:
        """Lower the highest leaves by the bundle until each is not the highest any more.

        Two threads do that, or one of them looks for placements in the meantime.
        """
        self._end_completing(wait=False)
        num_threads = 1 if self._begin_completing() else 2
        leaves, aside, splits = list[Node](), list[Node](), 0
        after: Node | None = leaf
        while after is not None and len(leaves) < num_threads * _AT_ONCE and splits < _SPLITS:
            if self._waits(after):
                aside.append(after)
            elif not after.converged:
                leaves.append(after)
            else:
                self._branch(after)
                splits += 1
            after = self._next()
        if after is not None:
            aside.append(after)
        lower, highest = self.lower(), self.highest_open
        parts = [leaves] if num_threads == 1 else [leaves[::2], leaves[1::2]]
        pools = [LaterPool(self._pool.level, len(self.relaxation.problem.names)) for _ in parts]
        columns = self._columns[1:] if num_threads == 1 else self._columns
        if not leaves and not splits:
            self._end_completing(wait=True)

        def work(place: int) -> None:
            for own in parts[place]:
                if not _falls(own, pools[place], lower):
                    self._lower_one(own, columns[place], pools[place], lower, highest, until)

        self.relaxation.budget.at_once(work, range(len(parts)))
        for pool in pools:
            self._pool.extend(pool)
        for one in leaves:
            one.refresh(self._pool)
            if one.converged and self._startable <= one.sub.decided and one.bounded is not None:
                self._to_complete.append((one.sub, one.bounded))
        for one in leaves + aside:
            self.push(one)

    def _lower_one(
        self, leaf: Node, columns: Columns, own: LaterPool, lower: int, highest: int, until: float
    ) -> None:
        relaxation, sub, at_once = self.relaxation.filling(own), leaf.sub, _FIRST_STEPS
        if leaf.bounded is None:
            best = int(leaf.pooled.argmin())
            bound, parts = leaf.pooled[best], self._pool.parts(best)
            priced = Priced(self._pool.gains(best), [])
            value = DualValue(float(bound), int(bound), parts, priced)
            leaf.bounded = Bounded(value, DualPoint.rounded(value))
            if self._startable <= sub.decided:
                known = leaf.bounded
                leaf.bounded = lifted(relaxation, columns, sub, known, self._before, until)
                if leaf.bounded is not known:
                    leaf.step_size, at_once = 0.0, _STEPS
        bound, least = leaf.bound, _LEAST_STEP * (leaf.bound - lower)
        goal = max(lower, min(highest, bound - 1 - (bound - lower) // 50))
        keep_least(relaxation, sub, columns, leaf.bounded, steering.COLUMNS)
        columns.set_amounts(leaf.amounts or self._amounts)
        bundle = Bundle(relaxation, columns, sub, leaf.step_size)
        bounded, until = leaf.bounded, min(until, relaxation.budget.now() + _LONGEST)
        while not bundle.converged:
            before = bounded.value.bound
            bounded = bundle.run(
                bounded, goal, until=until, max_steps=at_once, per_request=_COLUMNS
            )
            at_once = _STEPS
            if is_met(bounded, goal) or relaxation.budget.now() >= until:
                break
            if before - bounded.value.bound < least:
                bundle.converged = True
        leaf.bounded = replace(bounded, point=DualPoint.rounded(bounded.value))
        leaf.step_size, leaf.converged = bundle.step_size, bundle.converged
        leaf.amounts = columns.amounts()

    def _split_cover(self, leaf: Node) -> bool:
        """Split the places of requests that are spread over several, if any are."""
        problem = self.relaxation.problem
        if self.relaxation.budget.counts_work and self._num_split_places >= _MOST_PLACES:
            return False
        amounts = leaf.amounts or []
        branch = split_cover(problem, leaf.sub, amounts, self.groups)
        if branch is None:
            branch = split_columns(leaf.sub, amounts, self._columns[1])  # [0] may be in use
        if branch is None or leaf.bounded is None:
            return False
        self._num_split_places += 1
        point = leaf.bounded.point
        low, high = (
            Node(sub, leaf.bound, leaf.depth + 1, leaf.pooled, amounts=leaf.amounts,
                 bounded=Bounded(self.relaxation.evaluate(sub, point, 4), point),
                 step_size=leaf.step_size)
            for sub in branch.sides
        )  # fmt: skip
        self.split(leaf, branch, (low, high))
        return True


def _falls(leaf: Node, pool: LaterPool, lower: int) -> bool:
    """Return whether points that another leaf has just led to lower the bound of a leaf."""
    bounds = pool.bounds(leaf.sub.forced, leaf.sub.excluded)
    return bool(len(pool) and leaf.bound - bounds.min() > _LEAST_FALL * (leaf.bound - lower))
