"""Placement by the reference MiniZinc model, `models/prism_placement.mzn`.

The model shares nothing with the other methods but the snapshot: it states the geometry itself.
It is there to be compared with, on machines of a few dozen routers, and proves nothing that the
checker could verify, so it reports no bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.errors import InputError, TopoplaceError
from topoplace.machine import Prism
from topoplace.placement.torus.minizinc_program import MAX_VALUE, minizinc_versions, run_minizinc
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.solving import Options, Outcome, register

MAX_ROUTERS = 64
"""Largest machine accepted: the model has a variable for every request and link."""

NUM_LEVELS = 3


@dataclass(frozen=True)
class LevelRun:
    """What one run of the model reported.

    `started` is the best placement found, None if the time ended before the first, `objective` its
    value on the level in maximising sense, and optimal if the run is `complete`. `checks` are as in
    `ModelRun`.
    """

    started: tuple[Candidate, ...] | None
    objective: int | None
    complete: bool
    checks: tuple[str, ...] = ()


@register("placement", "minizinc", "reference MiniZinc model, for tiny machines")
def minizinc(problem: PlacementProblem, options: Options) -> Outcome:
    """Place the queue by three runs of the MiniZinc model, one per level.

    Raises
    ------
    InputError
        If the machine or the values are too large for the model.
    MissingToolError
        If the `minizinc` program is not installed.
    """
    _require_small(problem)
    versions = minizinc_versions()
    if not problem.requests:
        return Outcome((), versions=versions)
    start = clock.now()
    best: tuple[Candidate, ...] = ()
    reached: list[int] = []
    for level in range(1, NUM_LEVELS + 1):
        left = None
        if options.time_limit is not None:
            left = options.time_limit - (clock.now() - start)
            if left <= 0:
                return Outcome(best, time_limit_hit=True, versions=versions)
        run = solve_level(problem, level, reached, time_limit=left)
        if run.started is not None:
            best = max(best, run.started, key=lambda found: totals(problem, found))
        if not run.complete:
            return Outcome(best, time_limit_hit=True, versions=versions)
        assert run.objective is not None
        reached.append(run.objective)
    return Outcome(best, versions=versions)


def totals(problem: PlacementProblem, started: Iterable[Candidate]) -> tuple[int, ...]:
    """Return the values of a placement on the three levels, all to be maximised."""
    values = [problem.values(candidate) for candidate in started]
    return tuple(sum(v[k] for v in values) for k in range(NUM_LEVELS))


def _require_small(problem: PlacementProblem) -> None:
    if problem.torus.num_routers > MAX_ROUTERS:
        raise InputError(
            f"at most {MAX_ROUTERS} routers for method minizinc",
            field="machine.shape",
            value=problem.torus.text,
        )
    value = max(sum(r.value for r in problem.requests), _largest_shape_value(problem))
    if value > MAX_VALUE:
        raise InputError(
            f"objective values of at most {MAX_VALUE} for method minizinc",
            field="queue",
            value=value,
        )


def _largest_shape_value(problem: PlacementProblem) -> int:
    """Return a rough limit of the second level, either side of 0."""
    weights, torus = problem.state.snapshot.weights, problem.torus
    most = (
        2000 * weights.bisection  # a spanned ring of the slowest links
        + torus.num_routers * (weights.volume + weights.hops)
        + torus.num_nodes * weights.idle
        + torus.num_dims * weights.wrap
    )
    return len(problem.requests) * most


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
        "num_classes": len(state.classes),
        "usable_nodes": state.usable_per_router.tolist(),
        "running_routers": [_set(job.routers.tolist()) for job in state.running],
        "running_communication": [{"e": job.communication.value} for job in state.running],
        "request_nodes": [r.nodes for r in requests],
        "request_class": [r.class_idx + 1 for r in requests],
        "request_priority": [r.priority for r in requests],
        "request_communication": [{"e": r.communication.value} for r in requests],
        "request_region": [_set(np.flatnonzero(region).tolist()) for region in regions],
        "alternative_request": [q for q, _ in alternatives],
        "alternative_extents": [list(g.extents) for _, g in alternatives],
        "alternative_max_depth": [g.depths[-1] for _, g in alternatives],
        "alternative_by_pencil": [g.max_depth is not None for _, g in alternatives],
        "weight_bisection": weights.bisection,
        "weight_volume": weights.volume,
        "weight_hops": weights.hops,
        "weight_idle": weights.idle,
        "weight_wrap": weights.wrap,
        "level": level,
        "reached": list(reached),
    }


def _set(members: list[int]) -> dict[str, list[int]]:
    return {"set": members}


def solve_level(
    problem: PlacementProblem,
    level: int,
    reached: Sequence[int],
    *,
    time_limit: float | None = None,
    checked: bool = False,
    definitions: str = "",
) -> LevelRun:
    """Run the model for one level, the earlier ones held at `reached`.

    If `checked`, the checker model looks at every placement; `definitions` join the model.
    """
    run = run_minizinc(
        "prism_placement",
        data_of(problem, level, reached),
        time_limit=time_limit,
        checked=checked,
        definitions=definitions,
    )
    if run.status not in ("OPTIMAL_SOLUTION", "SATISFIED", "UNKNOWN"):
        # Starting nothing is always feasible, and an earlier level's placement on later levels.
        raise TopoplaceError(f"minizinc reports {run.status} for a problem that has a solution")
    found = run.solution
    if found is None:
        return LevelRun(None, None, False, run.checks)
    started = tuple(
        Candidate(q, Prism(tuple(found.origin[q]), tuple(found.extent[q])))
        for q, starts in enumerate(found.start)
        if starts
    )
    worth = totals(problem, started)[level - 1]
    if worth != found.objective:
        raise TopoplaceError(
            f"minizinc reports {found.objective} on level {level} for a placement worth {worth}"
        )
    return LevelRun(started, worth, run.status == "OPTIMAL_SOLUTION", run.checks)
