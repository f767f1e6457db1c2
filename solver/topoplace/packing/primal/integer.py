"""The integer phase: the best placement among the columns known, by an integer program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace import clock
from topoplace.packing.dual.master import Master
from topoplace.packing.problem import Subproblem
from topoplace.types import BoolArray

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


def best_among(
    master: Master,
    sub: Subproblem,
    incumbent: list[Any],
    kept: BoolArray,
    *,
    seconds: float,
    seed: int,
    work: float,
) -> list[Any] | None:
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
    columns, num_requests = master.columns, len(master.columns.problem.names)
    kept = kept.copy()
    kept[columns.positions(incumbent)] = True
    positions = np.flatnonzero(kept)
    owner = columns.owners(positions)
    values = columns.values(sub.level + 1, positions)
    packing = master.packing_of(positions)
    shared = np.flatnonzero(np.diff(packing.matrix.indptr) > 1)
    used = packing.matrix[shared]
    choice = sp.csr_matrix(
        (np.ones(len(positions)), (owner, np.arange(len(positions)))),
        shape=(num_requests, len(positions)),
    )
    # the first level only counts who starts
    levels = [k for k in range(len(sub.reached)) if k or len(sub.decided) < num_requests]
    matrix = sp.vstack([used, choice, values[:, levels].T], format="csr")
    lower = np.full(matrix.shape[0], -np.inf)
    upper = np.ones(matrix.shape[0])
    upper[: len(shared)] = packing.capacities[shared]
    lower[len(shared) + np.array(sorted(sub.forced), dtype=np.int64)] = 1
    upper[len(shared) + np.array(sorted(sub.excluded), dtype=np.int64)] = 0
    lower[len(shared) + num_requests :] = [sub.reached[k] for k in levels]
    upper[len(shared) + num_requests :] = np.inf
    helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
    helper.fill_model_from_sparse_data(
        np.zeros(len(positions)),
        np.ones(len(positions)),
        -values[:, sub.level].astype(float),
        lower,
        upper,
        matrix.astype(float),
    )
    chosen = set(columns.positions(incumbent))
    for k, position in enumerate(positions.tolist()):
        helper.set_var_integrality(k, True)
        helper.add_hint(k, float(position in chosen))
    solver = mbh.ModelSolverHelper("sat")
    if math.isfinite(seconds):
        solver.set_time_limit_in_seconds(max(0.01, seconds))
    solver.set_solver_specific_parameters(_PARAMETERS.format(work=work, seed=seed % (1 << 31)))
    with clock.ended_by(solver.interrupt_solve):
        solver.solve(helper)
    if solver.status() not in (mbh.SolveStatus.OPTIMAL, mbh.SolveStatus.FEASIBLE):
        return None
    amounts = np.array(solver.variable_values())
    return [columns.all[k].candidate for k in positions[amounts > 0.5].tolist()]
