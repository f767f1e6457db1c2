"""The best allocation known of a binomial job, and how thresholds lead to better ones."""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.doubling.counts import Counts
from topoplace.placement.tree.exact.doubling.pairing import assigned
from topoplace.placement.tree.exact.doubling.proof import Proof
from topoplace.placement.tree.exact.doubling.tables import Tables
from topoplace.placement.tree.exact.doubling.whole import WholePlans
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]

_SHARE = 0.4
"""Of the time, for leaves in states that programs suggest."""


class Verdict(enum.Enum):
    """What became of thresholds: an allocation that has them, proof of none, or neither."""

    FOUND = enum.auto()
    IMPOSSIBLE = enum.auto()
    OPEN = enum.auto()


@dataclass(frozen=True)
class Refuted:
    """Thresholds that are impossible, and why; None if only CP-SAT has shown it."""

    thresholds: IntArray
    proof: Proof | None


@dataclass
class Incumbent:
    """The leaf of every rank at the least cost found, in units of 1 / (100 `job.scale`).

    `job.scale` is exact.
    """

    job: Job
    tables: Tables
    leaves: IntArray
    deadline: float

    def __post_init__(self) -> None:
        self.cost = self.job.cost(self.leaves)
        states = self.job.states
        apart = states.crossing[np.ix_(states.kind, states.kind)].astype(np.int64)
        self.counts = Counts(self.tables, apart)
        self._refuted: list[Refuted] = []
        self._spent: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def offer(self, thresholds: IntArray, seconds: float) -> Verdict:
        """Look for an allocation with every step at most its threshold; keep it if it is better.

        What is known to be impossible, or was left open after as many seconds, is not tried again.
        """
        seconds = min(seconds, self.deadline - clock.now())
        if self.refuted(thresholds) is not None:
            return Verdict.IMPOSSIBLE
        if self._spent.get(thresholds.tobytes(), 0.0) >= seconds:
            return Verdict.OPEN
        self._spent[thresholds.tobytes()] = seconds
        deadline = clock.now() + seconds
        decision = self.counts.decide(thresholds, deadline)
        if decision.proof is not None:
            self._refuted.append(Refuted(thresholds.copy(), decision.proof))
            return Verdict.IMPOSSIBLE
        plans = self._plans_of(decision.leaves, thresholds, deadline)
        if plans is None:
            seconds = deadline - clock.now()
            plans, certain = WholePlans(self.tables, thresholds).solve(seconds)
            if plans is None:
                if certain:
                    self._refuted.append(Refuted(thresholds.copy(), None))
                return Verdict.IMPOSSIBLE if certain else Verdict.OPEN
        leaves = assigned(self.job, plans, thresholds)
        if leaves is None:
            return Verdict.OPEN
        cost = self.job.cost(leaves)
        with self._lock:
            if cost < self.cost:
                self.leaves, self.cost = leaves, cost
        prices = np.array([step.price for step in self.job.steps], dtype=np.int64)
        return Verdict.FOUND if cost <= int(prices @ thresholds) else Verdict.OPEN

    def refuted(self, thresholds: IntArray) -> Refuted | None:
        """Return thresholds nowhere below some, found impossible before; best with a proof."""
        over = [known for known in self._refuted if (thresholds <= known.thresholds).all()]
        return max(over, key=lambda known: known.proof is not None, default=None)

    def _plans_of(
        self, leaves: tuple[int, ...] | None, thresholds: IntArray, deadline: float
    ) -> list[tuple[int, IntArray]] | None:
        """Return state and trajectory of leaves in some states, or None if none are found."""
        if leaves is None:
            return None
        tables, source = self.counts.with_leaves(leaves)
        seconds = _SHARE * (deadline - clock.now())
        plans, _ = WholePlans(tables, thresholds).solve(seconds)
        return None if plans is None else [(int(source[s]), path) for s, path in plans]
