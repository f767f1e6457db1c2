"""Thresholds of a grid refuted for all numbers of ranks that leaves may have, one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.layers.counts import whole_counts
from topoplace.placement.tree.exact.layers.program import refuted
from topoplace.placement.tree.exact.lines.program import LineProgram, Mix
from topoplace.placement.tree.exact.lines.tables import Guess, Tables, no_guess, standing

IntArray = NDArray[np.int64]


@dataclass
class LayerSearch:
    """Finds thresholds at which no numbers of ranks per leaf are possible.

    Attributes
    ----------
    values, prices
        Of thresholds, ascending; thresholds are numbers of them, one per dimension, each of which
        has a price per hop. What is impossible stays so with lower ones.
    """

    tables: Tables
    values: IntArray
    prices: IntArray
    program: LineProgram
    deadline: float
    _known: dict[bytes, bool] = field(default_factory=dict)

    @cached_property
    def _counts(self) -> IntArray | None:
        return whole_counts(self.tables)

    def refutes(self, at: IntArray) -> bool:
        """Tell whether thresholds are shown to be impossible."""
        view = standing(self.tables, self.values[at], no_guess(self.tables))
        if view is None:
            return True
        if self._counts is None:
            return False
        # thresholds matter only by what they leave
        name = b"".join(np.packbits(part).tobytes() for part in view)
        if name not in self._known:
            able = ~self._counts[:, ~view.alive].any(axis=1)
            found = all(self._refuted(self.values[at], counts) for counts in self._counts[able])
            if clock.now() > self.deadline:
                return found
            self._known[name] = found
        return self._known[name]

    def raised(self, at: IntArray, order: IntArray, to_beat: int) -> IntArray:
        """Return impossible thresholds raised in some order while shown to be so and cheaper.

        Step by step: what is possible takes longest to find.
        """
        at = at.copy()
        for dim in order.tolist():
            trial = at.copy()
            while trial[dim] < len(self.values) - 1:
                trial[dim] += 1
                if self.prices @ self.values[trial] >= to_beat or not self.refutes(trial):
                    break
                at[dim] = trial[dim]
        return at

    def _refuted(self, thresholds: IntArray, counts: IntArray) -> bool:
        """Tell whether leaves with given ranks are impossible; not if time is up."""
        if clock.now() > self.deadline:
            return False
        guess = Guess(counts, np.ones(len(counts), dtype=np.bool_))
        view = standing(self.tables, thresholds, guess)
        if view is None:
            return True
        result = self.program.test(thresholds, 1, wholes=True, guess=guess)
        if result is not None and not isinstance(result, Mix):
            return True
        return refuted(self.tables, view, counts)
