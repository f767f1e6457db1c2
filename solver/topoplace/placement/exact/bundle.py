"""Dual descent by a proximal bundle method: good prices in few pricing passes.

The dual function is known at the prices tried so far; its *model* is the largest value that the
columns found there allow. Each step goes to where the model plus the weighted squared distance
from the best prices so far is least (Kiwiel 1990; one model per request, as in Frangioni 2002),
which is found by exchanging amounts between columns (`_bundle`), without a linear program. The
prices of a linear program are a vertex of its dual: on few rows, and far from the vertex before.
These stay near what is known to be good, and spread over all rows.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact._bundle import minimise_near
from topoplace.placement.exact.generation import Bounded, entering
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.program import Column
from topoplace.placement.exact.relaxation import DualPoint, Relaxation, Subproblem
from topoplace.placement.exact.rows import PackingRows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ACCURACY = 0.3  # of the minimum over the model, as a share of the descent it predicts
MOST_PASSES = 60
"""Over the columns, in a step."""

_LEAST_DESCENT = 2e-5  # of the bound: what is predicted below that is no reason to go on
_PATIENCE = 4  # such predictions in a row, over another range of prices each
_LEVEL_REACH = 10.0  # how much softer the row of an earlier level is than those of routers


def usable_prices(rows: PackingRows) -> DualPoint:
    """Return the prices that bound the nodes started by the usable nodes there are."""
    prices = np.zeros(rows.num_rows)
    usable = rows.problem.state.usable_per_router.sum(axis=0)
    highest = max((r.priority for r in rows.problem.requests), default=1)
    prices[: rows.num_routers] = usable * highest
    return DualPoint(prices)


class Bundle:
    """Lowers the bound of one subproblem; may be run again and again.

    Attributes
    ----------
    settled
        Whether the last run ended because no step promised anything.
    softness
        By how much prices rise per unit of load, so how far steps look; 0 before the first.

    Parameters
    ----------
    most_passes
        Over the columns, in a step: fewer make a step shorter, but do not reach as far.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        master: Master,
        sub: Subproblem,
        softness: float = 0.0,
        most_passes: int = MOST_PASSES,
    ) -> None:
        self.relaxation, self.master, self.sub = relaxation, master, sub
        self.settled = False
        self.softness = softness
        rows = relaxation.rows
        self._free = rows.takable.astype(float)
        self._free[relaxation.rows_of(sub.fixed)] = 0
        self._num_free = max(1.0, self._free[: rows.num_routers].sum())
        self._idle = 0
        self._flat = _FlatColumns(master, sub, self._free > 0, most_passes)

    def run(
        self,
        start: Bounded,
        lower: int,
        *,
        deadline: float,
        max_steps: int = 1 << 40,
        per_request: int = 4,
    ) -> Bounded:
        """Return a dual point whose bound is at most that of `start`.

        Stops when the bound meets `lower` (the incumbent), when no step promises a descent worth
        it, at the deadline, or after `max_steps`.

        Parameters
        ----------
        per_request
            Columns of each request that a step may add to the master.
        """
        relaxation, sub = self.relaxation, self.sub
        best = start
        if not self.softness:
            self.softness = 0.5 * max(1.0, abs(best.value.bound)) / self._num_free
        self.settled = False
        misses = 0
        usual = self.softness
        for _ in range(max_steps):
            certified = best.value.certified
            if certified is None or certified <= lower or time.perf_counter() >= deadline:
                break
            self._flat.update()
            point, model, solved = self._flat.minimise_near(best, self.softness * self._free)
            value = relaxation.evaluate(sub, point, per_request)
            self.master.add(entering(value, sub, relaxation.scale, per_request))
            promised, descent = best.value.bound - model, best.value.bound - value.bound
            # bounds are rounded down, so that a descent to the same integer is worth nothing
            bound = best.value.bound
            worth_it = max(_LEAST_DESCENT * abs(bound), bound - math.floor(bound))
            if descent > 0:
                best = replace(best, value=value, point=point)
            self._idle = 0 if max(promised, descent) > worth_it else self._idle + 1
            if self._idle == 1:
                usual = self.softness
            if self._idle >= _PATIENCE:
                self.settled, self.softness, self._idle = True, usual, 0
                break
            if self._idle:
                # promises little: the range is too small, or the minimum was out of reach
                self.softness *= 4.0 if solved else 0.3
            elif descent > 0.1 * promised:
                misses = 0
                self.softness *= _bolder(descent / max(promised, descent))
            else:
                misses += 1
                self.softness *= 0.6 if misses % 3 == 0 else 1.0
        return best


def _bolder(kept: float) -> float:
    """Return by how much farther to look after a step that kept so much of its promise."""
    return 3.0 if kept > 0.9 else 1.5 if kept > 0.5 else 1.0


class _FlatColumns:
    """The columns a subproblem admits, request by request, as arrays for the compiled loops."""

    def __init__(
        self, master: Master, sub: Subproblem, free: NDArray[np.bool_], most_passes: int
    ) -> None:
        self._master, self._sub, self._free = master, sub, free
        self._most_passes = most_passes
        self._start()

    def _start(self) -> None:
        self._columns, self._num_seen = self._master.columns, 0
        self._taken: list[Column] = []
        self._tight = np.zeros(len(self._free), dtype=bool)
        # unsigned: the compiled loops need not ask whether an index counts from the end
        self._rows = np.zeros(0, dtype=np.uint32)
        self._starts = np.zeros(1, dtype=np.uint32)

    def update(self) -> None:
        """Take in the master's new columns."""
        if self._columns is not self._master.columns:
            self._start()
        num_taken = len(self._taken)
        self._take_in()
        tight = self._master.tight_rows()
        if not np.array_equal(tight, self._tight):
            self._tight, num_taken = tight, 0
            self._rows, self._starts = self._rows[:0], self._starts[:1]
        new = [column.rows[tight[column.rows]] for column in self._taken[num_taken:]]
        if new:
            ends = self._starts[-1] + np.cumsum([len(rows) for rows in new])
            self._rows = np.concatenate([self._rows, *new], dtype=np.uint32, casting="unsafe")
            self._starts = np.concatenate([self._starts, ends], dtype=np.uint32, casting="unsafe")

    def _take_in(self) -> None:
        """Take in the new columns that the subproblem admits."""
        new = self._master.columns[self._num_seen :]
        self._num_seen += len(new)
        for column in new:
            if self._sub.admits(column.candidate) and self._free[column.rows].all():
                self._taken.append(column)
            else:
                column.amount = 0.0

    def minimise_near(self, best: Bounded, softness: FloatArray) -> tuple[DualPoint, float, bool]:
        """Return where the model plus the squared distance to the best point is least.

        Returns the model's value there as well, and whether it is near the least.
        """
        sub, taken = self._sub, self._taken
        owner = np.array([c.candidate.request_idx for c in taken], dtype=np.int64)
        members = np.argsort(owner, kind="stable")
        num_requests = len(self._master.rows.problem.requests)
        first = np.searchsorted(owner[members], np.arange(num_requests + 1))
        values = np.array([c.values for c in taken], dtype=float).reshape(-1, 3)
        starts = self._starts
        amounts = np.array([c.amount for c in taken])
        forced = np.zeros(num_requests, dtype=bool)
        forced[list(sub.forced)] = True
        self._normalise(amounts, owner, first, members, forced)
        earlier = np.ascontiguousarray(values[:, : sub.level].T)
        reached = np.array(sub.reached, dtype=float)
        # a level's row has one price where a column has many routers': let it go farther
        size = np.maximum(1.0, (earlier**2).mean(axis=1)) if len(taken) else np.ones(sub.level)
        usual = (
            _LEVEL_REACH * float(softness.max(initial=0.0)) * len(self._rows) / max(1, len(taken))
        )
        level_softness = usual / size
        load = np.zeros(len(softness))
        for j in np.flatnonzero(amounts).tolist():
            load[self._rows[starts[j] : starts[j + 1]]] += amounts[j]
        level_load = earlier @ amounts
        centre = best.point.row_prices
        level_centre = np.array(best.point.multipliers, dtype=float)
        prices = np.maximum(0.0, centre + softness * (load - 1))
        multipliers = np.maximum(0.0, level_centre - level_softness * (level_load - reached))
        model, solved = minimise_near(
            first, members, forced, values[:, sub.level].copy(), earlier, reached,
            starts, self._rows, centre, softness, level_centre, level_softness,
            amounts, load, prices, level_load, multipliers,
            best.value.bound, _ACCURACY, self._most_passes,
        )  # fmt: skip
        for column, amount in zip(taken, amounts.tolist(), strict=True):
            column.amount = amount
        return DualPoint(prices, tuple(multipliers.tolist())), model, solved

    @staticmethod
    def _normalise(
        amounts: FloatArray,
        owner: IntArray,
        first: IntArray,
        members: IntArray,
        forced: NDArray[np.bool_],
    ) -> None:
        """Make the amounts of every request sum to at most 1, to exactly 1 where forced."""
        total = np.bincount(owner, weights=amounts, minlength=len(forced))
        amounts /= np.maximum(1.0, total)[owner]
        for q in np.flatnonzero(forced & (total < 1)).tolist():
            if first[q] < first[q + 1]:
                amounts[members[first[q]]] += 1 - total[q]
