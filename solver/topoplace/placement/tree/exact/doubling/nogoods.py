"""Thresholds that are impossible, raised as far as they stay so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.cutting.boxes import Corners
from topoplace.placement.tree.exact.doubling.kernels.lifting import raised
from topoplace.placement.tree.exact.doubling.kernels.refuting import Mix, Refutation
from topoplace.placement.tree.exact.doubling.plans import Plans
from topoplace.placement.tree.exact.doubling.proof import Proof

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Nogood:
    """Thresholds by number that are impossible, and why; None if only CP-SAT has shown it."""

    at: IntArray
    proof: Proof | None


class Refuter:
    """Finds nogoods, and remembers which thresholds are possible.

    What is impossible stays so with lower thresholds, what is possible with higher ones.

    Attributes
    ----------
    values
        Of thresholds, ascending; thresholds are numbers of them.
    possible
        Thresholds that programs have a solution at.
    num_tests
        Programs asked for.
    """

    def __init__(self, plans: Plans, values: IntArray, rng: np.random.Generator) -> None:
        num_steps = len(plans.tables.idle)
        self.plans, self.values = plans, values
        self.possible = Corners(num_steps)
        self.num_tests = 0
        self._rng = rng
        self._top = np.full(num_steps, len(values) - 1)

    def test(self, at: IntArray) -> Nogood | None:
        """Return why thresholds are impossible, or None."""
        if self.possible.below(at):
            return None
        self.num_tests += 1
        found = self.plans.test(self.values[at])
        if isinstance(found, Refutation):
            return Nogood(at, found)
        least = self.plans.least(self.values, at, found) if isinstance(found, Mix) else at
        self.possible.add(least)
        return None

    def lifted(self, nogood: Nogood, high: IntArray) -> Nogood:
        """Return a nogood as large as programs allow within a high corner.

        Beyond that, where it serves other boxes, by its multipliers only. The steps come in any
        order, so that nogoods differ.
        """
        order = self._order()
        nogood = self._within(nogood, high, order)
        # a step that may be as high as can be splits no box
        for step in order[np.argsort((high - nogood.at)[order], kind="stable")].tolist():
            nogood = self._lifted_step(nogood, high, order, step, at_once=True)
        for step in order.tolist():
            nogood = self._lifted_step(nogood, high, order, step, at_once=False)
        return self._within(nogood, self._top, order)

    def _lifted_step(
        self, nogood: Nogood, high: IntArray, order: IntArray, step: int, at_once: bool
    ) -> Nogood:
        """Return a nogood with one step as high as programs allow, or else at its high or not."""
        while True:
            bottom = int(nogood.at[step])
            top = self.possible.ceiling(nogood.at, step, int(high[step]))
            if bottom >= top or (at_once and top < high[step]):
                return nogood
            at = nogood.at.copy()
            at[step] = top if at_once else (bottom + top + 1) // 2
            found = self.test(at)
            if found is not None:
                nogood = self._within(found, high, order)
            elif at_once:
                return nogood

    def _within(self, nogood: Nogood, high: IntArray, order: IntArray) -> Nogood:
        """Return a nogood raised by its multipliers."""
        proof, tables, possible = nogood.proof, self.plans.tables, self.possible
        at = raised(tables, proof, self.values, nogood.at, high, order, possible.all, possible.sets)
        return Nogood(at, proof)

    def _order(self) -> IntArray:
        return self._rng.permutation(len(self._top))
