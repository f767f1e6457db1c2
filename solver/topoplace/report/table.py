"""Text tables for a terminal, and the same as CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Collection, Sequence
from fractions import Fraction

from topoplace.study.compare import ComparisonRow
from topoplace.study.compare_tree import TreeComparisonRow


def plain_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()
) -> str:
    """Return an aligned table of text; `right` lists the columns set flush right."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = []
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def gap_text(gap: float | None) -> str:
    """Return a gap as a percentage; a gap that is not zero never reads as zero."""
    if gap is None:
        return "-"
    text = f"{100 * gap:.2f} %"
    return "< 0.01 %" if gap > 0 and text == "0.00 %" else text


def comparison_table(rows: Sequence[ComparisonRow]) -> str:
    """Return the table of a comparison: method, objective, gap to bound, seconds and more."""
    shown = []
    for idx, row in enumerate(rows):
        first = idx == 0 or rows[idx - 1].snapshot != row.snapshot
        started = "-" if row.jobs_started is None else f"{row.jobs_started}/{row.jobs_queued}"
        shown.append(
            [
                row.snapshot if first else "",
                row.method if row.conforming else f"{row.method} *",
                _number(row.objective),
                _number(row.bound),
                gap_text(row.gap),
                f"{row.seconds:.2f}",
                started,
                _number(row.shared_links),
                row.status,
            ]
        )
    header = [
        "snapshot",
        "method",
        "objective",
        "bound",
        "gap",
        "seconds",
        "jobs",
        "shared",
        "status",
    ]
    text = plain_table(header, shown, right=(2, 3, 4, 5, 6, 7))
    if any(not row.conforming for row in rows):
        text += (
            "\n* does not obey the rule of prisms and links, so that the bound does not hold for it"
        )
    return text


def tree_comparison_table(rows: Sequence[TreeComparisonRow]) -> str:
    """Return the table of a comparison on tree machines."""
    shown = []
    for idx, row in enumerate(rows):
        first = idx == 0 or rows[idx - 1].snapshot != row.snapshot
        started = "-" if row.jobs_started is None else f"{row.jobs_started}/{row.jobs_queued}"
        shown.append(
            [
                row.snapshot if first else "",
                row.method,
                _number(row.nodes),
                _decimal(row.cost),
                _decimal(row.bound),
                gap_text(row.gap),
                f"{row.seconds:.2f}",
                started,
                row.status,
                row.proof,
            ]
        )
    header = [
        "snapshot",
        "method",
        "nodes",
        "cost",
        "bound",
        "gap",
        "seconds",
        "jobs",
        "status",
        "proof",
    ]
    return plain_table(header, shown, right=(2, 3, 4, 5, 6, 7))


def comparison_csv(rows: Sequence[ComparisonRow] | Sequence[TreeComparisonRow]) -> str:
    """Return a comparison as CSV with a header line; absent values are empty."""
    stream = io.StringIO()
    kind = TreeComparisonRow if rows and isinstance(rows[0], TreeComparisonRow) else ComparisonRow
    names = [field.name for field in dataclasses.fields(kind)]
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in rows)
    return stream.getvalue()


def _decimal(value: Fraction | None) -> str:
    return "-" if value is None else f"{float(value):,.4f}"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
