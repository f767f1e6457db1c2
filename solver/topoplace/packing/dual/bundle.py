"""Dual descent by a proximal bundle method: good prices in few pricing passes.

The dual function is known at the prices tried so far; its *model* is the largest value that the
columns found there allow. Each step goes to where the model plus the weighted squared distance
from the best prices so far is least (Kiwiel 1990; one model per request, as in Frangioni 2002),
which is found by exchanging amounts between columns (`_bundle`), without a linear program. The
prices of a linear program are a vertex of its dual: on few rows, and far from the vertex before.
The prices of this method stay near good ones, and spread over all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from topoplace.packing.dual._bundle import minimise_near
from topoplace.packing.dual._kernels import numbered
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.generation import (
    MOST_ENTRIES,
    Bounded,
    columns_of_most,
    entering,
    forget_most,
)
from topoplace.packing.dual.relaxation import DualPoint, Relaxation
from topoplace.packing.dual.sparse import SparsePrices
from topoplace.packing.problem import Kinds, Subproblem, capacities_left
from topoplace.types import IntArray

_LEVEL_REACH = 10.0  # how much softer the row of an earlier level is than other rows


class _FlatColumns:
    """The columns that a subproblem admits, with the amounts that belong to the last prices.

    Parameters
    ----------
    kinds
        The requests that have columns of their own.
    capacities
        The amounts left of every row; columns that use a row with nothing left are excluded.
    """

    def __init__(
        self, columns: Columns, sub: Subproblem, kinds: Kinds, capacities: IntArray
    ) -> None:
        self._known, self._sub, self._problem = columns, sub, columns.problem
        self._kinds = kinds
        self._free, self._capacities = capacities > 0, capacities
        self._full_before = numbered(~self._free)
        self._num_requests = len(self._problem.names)
        self._fixed = sum(int(self._problem.values[c.request_idx]) for c in sub.fixed)
        self._start()

    def _start(self) -> None:
        self._columns, self._num_seen = self._known.all, 0
        self._positions = np.zeros(0, dtype=np.int64)
        self._owner = np.zeros(0, dtype=np.int64)
        self._values = np.zeros((self._sub.level + 1, 0))
        self._amounts = np.zeros(0)
        self._tight = np.zeros(len(self._free), dtype=bool)
        self._priced = np.zeros(len(self._free), dtype=bool)
        self._tight_rows, self._before = np.zeros(0, dtype=np.int64), numbered(self._tight)
        self._runs = np.zeros((0, 2), dtype=np.uint32)
        self._starts = np.zeros(1, dtype=np.uint32)

    def begin(self, start: DualPoint) -> None:
        """Start from the amounts that the columns have, and near some prices.

        Rows that have a price there take part, even if no known column makes them matter: their
        prices count in the model, so columns must pay for them, too.
        """
        if self._columns is not self._known.all:
            self._start()
        self._priced[start.rows] = True
        self._amounts = self._known.amount[self._positions]

    def end(self) -> None:
        """Give the columns the amounts found."""
        self._known.amount[self._positions] = self._amounts

    def update(self) -> bool:
        """Take in new columns; return whether there are any."""
        num_taken = len(self._positions)
        self._take_in()
        tight = self._known.tight_rows | self._priced
        if not np.array_equal(tight, self._tight):
            self._tight = tight
            self._tight_rows = np.flatnonzero(tight)
            self._before = numbered(tight)
            self._starts, self._runs = self._known.runs_among(self._positions, self._before)
        elif num_taken < len(self._positions):
            starts, runs = self._known.runs_among(self._positions[num_taken:], self._before)
            self._starts = np.concatenate([self._starts, self._starts[-1] + starts[1:]])
            self._runs = np.concatenate([self._runs, runs])
        return num_taken < len(self._positions)

    def _take_in(self) -> None:
        """Take in the new columns that the subproblem admits."""
        self._known.share(self._kinds, self._num_seen)
        new = np.arange(self._num_seen, len(self._known))
        starts, _ = self._known.runs_among(new, self._full_before)
        fits = starts[1:] == starts[:-1]  # without a row that has nothing left
        fits &= self._known.admitted(self._kinds, self._num_seen)
        self._known.amount[new[~fits]] = 0.0
        self._num_seen, taken = len(self._known), new[fits]
        self._positions = np.concatenate([self._positions, taken])
        values = self._known.values(self._sub.level + 1, taken)
        self._owner = np.concatenate([self._owner, self._known.owners(taken)])
        self._values = np.concatenate([self._values, values.T], axis=1)
        self._amounts = np.concatenate([self._amounts, self._known.amount[taken]])

    def work(self) -> float:
        """Return the nominal seconds of a step, without what the oracle takes."""
        most = self._kinds.most
        in_round = min(len(self._positions), _ENTERING * int((most > 0).sum()) + int(most.sum()))
        return _STEP_WORK + _RUN_WORK * len(self._runs) + _PAIR_WORK * in_round**2

    def minimise_near(
        self, best: Bounded, step_size: float, accuracy: float, most_rounds: int
    ) -> tuple[DualPoint, float, bool]:
        """Return where the model plus the squared distance to the best point is least.

        Returns the model's value there as well, and whether it is near the least: see
        `_bundle.minimise_near`.
        """
        level, num = self._sub.level, len(self._positions)
        members = np.argsort(self._owner, kind="stable")
        first = np.searchsorted(self._owner[members], np.arange(self._num_requests + 1))
        self._normalise(first, members)
        earlier = self._values[:level]
        # a level's row is one price, where a column uses many other rows: let it go farther
        size = np.maximum(1.0, (earlier**2).mean(axis=1)) if num else np.ones(level)
        reached = np.array([v or 0 for v in self._sub.reached], dtype=float)
        size[[v is None for v in self._sub.reached]] = _FIXED  # its multiplier stays 0
        rows = self._tight_rows
        num_entries = int((self._runs[:, 1] - self._runs[:, 0]).sum())
        usual = _LEVEL_REACH * step_size * max(1, num_entries) / max(1, num)
        prices, multipliers, model, solved = minimise_near(
            first, members, self._kinds.least, self._kinds.most, self._values[level], earlier,
            reached, self._starts, self._runs,
            self._capacities[rows].astype(float), self._problem.is_unit,
            best.point.row_prices[rows], step_size, self._free[rows],
            np.array(best.point.multipliers, dtype=float), usual / size, self._amounts,
            best.value.bound - self._fixed, accuracy, most_rounds,
        )  # fmt: skip
        kept = SparsePrices.at(len(self._free), rows, prices)
        return DualPoint(kept, tuple(multipliers.tolist())), model + self._fixed, solved

    def _normalise(self, first: IntArray, members: IntArray) -> None:
        """Bring the sum of amounts of every kind into the range that its requests may start."""
        least, most = self._kinds.least, self._kinds.most
        total = np.bincount(self._owner, weights=self._amounts, minlength=self._num_requests)
        self._amounts *= (most / np.maximum(np.maximum(most, total), 1))[self._owner]
        for q in np.flatnonzero(total < least).tolist():
            if first[q] < first[q + 1]:
                self._amounts[members[first[q]]] += least[q] - total[q]


_ENTERING = 10  # columns of a request in a round, about
_FIXED = 1e15  # of what no step changes
_STEP_WORK = 1e-3  # nominal seconds
_RUN_WORK, _PAIR_WORK = 3.5e-8, 1.5e-8  # by run of a column, and pair of columns in a round

_ACCURACY = 0.3  # of the minimum over the model, as a share of the descent it predicts
_ROUNDS = 4  # at most, for that minimum

_LEAST_DESCENT = 2e-5  # of the bound, or of 1: what is predicted below is no reason to go on
_PATIENCE = 4  # such predictions in a row, over another range of prices each
_REPEATS = 12  # steps in a row that neither descend nor follow new columns: their promise is vain


class Bundle:
    """Lowers the bound of one subproblem; may be run again and again.

    Attributes
    ----------
    converged
        Whether the last run ended because no step promised an improvement.
    step_size
        By how much prices rise per unit of load, which sets the length of steps; 0 before the
        first.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        columns: Columns,
        sub: Subproblem,
        step_size: float = 0.0,
        watch: Callable[[int | None], None] = lambda bound: None,
    ) -> None:
        self.relaxation, self.columns, self.sub = relaxation, columns, sub
        self._watch = watch
        self.converged = False
        self.step_size = step_size
        left = capacities_left(relaxation.problem, sub.fixed)
        self._num_free = max(1, int((left[: relaxation.problem.num_covers] > 0).sum()))
        self._idle = self._repeats = 0
        self._kinds = Kinds(relaxation.problem, sub)
        self._flat = _FlatColumns(columns, sub, self._kinds, left)

    def run(
        self,
        start: Bounded,
        lower: int,
        *,
        until: float,
        max_steps: int = 1 << 40,
        per_request: int = 4,
    ) -> Bounded:
        """Return a dual point whose bound is at most that of `start`.

        Stops when the bound meets `lower` (the incumbent), when no step promises a sufficient
        descent, when no step keeps its promise although the model stays the same (prices are
        integers once scaled, and a multiplier may have to be finer than that), at a time of the
        budget, or after `max_steps`.

        Parameters
        ----------
        per_request
            Columns of each request that a step may add.
        """
        relaxation, sub, budget = self.relaxation, self.sub, self.relaxation.budget
        best = start
        if not self.step_size:
            self.step_size = 0.5 * max(1.0, abs(best.value.bound)) / self._num_free
        self.converged = False
        misses = 0
        usual = self.step_size
        self._flat.begin(start.point)
        for _ in range(max_steps):
            certified = best.value.certified
            if certified is None or certified <= lower or budget.now() >= until:
                break
            if self.columns.num_entries > MOST_ENTRIES:
                self._flat.end()
                forget_most(relaxation, sub, self.columns, best)
                self._flat.begin(best.point)
            learned = self._flat.update()
            budget.spend(self._flat.work())
            point, model, solved = self._flat.minimise_near(
                best, self.step_size, _ACCURACY, _ROUNDS
            )
            value = relaxation.evaluate(sub, point, columns_of_most(self._kinds, per_request))
            self.columns.add(entering(value, self._kinds, per_request))
            promised, descent = best.value.bound - model, best.value.bound - value.bound
            # bounds are rounded down, so a descent to the same integer gains nothing
            bound = best.value.bound
            least = _LEAST_DESCENT * max(1.0, abs(bound))
            worth_it = max(least, bound - math.floor(bound))
            if descent > 0:
                best = replace(best, value=value, point=point)
                self._watch(value.certified)
            self._idle = 0 if max(promised, descent) > worth_it else self._idle + 1
            if self._idle == 1:
                usual = self.step_size
            self._repeats = 0 if learned or descent > least else self._repeats + 1
            if self._idle >= _PATIENCE or self._repeats >= _REPEATS:
                self.converged, self.step_size, self._idle, self._repeats = True, usual, 0, 0
                break
            if self._idle:
                # promises little: the range is too small, or the minimum was out of reach
                self.step_size *= 4.0 if solved else 0.3
            elif descent > 0.1 * promised:
                misses = 0
                self.step_size *= _bolder(descent / max(promised, descent))
            elif descent < -promised:
                self.step_size *= 0.3  # much too far
            else:
                misses += 1
                self.step_size *= 0.6 if misses % 3 == 0 else 1.0
        self._flat.end()
        return best


def _bolder(kept: float) -> float:
    """Return how much longer steps become after one that kept a share of its promise."""
    return 3.0 if kept > 0.9 else 1.5 if kept > 0.5 else 1.0
