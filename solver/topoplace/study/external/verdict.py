"""What is wrong with an external allocator's answer, and the exit code that says so."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from topoplace.errors import ExitCode, TopoplaceError

VERDICT_SCHEMA = "topoplace.verdict/1"

MAX_BREACHES = 100
"""An answer that breaks more rules is not read any further."""

_SHOWN_CHARACTERS = 200


class Fault(StrEnum):
    """How an allocator failed: what its answer says, what it is, or that there is none."""

    BREACH = "breach"
    BAD_OUTPUT = "bad-output"
    FAILED = "failed"
    TIME_OUT = "time-out"


@dataclass(frozen=True)
class Breach:
    """A rule that an answer breaks.

    Attributes
    ----------
    text
        One sentence that names the job and the node, router or link at fault.
    request, node, link
        The same for programs, where they apply; a node is a number on a torus, a name on a tree.
    """

    text: str
    request: str | None = None
    node: int | str | None = None
    link: int | None = None


@dataclass(frozen=True)
class Verdict:
    """Why an allocator's run on a snapshot counts for nothing."""

    fault: Fault
    text: str
    breaches: tuple[Breach, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """4 if time ran out before there was an answer, else 5."""
        return ExitCode.NO_SOLUTION if self.fault is Fault.TIME_OUT else ExitCode.CHECK_FAILED


class VerdictError(TopoplaceError):
    """An allocator that was to place a queue got a verdict instead, which `document` has whole."""

    def __init__(self, snapshot: str, allocator: str, verdict: Verdict, stderr: str = "") -> None:
        self.exit_code = verdict.exit_code
        self.fault = verdict.fault
        self.document: dict[str, object] = {
            "schema": VERDICT_SCHEMA,
            "snapshot": snapshot,
            "method": allocator,
            "fault": verdict.fault,
            "text": verdict.text,
            "breaches": [dataclasses.asdict(breach) for breach in verdict.breaches],
            "stderr": stderr,
        }
        super().__init__(printable(f"{snapshot}: {allocator}: {verdict.fault}: {verdict.text}"))


def breach_verdict(breaches: list[Breach]) -> Verdict:
    """Return the verdict on an answer that breaks rules."""
    more = len(breaches) - 1
    tail = f" (and {more} more)" if more else ""
    return Verdict(Fault.BREACH, breaches[0].text + tail, tuple(breaches))


def printable(text: str) -> str:
    """Return a text of unknown origin without what could steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def last_words(stderr: str) -> str:
    """Return the last line a program wrote, short and free of control characters."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    if not lines:
        return ""
    line = printable(lines[-1]).strip()
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
