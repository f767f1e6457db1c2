"""The search for the least cost of a binomial job.

Better allocations are sought on the way, at thresholds that programs have a solution at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from topoplace import clock
from topoplace.placement.switches.exact.boxes import Box
from topoplace.placement.switches.exact.job import Job
from topoplace.placement.switches.exact.plans import (
    PlanOracle,
    WholePlans,
    assigned,
    plan_tables,
    tables_under,
)
from topoplace.placement.switches.exact.thresholds import (
    Decider,
    Guess,
    Mix,
    ThresholdSearch,
)
from topoplace.snapshot.schema import Pattern
from topoplace.types import IntArray

_WHOLE_SECONDS, _TRY_SECONDS = 3.0, 0.5
"""What CP-SAT may take for whole plans where that decides, and where it only may help."""

_KNOWN_COUNTS = 0.4
"""Share of that for leaves in states that programs suggest."""

_SHARE, _LARGE_SHARE = 0.1, 0.4
_FAR = 1.1
"""Shares of the time in which better allocations are looked for; the large one while the best known
costs as many times the bound."""

_CHEAP = 30
"""From how many thresholds better allocations are looked for."""


def doubles(job: Job) -> bool:
    """Return whether `DoublingSearch` is made for a job."""
    return {family.pattern for family in job.families} == {Pattern.BINOMIAL} and job.is_countable


def _sides(job: Job) -> Iterator[Box]:
    """Yield a box of thresholds by number for every possible set of steps inside leaves.

    Where a step that crosses precedes one that is inside, they can change places: rank a has child
    b, then a and b have c and d on their own leaves; so a may have c first, and then a has b and c
    has d. With equal prices and no idle ranks, all steps inside come first, on one leaf.
    """
    num, last = len(job.prices), len(job.values) - 1
    if (job.prices != job.prices[0]).any() or plan_tables(job).idle.any():
        for each in itertools.product((True, False), repeat=num):
            kept = np.array(each)
            yield np.where(kept, 0, job.gap), np.where(kept, job.gap - 1, last)
        return
    inside = np.unique(np.searchsorted(job.values, job.states.inside))[::-1].tolist()
    for num_inside in range(num + 1):
        for value in inside if num_inside else (0,):
            low = np.full(num, job.gap, dtype=np.int64)
            high = np.full(num, last, dtype=np.int64)
            low[:num_inside] = high[:num_inside] = value
            yield low, high


class DoublingSearch(ThresholdSearch):
    """A search for the bound of a binomial job that improves an allocation.

    Attributes
    ----------
    leaves
        The leaf of every rank at the least cost found, which is `to_beat`.
    """

    def __init__(self, job: Job, leaves: IntArray, deadline: float, seed: int = 0) -> None:
        self._oracle = PlanOracle(job)
        super().__init__(job, self._oracle, job.units(leaves), deadline, seed)
        self.leaves = leaves
        self._cheapest = self.to_beat
        self._tried: dict[bytes, float] = {}
        self._begin, self._spent = clock.now(), 0.0

    def run(self) -> int:
        """Return a lower bound of the cost, at most `to_beat`, in units of the job."""
        for found in self.open_thresholds():
            if clock.now() > self.deadline:
                return found.cost
            if self._offer(self.job.values[found.at], _WHOLE_SECONDS, found.counts):
                self.rule_out(found)
            elif found.cost < self.to_beat:
                return found.cost
        return self.to_beat

    def begin(self) -> None:
        """Put boxes on the heap that may hold a cheaper one, one for every set of steps inside."""
        for low, high in _sides(self.job):
            if (high < low).any() or self.cost(low) >= self.to_beat:
                continue
            nogood = self.test(high) if clock.now() < self.deadline else None
            if nogood is None:
                self._boxes.add(low, high)
            else:
                self.add(nogood)

    def _offer(self, thresholds: IntArray, seconds: float, counts: IntArray | None = None) -> bool:
        """Look for an allocation with every step at most its threshold; keep it if it is better.

        What was left open after as many seconds is not tried again. `counts` are leaves per state
        that programs have there, if that is known. Return whether there is certainly none.
        """
        seconds = min(seconds, self.deadline - clock.now())
        if self._tried.get(thresholds.tobytes(), 0.0) >= seconds:
            return False
        self._tried[thresholds.tobytes()] = seconds
        deadline, oracle = clock.now() + seconds, self._oracle
        if counts is None:
            found = Decider(oracle).decide(thresholds, oracle.decide_programs, deadline)
            if found is not None and not isinstance(found, Mix):
                return True
            counts = None if found is None else found.counts
        plans: list[tuple[int, IntArray]] | None = None
        if counts is not None:
            tables, source = tables_under(oracle.tables, Guess(counts, np.ones_like(counts, bool)))
            seconds = _KNOWN_COUNTS * (deadline - clock.now())
            some, _ = WholePlans(tables, thresholds).solve(seconds)
            plans = None if some is None else [(int(source[s]), path) for s, path in some]
        if plans is None:
            plans, certain = WholePlans(oracle.tables, thresholds).solve(deadline - clock.now())
            if plans is None:
                return certain
        leaves = assigned(self.job, plans, thresholds)
        if leaves is not None and self.job.units(leaves) < self.to_beat:
            self.leaves, self.to_beat = leaves, self.job.units(leaves)
        return False

    def _goes_on(self, cost: int) -> bool:
        """Look for better allocations now and then; return whether the box may still be cheaper."""
        now = clock.now()
        share = _LARGE_SHARE if _FAR * cost < self.to_beat else _SHARE
        if now > self._begin + self._spent / share:
            before = self.to_beat
            if len(self._possible):
                self._improve()
            if self.to_beat == before:  # what comes of it pays for itself
                self._spent += clock.now() - now
        return cost < self.to_beat

    def _noticed(self, least: IntArray) -> None:
        if self.cost(least) < self._cheapest:
            self._cheapest = self.cost(least)
            self._offer(self.job.values[least], _TRY_SECONDS)

    def _improve(self) -> None:
        """Look for better allocations at thresholds that can be lowered no more."""
        possible = self._possible.all
        cheap = np.argsort(self.job.values[possible] @ self.job.prices, kind="stable")[:_CHEAP]
        at = possible[self.rng.choice(cheap)].copy()
        for step in self.rng.permutation(len(at)).tolist():
            if self.cost(at) >= self.to_beat:
                self._lower(at, step)
        if self.cost(at) < self.to_beat:
            self._raise(at)
            self._offer(self.job.values[at], _TRY_SECONDS)

    def _raise(self, at: IntArray) -> None:
        """Raise thresholds in place, any step by one, as long as their cost is low enough.

        The lowest that programs allow are rarely possible in whole numbers of leaves.
        """
        spare = self.to_beat - 1 - self.cost(at)
        steps = list(range(len(at)))
        while steps:
            step = int(self.rng.choice(steps))
            edge = at[step] + 1 in (self.job.gap, len(self.job.values))
            extra = 0 if edge else int(np.diff(self.job.values)[at[step]] * self.job.prices[step])
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
            if self.test(trial) is None:
                at[step] = middle
            else:
                bottom = middle + 1
