"""The dual function of a subproblem: prices give a bound (docs/proofs/placement.md, "A leaf")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace.clock import OutOfTimeError
from topoplace.packing.budget import Budget
from topoplace.packing.dual.cut_pool import CutPool
from topoplace.packing.dual.later_pool import LaterPool
from topoplace.packing.dual.sparse import SparsePrices
from topoplace.packing.problem import (
    NO_VALUE,
    PackingProblem,
    Priced,
    Query,
    Subproblem,
    capacities_left,
)
from topoplace.result.certificate import Leaf
from topoplace.types import BoolArray, FloatArray, IntArray

_ROOM = 1 << 57
"""Half of the limit on a leaf's prices and multipliers (docs/proofs/placement.md, "Integers").

The other half is for rounding."""

_FINE = 10**4
"""Scale of prices, if it fits: finer ones move bounds on 24^3 by 0.01, with more digits."""

_LATER_FINE = 10**6
"""That of later levels, whose values lie closer together."""

_PER_REACHED = 20
"""But there at least this multiple of what earlier levels must reach, so that rounded multipliers
move a bound by a fortieth at most."""

MAX_SUM = 1 << 24
"""Largest sum of request values for which bounds are rounded to reachable sums."""


class DualPoint:
    """Prices per row and multipliers of the earlier levels, in true units.

    Parameters
    ----------
    row_prices
        Shape ``(num_rows,)``, or the nonzero ones, multiplied by `scale`.
    """

    def __init__(
        self,
        row_prices: FloatArray | SparsePrices,
        multipliers: tuple[float, ...] = (),
        scale: int = 1,
    ) -> None:
        if not isinstance(row_prices, SparsePrices):
            row_prices = SparsePrices.of(row_prices)
        self._kept, self._scale, self.multipliers = row_prices, scale, multipliers

    @classmethod
    def rounded(cls, value: DualValue) -> DualPoint:
        """Return the integer prices behind a value, which takes no memory beyond it."""
        scale, kept, multipliers = value.leaf_parts
        return cls(kept, tuple(m / scale for m in multipliers), scale)

    @property
    def rows(self) -> NDArray[Any]:
        """The rows that have a price, ascending."""
        return self._kept.rows

    @property
    def prices(self) -> FloatArray:
        """The prices of these."""
        prices: FloatArray = self._kept.prices.astype(np.float64) / self._scale
        return prices

    @property
    def row_prices(self) -> FloatArray:
        """The prices of all rows, as a new array."""
        dense = np.zeros(self._kept.num_rows)
        dense[self.rows] = self.prices
        return dense

    def only(self, marked: BoolArray) -> DualPoint:
        """Return the prices of the rows marked, without multipliers."""
        kept = np.where(marked[self.rows], self.prices, 0.0)
        return DualPoint(SparsePrices.at(self._kept.num_rows, self.rows, kept))


@dataclass(frozen=True)
class DualValue:
    """A dual point made integer and evaluated.

    Attributes
    ----------
    bound
        The exact bound it proves, as a float for steering.
    certified
        The leaf's bound, rounded down as docs/proofs/placement.md says; None if the leaf is empty.
    leaf_parts
        Scale, row prices and multipliers, all integers.
    priced
        The oracle's answer behind it, in `scale`-fold units.
    """

    bound: float
    certified: int | None
    leaf_parts: tuple[int, SparsePrices, tuple[int, ...]]
    priced: Priced

    def without_columns(self) -> DualValue:
        """Return the part of it to keep once its columns are taken."""
        return replace(self, priced=Priced(self.priced.best, []))

    @property
    def scale(self) -> int:
        """The factor of prices, multipliers and gains."""
        return self.leaf_parts[0]


class Relaxation:
    """Evaluates dual points of the subproblems of one problem.

    Attributes
    ----------
    pool
        Takes in the points evaluated on its level under its covers.
    """

    def __init__(
        self,
        problem: PackingProblem,
        budget: Budget,
        pool: CutPool | LaterPool | None = None,
    ) -> None:
        self.problem, self.budget, self.pool = problem, budget, pool
        self._total = int(problem.values.sum())

    def begin_pool(self) -> CutPool:
        """Begin a pool, which takes in the points that are evaluated from now on."""
        free = DualPoint(np.zeros(self.problem.num_rows))
        best = self.evaluate(Subproblem(), free, 1).priced.best
        startable = frozenset(np.flatnonzero(best > 0).tolist())
        values = self.problem.values.astype(float)
        self.pool = CutPool(self.scale, values, startable)
        return self.pool

    def begin_later(self, level: int) -> LaterPool:
        """Begin a pool of a later level, which takes in the points evaluated from now on."""
        self.pool = pool = LaterPool(level, len(self.problem.names))
        return pool

    @cached_property
    def scale(self) -> int:
        """Integer scale of prices on the first level, as fine as sums allow."""
        return max(1, min(_FINE, self._finest))

    @cached_property
    def _finest(self) -> int:
        """The scale at which sums over all rows and requests still fit 64 bits."""
        capacities = self.problem.capacities
        held = int(capacities.sum()) + int((capacities == 0).sum())
        return min((1 << 52) // (1 + self._total), (1 << 60) // ((1 + self._total) * max(1, held)))

    def _scales(self, sub: Subproblem, point: DualPoint) -> tuple[int, float]:
        """Return the integer scale of a point, and what to multiply the point by before rounding.

        The two differ only if the point would not fit into 64 bits at any scale: all of it is then
        made smaller, which makes the bound weaker, but still valid.
        """
        if not sub.level:
            return self.scale, float(self.scale)
        held = np.maximum(1, self.problem.capacities[point.rows])
        worth = float(np.maximum(point.prices, 0) @ held)
        for level, multiplier in enumerate((*point.multipliers, 1.0)):
            worth += max(0.0, multiplier) * self.problem.largest(level)
        fine = max(_LATER_FINE, _PER_REACHED * sum(abs(v or 0) for v in sub.reached))
        scale = max(1, min(fine, self._finest, int(_ROOM / max(1.0, worth))))
        return scale, scale * min(1.0, _ROOM / max(1.0, scale * worth))

    def beside(self, fixed: Sequence[object], pool: CutPool | None = None) -> Relaxation:
        """Return the relaxation of subproblems that have some jobs fixed, cheaper to evaluate."""
        return Relaxation(self.problem.beside(fixed), self.budget, pool)

    def filling(self, pool: CutPool | LaterPool | None) -> Relaxation:
        """Return the relaxation whose points join another pool, or none."""
        return Relaxation(self.problem, self.budget, pool)

    def evaluate(self, sub: Subproblem, point: DualPoint, per_request: int = 24) -> DualValue:
        """Round a dual point to integers and compute the bound it proves.

        If the time runs out before the end, the answer is that of other prices (`without_pricing`).
        """
        problem = self.problem
        scale, factor = self._scales(sub, point)
        rows = point.rows
        prices = np.rint(np.maximum(point.prices, 0) * factor).astype(np.int64)
        prices[~problem.takable[rows]] = 0
        row_prices = np.zeros(problem.num_rows, dtype=np.int64)
        row_prices[rows] = prices
        multipliers = tuple(
            0 if v is None else max(0, round(m * factor))
            for m, v in zip(point.multipliers, sub.reached, strict=True)
        )
        weights = (*multipliers, scale)
        capacities, total = problem.capacities, 0
        if sub.fixed:
            # at a price above any value, no candidate takes what fixed jobs use up
            capacities = capacities_left(problem, sub.fixed)
            full = problem.takable & (capacities <= 0)
            prices[full[rows]] = 0
            row_prices[full] = scale * (1 + int(problem.values.max(initial=0)))
            total = scale * self._worth(sub)
        worth = int(prices @ capacities[rows])
        total += worth
        pool = self.pool
        if pool is not None and (pool.level, pool.covers, pool.fixed) != (
            sub.level,
            sub.covers,
            sub.fixed,
        ):
            pool = None
        known = sub.forced | (pool.startable if isinstance(pool, CutPool) else frozenset())
        try:
            if self.budget.counts_work:
                # on later levels, requests that are limited to places are priced one by one
                passes = 1 + len(sub.covers) if sub.level else 1
                self.budget.spend(passes * problem.work(sub.level))
            exact_for = None if sub.level else known
            wanted = problem.kin(sub.forced)
            query = Query(weights, per_request, sub.covers, exact_for, wanted)
            priced = problem.price(row_prices, query)
        except OutOfTimeError:
            return self.without_pricing(sub, pool if isinstance(pool, CutPool) else None)
        own = SparsePrices.at(problem.num_rows, rows, prices)
        kept = SparsePrices.of(row_prices) if sub.fixed else own
        total -= sum(m * (v or 0) for m, v in zip(multipliers, sub.reached, strict=True))
        if isinstance(pool, LaterPool):
            pool.add((scale, own, multipliers), total, priced.best)
        elif pool is not None:
            pool.add(own, worth, priced.best)
        best, forced = priced.best, sorted(sub.forced)
        may = np.ones(len(best), dtype=bool)
        may[[*forced, *sub.excluded]] = False
        empty = bool((best[forced] == NO_VALUE).any())
        total += sum(best[forced].tolist()) + sum(np.maximum(0, best[may]).tolist())
        certified = None if empty else self.round_down(sub, total // scale)
        bound = -np.inf if empty else total / scale
        return DualValue(bound, certified, (scale, kept, multipliers), priced)

    def _worth(self, sub: Subproblem) -> int:
        """Return the value of the fixed jobs on the first level."""
        return sum(int(self.problem.values[c.request_idx]) for c in sub.fixed)

    def without_pricing(self, sub: Subproblem, pool: CutPool | None = None) -> DualValue:
        """Bound a subproblem without the oracle, by the largest values of requests.

        The bound is no better than that of the leaf with all prices 0, which certifies it. On the
        first level, the bound by the start prices is valid as well.

        Parameters
        ----------
        pool
            Takes in the prices of 0.
        """
        problem = self.problem
        row_prices = np.zeros(problem.num_rows, dtype=np.int64)
        best = problem.values if not sub.level else np.zeros_like(problem.values)
        if sub.level:
            bound = problem.most(sub.level)
        else:
            gone = sub.excluded - {c.request_idx for c in sub.fixed}
            bound = self._total - sum(int(problem.values[q]) for q in gone)
            if pool is not None:
                pool.add(SparsePrices.of(row_prices), 0, problem.values * pool.scale)
            usable = int(problem.start_prices @ problem.capacities)
            if not sub.fixed and bound > usable:
                row_prices, bound = problem.start_prices, usable
        priced = Priced(best.copy(), [[] for _ in problem.names])
        certified = self.round_down(sub, bound)
        kept = SparsePrices.of(row_prices)
        return DualValue(float(bound), certified, (1, kept, (0,) * sub.level), priced)

    def round_down(self, sub: Subproblem, bound: int) -> int | None:
        """Round a first-level bound down to a sum of request values; None if there is none."""
        if sub.level or self._total > MAX_SUM:
            return bound
        if bound < 0:
            return None
        values = self.problem.values.tolist()
        sums = 1 << (sum(values[q] for q in sub.forced) + self._worth(sub))
        for q, value in enumerate(values):
            if q not in sub.decided:
                sums |= sums << value
        sums &= (1 << (bound + 1)) - 1
        return sums.bit_length() - 1 if sums else None

    def leaf(self, scale: int, kept: SparsePrices, multipliers: Sequence[int] = ()) -> Leaf:
        """Return integer prices as a certificate leaf."""
        row_prices: IntArray = kept.dense()
        families = self.problem.families.items()
        used = {name: row_prices[rows] for name, rows in families if row_prices[rows].any()}
        return Leaf(
            scale=scale,
            prices={name: run_lengths(prices) for name, prices in used.items()},
            multipliers=list(multipliers),
        )


def run_lengths(values: IntArray) -> str:
    """Write integers as ``value`` or ``value*count`` items, spaces between."""
    if not len(values):
        return ""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    counts = np.diff(np.concatenate([starts, [len(values)]]))
    return " ".join(
        str(v) if c == 1 else f"{v}*{c}"
        for v, c in zip(values[starts].tolist(), counts.tolist(), strict=True)
    )
