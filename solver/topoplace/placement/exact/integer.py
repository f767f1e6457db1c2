"""The integer phase: the best placement among the columns found, by CP-SAT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace import clock
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.program import Column, owners_of, values_of
from topoplace.placement.exact.relaxation import Relaxation, Subproblem
from topoplace.placement.problem import Candidate

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


def losses_at(
    relaxation: Relaxation, sub: Subproblem, columns: Sequence[Column], bounded: Bounded
) -> NDArray[np.float64]:
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


def least_losses(losses: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Mark so many columns of least loss, of equal ones the latest."""
    kept = np.ones(len(losses), dtype=bool)
    order = np.argsort(losses[::-1], kind="stable")
    kept[len(losses) - 1 - order[most:]] = False
    return kept
