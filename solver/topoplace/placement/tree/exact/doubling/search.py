"""The least cost of thresholds of a binomial job that are not impossible."""

from __future__ import annotations

import bisect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.doubling.incumbent import Incumbent
from topoplace.placement.tree.exact.doubling.nogoods import Nogood
from topoplace.placement.tree.exact.doubling.part import Part
from topoplace.placement.tree.exact.doubling.sharing import Sharing
from topoplace.placement.tree.exact.doubling.sides import Box, any_inside, inside_first
from topoplace.placement.tree.exact.doubling.tables import tables_of
from topoplace.placement.tree.exact.job import Job
from topoplace.snapshot.schema import Pattern

IntArray = NDArray[np.int64]

_LARGEST_COST = 1 << 61
_MOST_STATES = 160
"""What a test takes grows with their cube."""

_PARTS = 2
"""Threads; compiled loops take most of the time, and do not hold each other up."""


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

    Boxes of thresholds are dealt to parts by how many steps they have inside leaves altogether.

    Attributes
    ----------
    best
        The best allocation known; at the end at the bound, if that could be reached.
    values, prices
        Of thresholds, ascending, and of steps.
    """

    job: Job
    leaves: IntArray
    deadline: float
    seed: int = 0
    best: Incumbent = field(init=False)
    values: IntArray = field(init=False)
    prices: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.best = Incumbent(self.job, tables_of(self.job), self.leaves, self.deadline)
        self.values = Relaxation(self.job).values
        self.prices = np.array([step.price for step in self.job.steps], dtype=np.int64)
        self._gap = bisect.bisect_left(self.values.tolist(), int(self.job.states.crossing.min()))
        sharing = Sharing(_PARTS)
        self._parts = [
            Part(self.best, self.values, self.prices, self._gap, number, sharing, self.seed)
            for number in range(_PARTS)
        ]

    @property
    def nogoods(self) -> list[Nogood]:
        """Thresholds that are impossible."""
        return [nogood for part in self._parts for nogood in part.nogoods]

    def run(self) -> int:
        """Return a lower bound of the cost, at most that of `best`, in its units."""
        dealt: list[list[Box]] = [[] for _ in self._parts]
        for low, high in self._sides():
            dealt[int((low < self._gap).sum()) % _PARTS].append((low, high))
        with ThreadPoolExecutor(_PARTS) as pool:
            try:
                bounds = list(pool.map(Part.run, self._parts, dealt))
            except BaseException:
                self.best.deadline = 0.0  # the pool waits for its threads: let them end
                raise
        return min(*bounds, self.best.cost)

    def improve(self, deadline: float, times: int) -> None:
        """Look for better allocations at thresholds that can be lowered no more, so many times."""
        for part in self._parts:
            part.improve(deadline, times)

    def _sides(self) -> list[Box]:
        """Return a box for every possible set of steps inside leaves altogether."""
        num, last = len(self.prices), len(self.values) - 1
        tables = self.best.tables
        if (self.prices == self.prices[0]).all() and not tables.idle.any():
            inside = np.searchsorted(self.values, np.unique(tables.inside))
            return list(inside_first(inside, self._gap, last, num))
        return list(any_inside(self._gap, last, num))
