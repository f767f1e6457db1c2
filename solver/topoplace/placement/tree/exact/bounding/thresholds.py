"""The least cost that the relaxation leaves: branch and bound over boxes of step thresholds."""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]

_WHOLE_SECONDS = 1.0
_ROUNDS = 2


@dataclass
class ThresholdSearch:
    """Finds a lower bound of the cost of a job.

    `found_at` are the thresholds at which it found that bound, `found` leaves per state there.

    A box holds, per step, a range of values (by number in `Relaxation.values`) between which the
    step's maximum lies. The relaxation only weakens as thresholds grow, so it cuts boxes from
    below; the cost to beat cuts them from above.
    """

    job: Job
    deadline: float
    plain: bool = False
    more: Callable[[IntArray], bool] | None = None
    relaxation: Relaxation = field(init=False)
    values: list[int] = field(init=False)
    gap: int = field(init=False)
    prices: list[int] = field(init=False)
    known: dict[tuple[int, ...], bool] = field(default_factory=dict)
    counts: IntArray | None = None
    found: IntArray | None = None
    found_at: IntArray | None = None
    complete: bool = True

    def __post_init__(self) -> None:
        self.relaxation = Relaxation(self.job, self.plain, self.more)
        self.values = self.relaxation.values.tolist()
        self.gap = bisect.bisect_left(self.values, int(self.job.states.crossing.min()))
        self.prices = [step.price for step in self.job.steps]
        for family in self.job.families:
            # Steps alike are numbered so that thresholds ascend; the dearest then come first
            # (the rearrangement inequality).
            alike = [family.steps[dim] for dim in family.alike]
            sorted_ = sorted((self.prices[step] for step in alike), reverse=True)
            for step, price in zip(alike, sorted_, strict=True):
                self.prices[step] = price

    def bound(self, to_beat: int) -> int:
        """Return a lower bound of the cost, at most `to_beat`, in units of 1 / (100 scale)."""
        low, high = [0] * len(self.prices), [len(self.values) - 1] * len(self.prices)
        number = itertools.count()
        boxes = [
            (self.cost(a), next(number), a, b) for a, b in self._inside_or_not(low, high, to_beat)
        ]
        heapq.heapify(boxes)
        while boxes:
            cost, _, low, high = heapq.heappop(boxes)
            if cost >= to_beat:
                return to_beat
            if clock.now() > self.deadline:
                self.complete = False
                return cost
            if not self._tighten(low, high, to_beat):
                continue
            cost = self.cost(low)
            if cost >= to_beat:
                continue
            if self.possible(low) and self._whole(low):
                # Nothing in this box costs less; what is left of the others may.
                to_beat, self.found = cost, self.counts
                self.found_at = np.array([self.values[i] for i in low])
                continue
            if low == high or not self._whole(high):
                continue
            for part in self.split(low, high):
                heapq.heappush(boxes, (max(cost, self.cost(part[0])), next(number), *part))
        return to_beat

    def _inside_or_not(
        self, low: list[int], high: list[int], to_beat: int
    ) -> list[tuple[list[int], list[int]]]:
        """Return a box for every possible set of steps that stay inside leaves altogether.

        There is a wide gap below the least crossing, so this says more than any other split.
        """
        boxes = [(low, high)]
        for step in range(len(low)):
            if self.deadline < clock.now():
                break
            parts = []
            for a, b in boxes:
                inside, crossing = b.copy(), a.copy()
                inside[step] = min(b[step], self.gap - 1)
                crossing[step] = max(a[step], self.gap)
                parts += [(a.copy(), inside), (crossing, b.copy())]
            for part in parts:
                self.order(*part)
            boxes = [
                (a, b)
                for a, b in parts
                if not is_empty(a, b) and self.cost(a) < to_beat and self.possible(b)
            ]
        return boxes

    def cost(self, at: list[int]) -> int:
        """Return the cost of step values, by number."""
        return sum(p * self.values[i] for p, i in zip(self.prices, at, strict=True))

    def not_ruled_out(self, to_beat: int) -> list[IntArray]:
        """Return the thresholds that `possible` left so far and that cost less, ascending."""
        left = sorted((self.cost(list(at)), at) for at, there in self.known.items() if there)
        return [np.array([self.values[i] for i in at]) for cost, at in left if cost < to_beat]

    def possible(self, at: list[int]) -> bool:
        """Tell whether the relaxation leaves steps at most at some values, by number."""
        name = tuple(at)
        if name not in self.known:
            self.known[name] = self.relaxation.possible([self.values[i] for i in at])
        return self.known[name]

    def _whole(self, at: list[int]) -> bool:
        """Tell whether whole counts of leaves may be; what is not settled in time may."""
        thresholds = [self.values[i] for i in at]
        left = min(_WHOLE_SECONDS, self.deadline - clock.now())
        counts, certain = self.relaxation.counts(thresholds, max(left, 0.01))
        if counts is not None:
            self.counts = counts
        return counts is not None or not certain

    def split(self, low: list[int], high: list[int]) -> list[tuple[list[int], list[int]]]:
        """Return a box in two parts."""
        # First whether a step crosses at all: there is a wide gap below the least crossing.
        widths = [
            p * (self.values[b] - self.values[a]) * (1000 if a < self.gap <= b else 1)
            for p, a, b in zip(self.prices, low, high, strict=True)
        ]
        step = widths.index(max(widths))
        middle = (self.values[low[step]] + self.values[high[step]]) // 2
        at = int(np.searchsorted(self.values, middle, side="right")) - 1
        if low[step] < self.gap <= high[step]:
            at = self.gap - 1
        at = min(max(at, low[step]), high[step] - 1)
        below, above = high.copy(), low.copy()
        below[step], above[step] = at, at + 1
        return [(low.copy(), below), (above, high.copy())]

    def _tighten(self, low: list[int], high: list[int], to_beat: int) -> bool:
        """Shrink a box in place to what can beat the cost; return whether anything is left."""
        for _ in range(_ROUNDS):
            before = (low.copy(), high.copy())
            self.order(low, high)
            if is_empty(low, high) or self.cost(low) >= to_beat:
                return False
            for step in range(len(low)):
                high[step] = self.affordable(low, high[step], step, to_beat)
            self.order(low, high)
            if is_empty(low, high) or not self.possible(high):
                return False
            for step in reversed(range(len(low))):
                low[step] = self.least(low, high, step)
            if (low, high) == before:
                break
        return True

    def order(self, low: list[int], high: list[int]) -> None:
        """Shrink a box in place to where values ascend over steps alike."""
        for family in self.job.families:
            alike = [family.steps[dim] for dim in family.alike]
            for a, b in itertools.pairwise(alike):
                low[b] = max(low[a], low[b])
            for a, b in itertools.pairwise(reversed(alike)):
                high[b] = min(high[a], high[b])

    def affordable(self, low: list[int], top: int, step: int, to_beat: int) -> int:
        """Return the largest value of a step with which the others, at their least, can win."""
        bottom = low[step]
        while bottom < top:
            middle = (bottom + top + 1) // 2
            trial = low.copy()
            trial[step] = middle
            self.order(trial, [len(self.values)] * len(low))
            if self.cost(trial) < to_beat:
                bottom = middle
            else:
                top = middle - 1
        return bottom

    def least(self, low: list[int], high: list[int], step: int) -> int:
        """Return the least value of a step that the relaxation leaves, the others at their most."""
        bottom, top = low[step], high[step]
        middle = bottom  # as often as not, nothing has changed
        while bottom < top:
            trial = high.copy()
            trial[step] = middle
            self.order([0] * len(low), trial)
            if self.possible(trial):
                top = middle
            else:
                bottom = middle + 1
            middle = (bottom + top) // 2
        return bottom


def is_empty(low: list[int], high: list[int]) -> bool:
    """Tell whether nothing lies between two corners."""
    return any(a > b for a, b in zip(low, high, strict=True))
