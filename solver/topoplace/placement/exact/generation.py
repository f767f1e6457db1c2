"""Column generation, smoothed, until the bound is tight; the integer phase over its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace import clock
from topoplace.placement.exact.master import Column, LpSolution, Master, owners_of, values_of
from topoplace.placement.exact.relaxation import DualPoint, DualValue, Relaxation, Subproblem
from topoplace.placement.torus.problem import Candidate
from topoplace.types import BoolArray, FloatArray

MAX_COLUMNS = 3000
"""Columns kept in the master; beyond it those with the worst reduced cost go."""

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
    deadline: float,
    max_work: int,
    per_round: int = 2,
) -> Bounded:
    """Lower a subproblem's bound by column generation.

    Stops when the bound meets `lower` (the incumbent), when the master's optimum shows that the
    bound cannot, when no column is left, at the deadline, or when the nonzeros of the programs
    solved sum to `max_work`.
    """
    best = start
    weight = _SMOOTHING
    work = 0
    while work < max_work:
        if _met(best, lower) or clock.now() >= deadline:
            break
        lp = master.solve_lp_once(sub)
        if lp is None:
            break
        work += lp.size
        best = Bounded(best.value, best.point, lp)
        if best.value.bound - lp.objective < 1e-4 * max(1.0, abs(lp.objective)) * weight:
            weight = 0.0
        trial = mix(best.point, lp.duals, weight)
        value = relaxation.evaluate(sub, trial, per_round)
        added = master.add(entering(value, sub, per_round))
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
    """Tell whether a dual value proves a smaller bound than another."""
    return one.bound < other.bound


def _met(best: Bounded, lower: int) -> bool:
    return best.value.certified is None or best.value.certified <= lower


def entering(value: DualValue, sub: Subproblem, per_round: int) -> list[Candidate]:
    """Return the columns that may improve the master; a forced request's best always may."""
    entering = []
    for idx, columns in enumerate(value.priced.columns):
        if idx in sub.forced:
            entering += [c for _, c in columns[:per_round]]
        elif idx not in sub.excluded:
            entering += [c for gain, c in columns[:per_round] if gain > 1e-6 * value.scale]
    return entering


def _trim(master: Master, lp: LpSolution, bound: float, lower: int) -> None:
    num_known = len(lp.amounts)
    if len(master.columns) <= MAX_COLUMNS:
        return
    kept = np.ones(len(master.columns), dtype=bool)
    limit = np.sort(lp.reduced)[::-1][min(num_known - 1, MAX_COLUMNS // 2)]
    kept[:num_known] = (lp.amounts > 1e-9) | (lp.reduced >= min(limit, lower - bound))
    master.keep(kept)


# One worker: the same answer whatever the load. The relaxation is tight: let it guide the search.
# No row's columns are among another's already: merging rows into larger cliques took half the time,
# and what else presolve looks for in a set packing took a third of what was left.
_PARAMETERS = (
    "max_deterministic_time: {work} random_seed: {seed} num_workers: 1 catch_sigint_signal: false "
    + (
        "linearization_level: 2 merge_at_most_one_work_limit: 0 max_presolve_iterations: 1 "
        "cp_model_probing_level: 0 symmetry_level: 0"
    )
)


def best_among_columns(
    master: Master,
    sub: Subproblem,
    incumbent: list[Candidate],
    kept: BoolArray,
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
    owner = master.owners()[positions]
    values = master.values(sub.level + 1)[positions]
    num_requests = len(master.rows.problem.requests)
    used = master.packing_of(positions)
    used = used[np.diff(used.indptr) > 1]
    choice = sp.csr_matrix(
        (np.ones(len(positions)), (owner, np.arange(len(positions)))),
        shape=(num_requests, len(positions)),
    )
    decided = len(sub.forced) + len(sub.excluded) == num_requests
    # the first level only counts who starts
    levels = [k for k in range(len(sub.reached)) if k or not decided]
    matrix = sp.vstack([used, choice, values[:, levels].T], format="csr")
    lower = np.full(matrix.shape[0], -np.inf)
    upper = np.ones(matrix.shape[0])
    lower[used.shape[0] + np.array(sorted(sub.forced), dtype=np.int64)] = 1
    upper[used.shape[0] + np.array(sorted(sub.excluded), dtype=np.int64)] = 0
    lower[used.shape[0] + num_requests :] = [sub.reached[k] for k in levels]
    upper[used.shape[0] + num_requests :] = np.inf
    helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
    helper.fill_model_from_sparse_data(
        np.zeros(len(positions)),
        np.ones(len(positions)),
        -values[:, sub.level].astype(float),
        lower,
        upper,
        matrix.astype(float),
    )
    chosen = set(master.positions(incumbent))
    for k, position in enumerate(positions.tolist()):
        helper.set_var_integrality(k, True)
        helper.add_hint(k, float(position in chosen))
    solver = mbh.ModelSolverHelper("sat")
    solver.set_time_limit_in_seconds(max(0.01, seconds))
    solver.set_solver_specific_parameters(_PARAMETERS.format(work=work, seed=seed % (1 << 31)))
    with clock.ended_by(solver.interrupt_solve):
        solver.solve(helper)
    if solver.status() not in (mbh.SolveStatus.OPTIMAL, mbh.SolveStatus.FEASIBLE):
        return None
    amounts = np.array(solver.variable_values())
    return [master.columns[k].candidate for k in positions[amounts > 0.5].tolist()]


def reduced_costs_at(
    relaxation: Relaxation, sub: Subproblem, columns: Sequence[Column], bounded: Bounded
) -> FloatArray:
    """Return how far below the bound every column leaves a placement that takes it."""
    best = bounded.value.priced.best / bounded.value.scale
    optional = [i for i in range(len(best)) if i not in sub.forced]
    best[optional] = np.maximum(0, best[optional])
    prices, multipliers = bounded.point.row_prices, np.array(bounded.point.multipliers)
    owner = owners_of(columns)
    values = values_of(relaxation.problem, columns, sub.level + 1)
    paid = np.array([prices[c.rows].sum() for c in columns])
    gains = values[:, sub.level] + values[:, : sub.level] @ multipliers - paid
    return np.asarray(best[owner] - gains)


def least_reduced_costs(reduced_costs: FloatArray, most: int) -> BoolArray:
    """Mark so many columns of least loss, of equal ones the latest."""
    kept = np.ones(len(reduced_costs), dtype=bool)
    order = np.argsort(reduced_costs[::-1], kind="stable")
    kept[len(reduced_costs) - 1 - order[most:]] = False
    return kept
