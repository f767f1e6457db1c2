"""Faults of an external allocator's answer, and their exit codes.

Worker processes read this before they have set their environment: nothing here imports numpy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from topoplace.errors import ExitCode, TopoplaceError

if TYPE_CHECKING:
    from topoplace.snapshot.schema import Snapshot

VERDICT_SCHEMA = "topoplace.verdict/1"

MAX_BREACHES = 100
"""An answer that breaks more rules is not read any further."""

_SHOWN_CHARACTERS = 200


class Fault(StrEnum):
    """How an allocator failed: by the content of its answer, its form, or by no answer."""

    BREACH = "breach"
    BAD_OUTPUT = "bad-output"
    FAILED = "failed"
    TIME_OUT = "time-out"


@dataclass(frozen=True)
class Breach:
    """A rule that an answer breaks.

    `text` is one sentence that names the job and the node, router or link at fault; the others say
    the same for programs. A node is a number on a torus, a name on a tree.
    """

    text: str
    request: str | None = None
    node: int | str | None = None
    link: int | None = None

    @property
    def line(self) -> str:
        """The sentence without control characters for terminals."""
        return printable(self.text)


class VerdictError(TopoplaceError):
    """Raised if an allocator gets a verdict in place of a result; `document` has it whole.

    `snapshot` is its input. The exit code is 4 if time ran out, else 5.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        allocator: str,
        stderr: str,
        fault: Fault,
        text: str,
        breaches: Sequence[Breach] = (),
    ) -> None:
        self.snapshot, self.fault, self.breaches = snapshot, fault, breaches
        timed_out = fault is Fault.TIME_OUT
        self.exit_code = ExitCode.NO_SOLUTION if timed_out else ExitCode.CHECK_FAILED
        self.document: dict[str, object] = {
            "schema": VERDICT_SCHEMA,
            "snapshot": snapshot.name,
            "method": allocator,
            "fault": fault,
            "text": text,
            "breaches": [dataclasses.asdict(breach) for breach in breaches],
            "stderr": stderr,
        }
        super().__init__(printable(f"{snapshot.name}: {allocator}: {fault}: {text}"))


def printable(text: str) -> str:
    """Return a text of unknown origin without control characters for terminals."""
    return "".join(c if c.isprintable() else " " for c in text)


def last_words(stderr: str) -> str:
    """Return the last line a program wrote, short and free of control characters."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    line = printable(lines[-1]).strip() if lines else ""
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
