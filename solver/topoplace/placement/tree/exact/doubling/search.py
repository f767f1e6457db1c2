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
from topoplace.placement.tree.exact.doubling.plans import Plans, Refutation
from topoplace.placement.tree.exact.job import Job
from topoplace.snapshot.schema import Pattern

IntArray = NDArray[np.int64]
Box = tuple[IntArray, IntArray]

_WHOLE_SECONDS = 1.0
_TRY_SECONDS = 0.5
"""What whole numbers of leaves may take where that decides, and where it only may help."""

_DIVES = 20
_CHEAP = 30
"""How often better allocations are looked for first, and from how many thresholds."""

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


@dataclass(frozen=True)
class Nogood:
    """Thresholds by number that are impossible, and why; or only in whole numbers of leaves."""

    at: IntArray
    proof: Refutation | None


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
    num_tests: int = 0

    def __post_init__(self) -> None:
        self.plans = Plans(self.job)
        self.best = Incumbent(self.job, self.plans.tables, self.leaves, self.deadline)
        self._cheapest = self.best.cost
        self.values = Relaxation(self.job).values
        self.prices = np.array([step.price for step in self.job.steps], dtype=np.int64)
        self.gap = bisect.bisect_left(self.values.tolist(), int(self.job.states.crossing.min()))
        self._rng = np.random.default_rng(self.seed)
        self._possible = Corners(len(self.prices))
        self._impossible = Corners(len(self.prices))

    def cost(self, at: IntArray) -> int:
        """Return the cost of thresholds by number, in units of 1 / (100 scale)."""
        return int(self.prices @ self.values[at])

    def run(self) -> int:
        """Return a lower bound of the cost, at most that of `best`, in its units."""
        boxes = Boxes(self.values, self.prices)
        for low, high in self._sides():
            boxes.add(low, high)
        self.improve(self.deadline, _DIVES)
        while True:
            found = boxes.cheapest(self._impossible.all, self.best.cost)
            if found is None:
                return self.best.cost
            cost, low, high = found
            if time.perf_counter() > self.deadline:
                return cost
            nogood = self._test(low)
            if nogood is not None:
                nogood = self._lifted(nogood, high)
            elif self.best.offer(self.values[low], _WHOLE_SECONDS) is Verdict.IMPOSSIBLE:
                nogood = Nogood(low, None)
            else:
                return cost
            self._add(nogood)

    def _sides(self) -> Iterator[Box]:
        """Yield a box for every possible set of steps inside leaves altogether."""
        num = len(self.prices)
        boxes = [(np.zeros(num, dtype=np.int64), np.full(num, len(self.values) - 1))]
        for step in reversed(range(num)):
            parts = []
            for low, high in boxes:
                crossing, inside = low.copy(), high.copy()
                crossing[step], inside[step] = self.gap, self.gap - 1
                parts += [(low, inside), (crossing, high)]
            cut = [(low, self._affordable(low, high)) for low, high in parts]
            boxes = [(low, high) for low, high in cut if self._is_possible(low, high)]
        yield from boxes

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
        """Return why thresholds are impossible, or None."""
        if self._possible.below(at):
            return None
        self.num_tests += 1
        found = self.plans.test(self.values[at])
        if isinstance(found, Refutation):
            return Nogood(at, found)
        least = at if found is None else self.plans.least(self.values, at, found)
        self._possible.add(least)
        if self.cost(least) < self._cheapest:
            self._cheapest = self.cost(least)
            self.best.offer(self.values[least], _TRY_SECONDS)
        return None

    def _lifted(self, nogood: Nogood, high: IntArray) -> Nogood:
        """Return a refutation of a largest corner above one, first within a high corner.

        Beyond that it serves other boxes. The steps come in any order, so that nogoods differ.
        """
        for step in self._rng.permutation(len(high)).tolist():
            # to the top first: it holds more often than not
            nogood = self._raised(nogood, step, int(high[step]), (1, 2))
        for step in self._rng.permutation(len(high)).tolist():
            nogood = self._raised(nogood, step, len(self.values) - 1, (2, 4))
        return nogood

    def _raised(self, nogood: Nogood, step: int, most: int, shares: tuple[int, int]) -> Nogood:
        """Return a refutation with a step as high as can be.

        What is tried is a share of the room above, first one, then the other.
        """
        share, later = shares
        while True:
            bottom = int(nogood.at[step])
            top = self._possible.ceiling(nogood.at, step, most)
            if bottom >= top:
                return nogood
            at = nogood.at.copy()
            at[step] = bottom + -(-(top - bottom) // share)
            nogood = self._refuted(nogood, at) or self._test(at) or nogood
            share = later

    def _refuted(self, nogood: Nogood, at: IntArray) -> Nogood | None:
        """Return a refutation of thresholds by the same multipliers, if that is one."""
        assert nogood.proof is not None
        refutes = self.plans.refutes(nogood.proof, self.values[at])
        return Nogood(at, nogood.proof) if refutes else None

    def improve(self, deadline: float, times: int) -> None:
        """Look for better allocations at thresholds that can be lowered no more, so many times."""
        tried = set()
        for _ in range(times if len(self._possible) else 0):
            if time.perf_counter() > deadline:
                break
            cost = self.values[self._possible.all] @ self.prices
            cheap = np.argsort(cost, kind="stable")[:_CHEAP]
            at = self._possible.all[self._rng.choice(cheap)].copy()
            for step in self._rng.permutation(len(at)).tolist():
                self._lower(at, step)
            if self.cost(at) < self.best.cost and tuple(at) not in tried:
                tried.add(tuple(at))
                self.best.offer(self.values[at], _TRY_SECONDS)

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
