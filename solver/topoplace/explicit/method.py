"""The method `cp-sat`: the explicit model of each level, solved by CP-SAT one after the other.

It is there to be compared with. What it proves rests on a search that the checker does not repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.errors import InputError
from topoplace.explicit.chosen import Chosen
from topoplace.explicit.exported import Explicit
from topoplace.explicit.writers import cp_model_of
from topoplace.kinds import kind_named
from topoplace.solving import Bound, Options, Outcome
from topoplace.solving.solve import Problem, frame_of, require_no_order

MOST_VARIABLES = 100_000
"""Most variables of a model that the method takes."""


def cp_sat(problem: Problem, options: Options) -> Outcome:
    """Solve the levels by CP-SAT on their explicit models.

    Raises
    ------
    InputError
        If the model of a level is too large.
    """
    require_no_order(problem, "method cp-sat")
    frame = frame_of(problem.kind)
    end = clock.deadline(options.time_limit)
    solution: Any = None
    bounds: list[Bound] = []
    reached: list[int] = []
    for number, (name, _) in enumerate(frame.levels(problem)):
        own = Chosen(problem, number, name, tuple(reached))
        explicit: Explicit = kind_named(problem.kind).get("exported")(own)
        found, least, proven = _solved(explicit, end - clock.now(), options.seed)
        solution = explicit.first if solution is None else solution
        if found is not None:
            solution = explicit.solution(found)
            reached.append(_int(frame.worth(problem, solution), number))
        if least is not None:
            bounds.append(Bound(explicit.model.reported(least)))
        options.report(solution, reached, bounds)
        if not proven:
            return Outcome(solution, bounds, time_limit_hit=True)
    return Outcome(solution, bounds)


def _int(values: Sequence[Any], number: int) -> int:
    return int(values[number])


def _solved(explicit: Explicit, left: float, seed: int) -> tuple[Any, int | None, bool]:
    """Return values of the variables, a bound of the objective, and whether they are optimal."""
    model = explicit.model
    if len(model.variables) > MOST_VARIABLES:
        expected = f"a model of at most {MOST_VARIABLES} variables for method cp-sat"
        raise InputError(expected, field="method", value=len(model.variables))
    if left <= 0:
        return None, None, False
    program, solver = cp_model_of(model), cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False
    solver.parameters.random_seed = seed
    if left < float("inf"):
        solver.parameters.max_time_in_seconds = left
    status = solver.solve(program)
    if status == cp_model.MODEL_INVALID:
        raise InputError("values small enough for CP-SAT", field="method", value="cp-sat")
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        assert status == cp_model.UNKNOWN, "starting nothing is a placement"
        return None, None, False
    num = len(model.variables)
    every = [solver.value(program.get_int_var_from_proto_index(v)) for v in range(num)]
    least = int(np.ceil(solver.best_objective_bound - 1e-6))
    return np.array(every, dtype=np.int64), least, status == cp_model.OPTIMAL
