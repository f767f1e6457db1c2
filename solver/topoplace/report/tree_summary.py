"""What a person wants to read after an allocation on a tree: a few lines of plain text."""

from __future__ import annotations

from fractions import Fraction

from topoplace.report.answer import WIDTH, answer_table, decimal_text
from topoplace.report.proven import headline, level_name
from topoplace.report.text import gap_text, plain_table
from topoplace.report.waiting import waiting_texts
from topoplace.result import Fraction as FractionModel
from topoplace.result.tree import AllocationResult

_MOST_WAITING = 8


def tree_summary(result: AllocationResult, width: int = WIDTH, *, table: bool = True) -> str:
    """Return the result as text: what is proven, what starts and where, and why the rest waits.

    Parameters
    ----------
    width
        Characters of a line of the table of what starts.
    table
        Whether to have that table.
    """
    lines = [headline(result), _levels(result)]
    queue = result.instance.queue
    if result.solution is None:
        return "\n".join([*lines, f"no allocation found for the {len(queue)} requests"])
    allocations = result.solution.allocations
    nodes = sum(len(allocation.nodes) for allocation in allocations)
    cost = result.solution.cost
    lines.append(
        f"started {len(allocations)} of {len(queue)} requests, {nodes:,} nodes; "
        f"total cost {_decimal(cost)}{_exact(cost)}"
    )
    if table:
        lines += answer_table(result, width)
    return "\n".join(lines + _waiting(result))


def _levels(result: AllocationResult) -> str:
    rows = [
        [
            f"{level_name(result, level.name)} ({level.sense})",
            _decimal(level.objective),
            _decimal(level.bound),
            gap_text(level.gap),
            level.status,
            level.proof,
        ]
        for level in result.levels
    ]
    header = ["level", "objective", "bound", "gap", "status", "proof"]
    return plain_table(header, rows, right=(1, 2, 3))


def _waiting(result: AllocationResult) -> list[str]:
    texts = waiting_texts(result)
    lines = [f"  {name} waits: {text}" for name, text in list(texts.items())[:_MOST_WAITING]]
    more = len(texts) - len(lines)
    if more:
        lines.append(f"  ... and {more:,} more wait")
    return lines


def _decimal(value: FractionModel | None) -> str:
    return "-" if value is None else decimal_text(Fraction(value.numerator, value.denominator))


def _exact(value: FractionModel) -> str:
    return "" if value.denominator == 1 else f" = {value.numerator}/{value.denominator}"
