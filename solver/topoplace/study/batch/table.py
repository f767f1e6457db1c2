"""The table of a batch: a row per instance file, as CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable
from dataclasses import dataclass, replace

from topoplace.errors import ExitCode
from topoplace.result import Fraction, PlacementResult, Status
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.study.batch.task import Failure, FailureStatus

AnyResult = PlacementResult | AllocationResult | MappingResult


@dataclass(frozen=True)
class Row:
    """One instance file and what became of it. Times come last, in the order of the fields.

    Attributes
    ----------
    file, name, problem
        The instance. `problem` is empty if the file could not be read.
    status
        That of the result, or a `FailureStatus`.
    objective, bound, gap, proof
        The first level's. Rationals are texts such as ``37/4``.
    objective_2, bound_2, objective_3, bound_3
        The further levels', where there are some (docs/formats.md).
    started, queued, shared_links
        Requests; links shared against the interference rule.
    key
        The content address.
    result
        The result file, relative to the output folder.
    message
        Why there is no result.
    seconds
        What the solve took.
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
        if self.status in (FailureStatus.TIMEOUT, Status.UNKNOWN):
            return ExitCode.NO_SOLUTION
        if self.status == FailureStatus.BAD_INPUT:
            return ExitCode.BAD_INPUT
        if self.status == Status.INFEASIBLE:
            return ExitCode.INFEASIBLE
        if self.status in (FailureStatus.BREACH, FailureStatus.BAD_OUTPUT, FailureStatus.FAILED):
            return ExitCode.CHECK_FAILED
        return ExitCode.INTERNAL if self.failed else ExitCode.DONE


def result_row(result: AnyResult) -> Row:
    """Return the row of a result; file, key and place of the result are the caller's to add."""
    levels = [(_text(level.objective), _text(level.bound)) for level in result.levels[:3]]
    (first, second, third) = levels + [("", "")] * (3 - len(levels))
    row = Row(
        name=result.instance.name,
        problem=result.problem,
        method=result.method,
        status=result.status,
        objective=first[0],
        bound=first[1],
        gap=result.gap,
        proof=result.proof,
        objective_2=second[0],
        bound_2=second[1],
        objective_3=third[0],
        bound_3=third[1],
        queued=None if isinstance(result, MappingResult) else len(result.instance.queue),
        seconds=result.seconds,
    )
    if isinstance(result, PlacementResult) and result.solution is not None:
        shared = result.solution.num_shared_links
        return replace(row, started=len(result.solution.placements), shared_links=shared)
    if isinstance(result, AllocationResult) and result.solution is not None:
        return replace(row, started=len(result.solution.allocations))
    return row


def failure_row(failure: Failure) -> Row:
    """Return the row of a failure; the instance is the caller's to add."""
    return Row(status=failure.status, message=failure.message, seconds=failure.seconds)


def table_csv(rows: Iterable[Row]) -> str:
    """Return the table as CSV with a header line; absent values are empty."""
    stream = io.StringIO()
    names = [field.name for field in dataclasses.fields(Row)]
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in rows)
    return stream.getvalue()


def _text(value: int | Fraction | None) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    whole = value.denominator == 1
    return str(value.numerator) if whole else f"{value.numerator}/{value.denominator}"
