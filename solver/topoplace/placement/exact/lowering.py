"""How trees of starts and places lower the bounds of their leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from topoplace import clock
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.ground import Ground
from topoplace.placement.exact.integer import least_losses, losses_at
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.preferences import Preferences
from topoplace.placement.exact.price_pool import PricePool
from topoplace.placement.exact.relaxation import DualPoint, Subproblem
from topoplace.placement.exact.start_leaves import Leaf
from topoplace.placement.exact.starts import StartSearch
from topoplace.result.placement import DEEPEST

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


class Lowering:
    """Lowers the bounds of a tree's leaves by the bundle, one leaf or two at once.

    Points that it evaluates join the ground's pool, those of a leaf that is not lowered patiently
    a pool of its own.
    """

    def __init__(self, ground: Ground, preferring: Preferences) -> None:
        self._ground = ground
        self._starts = StartSearch(ground.pool.values, preferring)
        self._amounts = ground.master.amounts()
        self._second_master = Master(ground.relaxation.rows)
        self._thread = ThreadPoolExecutor(1)

    def at_once(self, work: Callable[[Leaf, Master], None], leaves: Sequence[Leaf]) -> None:
        """Work on one leaf or two, each in a thread with a master of its own."""
        others = [self._thread.submit(work, leaf, self._second_master) for leaf in leaves[1:]]
        work(leaves[0], self._ground.master)
        for other in others:
            other.result()

    def lower(
        self, leaf: Leaf, plan: Plan, goal: int, until: float, master: Master | None = None
    ) -> None:
        """Lower a leaf's bound until it meets the goal, or the plan or the time is up.

        Parameters
        ----------
        master
            Whose columns the bundle uses, by default the ground's.
        """
        ground, sub = self._ground, leaf.sub
        master = master or ground.master
        start = leaf.bounded
        if start is None:
            start = self.bounded(sub, self.point(int(leaf.pooled.argmin())))
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
                leaf.starts = self._starts.below(sub, own, goal, DEEPEST - leaf.depth)
                done |= leaf.starts.bound <= goal
            if done or clock.now() >= until:
                break
        leaf.softness = bundle.softness
        leaf.settled = bundle.settled or not plan.patient
        leaf.amounts = master.amounts()
        leaf.refresh(ground.pool)

    def bounded(self, sub: Subproblem, point: DualPoint) -> Bounded:
        """Return a point as the prices of a leaf."""
        return Bounded(self._ground.relaxation.evaluate(sub, point, 4), point)

    def point(self, number: int) -> DualPoint:
        """Return a point of the ground's pool."""
        pool = self._ground.pool
        return DualPoint(pool.row_prices(number) / pool.scale)

    def _own_pool(self, leaf: Leaf) -> PricePool:
        """Return what takes in the points that lower a leaf."""
        if leaf.own is None:
            tight = np.argsort(leaf.pooled)[:_TIGHT]
            leaf.own = self._ground.pool.under(leaf.sub.limits, tight.tolist())
        return leaf.own
