"""What a person wants to read after a solve: a few lines of plain text."""

from __future__ import annotations

from topoplace.errors import ExitCode
from topoplace.report.text import gap_text, plain_table
from topoplace.result import Result, Status
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import TreeResult

_MOST_EXPLAINED = 8


def summary(result: Result) -> str:
    """Return the result as text: its levels, who starts, and why the others do not."""
    instance = result.instance
    hit = ", time limit hit" if result.limits.hit else ""
    lines = [
        f"{instance.name}: {result.status} by {result.method}, {result.limits.interference} "
        f"interference, {result.seconds:.2f} s{hit}"
    ]
    lines.append(
        plain_table(
            ["level", "objective", "bound", "gap", "status", "proof"],
            [
                [
                    f"{level.name} ({level.sense})",
                    _number(level.objective),
                    _number(level.bound),
                    gap_text(level.gap),
                    level.status,
                    level.proof,
                ]
                for level in result.levels
            ],
            right=(1, 2, 3),
        )
    )
    return "\n".join(lines + _starts(result) + _explanations(result))


def exit_code_of(result: Result | MappingResult | TreeResult) -> ExitCode:
    """Return the exit code that tells a script how a solve ended."""
    if result.status is Status.INFEASIBLE:
        return ExitCode.INFEASIBLE
    if result.solution is None or result.status is Status.UNKNOWN:
        return ExitCode.NO_SOLUTION
    return ExitCode.DONE


def _starts(result: Result) -> list[str]:
    queue = result.instance.queue
    if result.solution is None:
        return [f"no placement found for the {len(queue)} requests"]
    started = {p.request for p in result.solution.placements}
    nodes = sum(r.nodes for r in queue if r.id in started)
    lines = [f"started {len(started)} of {len(queue)} requests, {nodes:,} nodes"]
    explained = {e.request for e in result.explanations}
    waiting = [f"{r.id} ({r.nodes})" for r in queue if r.id not in started | explained]
    if waiting:
        lines.append(f"waiting: {', '.join(waiting)}")
    if not result.solution.conforming:
        lines.append(
            f"does not conform: {result.solution.num_shared_links:,} links shared against the "
            "rule, or jobs without a prism"
        )
    return lines


def _explanations(result: Result) -> list[str]:
    lines = [f"  {e.request}: {e.text}" for e in result.explanations[:_MOST_EXPLAINED]]
    more = len(result.explanations) - _MOST_EXPLAINED
    if more > 0:
        lines.append(f"  ... and {more} more explanations in the result file")
    return lines


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
