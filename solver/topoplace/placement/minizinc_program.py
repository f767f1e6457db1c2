"""Running the `minizinc` program on a model and its data.

The program is called directly, not through the `minizinc` package, which runs an event loop of
its own and so fails inside a running one, such as a notebook's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from topoplace.errors import MissingToolError, TopoplaceError

GECODE = "org.gecode.gecode"
_GRACE_SECONDS = 10.0

_OUT_OF_TIME = "Error in communication with solver: Invalid argument"
"""What MiniZinc 2.6 says if time ends just before it waits: it waits for a negative time then."""

Message = dict[str, Any]
"""One message of MiniZinc's JSON stream; its kind is under ``type``."""


def find_minizinc() -> str:
    """Return the path of the `minizinc` program.

    Raises
    ------
    MissingToolError
        If it is not installed.
    """
    executable = shutil.which("minizinc")
    if executable is None:
        raise MissingToolError("method minizinc needs the minizinc program on the PATH")
    return executable


def minizinc_versions() -> dict[str, str]:
    """Return the versions of MiniZinc and of the solver it is to use, by name."""
    executable = find_minizinc()
    solver, version = _solver_of(executable)
    return {"minizinc": _version_of(executable), solver: version}


@lru_cache(maxsize=4)
def _solver_of(executable: str) -> tuple[str, str]:
    """Return id and version of the solver to use: CP-SAT where it is installed, else Gecode."""
    listed = subprocess.run(
        [executable, "--solvers-json"], capture_output=True, text=True, check=False
    )
    try:
        solvers = json.loads(listed.stdout)
    except ValueError:
        raise MissingToolError("the minizinc program does not list its solvers") from None
    for wanted in ("cp-sat", GECODE):
        for solver in solvers:
            if wanted in (solver["id"], *solver.get("tags", ())):
                return solver["id"], solver.get("version", "unknown")
    raise MissingToolError("method minizinc needs a MiniZinc with CP-SAT or Gecode")


@lru_cache(maxsize=4)
def _version_of(executable: str) -> str:
    told = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False)
    words = told.stdout.partition("version ")[2].split()
    return words[0].rstrip(",") if words else "unknown"


def run_minizinc(
    model: Path,
    data: dict[str, Any],
    *,
    includes: Path,
    time_limit: float | None = None,
    arguments: Sequence[str] = (),
) -> list[Message]:
    """Solve a model and return the messages of the program, in order.

    Parameters
    ----------
    model, data
        The model file and the parameters, in MiniZinc's JSON form.
    includes
        Folder of included files.
    time_limit
        Seconds, compilation included. With a limit every solution on the way is reported, so
        that the last one stands when time runs out; without, only the best.
    arguments
        More arguments, as they are: a checker model, or ``-D`` definitions.

    Raises
    ------
    MissingToolError
        If MiniZinc or a solver for it is not installed.
    TopoplaceError
        If MiniZinc reports an error, such as data that one of the model's checks refuses.
    """
    executable = find_minizinc()
    solver, _ = _solver_of(executable)
    command = [executable, "--solver", solver, "--json-stream", "-I", str(includes)]
    command += ["--output-mode", "json", "--output-objective"]
    if solver != GECODE:
        command.append("--free-search")  # the search annotations are written for Gecode
    if time_limit is not None:
        milliseconds = max(1, round(1000 * time_limit))  # 0 would mean none
        command += ["--intermediate-solutions", "--time-limit", str(milliseconds)]
    with tempfile.TemporaryDirectory(prefix="topoplace-") as folder:
        file = Path(folder) / "instance.json"
        file.write_text(json.dumps(data), encoding="utf-8")
        command += [str(model), *arguments, str(file)]
        # MiniZinc looks for the includes of a checker in the current folder alone.
        stdout, stderr = _communicate(command, includes, time_limit)
    messages = [_message(line) for line in stdout.splitlines() if line.strip()]
    for message in messages:
        if message["type"] == "error":
            out_of_time = (
                message.get("what") == "time out" or message.get("message") == _OUT_OF_TIME
            )
            if time_limit is not None and out_of_time:
                continue
            raise TopoplaceError(f"minizinc: {message.get('what')}: {message.get('message')}")
    if time_limit is None and not any(m["type"] == "status" for m in messages):
        detail = " ".join(stderr.split())[-200:]
        raise TopoplaceError(f"minizinc ended without a status: {detail}")
    return messages


def checks_in(messages: list[Message]) -> tuple[str, ...]:
    """Return what the checker model said of every placement found."""
    return tuple(m["output"]["default"] for m in messages if m["type"] == "checker")


def _message(line: str) -> Message:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict) or "type" not in message:
        raise TopoplaceError(f"minizinc wrote what is no message: {line[:200]}")
    return message


def _communicate(command: list[str], folder: Path, time_limit: float | None) -> tuple[str, str]:
    """Run to the end, or stop a run that overstays its own time limit; keep what it wrote."""
    timeout = None if time_limit is None else time_limit + _GRACE_SECONDS
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            return process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()  # MiniZinc ends its solver with it
            stdout, stderr = process.communicate()
            return stdout[: stdout.rfind("\n") + 1], stderr
        except BaseException:
            process.terminate()
            raise
