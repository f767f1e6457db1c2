"""The least cost of thresholds that are not impossible: boxes, and what refutes their corners."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.doubling.boxes import Boxes, Corners
from topoplace.placement.tree.exact.doubling.incumbent import Incumbent, Verdict
from topoplace.placement.tree.exact.doubling.nogoods import Nogood, Refuter
from topoplace.placement.tree.exact.doubling.plans import Plans
from topoplace.placement.tree.exact.doubling.sides import Box, any_inside, inside_first
from topoplace.placement.tree.exact.job import Job
from topoplace.snapshot.schema import Pattern

IntArray = NDArray[np.int64]

_WHOLE_SECONDS = 3.0
_TRY_SECONDS = 0.5
_LIFT_SECONDS = 0.02
"""What whole numbers of leaves may take where that decides, where it only may help, and, beyond
twice the time of a refutation, to lift it."""

_SHARE, _LARGE_SHARE = 0.1, 0.4
_FAR = 1.1
"""Shares of the time in which better allocations are looked for; the large one while the best known
costs as many times the bound."""

_CHEAP = 30
"""From how many thresholds better allocations are looked for."""

_LARGEST_COST = 1 << 61
_MOST_STATES = 160
"""What a test takes grows with their cube."""


def doubles(job: Job) -> bool:
    """Tell whether a job is one that `DoublingSearch` is made for."""
    only = {family.pattern for family in job.families} == {Pattern.BINOMIAL}
    if not (only and job.exact and len(job.states.count) <= _MOST_STATES):
        return False
    most = int(max(job.states.inside.max(), job.states.crossing.max()))
    return most * sum(step.price for step in job.steps) < _LARGEST_COST


@dataclass
class DoublingSearch:
    """Finds a lower bound of the cost of a binomial job, and plans that have it.

    Thresholds are numbers of `values`. What is impossible stays so with lower thresholds.

    Attributes
    ----------
    best
        The best allocation known; at the end at the bound, if that could be reached.
    nogoods
        Thresholds that are impossible.
    """

    job: Job
    leaves: IntArray
    deadline: float
    seed: int = 0
    best: Incumbent = field(init=False)
    plans: Plans = field(init=False)
    values: IntArray = field(init=False)
    prices: IntArray = field(init=False)
    gap: int = field(init=False)
    nogoods: list[Nogood] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plans = Plans(self.job)
        self.best = Incumbent(self.job, self.plans.tables, self.leaves, self.deadline)
        self._cheapest = self.best.cost
        self.values = Relaxation(self.job).values
        self.prices = np.array([step.price for step in self.job.steps], dtype=np.int64)
        self.gap = bisect.bisect_left(self.values.tolist(), int(self.job.states.crossing.min()))
        self._rng = np.random.default_rng(self.seed)
        self._refuter = Refuter(self.plans, self.values, self._rng)
        self._impossible = Corners(len(self.prices))

    def cost(self, at: IntArray) -> int:
        """Return the cost of thresholds by number, in units of 1 / (100 scale)."""
        return int(self.prices @ self.values[at])

    def run(self) -> int:
        """Return a lower bound of the cost, at most that of `best`, in its units."""
        boxes = Boxes(self.values, self.prices)
        for low, high in self._sides():
            boxes.add(low, high)
        begin, spent = time.perf_counter(), 0.0
        while True:
            found = boxes.cheapest(self._impossible.all, self.best.cost)
            if found is None:
                return self.best.cost
            cost, low, high = found
            now = time.perf_counter()
            if now > self.deadline:
                return cost
            far = _FAR * cost < self.best.cost
            if now > begin + spent / (_LARGE_SHARE if far else _SHARE):
                self.improve(self.deadline, 1)
                spent += time.perf_counter() - now
            nogood = self._refuter.known(low, high)
            if nogood is not None:
                self._add(nogood)
                continue
            nogood = self._test(low)
            if nogood is not None:
                self._add(self._refuter.lifted(nogood, high))
                continue
            nogood = self._whole(low, high)
            if nogood is None:
                return cost
            self._add(nogood)

    def _whole(self, low: IntArray, high: IntArray) -> Nogood | None:
        """Return thresholds from a corner up that are impossible in whole numbers of leaves.

        Steps go up as far as that shows in about twice the time that it takes at the corner.
        """
        begin = time.perf_counter()
        if self.best.offer(self.values[low], _WHOLE_SECONDS) is not Verdict.IMPOSSIBLE:
            return None
        now = time.perf_counter()
        end = now + _LIFT_SECONDS + 2 * (now - begin)
        at = low.copy()
        for step in self._rng.permutation(len(at)).tolist():
            for top in (int(high[step]), int(low[step] + high[step] + 1) // 2):
                trial = at.copy()
                trial[step] = top
                seconds = end - time.perf_counter()
                if top > at[step] and seconds > 0 and self._is_whole_nogood(trial, seconds):
                    at = trial
        return Nogood(at, None)

    def _is_whole_nogood(self, at: IntArray, seconds: float) -> bool:
        return self.best.offer(self.values[at], seconds) is Verdict.IMPOSSIBLE

    def _sides(self) -> Iterator[Box]:
        """Yield a box for every possible set of steps inside leaves altogether."""
        num, last = len(self.prices), len(self.values) - 1
        if (self.prices == self.prices[0]).all() and not self.plans.tables.idle.any():
            inside = np.searchsorted(self.values, np.unique(self.plans.tables.inside))
            boxes = inside_first(inside, self.gap, last, num)
        else:
            boxes = any_inside(self.gap, last, num)
        for low, top in boxes:
            high = self._affordable(low, top)
            if self._is_possible(low, high):
                yield low, high

    def _is_possible(self, low: IntArray, high: IntArray) -> bool:
        """Tell whether a box may hold thresholds that cost less."""
        if (high < low).any() or self.cost(low) >= self.best.cost:
            return False
        if time.perf_counter() > self.deadline:
            return True
        nogood = self._test(high)
        if nogood is not None:
            self._add(nogood)
        return nogood is None

    def _affordable(self, low: IntArray, high: IntArray) -> IntArray:
        """Return the largest values with which the others, at their least, can win."""
        spare = self.best.cost - 1 - self.cost(low)
        most = self.values[low] + spare // self.prices
        return np.minimum(high, np.searchsorted(self.values, most, side="right") - 1)

    def _add(self, nogood: Nogood) -> None:
        self._impossible.add(nogood.at)
        self.nogoods.append(nogood)

    def _test(self, at: IntArray) -> Nogood | None:
        """Return why thresholds are impossible, or None; then they may lead to an allocation."""
        nogood = self._refuter.test(at)
        if nogood is None:
            least = self._refuter.possible.all[-1]
            if self.cost(least) < self._cheapest:
                self._cheapest = self.cost(least)
                self.best.offer(self.values[least], _TRY_SECONDS)
        return nogood

    def improve(self, deadline: float, times: int) -> None:
        """Look for better allocations at thresholds that can be lowered no more, so many times."""
        for _ in range(times if len(self._refuter.possible) else 0):
            if time.perf_counter() > deadline:
                break
            possible = self._refuter.possible.all
            cost = self.values[possible] @ self.prices
            cheap = np.argsort(cost, kind="stable")[:_CHEAP]
            at = possible[self._rng.choice(cheap)].copy()
            for step in self._rng.permutation(len(at)).tolist():
                if self.cost(at) >= self.best.cost:
                    self._lower(at, step)
            if self.cost(at) < self.best.cost:
                self._raise(at)
                self.best.offer(self.values[at], _TRY_SECONDS)

    def _raise(self, at: IntArray) -> None:
        """Raise thresholds in place, any step by one, as long as they are worth it.

        The lowest that programs allow are rarely possible in whole numbers of leaves.
        """
        spare = self.best.cost - 1 - self.cost(at)
        steps = list(range(len(at)))
        while steps:
            step = int(self._rng.choice(steps))
            edge = at[step] + 1 in (self.gap, len(self.values))
            extra = 0 if edge else int(np.diff(self.values)[at[step]] * self.prices[step])
            if edge or extra > spare:
                steps.remove(step)
            else:
                at[step] += 1
                spare -= extra

    def _lower(self, at: IntArray, step: int) -> None:
        """Lower a threshold in place to the least that is possible."""
        bottom = 0
        while bottom < at[step]:
            trial = at.copy()
            trial[step] = middle = (bottom + int(at[step])) // 2
            if self._test(trial) is None:
                at[step] = middle
            else:
                bottom = middle + 1
