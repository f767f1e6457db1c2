"""The integer phase: the best placement among the known columns, by an integer program."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model_helper as cp

from topoplace import clock
from topoplace.packing.dual.master import Master
from topoplace.packing.primal.program import Cancel, solved
from topoplace.packing.problem import Kinds, Subproblem
from topoplace.types import BoolArray, IntArray

# The relaxation is tight: let it guide the search.
# No row's columns are among another's already: merging rows into larger cliques took half the time,
# and what else presolve looks for in a set packing took a third of what was left.
_PARAMETERS = "max_deterministic_time: {work} random_seed: {seed} " + (
    "linearization_level: 2 merge_at_most_one_work_limit: 0 max_presolve_iterations: 1 "
    "cp_model_probing_level: 0 symmetry_level: 0"
)

WORK_SECONDS = 0.5
"""That a unit of CP-SAT's deterministic time takes."""

_NO_LIMIT = 1 << 62
_BUILD = 2e-5  # nominal seconds a column


def best_among(
    master: Master,
    sub: Subproblem,
    incumbent: list[Any],
    kept: BoolArray,
    *,
    seconds: float,
    seed: int,
    work: float,
    cancel: Cancel | None = None,
) -> list[Any] | None:
    """Return the best placement found among columns, None if none meets the subproblem.

    Parameters
    ----------
    incumbent
        A placement to start from; its columns are always among those used.
    kept
        Which columns to use, of the known ones.
    seconds, work
        Limits in wall-clock, with what it takes to write the program, and in CP-SAT's deterministic
        time, which the master's budget counts.
    cancel
        Ends the search from another thread.
    """
    columns, until = master.columns, clock.now() + seconds
    kinds = Kinds(columns.problem, sub)
    placed = columns.problem.merged(incumbent)
    kept = np.pad(kept, (0, columns.add(placed)))
    chosen = set(columns.positions(placed))
    kept = kept & np.array([kinds.admits(candidate) for candidate in columns.all], dtype=bool)
    kept[list(chosen)] = True
    positions = np.flatnonzero(kept)
    model = _model(master, sub, kinds, positions)
    model.solution_hint.vars.extend(list(range(len(positions))))
    model.solution_hint.values.extend([int(k in chosen) for k in positions.tolist()])
    parameters = _PARAMETERS.format(work=work, seed=seed % (1 << 31))
    answer = solved(model, parameters, until - clock.now(), cancel)
    master.budget.spend(_BUILD * len(positions) + WORK_SECONDS * answer.deterministic_time)
    if answer.status not in (cp.OPTIMAL, cp.FEASIBLE):
        return None
    times = np.array(list(answer.solution), dtype=np.int64)
    return kinds.placed(columns.all[k] for k in np.repeat(positions, times).tolist())


def _model(master: Master, sub: Subproblem, kinds: Kinds, positions: IntArray) -> Any:
    """Return the program over some columns, to be minimised; variables are numbered as these."""
    columns, num_requests = master.columns, len(master.columns.problem.names)
    owner = columns.owners(positions)
    values = columns.values(sub.level + 1, positions)
    model: Any = cp.CpModelProto()
    most = np.minimum(kinds.most, 1) if columns.problem.is_unit else kinds.most
    for first in owner.tolist():
        model.variables.add().domain.extend([0, int(most[first])])
    for first in sorted({*np.flatnonzero(kinds.least).tolist(), *owner.tolist()}):
        row, own = model.constraints.add(), np.flatnonzero(owner == first)
        least, many = int(kinds.least[first]), int(kinds.most[first])
        if many == 1:
            (row.exactly_one if least else row.at_most_one).literals.extend(own)
        else:
            _add(row, own, np.ones(len(own), dtype=np.int64), (least, many))
    packing = master.packing_of(positions)
    for starts, ends, capacity in zip(
        packing.matrix.indptr[:-1], packing.matrix.indptr[1:], packing.capacities, strict=True
    ):
        row, own = model.constraints.add(), packing.matrix.indices[starts:ends]
        if columns.problem.is_unit:
            row.at_most_one.literals.extend(own)
        else:
            taken = packing.matrix.data[starts:ends].astype(np.int64)
            _add(row, own, taken, (-_NO_LIMIT, int(capacity)))
    # the first level only counts which requests start
    for level, floor in enumerate(sub.reached):
        if floor is not None and (level or len(sub.decided) < num_requests):
            row = model.constraints.add()
            _add(row, np.arange(len(owner)), values[:, level], (floor, _NO_LIMIT))
    model.objective.vars.extend(np.arange(len(owner)))
    model.objective.coeffs.extend(-values[:, sub.level])
    return model


def _add(row: Any, variables: IntArray, coefficients: IntArray, limits: tuple[int, int]) -> None:
    row.linear.vars.extend(variables)
    row.linear.coeffs.extend(coefficients)
    row.linear.domain.extend(limits)
