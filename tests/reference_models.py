"""The reference MiniZinc models of one request on a tree, of mappings and of pencils, for tests.

Each returns an optimum, on which the checker model has to have nothing to say if it is asked.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from topoplace.explicit.reference import mapping_data
from topoplace.mapping.pencils.space import CellTerms, PencilWindow
from topoplace.mapping.problem import MappingProblem
from topoplace.placement.switches.minizinc import data_of
from topoplace.placement.switches.problem import TreeProblem
from topoplace.solving.minizinc import MAX_VALUE, ModelRun, run_minizinc
from topoplace.types import IntArray


def optimum_of(run: ModelRun) -> Any:
    """Return the solution of a run, which is optimal and correct; None if there is none."""
    assert run.status in ("OPTIMAL_SOLUTION", "UNSATISFIABLE")
    assert set(run.checks) <= {"CORRECT\n"}
    return run.solution


def model_least_cost(
    problem: TreeProblem, definitions: str = "", *, checked: bool = False
) -> Fraction | None:
    """Return the least cost of the only request of a problem, or None if it does not fit."""
    data, unit = data_of(problem)
    run = run_minizinc("tree_allocation", data, checked=checked, definitions=definitions)
    found = optimum_of(run)
    return None if found is None else int(found.objective) * unit


def model_mapping(
    problem: MappingProblem, definitions: str = "", *, checked: bool = False
) -> tuple[IntArray, int]:
    """Return the router of every task of a best mapping, and its bytes x hops."""
    usable, data = np.flatnonzero(problem.capacity), mapping_data(problem)
    run = run_minizinc("task_mapping", data, checked=checked, definitions=definitions)
    found = optimum_of(run)
    return usable[np.asarray(found.router, dtype=np.int64)], int(found.objective)


def model_selection(
    window: PencilWindow, terms: CellTerms, *, checked: bool = False
) -> tuple[IntArray, int]:
    """Return the position of every level of a best selection, and its bytes x hops."""
    assert int(terms.weight.sum()) * window.depth <= MAX_VALUE
    data = {
        "num_pencils_in": window.num_pencils,
        "levels_in": window.levels,
        "depth_in": window.depth,
        "ring_in": terms.ring or 0,
        "usable_in": [{"set": np.flatnonzero(row).tolist()} for row in window.usable],
        "first": terms.low.tolist(),
        "second": terms.high.tolist(),
        "weight_in": terms.weight.tolist(),
    }
    run = run_minizinc("pencil_layout", data, checked=checked)
    found = optimum_of(run)
    return np.asarray(found.position, dtype=np.int64), terms.fixed + int(found.objective)
