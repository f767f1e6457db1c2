"""Placement by the reference MiniZinc model, `models/prism_placement.mzn`.

The model shares nothing with the other methods but the snapshot: it states the geometry itself.
It is there to be compared with, on machines of a few dozen routers, and proves nothing that the
checker could verify, so it reports no bounds. Models are run by the `minizinc` package, which
starts the program of that name.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import tempfile
import warnings
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.errors import InputError, MissingToolError, TopoplaceError
from topoplace.machine import Prism
from topoplace.placement.torus.problem import Candidate, PlacementProblem, largest_shape_part
from topoplace.snapshot.files import data_folder
from topoplace.solving import Options, Outcome, register

MAX_ROUTERS = 64
"""Largest machine accepted: the model has a variable for every request and link."""

MAX_VALUE = 1 << 30
"""Largest objective that models are given: finite-domain solvers count in 32 bits."""

NUM_LEVELS = 3
GECODE = "org.gecode.gecode"
_GRACE_SECONDS = 10.0

_OUT_OF_TIME = "Error in communication with solver: Invalid argument"
"""What MiniZinc 2.6 says if time ends just before it waits: it waits for a negative time then."""

# ---- Placement, level by level ---------------------------------------------------------------


@dataclass(frozen=True)
class LevelRun:
    """What one run of the model reported.

    `started` is the best placement found, None if the time ended before the first, `objective` its
    value on the level in maximising sense; both are optimal if the run is `complete`.
    """

    started: tuple[Candidate, ...] | None
    objective: int | None
    complete: bool
    checks: tuple[str, ...] = ()


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
    _require_small(problem)
    versions = minizinc_versions()
    end = None if options.time_limit is None else clock.now() + options.time_limit
    best: tuple[Candidate, ...] = ()
    reached: list[int] = []
    for level in range(1, NUM_LEVELS + 1) if problem.requests else ():
        left = None if end is None else end - clock.now()
        if left is not None and left <= 0:
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
    return tuple(problem.values_of(list(started)).sum(axis=0).tolist())


def _require_small(problem: PlacementProblem) -> None:
    torus, weights = problem.torus, problem.state.snapshot.weights
    if problem.is_anchored:
        expected = "a machine without anchored prisms for method minizinc"
        raise InputError(expected, field="machine.anchored", value=len(problem.state.anchored))
    if torus.num_routers > MAX_ROUTERS:
        raise InputError(
            f"at most {MAX_ROUTERS} routers for method minizinc",
            field="machine.shape",
            value=torus.text,
        )
    shape = largest_shape_part(torus, weights) + weights.idle * torus.num_nodes
    value = max(sum(r.value for r in problem.requests), len(problem.requests) * shape)
    if value > MAX_VALUE:
        raise InputError(
            f"objective values of at most {MAX_VALUE} for method minizinc",
            field="queue",
            value=value,
        )


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
        "running_routers": [{"set": job.routers.tolist()} for job in state.running],
        "running_communication": [{"e": job.communication.value} for job in state.running],
        "request_nodes": [r.nodes for r in requests],
        "request_class": [r.class_idx + 1 for r in requests],
        "request_priority": [r.priority for r in requests],
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
) -> LevelRun:
    """Run the model for one level, the earlier ones held at `reached` (see `run_minizinc`)."""
    data = data_of(problem, level, reached)
    run = run_minizinc(
        "prism_placement", data, time_limit=time_limit, checked=checked, definitions=definitions
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


# ---- Any model ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelRun:
    """What a run of a model reported.

    The status is ``OPTIMAL_SOLUTION``, ``UNSATISFIABLE``, ``SATISFIED`` or ``UNKNOWN``; the
    solution is the last one, with an attribute for every variable of the output and the
    `objective`, or None. The checks are what the checker model said of every solution, if asked.
    """

    status: str
    solution: Any
    checks: tuple[str, ...]


def model_files(name: str) -> tuple[Path, Path]:
    """Return a model, and the one that checks its solutions and reports every violation."""
    folder = data_folder("models")
    return folder / f"{name}.mzn", folder / f"{name}.mzc.mzn"


def minizinc_versions() -> dict[str, str]:
    """Return the versions of MiniZinc and of the solver it is to use, by name."""
    driver, solver = _driver_and_solver(os.environ.get("PATH", ""))
    return {"minizinc": ".".join(map(str, driver.parsed_version)), solver.id: solver.version}


def run_minizinc(
    name: str,
    data: dict[str, Any],
    *,
    time_limit: float | None = None,
    checked: bool = False,
    definitions: str = "",
    model: Path | None = None,
) -> ModelRun:
    """Solve a model.

    Parameters
    ----------
    name, data
        The model, and its parameters in MiniZinc's JSON form.
    time_limit
        Seconds. With a limit every solution on the way is reported, so that the last one stands
        when time runs out; without, only the best.
    checked
        Whether the checker model looks at every solution reported.
    definitions
        More items of the model.
    model
        A file in place of the model of that name.

    Raises
    ------
    MissingToolError
        If the package, the program or a solver for it is not installed.
    TopoplaceError
        If MiniZinc reports an error, such as data that one of the model's checks refuses.
    """
    driver, solver = _driver_and_solver(os.environ.get("PATH", ""))
    import minizinc  # noqa: PLC0415 - optional

    found: list[Any] = []
    end = math.inf if time_limit is None else clock.now() + time_limit
    instance = minizinc.Instance(solver, None, driver)
    file, checker = model_files(name)
    instance.add_file(model or file)
    instance.add_string(definitions)
    for parameter, value in data.items():
        instance[parameter] = value
    options: dict[str, Any] = {"free_search": solver.id != GECODE}  # searches are for Gecode
    if time_limit is not None:
        limit = timedelta(milliseconds=max(1, round(1000 * time_limit)))  # 0 would mean none
        options |= {"time_limit": limit, "intermediate_solutions": True}

    async def solve() -> None:
        async with asyncio.timeout(None if time_limit is None else time_limit + _GRACE_SECONDS):
            async for result in instance.solutions(**options):
                found.append(result)

    with tempfile.TemporaryDirectory(prefix="topoplace-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", minizinc.error.MiniZincWarning)
        if checked:
            # MiniZinc looks for the includes of a checker in the current folder alone.
            text = checker.read_text().replace('include "', f'include "{checker.parent}/')
            copy = Path(folder) / checker.name
            copy.write_text(text)
            instance.add_file(copy)
        try:
            _run_beside_other_loops(solve())
        except TimeoutError:
            pass
        except minizinc.MiniZincError as error:
            of_time = clock.now() >= end or (end < math.inf and str(error) == _OUT_OF_TIME)
            if type(error) is not minizinc.MiniZincError or not of_time:
                raise TopoplaceError(f"minizinc: {type(error).__name__}: {error}") from None
    status = found[-1].status.name if found else "UNKNOWN"
    solutions = [result.solution for result in found if result.solution is not None]
    checks = tuple(solution.check() for solution in solutions if checked)
    return ModelRun(status, solutions[-1] if solutions else None, checks)


@lru_cache(maxsize=4)
def _driver_and_solver(path: str) -> tuple[Any, Any]:
    """Return what runs models, and the solver: CP-SAT where it is installed, else Gecode."""
    try:
        import minizinc  # noqa: PLC0415 - optional
    except ImportError:
        text = "method minizinc needs the extra: pip install 'topoplace[minizinc]'"
        raise MissingToolError(text) from None
    driver = minizinc.Driver.find()
    if driver is None:
        raise MissingToolError("method minizinc needs the minizinc program on the PATH")
    solvers = driver.available_solvers()
    for wanted in ("cp-sat", GECODE):
        if wanted in solvers:
            return driver, solvers[wanted][0]
    raise MissingToolError("method minizinc needs a MiniZinc with CP-SAT or Gecode")


def _run_beside_other_loops(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread: where a loop runs already, as in notebooks, no other may."""
    loop = asyncio.new_event_loop()
    with contextlib.closing(loop), ThreadPoolExecutor(1) as thread:
        task = loop.create_task(coroutine)
        try:
            thread.submit(loop.run_until_complete, task).result()
        except BaseException:
            loop.call_soon_threadsafe(task.cancel)  # which ends MiniZinc and its solver
            raise
