"""The search for the least cost of a binomial job.

Two threads share boxes and the best allocation known: the compiled programs take most of the time,
and do not hold each other up. Better allocations are sought on the way, at thresholds that programs
have a solution at.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

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
    Nogood,
    ThresholdSearch,
)
from topoplace.snapshot.schema import Pattern
from topoplace.types import IntArray

_THREADS = 2
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
    """Tell whether `least_cost_of` is made for a job."""
    return {family.pattern for family in job.families} == {Pattern.BINOMIAL} and job.is_countable


# ---- Better allocations ------------------------------------------------------------------------


class Incumbent:
    """The leaf of every rank at the least cost found, in units of the job."""

    def __init__(self, job: Job, leaves: IntArray, deadline: float) -> None:
        self.job, self.leaves, self.deadline = job, leaves, deadline
        self.cost = job.units(leaves)
        self._spent: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def offer(
        self, thresholds: IntArray, seconds: float, oracle: PlanOracle, counts: IntArray | None
    ) -> bool:
        """Look for an allocation with every step at most its threshold; keep it if it is better.

        What was left open after as many seconds is not tried again. `counts` are leaves per state
        that programs have there, if that is known. Return whether there is certainly none.
        """
        seconds = min(seconds, self.deadline - clock.now())
        if self._spent.get(thresholds.tobytes(), 0.0) >= seconds:
            return False
        self._spent[thresholds.tobytes()] = seconds
        deadline = clock.now() + seconds
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
        if leaves is not None:
            with self._lock:
                if self.job.units(leaves) < self.cost:
                    self.leaves, self.cost = leaves, self.job.units(leaves)
        return False


# ---- Boxes that two searches share -------------------------------------------------------------


Gift = tuple[list[Box], IntArray]
"""Boxes, and thresholds that their part knows to be impossible."""


class Sharing:
    """Where parts wait for boxes of others when they have none left."""

    def __init__(self, num_parts: int) -> None:
        self._num_parts = self._working = num_parts
        self._waiting = 0
        self._gifts: SimpleQueue[Gift | None] = SimpleQueue()
        self._lock = threading.Lock()

    @property
    def wanted(self) -> bool:
        """Whether a part waits."""
        return self._waiting > 0

    def give(self, gift: Gift) -> None:
        """Hand boxes over to a part that waits; with two parts it is the only one that does."""
        with self._lock:
            self._waiting -= 1
            self._working += 1
        self._gifts.put(gift)

    def take(self) -> Gift | None:
        """Wait for boxes; return None once no part works on any."""
        with self._lock:
            self._waiting += 1
        self.leave()
        return self._gifts.get()

    def leave(self) -> None:
        """Say that a part works no more."""
        with self._lock:
            self._working -= 1
            for _ in range(self._num_parts if self._working == 0 else 0):
                self._gifts.put(None)


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


class _Part(ThresholdSearch):
    """A part of a search, with boxes of its own."""

    def __init__(self, job: Job, best: Incumbent, number: int, sharing: Sharing, seed: int) -> None:
        self._oracle = PlanOracle(job)
        super().__init__(job, [self._oracle], best.cost, best.deadline, seed * _THREADS + number)
        self.best = best
        self.dealt: list[Box] = []
        self._sharing = sharing
        self._cheapest = best.cost
        self._begin, self._spent = clock.now(), 0.0

    def run(self) -> int:
        """Return a lower bound of the cost in boxes, at most that of `best`, in its units.

        Boxes taken over from other parts are among them.
        """
        try:
            for found in self.open_thresholds():
                if clock.now() > self.best.deadline:
                    return found.cost
                thresholds = self.job.values[found.at]
                oracle, counts = self._oracle, found.counts
                impossible = self.best.offer(thresholds, _WHOLE_SECONDS, oracle, counts)
                self.to_beat = self.best.cost
                if impossible:
                    self.rule_out(found)
                elif found.cost < self.to_beat:
                    return found.cost
            return self.best.cost
        finally:
            self._sharing.leave()

    def begin(self) -> None:
        """Put the boxes dealt that may hold a cheaper one into the heap."""
        for low, high in self.dealt:
            if (high < low).any() or self.cost(low) >= self.to_beat:
                continue
            nogood = self.test(high) if clock.now() < self.deadline else None
            if nogood is None:
                self._boxes.add(low, high)
            else:
                self.add(nogood)

    def _more_boxes(self) -> bool:
        gift = self._sharing.take()
        if gift is None:
            return False
        boxes, impossible = gift
        for at in impossible:
            self._impossible.add(at)
        for low, high in boxes:
            self._boxes.add(low, high)
        return True

    def _goes_on(self, cost: int) -> bool:
        """Hand over boxes to a part that waits, and look for better allocations now and then."""
        self.to_beat, self.deadline = self.best.cost, self.best.deadline
        if self._sharing.wanted and len(self._boxes) > 1:
            self._sharing.give((self._boxes.halved(), self._impossible.all.copy()))
            return False
        now = clock.now()
        share = _LARGE_SHARE if _FAR * cost < self.to_beat else _SHARE
        if now > self._begin + self._spent / share:
            before = self.to_beat
            if len(self._possible):
                self._improve()
            self.to_beat = self.best.cost
            if self.to_beat == before:  # better allocations pay for the time
                self._spent += clock.now() - now
        return cost < self.to_beat

    def _noticed(self, least: IntArray) -> None:
        if self.cost(least) < self._cheapest:
            self._cheapest = self.cost(least)
            self._offer(least)

    def _offer(self, at: IntArray) -> None:
        self.best.offer(self.job.values[at], _TRY_SECONDS, self._oracle, None)

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
            self._offer(at)

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


def least_cost_of(
    job: Job, leaves: IntArray, deadline: float, seed: int = 0
) -> tuple[int, IntArray, list[Nogood]]:
    """Return a bound of the cost of a binomial job, the best known leaves, and the proof.

    Boxes of thresholds are dealt to parts by how many steps they have inside leaves altogether.
    """
    best, sharing = Incumbent(job, leaves, deadline), Sharing(_THREADS)
    parts = [_Part(job, best, number, sharing, seed) for number in range(_THREADS)]
    for low, high in _sides(job):
        parts[int((low < job.gap).sum()) % _THREADS].dealt.append((low, high))
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            bounds = list(pool.map(_Part.run, parts))
        except BaseException:
            best.deadline = 0.0  # the pool waits for its threads: let them end
            raise
    nogoods = [nogood for part in parts for nogood in part.nogoods]
    return min(*bounds, best.cost), best.leaves, nogoods
