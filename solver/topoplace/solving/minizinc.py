"""Runs reference models by the `minizinc` package, which starts the program of that name.

A model is there to be compared with: it states a problem by itself, shares nothing with other
methods but the snapshot. What it proves rests on a search alone: the checker cannot verify it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import tempfile
import warnings
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from topoplace import clock
from topoplace.errors import InputError, MissingToolError, TopoplaceError, unknown_name
from topoplace.snapshot.files import data_folder
from topoplace.solving.outcome import Bound, Outcome
from topoplace.solving.registry import Options

MAX_VALUE = 1 << 30
"""Largest objective that models are given: finite-domain solvers count in 32 bits."""

GECODE = "org.gecode.gecode"
_GRACE_SECONDS = 10.0

_OUT_OF_TIME = "Error in communication with solver: Invalid argument"
"""What MiniZinc 2.6 says if time ends just before it waits: it waits for a negative time then."""

Placed = TypeVar("Placed")

# ---- Placements, level by level ------------------------------------------------------------------


@dataclass(frozen=True)
class LevelRun(Generic[Placed]):
    """What one run of a model reported.

    `started` is the best placement found, None if the time ended before the first, `objective` its
    value on the level in maximising sense; both are optimal if the run is `complete`.
    """

    started: Placed | None
    objective: int | None
    complete: bool
    checks: tuple[str, ...] = ()


def level_by_level(
    levels: Sequence[tuple[str, str]],
    solve_level: Callable[[int, Sequence[int], float | None], LevelRun[Placed]],
    totals: Callable[[Placed], tuple[int, ...]],
    nothing: Placed,
    options: Options,
    *,
    is_empty: bool = False,
) -> Outcome:
    """Solve the levels one after the other; the optimum of one is a bound found by search.

    Parameters
    ----------
    levels
        Name and sense of those to solve.
    solve_level
        Solves a level, from 0, with what the earlier ones must reach, within some seconds.
    totals
        The values of a placement on all levels, to be maximised.
    nothing
        The placement that starts nothing.
    is_empty
        Whether no request may start: then all levels are 0, and models have no variables.
    """
    time_limit, versions = options.time_limit, minizinc_versions(options.solver)
    if is_empty:
        return Outcome(nothing, [Bound(0)] * len(levels), versions=versions)
    end = None if time_limit is None else clock.now() + time_limit
    best, reached, bounds = nothing, list[int](), list[Bound]()
    for level, (_, sense) in enumerate(levels):
        left = None if end is None else end - clock.now()
        if left is not None and left <= 0:
            return Outcome(best, bounds, time_limit_hit=True, versions=versions)
        run = solve_level(level, reached, left)
        if run.started is not None:
            best = max(best, run.started, key=totals)
        if not run.complete:
            return Outcome(best, bounds, time_limit_hit=True, versions=versions)
        assert run.objective is not None
        reached.append(run.objective)
        bounds.append(Bound(run.objective if sense == "max" else -run.objective))
    return Outcome(best, bounds, versions=versions)


def run_level(
    name: str,
    data: dict[str, Any],
    read: Callable[[Any], Placed],
    worth: Callable[[Placed], int],
    *,
    time_limit: float | None = None,
    checked: bool = False,
    definitions: str = "",
    solver: str | None = None,
) -> LevelRun[Placed]:
    """Run a model for one level (see `run_minizinc`).

    Parameters
    ----------
    read
        Makes a placement of the model's variables.
    worth
        The value of a placement on the level, to be maximised. The model has to agree.
    """
    more: dict[str, Any] = {"checked": checked, "definitions": definitions, "solver": solver}
    run = run_minizinc(name, data, time_limit=time_limit, **more)
    if run.status not in ("OPTIMAL_SOLUTION", "SATISFIED", "UNKNOWN"):
        # Starting nothing is always feasible, and an earlier level's placement on later levels.
        raise TopoplaceError(f"minizinc reports {run.status} for a problem that has a solution")
    if run.solution is None:
        return LevelRun(None, None, False, run.checks)
    started = read(run.solution)
    own, told = worth(started), run.solution.objective
    if own != told:
        raise TopoplaceError(f"minizinc reports {told} for a placement worth {own}: {name}")
    return LevelRun(started, own, run.status == "OPTIMAL_SOLUTION", run.checks)


def require_small(value: int) -> None:
    """Refuse values of the objective that are too large for the solvers of models."""
    if value > MAX_VALUE:
        expected = f"objective values of at most {MAX_VALUE} for method minizinc"
        raise InputError(expected, field="queue", value=value)


# ---- Any model -----------------------------------------------------------------------------------


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


def minizinc_versions(name: str | None = None) -> dict[str, str]:
    """Return the versions of MiniZinc and of the solver it is to use, by name."""
    driver, solver = _driver_and_solver(os.environ.get("PATH", ""), name)
    return {"minizinc": ".".join(map(str, driver.parsed_version)), solver.id: solver.version}


def run_minizinc(
    name: str,
    data: dict[str, Any],
    *,
    time_limit: float | None = None,
    checked: bool = False,
    definitions: str = "",
    model: Path | None = None,
    solver: str | None = None,
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
    solver
        A solver as ``minizinc --solvers`` lists it; by default CP-SAT where it is, else Gecode.

    Raises
    ------
    MissingToolError
        If the package, the program or a solver for it is not installed.
    TopoplaceError
        If MiniZinc reports an error, such as data that one of the model's checks refuses.
    """
    driver, wanted = _driver_and_solver(os.environ.get("PATH", ""), solver)
    import minizinc  # noqa: PLC0415 - optional

    found: list[Any] = []
    end = math.inf if time_limit is None else clock.now() + time_limit
    instance = minizinc.Instance(wanted, None, driver)
    file, checker = model_files(name)
    instance.add_file(model or file)
    instance.add_string(definitions)
    for parameter, value in data.items():
        instance[parameter] = value
    free = wanted.id != GECODE and "-f" in wanted.stdFlags  # searches are for Gecode
    options: dict[str, Any] = {"free_search": free}
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
def _driver_and_solver(path: str, name: str | None = None) -> tuple[Any, Any]:
    """Return what runs models, and the solver: by default CP-SAT if installed, else Gecode."""
    try:
        import minizinc  # noqa: PLC0415 - optional
    except ImportError:
        text = "method minizinc needs the extra: pip install '.[minizinc]' in a checkout"
        raise MissingToolError(text) from None
    driver = minizinc.Driver.find()
    if driver is None:
        raise MissingToolError("method minizinc needs the minizinc program on the PATH")
    solvers = driver.available_solvers()
    if name is not None and name not in solvers:
        raise unknown_name(name, sorted(solvers), field="--solver")
    for wanted in ("cp-sat", GECODE) if name is None else (name,):
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
