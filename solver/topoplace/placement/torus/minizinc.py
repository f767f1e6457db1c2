"""Placement by the reference MiniZinc model, `models/prism_placement.mzn`.

It states the geometry itself, and is used for comparison, on machines of a few dozen routers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.explicit.chosen import Chosen
from topoplace.explicit.reference import data_of_packing, listed_minizinc
from topoplace.machine import Prism
from topoplace.placement.torus.problem import Candidate, PlacementProblem, largest_shape_part
from topoplace.snapshot.state import require_none
from topoplace.solving import Options, Outcome, register
from topoplace.solving.minizinc import LevelRun, level_by_level, require_small, run_level

MAX_ROUTERS = 64
"""Largest machine accepted: the model has a variable for every request and link."""

Started = tuple[Candidate, ...]


@register("placement", "minizinc")
def minizinc(problem: PlacementProblem, options: Options) -> Outcome:
    """Place the queue by three runs of the MiniZinc model, one per level.

    Raises
    ------
    InputError
        If the machine or the values are too large for the model.
    MissingToolError
        If the `minizinc` program is not installed.
    """
    if problem.is_anchored:
        return listed_minizinc(problem, options)
    _require_small(problem)

    def solved(level_idx: int, reached: Sequence[int], left: float | None) -> LevelRun[Started]:
        return solve_level(problem, level_idx + 1, reached, time_limit=left, solver=options.solver)

    def worth(started: Started) -> tuple[int, ...]:
        return totals(problem, started)

    nothing: Started = ()
    return level_by_level(
        problem.levels, solved, worth, nothing, options, is_empty=not problem.requests
    )


def totals(problem: PlacementProblem, started: Iterable[Candidate]) -> tuple[int, ...]:
    """Return the values of a placement on the three levels, all to be maximised."""
    return tuple(problem.values_of(list(started)).sum(axis=0).tolist())


def _require_small(problem: PlacementProblem) -> None:
    torus, weights = problem.torus, problem.state.snapshot.weights
    if torus.num_routers > MAX_ROUTERS:
        raise InputError(
            f"at most {MAX_ROUTERS} routers for method minizinc",
            field="machine.shape",
            value=torus.text,
        )
    shape = largest_shape_part(torus, weights) + weights.idle * torus.num_nodes
    value = max(sum(r.value for r in problem.requests), len(problem.requests) * shape)
    require_small(value)
    for idx, request in enumerate(problem.state.snapshot.queue):
        require_none(request, ["near"], "the MiniZinc model", f"queue[{idx}]")


def data_of(problem: PlacementProblem, level: int, reached: Sequence[int]) -> dict[str, Any]:
    """Return the model's data: the snapshot, the rule, and the level to optimise."""
    torus, state, requests = problem.torus, problem.state, problem.requests
    weights = state.snapshot.weights
    everywhere = np.ones(torus.num_routers, dtype=bool)
    alternatives = [(q, g) for q, request in enumerate(requests, 1) for g in request.geometries]
    regions = [everywhere if r.region is None else state.regions[r.region] for r in requests]
    return {
        "shape": list(torus.shape),
        "wrap": list(torus.wrap),
        "bandwidth": list(torus.bandwidth),
        "nodes_per_router": torus.nodes_per_router,
        "interference": {"e": f"interference_{problem.interference.value}"},
        "num_classes": len(state.kinds),
        "usable_nodes": state.usable_per_router.tolist(),
        "running_routers": [{"set": job.routers.tolist()} for job in state.running],
        "running_communication": [{"e": job.communication.value} for job in state.running],
        "request_nodes": [r.nodes for r in requests],
        "request_classes": [{"set": [k + 1 for k in sorted(r.classes)]} for r in requests],
        "request_value": [r.value for r in requests],
        "request_communication": [{"e": r.communication.value} for r in requests],
        "request_region": [{"set": np.flatnonzero(region).tolist()} for region in regions],
        "alternative_request": [q for q, _ in alternatives],
        "alternative_extents": [list(g.extents) for _, g in alternatives],
        "alternative_max_depth": [g.depths[-1] for _, g in alternatives],
        "alternative_by_pencil": [g.max_depth is not None for _, g in alternatives],
        **{f"weight_{name}": weight for name, weight in weights},
        "level": level,
        "reached": list(reached),
    }


def solve_level(
    problem: PlacementProblem,
    level: int,
    reached: Sequence[int],
    *,
    time_limit: float | None = None,
    checked: bool = False,
    definitions: str = "",
    solver: str | None = None,
) -> LevelRun[Started]:
    """Run the model for one level, the earlier ones held at `reached` (see `run_minizinc`)."""

    def read(found: Any) -> Started:
        return tuple(
            Candidate(q, Prism(tuple(found.origin[q]), tuple(found.extent[q])))
            for q, starts in enumerate(found.start)
            if starts
        )

    return run_level(
        "prism_placement",
        data_of(problem, level, reached),
        read,
        lambda started: totals(problem, started)[level - 1],
        time_limit=time_limit,
        checked=checked,
        definitions=definitions,
        solver=solver,
    )


def reference(own: Chosen) -> tuple[str, dict[str, Any]]:
    """Return the model of a level and its data: of listed prisms if they are anchored."""
    problem = own.problem
    assert isinstance(problem, PlacementProblem)
    if problem.is_anchored:
        return data_of_packing(own)
    reached = [v if k < 2 else -v for k, v in enumerate(own.reached)]
    return "prism_placement", data_of(problem, own.number + 1, reached)
