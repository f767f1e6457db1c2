"""Running a model of `models/` by the `minizinc` package, which starts the program of that name."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import tempfile
import warnings
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from topoplace import clock
from topoplace.errors import MissingToolError, TopoplaceError
from topoplace.snapshot.files import data_folder

MAX_VALUE = 1 << 30
"""Largest objective that models are given: finite-domain solvers count in 32 bits."""

GECODE = "org.gecode.gecode"
_GRACE_SECONDS = 10.0

_OUT_OF_TIME = "Error in communication with solver: Invalid argument"
"""What MiniZinc 2.6 says if time ends just before it waits: it waits for a negative time then."""


@dataclass(frozen=True)
class ModelRun:
    """What a run of a model reported.

    Attributes
    ----------
    status
        ``OPTIMAL_SOLUTION``, ``UNSATISFIABLE``, ``SATISFIED`` or ``UNKNOWN``.
    solution
        The last one, with an attribute for every variable of the output and the `objective`;
        None if there was none.
    checks
        What the checker model said of every solution, if it was asked.
    """

    status: str
    solution: Any
    checks: tuple[str, ...]

    def optimum(self) -> Any:
        """Return the solution, which is optimal; None if there is none.

        Raises
        ------
        TopoplaceError
            If MiniZinc did not finish.
        """
        if self.status not in ("OPTIMAL_SOLUTION", "UNSATISFIABLE"):
            raise TopoplaceError(f"minizinc ended with {self.status}")
        return self.solution


def model_files(name: str) -> tuple[Path, Path]:
    """Return a model, and the one that checks its solutions and reports every violation."""
    folder = data_folder("models")
    return folder / f"{name}.mzn", folder / f"{name}.mzc.mzn"


def minizinc_versions() -> dict[str, str]:
    """Return the versions of MiniZinc and of the solver it is to use, by name.

    Raises
    ------
    MissingToolError
        If the package, the program or a solver for it is not installed.
    """
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
