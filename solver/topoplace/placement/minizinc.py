"""Placement by the reference MiniZinc model, `models/prism_placement.mzn` (DESIGN 7).

The model shares nothing with the other methods but the snapshot: it states the geometry itself.
It is there to be compared with, on machines of a few dozen routers, and proves nothing that the
checker could verify, so it reports no bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.errors import InputError, TopoplaceError
from topoplace.machine import Prism
from topoplace.placement.minizinc_program import (
    Message,
    checks_in,
    minizinc_versions,
    run_minizinc,
)
from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.snapshot.machines import data_folder
from topoplace.solving import Options, Outcome, register

MAX_ROUTERS = 64
"""Largest machine accepted: the model has a variable for every request and link."""

MAX_VALUE = 1 << 30
"""Largest value a level may reach: finite-domain solvers count in 32 bits."""

NUM_LEVELS = 3


@dataclass(frozen=True)
class LevelRun:
    """What one run of the model reported.

    Attributes
    ----------
    started
        The best placement found, or None if the time ended before the first.
    objective
        Its value on the level, in maximising sense, as the model counts it.
    complete
        Whether the solver finished, so that the placement is optimal.
    checks
        What the checker model said of every placement reported, if it was asked.
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


def model_file() -> Path:
    """Return the placement model."""
    return data_folder("models") / "prism_placement.mzn"


def checker_file() -> Path:
    """Return the model that checks a placement and reports every violation."""
    return data_folder("models") / "prism_placement.mzc.mzn"


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
    arguments: Sequence[str] = (),
) -> LevelRun:
    """Run the model for one level, the earlier ones held at `reached`.

    `arguments` go to the program as they are: the checker model, or ``-D`` definitions.
    """
    model, data = model_file(), data_of(problem, level, reached)
    messages = run_minizinc(
        model, data, includes=model.parent, time_limit=time_limit, arguments=arguments
    )
    run = _read(messages)
    if run.started is not None and totals(problem, run.started)[level - 1] != run.objective:
        raise TopoplaceError(
            f"minizinc reports {run.objective} on level {level} for a placement worth "
            f"{totals(problem, run.started)[level - 1]}"
        )
    return run


def _read(messages: list[Message]) -> LevelRun:
    statuses = [m["status"] for m in messages if m["type"] == "status"]
    status = statuses[-1] if statuses else "UNKNOWN"
    if status not in ("OPTIMAL_SOLUTION", "SATISFIED", "UNKNOWN"):
        # Starting nothing is always feasible, and an earlier level's placement on later levels.
        raise TopoplaceError(f"minizinc reports {status} for a problem that has a solution")
    checks = checks_in(messages)
    solutions = [m["output"]["json"] for m in messages if m["type"] == "solution"]
    if not solutions:
        return LevelRun(None, None, False, checks)
    last = solutions[-1]
    started = tuple(
        Candidate(q, Prism(tuple(last["origin"][q]), tuple(last["extent"][q])))
        for q, starts in enumerate(last["start"])
        if starts
    )
    return LevelRun(started, int(last["_objective"]), status == "OPTIMAL_SOLUTION", checks)
