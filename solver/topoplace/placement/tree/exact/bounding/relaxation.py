"""Whether step values at most so large are ruled out (docs/proofs-tree.md, "Relaxation").

Given a *threshold* per step, a state of a leaf keeps inside all steps whose threshold is below
its cheapest crossing, and takes no part in those below its own inside hops. That leaves few
states; and those that pair badly need ranks elsewhere to pair with, which gives inequalities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding._kernels import refute
from topoplace.placement.tree.exact.bounding.view import View
from topoplace.placement.tree.exact.bounding.whole import Inequality, whole_counts
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_ALL_CUTS = 48
_ROUNDS = 300


@dataclass(frozen=True)
class Relaxation:
    """The relaxation of a job, to be asked with different thresholds.

    If `plain`, it only counts the ranks that the states left can hold; certificates rest on that
    and on `more`. This is asked last: it tells whether it rules thresholds out.
    """

    job: Job
    plain: bool = False
    more: Callable[[IntArray], bool] | None = None

    def possible(self, thresholds: Sequence[int]) -> bool:
        """Tell whether the relaxation leaves an allocation with every step at most its threshold.

        Parameters
        ----------
        thresholds
            Per step of the job, in units of 1 / `job.scale`. Over the `alike` dims of a family
            they ascend.
        """
        view = View(self.job, np.asarray(thresholds, dtype=np.int64), plain=self.plain)
        states = self.job.states
        head = (states.count, view.alive, states.first, states.multiplicity)
        none = np.zeros((len(states.count), 0), dtype=np.int64)
        if refute(*head, none, none[0], self.job.ranks, 0):
            return False
        rows: list[Inequality] = []
        # pairings take longer to find
        for more in () if self.plain else (view.hostings(), view.pairings()):
            rows += more
            if rows and _refuted(head, rows, self.job.ranks):
                return False
        return self.more is None or not self.more(view.thresholds)

    def counts(self, thresholds: Sequence[int], seconds: float) -> tuple[IntArray | None, bool]:
        """Return leaves per state in whole numbers that the relaxation leaves (`whole_counts`)."""
        view = View(self.job, np.asarray(thresholds, dtype=np.int64), _ALL_CUTS)
        return whole_counts(
            self.job.states,
            self.job.ranks,
            view.alive,
            view.rows(),
            list(view.crowds()),
            seconds,
        )

    @cached_property
    def values(self) -> IntArray:
        """All values that a step can have at the least distance, ascending."""
        states = self.job.states
        present = np.unique(states.kind)
        crossing = states.crossing[np.ix_(present, present)]
        return np.unique(np.concatenate([states.inside, crossing.ravel()]))


def _refuted(
    head: tuple[IntArray, BoolArray, IntArray, IntArray], rows: list[Inequality], ranks: int
) -> bool:
    """Tell whether multipliers of inequalities are found that rule out all choices of states."""
    coefficients = np.stack([row for row, _ in rows], axis=1)
    least = np.array([value for _, value in rows], dtype=np.int64)
    # Rows of like size: the step of one should not drown the others.
    factor = np.maximum(np.gcd.reduce(coefficients, axis=0), 1)
    coefficients = np.ascontiguousarray(coefficients // factor)
    return bool(refute(*head, coefficients, -(-least // factor), ranks, _ROUNDS))
