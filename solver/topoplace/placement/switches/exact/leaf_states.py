"""Any patterns: thresholds ruled out by the states of leaves that they leave.

Given a threshold per step, a leaf keeps inside all steps whose threshold is below its cheapest
crossing, and takes no part in those below its own inside hops. That leaves few numbers of ranks
(docs/proofs-tree.md, "Relaxation").
"""

from __future__ import annotations

import numpy as np

from topoplace.placement.switches.exact.job import NEVER, Family, Job
from topoplace.placement.switches.exact.thresholds import Empty, Guess, Leaf, Mix, Oracle
from topoplace.types import BoolArray, IntArray


class StateOracle(Oracle):
    """Counts the ranks that the states left can hold."""

    decide_programs = 1
    lift_programs = 1

    def __init__(self, job: Job) -> None:
        self._job, self._states = job, job.states
        self.ranks = self._states.count

    def solve(self, thresholds: IntArray, guess: Guess, deadline: float) -> Leaf | Mix | None:
        """Return that thresholds are impossible, or that nothing is known of them."""
        return Empty() if self.left(thresholds) is None else Mix(None, thresholds)

    def holds(self, leaf: Leaf, thresholds: IntArray, guess: Guess) -> bool:
        """Tell whether thresholds are impossible."""
        return self.left(thresholds) is None

    def left(self, thresholds: IntArray) -> BoolArray | None:
        """Return the states that are left, None if those cannot hold all ranks."""
        states = self._states
        own = states.inside[states.kind] > thresholds[:, None]
        alive = np.ones(len(states.count), dtype=bool)
        while True:
            # a state may only be so much smaller than others that all ranks find room
            most = np.zeros(len(states.multiplicity), dtype=np.int64)
            np.maximum.at(most, states.type[alive], states.count[alive])
            spare = int(states.multiplicity @ most) - self._job.ranks
            if spare < 0:
                return None
            short = most[states.type] - states.count
            left = alive & (short <= spare)
            partners = left & (short[:, None] + short <= spare)
            cheapest = np.where(partners, states.pair, NEVER).min(axis=1)
            keeps = cheapest > thresholds[:, None]
            for family in self._job.families:
                left = self._drop(family, left, keeps, keeps & own)
            if (left == alive).all():
                return alive
            alive = left

    def _drop(
        self, family: Family, alive: BoolArray, keeps: BoolArray, absent: BoolArray
    ) -> BoolArray:
        """Drop the states that no set of ranks can have which keeps some steps inside.

        Nor take part in those it is absent from.
        """
        steps, dims = list(family.steps), range(family.num_dims)
        both = np.concatenate([keeps[steps], absent[steps]])[:, alive]
        left = alive.copy()
        own, number = np.unique(both, axis=1, return_inverse=True)
        count = self._states.count[alive]
        fits = np.zeros(len(count), dtype=bool)
        for n, column in enumerate(own.T):
            kept = frozenset(dim for dim in dims if column[dim])
            gone = frozenset(dim for dim in dims if column[family.num_dims + dim])
            mine = number.ravel() == n
            fits[mine] = family.reachable(kept, gone)[count[mine]]
        left[alive] = fits
        return left
