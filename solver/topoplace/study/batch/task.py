"""The messages to and from a worker process; light, as workers import it first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from topoplace.kinds import kind_named
from topoplace.study.external.allocator import command_allocator


@dataclass(frozen=True)
class Settings:
    """The settings of a user for every solve of a batch; all others are as in `Options`.

    Attributes
    ----------
    method
        Name of a method; None for the usual one of a kind of problem.
    interference
        ``strict``, ``tolerant`` or ``off``; anything but strict is for tori and meshes only.
    command
        Command line of an external allocator, which is then the method.
    objective
        The objective on switch trees, ``domains`` or ``contention``; None for the default of each.
    source
        The fingerprint of such an allocator (`topoplace.study.external.allocator.fingerprint`).
    """

    method: str | None = None
    time_limit: float | None = None
    interference: str = "strict"
    seed: int = 0
    command: str | None = None
    source: str | None = None
    first_level: bool = False
    objective: str | None = None

    def method_for(self, problem: str) -> str:
        """Return the method that solves instances of a problem, named as in result documents."""
        if self.command is not None:
            return command_allocator(self.command).name
        return self.method or kind_named(problem).usual


@dataclass(frozen=True)
class Limits:
    """Hard limits of an instance; None for no limit.

    `kill_after` is in seconds, `memory` in bytes of address space in addition to that of the
    libraries.
    """

    kill_after: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Task:
    """One instance to solve, as its canonical document (JSON).

    `key` is its content address (`topoplace.study.batch.store.key_of`), of this `version` of
    topoplace; `problem` is that of its result: placement, allocation or mapping.
    """

    key: str
    problem: str
    document: str
    settings: Settings
    version: str


class FailureStatus(StrEnum):
    """Why there is no result."""

    BAD_INPUT = "bad-input"
    ERROR = "error"
    CRASH = "crash"
    OUT_OF_MEMORY = "out-of-memory"
    TIMEOUT = "timeout"
    BREACH = "breach"
    BAD_OUTPUT = "bad-output"
    FAILED = "failed"


@dataclass(frozen=True)
class Failure:
    """Why a task has no result, and after how many seconds.

    `message` is one line, which is the same each time that the same thing happens, `detail` a
    traceback or the last output of the process, `verdict` that on an external allocator.
    """

    status: FailureStatus
    message: str
    seconds: float = 0.0
    detail: str = ""
    verdict: dict[str, object] | None = None


Ending = str | Failure
"""The outcome of a task: the text of a result file, or why there is none."""
