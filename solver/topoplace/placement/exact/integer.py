"""The integer phase: the best placement among the columns found, by CP-SAT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.program import Column
from topoplace.placement.exact.relaxation import Relaxation, Subproblem
from topoplace.placement.problem import Candidate

_MOST_TRIED = 1200


def best_among_columns(
    master: Master,
    sub: Subproblem,
    incumbent: list[Candidate],
    kept: NDArray[np.bool_],
    *,
    seconds: float,
    seed: int,
    work: float,
) -> list[Candidate] | None:
    """Return the best placement found among columns, None if none meets the subproblem.

    Parameters
    ----------
    incumbent
        A placement to start from; its columns are always among those used.
    kept
        Which columns to use.
    seconds, work
        Limits in wall-clock and in CP-SAT's deterministic time.
    """
    kept = kept.copy()
    kept[master.positions(incumbent)] = True
    positions = np.flatnonzero(kept)
    model = cp_model.CpModel()
    amounts = [model.new_bool_var("") for _ in positions]
    used = master.packing_of(positions)
    for row in range(used.shape[0]):
        members = used.indices[used.indptr[row] : used.indptr[row + 1]]
        if len(members) > 1:
            model.add_at_most_one([amounts[k] for k in members])
    owner = master.owners()[positions]
    values = master.values()[positions]
    for request in np.unique(owner).tolist():
        mine = [amounts[k] for k in np.flatnonzero(owner == request)]
        if request in sub.forced:
            model.add_exactly_one(mine)
        elif request in sub.excluded:
            for amount in mine:
                model.add(amount == 0)
        else:
            model.add_at_most_one(mine)
    decided = len(sub.forced) + len(sub.excluded) == len(master.rows.problem.requests)
    for level, reached in enumerate(sub.reached):
        if level == 0 and decided:
            continue  # the first level only counts who starts
        model.add(cp_model.LinearExpr.weighted_sum(amounts, values[:, level].tolist()) >= reached)
    model.maximize(cp_model.LinearExpr.weighted_sum(amounts, values[:, sub.level].tolist()))
    chosen = set(master.positions(incumbent))
    for amount, position in zip(amounts, positions.tolist(), strict=True):
        model.add_hint(amount, position in chosen)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, seconds)
    solver.parameters.max_deterministic_time = work
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = 1  # the same answer whatever the load
    solver.parameters.linearization_level = 2  # the relaxation is tight: let it guide the search
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return [
        master.columns[position].candidate
        for amount, position in zip(amounts, positions.tolist(), strict=True)
        if solver.boolean_value(amount)
    ]


def losses_at(
    relaxation: Relaxation, columns: Sequence[Column], bounded: Bounded
) -> NDArray[np.float64]:
    """Return how far below the first-level bound every column leaves a placement that takes it."""
    best = np.maximum(0, bounded.value.priced.best) / relaxation.scale
    prices = bounded.point.row_prices
    return np.array(
        [best[c.candidate.request_idx] - c.values[0] + prices[c.rows].sum() for c in columns]
    )


def least_losses(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark as many columns of least loss as an integer program bears, of equal ones the latest."""
    kept = np.ones(len(losses), dtype=bool)
    order = np.argsort(losses[::-1], kind="stable")
    kept[len(losses) - 1 - order[_MOST_TRIED:]] = False
    return kept
