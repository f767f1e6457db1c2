"""The table of a batch: a row per instance file, as CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable
from dataclasses import dataclass

from topoplace.errors import ExitCode
from topoplace.result import Status
from topoplace.solving.frames import frame_of
from topoplace.study.batch.task import FailureStatus
from topoplace.study.case import AnyResult
from topoplace.study.ranking import exact

_EXIT_CODES: dict[str, ExitCode] = {
    FailureStatus.BAD_INPUT: ExitCode.BAD_INPUT,
    FailureStatus.ERROR: ExitCode.INTERNAL,
    FailureStatus.CRASH: ExitCode.INTERNAL,
    FailureStatus.OUT_OF_MEMORY: ExitCode.INTERNAL,
    FailureStatus.TIMEOUT: ExitCode.NO_SOLUTION,
    FailureStatus.BREACH: ExitCode.CHECK_FAILED,
    FailureStatus.BAD_OUTPUT: ExitCode.CHECK_FAILED,
    FailureStatus.FAILED: ExitCode.CHECK_FAILED,
    Status.INFEASIBLE: ExitCode.INFEASIBLE,
    Status.UNKNOWN: ExitCode.NO_SOLUTION,
}


@dataclass(frozen=True)
class Row:
    """One instance file and what became of it (docs/batch.md, "The table").

    `problem` is empty if the file could not be read; `status` is that of the result, or a
    `FailureStatus`. Rationals are texts such as ``37/4``. Times come last.
    """

    file: str = ""
    name: str = ""
    problem: str = ""
    method: str = ""
    status: str = ""
    objective: str = ""
    bound: str = ""
    gap: float | None = None
    proof: str = ""
    objective_2: str = ""
    bound_2: str = ""
    objective_3: str = ""
    bound_3: str = ""
    started: int | None = None
    queued: int | None = None
    shared_links: int | None = None
    key: str = ""
    result: str = ""
    message: str = ""
    seconds: float | None = None

    @property
    def failed(self) -> bool:
        """Whether there is no result."""
        return self.status in list(FailureStatus)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that the instance alone would have ended with."""
        return _EXIT_CODES.get(self.status, ExitCode.DONE)


def result_row(result: AnyResult) -> Row:
    """Return the row of a result; file, key and place of the result are the caller's to add."""
    found: dict[str, str] = {}
    for level, tail in zip(result.levels, ("", "_2", "_3"), strict=False):
        for name, value in (("objective", level.objective), ("bound", level.bound)):
            found[name + tail] = "" if value is None else str(exact(value))
    facts = frame_of(result.problem).facts(result)
    return Row(
        name=result.instance.name,
        problem=result.problem,
        method=result.method,
        status=result.status,
        gap=result.gap,
        proof=result.proof,
        started=facts.get("started"),
        queued=facts.get("queued"),
        shared_links=facts.get("shared"),
        seconds=result.seconds,
        **found,
    )


def table_csv(rows: Iterable[Row]) -> str:
    """Return the table as CSV with a header line; absent values are empty."""
    stream = io.StringIO()
    names = [field.name for field in dataclasses.fields(Row)]
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in rows)
    return stream.getvalue()
