"""Counts in whole numbers: how many leaves of every type hold how many ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.placement.tree.exact.job import States

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Inequality = tuple[IntArray, int]
"""Coefficients per state, and what their sum over the leaves is at least."""

Crowd = tuple[BoolArray, BoolArray, BoolArray]
"""Bad, near and other states: with bad and others there are more ranks near than leaves bad."""


def whole_counts(
    states: States,
    ranks: int,
    alive: BoolArray,
    rows: Sequence[Inequality],
    crowds: Sequence[Crowd],
    seconds: float,
) -> tuple[IntArray | None, bool]:
    """Return leaves per state that hold all ranks and meet some inequalities.

    Parameters
    ----------
    alive
        The states that may be used.

    Returns
    -------
    The number of leaves in every state, None if none was found; and whether that is certain.
    """
    model = cp_model.CpModel()
    leaves = {
        s: model.new_int_var(0, int(states.multiplicity[states.type[s]]), "")
        for s in np.flatnonzero(alive).tolist()
    }
    for t, there in enumerate(states.multiplicity.tolist()):
        own = [v for s, v in leaves.items() if states.type[s] == t]
        if own:
            model.add(sum(own) <= there)
    model.add(sum(int(states.count[s]) * v for s, v in leaves.items()) == ranks)
    for row, least in rows:
        model.add(sum(int(row[s]) * v for s, v in leaves.items() if row[s]) >= least)
    for bad, near, other in crowds:
        some_bad, some_other = model.new_bool_var(""), model.new_bool_var("")
        num_bad = sum(v for s, v in leaves.items() if bad[s])
        num_near = sum(int(states.count[s]) * v for s, v in leaves.items() if near[s])
        model.add(num_bad <= ranks * some_bad)
        model.add(sum(v for s, v in leaves.items() if other[s]) <= ranks * some_other)
        model.add(num_near >= num_bad + 1).only_enforce_if(some_bad, some_other)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False
    with clock.ended_by(solver.stop_search):
        status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = np.zeros(len(states.count), dtype=np.int64)
        for s, variable in leaves.items():
            found[s] = solver.value(variable)
        return found, True
    return None, status == cp_model.INFEASIBLE
