"""Tables of comparisons for a terminal, and the same as CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from topoplace.report.text import gap_text, plain_table
from topoplace.study.compare import ComparisonRow
from topoplace.study.compare_mapping import MappingComparisonRow
from topoplace.study.compare_tree import TreeComparisonRow
from topoplace.study.ranking import MethodSummary, Row, by_instance, summaries

Rows = Sequence[ComparisonRow] | Sequence[TreeComparisonRow] | Sequence[MappingComparisonRow]

BREAKS_RULE = "does not obey the rule of prisms and links, so that the bound does not hold for it"


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, the text of a row in it, and whether that is a number."""

    name: str
    text: Callable[[Any], str]
    number: bool = True


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _decimal(value: Fraction | float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{float(value):,.{digits}f}"


def _started(row: ComparisonRow | TreeComparisonRow) -> str:
    return "-" if row.jobs_started is None else f"{row.jobs_started}/{row.jobs_queued}"


def _method(row: Row) -> str:
    return f"{row.method} *" if breaks_rule(row) else row.method


def breaks_rule(row: Row) -> bool:
    """Tell whether a row is marked by a star: its placement is not one the bound is about."""
    return isinstance(row, ComparisonRow) and row.objective is not None and not row.conforming


_METHOD = Column("method", _method, number=False)
_OBJECTIVE = Column("objective", lambda row: _number(row.objective))
_BOUND = Column("bound", lambda row: _number(row.bound))
_GAP = Column("gap", lambda row: gap_text(row.gap))
_SECONDS = Column("seconds", lambda row: _decimal(row.seconds, 2))
_RANK = Column("rank", lambda row: _number(row.rank))
_JOBS = Column("jobs", _started)
_STATUS = Column("status", lambda row: str(row.status), number=False)
_PROOF = Column("proof", lambda row: str(row.proof), number=False)

_COLUMNS: dict[type, tuple[Column, ...]] = {
    ComparisonRow: (
        _METHOD,
        _OBJECTIVE,
        _BOUND,
        _GAP,
        _SECONDS,
        _RANK,
        _JOBS,
        Column("shared", lambda row: _number(row.shared_links)),
        _STATUS,
    ),
    TreeComparisonRow: (
        _METHOD,
        Column("nodes", lambda row: _number(row.nodes)),
        Column("cost", lambda row: _decimal(row.cost)),
        Column("bound", lambda row: _decimal(row.bound)),
        _GAP,
        _SECONDS,
        _RANK,
        _JOBS,
        _STATUS,
        _PROOF,
    ),
    MappingComparisonRow: (
        _METHOD,
        _OBJECTIVE,
        _BOUND,
        _GAP,
        _SECONDS,
        _RANK,
        Column("max hops", lambda row: _number(row.max_hops)),
        _STATUS,
        _PROOF,
    ),
}

SUMMARY_COLUMNS = (
    Column("method", lambda entry: entry.method, number=False),
    Column("ranked", lambda entry: f"{entry.ranked}/{entry.instances}"),
    Column("wins", lambda entry: _number(entry.wins)),
    Column("mean rank", lambda entry: _decimal(entry.mean_rank, 2)),
    Column("median gap", lambda entry: gap_text(entry.median_gap)),
    Column("largest gap", lambda entry: gap_text(entry.largest_gap)),
    Column("median seconds", lambda entry: _decimal(entry.median_seconds, 2)),
    Column("total seconds", lambda entry: _decimal(entry.total_seconds, 2)),
)
"""Columns of a table of `MethodSummary`."""


def columns_of(rows: Rows) -> tuple[Column, ...]:
    """Return the columns of a table of comparison rows, all but the instance's name."""
    return _COLUMNS[_kind(rows)]


def comparison_table(rows: Rows) -> str:
    """Return the table of a comparison, and over several instances what it says of each method."""
    groups: list[list[Row]] = by_instance(list(rows))
    name = "instance" if _kind(rows) is MappingComparisonRow else "snapshot"
    first = Column(name, lambda row: row.instance, number=False)
    columns = (first, *columns_of(rows))
    cells = []
    for group in groups:
        for idx, row in enumerate(group):
            texts = [column.text(row) for column in columns]
            cells.append(texts if idx == 0 else ["", *texts[1:]])
    text = _column_table(columns, cells)
    if any(breaks_rule(row) for row in rows):
        text += f"\n* {BREAKS_RULE}"
    if len(groups) > 1:
        text += f"\n\n{summary_table(summaries(rows))}"
    return text


def summary_table(entries: Sequence[MethodSummary]) -> str:
    """Return a line per method: wins, ranks, gaps and seconds over all instances."""
    cells = [[column.text(entry) for column in SUMMARY_COLUMNS] for entry in entries]
    return _column_table(SUMMARY_COLUMNS, cells)


def comparison_csv(rows: Rows) -> str:
    """Return a comparison as CSV with a header line; absent values are empty."""
    stream = io.StringIO()
    names = [field.name for field in dataclasses.fields(_kind(rows))]
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in rows)
    return stream.getvalue()


def _kind(rows: Rows) -> type[ComparisonRow | TreeComparisonRow | MappingComparisonRow]:
    return type(rows[0]) if rows else ComparisonRow


def _column_table(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> str:
    right = [idx for idx, column in enumerate(columns) if column.number]
    return plain_table([column.name for column in columns], cells, right=right)
