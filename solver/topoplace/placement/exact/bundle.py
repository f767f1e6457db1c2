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
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from topoplace import clock
from topoplace.placement.exact.flat_columns import FlatColumns
from topoplace.placement.exact.generation import Bounded, entering
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import DualPoint, Relaxation, Subproblem
from topoplace.placement.exact.rows import PackingRows

_ACCURACY = 0.3  # of the minimum over the model, as a share of the descent it predicts
_ROUNDS = 4  # at most, for that minimum

_LEAST_DESCENT = 2e-5  # of the bound, or of 1: what is predicted below is no reason to go on
_PATIENCE = 4  # such predictions in a row, over another range of prices each
_REPEATS = 12  # steps in a row that neither descend nor follow new columns: their promise is vain


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
    """

    def __init__(
        self,
        relaxation: Relaxation,
        master: Master,
        sub: Subproblem,
        softness: float = 0.0,
        watch: Callable[[int | None], None] = lambda bound: None,
    ) -> None:
        self.relaxation, self.master, self.sub = relaxation, master, sub
        self._watch = watch
        self.settled = False
        self.softness = softness
        rows = relaxation.rows
        free = rows.takable.copy()
        free[relaxation.rows_of(sub.fixed)] = False
        self._num_free = max(1, int(free[: rows.num_routers].sum()))
        self._idle = self._repeats = 0
        self._flat = FlatColumns(master, sub, free)

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
        it, when none keeps its promise though the model stays as it is (prices are integers once
        scaled, and a multiplier may have to be finer than that), at the deadline, or after
        `max_steps`.

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
        self._flat.begin(start.point)
        for _ in range(max_steps):
            certified = best.value.certified
            if certified is None or certified <= lower or clock.now() >= deadline:
                break
            learned = self._flat.update()
            point, model, solved = self._flat.minimise_near(best, self.softness, _ACCURACY, _ROUNDS)
            value = relaxation.evaluate(sub, point, per_request)
            self.master.add(entering(value, sub, per_request))
            promised, descent = best.value.bound - model, best.value.bound - value.bound
            # bounds are rounded down, so that a descent to the same integer is worth nothing
            bound = best.value.bound
            least = _LEAST_DESCENT * max(1.0, abs(bound))
            worth_it = max(least, bound - math.floor(bound))
            if descent > 0:
                best = replace(best, value=value, point=point)
                self._watch(value.certified)
            self._idle = 0 if max(promised, descent) > worth_it else self._idle + 1
            if self._idle == 1:
                usual = self.softness
            self._repeats = 0 if learned or descent > least else self._repeats + 1
            if self._idle >= _PATIENCE or self._repeats >= _REPEATS:
                self.settled, self.softness, self._idle, self._repeats = True, usual, 0, 0
                break
            if self._idle:
                # promises little: the range is too small, or the minimum was out of reach
                self.softness *= 4.0 if solved else 0.3
            elif descent > 0.1 * promised:
                misses = 0
                self.softness *= _bolder(descent / max(promised, descent))
            elif descent < -promised:
                self.softness *= 0.3  # much too far
            else:
                misses += 1
                self.softness *= 0.6 if misses % 3 == 0 else 1.0
        self._flat.end()
        return best


def _bolder(kept: float) -> float:
    """Return by how much farther to look after a step that kept so much of its promise."""
    return 3.0 if kept > 0.9 else 1.5 if kept > 0.5 else 1.0
