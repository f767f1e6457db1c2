"""Column generation, smoothed, until the bound is tight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.master import LpSolution, Master
from topoplace.packing.dual.relaxation import DualPoint, DualValue, Relaxation
from topoplace.packing.problem import Kinds, Subproblem
from topoplace.types import BoolArray, FloatArray

MAX_COLUMNS = 3000
"""Columns kept in the master; beyond it those with the worst reduced cost are dropped."""

MOST_ENTRIES = 1 << 25
"""Limit of the rows of all columns together in a bundle: those that matter take four bytes each."""

_NO_AMOUNT = 1e-6
_MOST_MORE = 16  # columns of a kind and round, in addition to those of a single request

_SMOOTHING = 0.6  # weight of the best dual point so far (Wentges smoothing)


@dataclass
class Bounded:
    """A subproblem with its best dual point.

    Attributes
    ----------
    value
        The best dual value; its `certified` is the bound (None: proven empty).
    point
        The dual point behind it.
    lp
        The last restricted master, None if it had no solution or was never solved.
    converged
        Whether no column can improve the restricted master.
    """

    value: DualValue
    point: DualPoint
    lp: LpSolution | None = None
    converged: bool = False

    def __post_init__(self) -> None:
        self.value = self.value.without_columns()


def mix(first: DualPoint, second: DualPoint, weight: float) -> DualPoint:
    """Return ``weight * first + (1 - weight) * second``."""
    return DualPoint(
        weight * first.row_prices + (1 - weight) * second.row_prices,
        tuple(
            weight * a + (1 - weight) * b
            for a, b in zip(first.multipliers, second.multipliers, strict=True)
        ),
    )


def generate_columns(
    relaxation: Relaxation,
    master: Master,
    sub: Subproblem,
    start: Bounded,
    lower: int,
    *,
    until: float,
    per_round: int = 2,
) -> Bounded:
    """Lower a subproblem's bound by column generation.

    Stops when the bound meets `lower` (the incumbent), when the master's optimum shows that the
    bound cannot, when no column is left, or at a time of the budget.
    """
    best = start
    kinds = Kinds(relaxation.problem, sub)
    weight = _SMOOTHING
    while not is_met(best, lower) and relaxation.budget.now() < until:
        lp = master.solve_once(sub)
        if lp is None:
            break
        best = Bounded(best.value, best.point, lp)
        if best.value.bound - lp.objective < 1e-4 * max(1.0, abs(lp.objective)) * weight:
            weight = 0.0
        trial = mix(best.point, lp.duals, weight)
        value = relaxation.evaluate(sub, trial, columns_of_most(kinds, per_round))
        added = master.columns.add(entering(value, kinds, per_round))
        if better(value, best.value):
            best = Bounded(value, trial, lp)
        if value.certified is None:
            break
        # once the bound rounds to what the master can reach, more prices change nothing
        floor = relaxation.round_down(sub, int(np.floor(lp.objective + 1e-6)))
        tight = floor is not None and best.value.certified == floor
        if lp.complete and (tight or (weight == 0.0 and not added)):
            best.converged = True
            break
        weight = (
            _SMOOTHING if added > 3 or not lp.complete else weight * 0.5 if weight > 0.05 else 0.0
        )
        _trim(master, lp, best.value.bound, lower)
    return best


def better(one: DualValue, other: DualValue) -> bool:
    """Return whether a dual value proves a smaller bound than another."""
    return one.bound < other.bound


def is_met(best: Bounded, lower: int) -> bool:
    """Return whether a bound shows that the incumbent is optimal."""
    return best.value.certified is None or best.value.certified <= lower


def columns_of_most(kinds: Kinds, per_round: int) -> int:
    """Return how many columns of a request to ask for: one more for each other one of its kind."""
    return per_round + min(_MOST_MORE, max(0, int(kinds.most.max(initial=0)) - 1))


def entering(value: DualValue, kinds: Kinds, per_round: int) -> list[Any]:
    """Return the columns that may improve the master; a forced request's best always may."""
    entering = []
    for first, members in kinds.members.items():
        if not members:
            continue
        columns = value.priced.columns[first]
        most = per_round + min(_MOST_MORE, len(members) - 1)
        least = -math.inf if kinds.least[first] else 1e-6 * value.scale
        entering += [c for gain, c in columns[:most] if gain > least]
    return entering


def _trim(master: Master, lp: LpSolution, bound: float, lower: int) -> None:
    columns, num_known = master.columns, len(lp.amounts)
    if len(columns) <= MAX_COLUMNS:
        return
    kept = np.ones(len(columns), dtype=bool)
    limit = np.sort(lp.reduced)[::-1][min(num_known - 1, MAX_COLUMNS // 2)]
    kept[:num_known] = (lp.amounts > 1e-9) | (lp.reduced >= min(limit, lower - bound))
    columns.keep(kept)


def reduced_costs_at(
    relaxation: Relaxation, sub: Subproblem, columns: Columns, bounded: Bounded
) -> FloatArray:
    """Return by how much a placement that takes a column is below the bound, for every column."""
    best = bounded.value.priced.best / bounded.value.scale
    optional = [i for i in range(len(best)) if i not in sub.forced]
    best[optional] = np.maximum(0, best[optional])
    prices, multipliers = bounded.point.row_prices, np.array(bounded.point.multipliers)
    values = columns.values(sub.level + 1)
    paid = columns.sums(prices)
    gains = values[:, sub.level] + values[:, : sub.level] @ multipliers - paid
    return np.asarray(best[columns.owners()] - gains)


def keep_least(
    relaxation: Relaxation, sub: Subproblem, columns: Columns, bounded: Bounded, most: int
) -> None:
    """Keep the `most` columns of least reduced cost, if there are half as many again."""
    if len(columns) > 1.5 * most:
        columns.keep(least(reduced_costs_at(relaxation, sub, columns, bounded), most))


def forget_most(
    relaxation: Relaxation, sub: Subproblem, columns: Columns, bounded: Bounded
) -> None:
    """Drop columns down to half of `MOST_ENTRIES`, those without amount and of most cost first."""
    reduced_costs = reduced_costs_at(relaxation, sub, columns, bounded)
    order = np.lexsort((reduced_costs, columns.amount <= _NO_AMOUNT))
    taken = np.cumsum([len(columns.rows(k)) for k in order.tolist()])
    kept = np.zeros(len(order), dtype=bool)
    kept[order[: np.searchsorted(taken, MOST_ENTRIES // 2)]] = True
    columns.keep(kept)


def least(reduced_costs: FloatArray, most: int) -> BoolArray:
    """Mark the `most` columns of least reduced cost, of equal ones the latest."""
    kept = np.ones(len(reduced_costs), dtype=bool)
    order = np.argsort(reduced_costs[::-1], kind="stable")
    kept[len(reduced_costs) - 1 - order[most:]] = False
    return kept


def lightest(columns: Columns, reduced_costs: FloatArray, most: int) -> BoolArray:
    """Mark the columns of least reduced cost that together use at most `most` rows."""
    order = np.argsort(reduced_costs, kind="stable")
    taken = np.cumsum([len(columns.rows(k)) for k in order.tolist()])
    kept = np.zeros(len(order), dtype=bool)
    kept[order[: np.searchsorted(taken, most, side="right")]] = True
    return kept
