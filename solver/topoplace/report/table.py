"""Tables of comparisons for a terminal, and the same as CSV."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from topoplace.report.text import count_text, gap_text, plain_table, records_csv
from topoplace.result import Proof
from topoplace.study.compare import Comparison
from topoplace.study.ranking import Exact, MethodSummary, Row, by_instance, summaries

BREAKS_RULE = "does not obey the rule of prisms and links, so that the bound does not hold for it"


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, the text of a row in it, and whether that is a number."""

    name: str
    text: Callable[[Any], str]
    number: bool = True


def _method(row: Row) -> str:
    return f"{row.method} *" if row.breaks_rule else row.method


def _fact(name: str, row: Row) -> str:
    return count_text(row.facts.get(name))


def _jobs(row: Row) -> str:
    started = row.facts.get("started")
    return "-" if started is None else f"{started}/{row.facts['queued']}"


SUMMARY_COLUMNS = (
    Column("method", lambda entry: entry.method, number=False),
    Column("ranked", lambda entry: f"{entry.ranked}/{entry.instances}"),
    Column("wins", lambda entry: count_text(entry.wins)),
    Column("mean rank", lambda entry: count_text(entry.mean_rank, ",.2f")),
    Column("median gap", lambda entry: gap_text(entry.median_gap)),
    Column("largest gap", lambda entry: gap_text(entry.largest_gap)),
    Column("median seconds", lambda entry: count_text(entry.median_seconds, ",.2f")),
    Column("total seconds", lambda entry: count_text(entry.total_seconds, ",.2f")),
)
"""Columns of a table of `MethodSummary`."""


def columns_of(rows: Sequence[Row], *, whole: bool = False) -> list[Column]:
    """Return the columns of a table of rows of one problem, all but the instance's name.

    Levels behind the one by which methods are compared are left out unless the `whole` is wanted.
    """
    columns = [Column("method", _method, number=False)]
    for k in range(_num_shared(rows) if whole else rows[0].decisive + 1):
        columns += _level_columns(rows, k, bounded=k == rows[0].decisive, whole=whole)
    columns.append(Column("seconds", lambda row: count_text(row.seconds, ",.2f")))
    columns.append(Column("rank", lambda row: count_text(row.rank)))
    facts = dict.fromkeys(name for row in rows for name in row.facts)
    if "queued" in facts:
        columns.append(Column("jobs", _jobs))
    others = [name for name in facts if name not in ("started", "queued")]
    columns += [Column(name, partial(_fact, name)) for name in others]
    columns.append(Column("status", lambda row: str(row.status), number=False))
    if any(row.decider.proof is Proof.SEARCH for row in rows):
        columns.append(Column("proof", lambda row: str(row.decider.proof), number=False))
    return columns


def _num_shared(rows: Sequence[Row]) -> int:
    """Return how many levels rows share, from the first on: machines may differ in later ones."""
    named = zip(*([level.name for level in row.levels] for row in rows), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda names: len(set(names)) == 1, named))


def _level_columns(rows: Sequence[Row], k: int, *, bounded: bool, whole: bool) -> list[Column]:
    known = [x for row in rows for x in (row.levels[k].objective, row.levels[k].bound)]
    digits = 0 if all(x is None or x.denominator == 1 for x in known) else 4

    def text(value: Exact | None) -> str:
        return "-" if value is None else f"{float(value) if digits else int(value):,.{digits}f}"

    def gap(row: Row) -> str:
        return "-" if row.breaks_rule else gap_text(row.levels[k].gap)

    name = rows[0].levels[k].name
    if name == "nodes" and any(row.weighted for row in rows):
        name = "weighted nodes"
    columns = [Column(name, lambda row: text(row.levels[k].objective))]
    columns += [Column("bound", lambda row: text(row.levels[k].bound))] if bounded else []
    return columns + ([Column("gap", gap)] if bounded or whole else [])


def comparison_table(comparison: Comparison) -> str:
    """Return a table per problem, over several instances what it says of each method, and notes."""
    parts = [_table(rows) for rows in comparison.by_problem]
    return "\n\n".join(parts) + "".join(f"\n{note}" for note in comparison.notes)


def _table(rows: Sequence[Row]) -> str:
    groups = by_instance(rows)
    firsts = {id(group[0]) for group in groups}  # rows that name their instance
    name = "instance" if rows[0].problem == "mapping" else "snapshot"
    named = Column(name, lambda row: row.label if id(row) in firsts else "", number=False)
    text = _column_table([named, *columns_of(rows)], [row for group in groups for row in group])
    if any(row.breaks_rule for row in rows):
        text += f"\n* {BREAKS_RULE}"
    if len(groups) > 1:
        text += f"\n\n{_column_table(SUMMARY_COLUMNS, summaries(rows))}"
    return text


def comparison_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV with a header line; absent values are empty."""
    return records_csv([_record(row) for row in comparison.document()["rows"]])


def _record(row: dict[str, Any]) -> dict[str, object]:
    """Return a row flat, with columns such as ``nodes`` and ``nodes bound``."""
    deep = ("levels", "decisive", "facts")
    record = {name: value for name, value in row.items() if name not in deep}
    for level in row["levels"]:
        name = level["name"]
        record[name] = level["objective"]
        record |= {f"{name} {part}": level[part] for part in ("bound", "gap", "proof")}
    return {**record, **row["facts"]}


def _column_table(columns: Sequence[Column], entries: Sequence[Row | MethodSummary]) -> str:
    right = [idx for idx, column in enumerate(columns) if column.number]
    cells = [[column.text(entry) for column in columns] for entry in entries]
    return plain_table([column.name for column in columns], cells, right=right)
