"""What a person wants to read after a solve: a few lines of plain text."""

from __future__ import annotations

from topoplace.errors import ExitCode
from topoplace.report.answer import WIDTH, answer_table
from topoplace.report.proven import headline, level_name
from topoplace.report.text import gap_text, plain_table
from topoplace.result import PlacementResult, Status
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult

_MOST_EXPLAINED = 8
_MOST_NAMED = 40


def summary(result: PlacementResult, width: int = WIDTH, *, table: bool = True) -> str:
    """Return the result as text: what is proven, what starts and where, and why the rest waits.

    Parameters
    ----------
    width
        Characters of a line of the table of what starts.
    table
        Whether to have that table.
    """
    lines = [
        headline(result),
        plain_table(
            ["level", "objective", "bound", "gap", "status", "proof"],
            [
                [
                    f"{level_name(result, level.name)} ({level.sense})",
                    _number(level.objective),
                    _number(level.bound),
                    gap_text(level.gap),
                    level.status,
                    level.proof,
                ]
                for level in result.levels
            ],
            right=(1, 2, 3),
        ),
        *_starts(result),
    ]
    if table:
        lines += answer_table(result, width)
    return "\n".join(lines + _waiting(result) + _explanations(result))


def exit_code_of(result: PlacementResult | MappingResult | AllocationResult) -> ExitCode:
    """Return the exit code that tells a script how a solve ended."""
    if result.status is Status.INFEASIBLE:
        return ExitCode.INFEASIBLE
    if result.solution is None or result.status is Status.UNKNOWN:
        return ExitCode.NO_SOLUTION
    return ExitCode.DONE


def _starts(result: PlacementResult) -> list[str]:
    queue = result.instance.queue
    if result.solution is None:
        return [f"no placement found for the {len(queue)} requests"]
    started = {p.request for p in result.solution.placements}
    nodes = sum(r.nodes for r in queue if r.id in started)
    lines = [f"started {len(started)} of {len(queue)} requests, {nodes:,} nodes"]
    if not result.solution.conforming:
        lines.append(
            f"does not conform: {result.solution.num_shared_links:,} links shared against the "
            "rule, or jobs without a prism"
        )
    return lines


def _waiting(result: PlacementResult) -> list[str]:
    """Return a line of the requests that wait and have no explanation."""
    if result.solution is None:
        return []
    known = {p.request for p in result.solution.placements}
    known |= {e.request for e in result.explanations}
    waiting = [f"{r.id} ({r.nodes:,})" for r in result.instance.queue if r.id not in known]
    if not waiting:
        return []
    more = len(waiting) - _MOST_NAMED
    shown = waiting[:_MOST_NAMED] + ([f"and {more:,} more"] if more > 0 else [])
    return [f"waiting: {', '.join(shown)}"]


def _explanations(result: PlacementResult) -> list[str]:
    lines = [f"  {e.request}: {e.text}" for e in result.explanations[:_MOST_EXPLAINED]]
    more = len(result.explanations) - _MOST_EXPLAINED
    if more > 0:
        lines.append(f"  ... and {more} more explanations in the result file")
    return lines


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
