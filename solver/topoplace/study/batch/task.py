"""What goes to a worker process and what comes back; light, for workers read it first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from topoplace.study.external.allocator import command_allocator


@dataclass(frozen=True)
class Settings:
    """What a user may set for every solve of a batch.

    Attributes
    ----------
    method
        Name of a method; None for ``exact``, or ``auto`` for mappings.
    time_limit
        Seconds that each solve may take.
    interference
        ``strict``, ``tolerant`` or ``off``; anything but strict is for tori and meshes only.
    seed
        Of whatever a method draws at random.
    command
        Command line of an allocator that is not ours, which then is the method.
    source
        What such an allocator is (`topoplace.study.external.allocator.fingerprint`).
    thorough
        Whether the exact method on tori spends what is left of the time on the later levels.
    """

    method: str | None = None
    time_limit: float | None = None
    interference: str = "strict"
    seed: int = 0
    command: str | None = None
    source: str | None = None
    thorough: bool = False

    def method_for(self, problem: str) -> str:
        """Return the method that solves instances of a problem, named as in result documents."""
        if self.command is not None:
            return command_allocator(self.command).name
        return self.method or ("auto" if problem == "mapping" else "exact")


@dataclass(frozen=True)
class Limits:
    """What ends an instance the hard way.

    Attributes
    ----------
    kill_after
        Seconds after which its worker process is killed; None for never.
    memory
        Bytes of address space it may take beyond what the libraries take; None for any.
    """

    kill_after: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Task:
    """One instance to solve.

    Attributes
    ----------
    key
        Its content address (`topoplace.study.batch.store.key_of`).
    problem
        As its result will name it: placement, allocation or mapping.
    document
        Its canonical document: JSON, with the machine written out.
    version
        The version of topoplace that the key speaks of.
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

    Attributes
    ----------
    message
        One line that says the same whenever the same thing happens again.
    detail
        What else is known: a traceback, the last words of the process.
    verdict
        A document ``topoplace.verdict/1``, where an allocator's answer does not count.
    """

    status: FailureStatus
    message: str
    seconds: float = 0.0
    detail: str = ""
    verdict: dict[str, object] | None = None


Ending = str | Failure
"""What came of a task: the text of a result file, or why there is none."""
