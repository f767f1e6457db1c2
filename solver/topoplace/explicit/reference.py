"""MiniZinc models of listed candidates and of mappings: their data, and the method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.explicit.chosen import Chosen
from topoplace.explicit.packing import PackedModel, model_of
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.problem import MappingProblem, require_tasks, spread_over_nodes
from topoplace.solving.minizinc import (
    MAX_VALUE,
    LevelRun,
    level_by_level,
    minizinc_versions,
    require_small,
    run_level,
    run_minizinc,
)
from topoplace.solving.outcome import Bound, Outcome
from topoplace.solving.registry import Options
from topoplace.solving.solve import Problem, frame_of

MOST_CANDIDATES, MOST_PLACES = 5_000, 1 << 12
"""Most candidates of a packing, and tasks times routers of a mapping, that the models are given."""


def data_of_packing(own: Chosen) -> tuple[str, dict[str, Any]]:
    """Return the model of listed candidates, and its data."""
    return "packing", _packing_data(model_of(own))


def _packing_data(packed: PackedModel) -> dict[str, Any]:
    uses = packed.amounts.tocoo()
    taken = np.flatnonzero(packed.row >= 0)
    number = np.cumsum(packed.row >= 0)
    return {
        "num_requests": len(packed.packing.names),
        "num_levels": packed.level + 1,
        "goal": packed.level + 1,
        "reached": [int(v or 0) for v in packed.earlier],
        "capacity_in": packed.packing.capacities[taken].tolist(),
        "candidate_request_in": (packed.request + 1).tolist(),
        "use_candidate_in": (uses.row + 1).tolist(),
        "use_row": number[uses.col].tolist(),
        "use_amount": uses.data.tolist(),
        "worth_in": packed.values.ravel().tolist(),
    }


def listed_minizinc(problem: Problem, options: Options) -> Outcome:
    """Place the queue by runs of the model of listed candidates, one per level.

    Raises
    ------
    InputError
        If there are too many candidates, or the values are too large.
    MissingToolError
        If the `minizinc` program is not installed.
    """
    frame = frame_of(problem.kind)
    levels = frame.levels(problem)

    def solved(number: int, reached: Sequence[int], left: float | None) -> LevelRun[Any]:
        zero = Chosen(problem, number, levels[number][0], (None,) * number)
        packed = model_of(zero)
        if len(packed.request) > MOST_CANDIDATES:
            expected = f"at most {MOST_CANDIDATES} candidates for method minizinc"
            raise InputError(expected, field="queue", value=len(packed.request))
        require_small(int(np.abs(packed.values).sum(axis=0).max(initial=0)))
        data = _packing_data(packed) | {"reached": list(reached)}

        def read(found: Any) -> Any:
            chosen = np.flatnonzero(np.array(found.chosen, dtype=bool)).tolist()
            return [packed.candidates[k] for k in chosen]

        def worth(placed: Any) -> int:
            return int(packed.packing.values_of(placed)[:, number].sum())

        run = run_level("packing", data, read, worth, time_limit=left, solver=options.solver)
        solution = None if run.started is None else packed.solution_of(run.started)
        value = None if run.objective is None else run.objective
        return LevelRun(solution, value, run.complete, run.checks)

    def totals(solution: Any) -> tuple[int, ...]:
        signs = [1 if sense == "max" else -1 for _, sense in levels]
        values = frame.worth(problem, solution)
        return tuple(s * int(v or 0) for s, v in zip(signs, values, strict=True))

    first = model_of(Chosen(problem, 0, levels[0][0], ())).packing
    found = level_by_level(levels, solved, totals, [], options)
    own = [
        Bound(first.reported(k, _maximised(b, levels[k][1])))
        for k, b in enumerate(found.bounds)
        if b
    ]
    return Outcome(found.solution, own, found.time_limit_hit, versions=found.versions)


def _maximised(bound: Bound, sense: str) -> int:
    return int(bound.value if sense == "max" else -bound.value)


# ---- Mappings ------------------------------------------------------------------------------------


def data_of_mapping(own: Chosen) -> tuple[str, dict[str, Any]]:
    """Return the model of a mapping, and its data."""
    assert isinstance(own.problem, MappingProblem)
    return "task_mapping", mapping_data(own.problem)


def mapping_data(problem: MappingProblem) -> dict[str, Any]:
    """Return the data of the model of a mapping: tasks, and the routers with room for them."""
    usable = np.flatnonzero(problem.capacity)
    require_tasks(problem)
    if problem.num_tasks * len(usable) > MOST_PLACES:
        expected = f"at most {MOST_PLACES} tasks times routers for the model"
        raise InputError(expected, field="machine", value=problem.num_tasks * len(usable))
    if problem.graph.total_bytes * problem.machine.diameter > MAX_VALUE:
        raise InputError(f"hop-bytes of at most {MAX_VALUE} for the model", field="application")
    return {
        "num_tasks_in": problem.num_tasks,
        "num_routers_in": len(usable),
        "room_in": problem.capacity[usable].tolist(),
        "distance_in": problem.machine.hops(usable[:, None], usable[None, :]).ravel().tolist(),
        "source": problem.graph.sources.tolist(),
        "target": problem.graph.targets.tolist(),
        "bytes_in": problem.graph.bytes.tolist(),
    }


def mapping_minizinc(problem: MappingProblem, options: Options) -> Outcome:
    """Map tasks by the reference model; its optimum is a bound found by search.

    Raises
    ------
    InputError
        If there are too many tasks and routers, or the values are too large.
    MissingToolError
        If the `minizinc` program is not installed.
    """
    data = mapping_data(problem)
    run = run_minizinc("task_mapping", data, time_limit=options.time_limit, solver=options.solver)
    is_best = run.status == "OPTIMAL_SOLUTION"
    if run.solution is None:
        return outcome_of(problem.in_order, hit=True)
    usable = np.flatnonzero(problem.capacity)
    routers = usable[np.asarray(run.solution.router, dtype=np.int64)]
    bound = Bound(int(run.solution.objective)) if is_best else None
    found = outcome_of(spread_over_nodes(problem, routers), hit=not is_best, bound=bound)
    return Outcome(
        found.solution,
        found.bounds,
        found.time_limit_hit,
        versions=minizinc_versions(options.solver),
    )
