"""Comparisons as tables and CSV, and scenarios side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from topoplace.errors import number_of
from topoplace.report.summary import headline, level_rows
from topoplace.report.text import count_text, gap_text, plain_table, records_csv
from topoplace.report.view import view_of
from topoplace.result import Proof, level_label, value_label
from topoplace.snapshot.held import left_out_text
from topoplace.study.batch.run import Batch
from topoplace.study.compare import Comparison
from topoplace.study.ranking import Exact, MethodSummary, Row, by_instance, summaries
from topoplace.study.what_if import Scenario, WhatIf

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
    if name == "nodes":
        counted = {row.value for row in rows}
        what = counted.pop() if len(counted) == 1 else "value"
        name = value_label(what, weighted=any(row.weighted for row in rows))
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


# ---- Scenarios -----------------------------------------------------------------------------------


_MOST_NAMED = 12


def what_if_table(found: WhatIf, num_worth: int | None = None) -> str:
    """Return a row per scenario, who starts otherwise, and what running jobs are worth.

    Parameters
    ----------
    num_worth
        How many running jobs to name, and how many routers of each sort; all by default.
    """
    base = found.scenarios[0]
    levels, instance = base.result.levels, base.result.instance
    first, *later = [level_label(instance, level.name) for level in levels]
    header = ["scenario", first, "bound", "gap", "gain", "at most", *later]
    rows = [_row(one) for one in found.scenarios]
    said = left_out_text(instance)
    lines = [headline(base.result), plain_table(header, rows, right=range(1, len(header)))]
    lines += [] if said is None else [said]
    lines += [line for one in found.scenarios for line in (*_others(one), *_new(one, base))]
    if found.worth:
        shown = found.worth[:num_worth]
        told = [[one.job, _signed(one.at_most)] for one in shown]
        lines.append("what a running job's release can gain at most, as the base's proof bounds it")
        lines.append(plain_table(["running job", "at most"], told, right=(1,)))
    if found.routers:
        level = f"what {first} can be if one router alone"
        lines.append(f"{level} goes down, or is free: at least as placed, at most as proven")
        told = [
            [str(one.router), one.change, f"{one.at_least:,}", count_text(one.at_most)]
            for change in ("down", "free")
            for one in [one for one in found.routers if one.change == change][:num_worth]
        ]
        lines.append(plain_table(["router", "then", "at least", "at most"], told, right=(0, 2, 3)))
    if found.domains:
        level = f"what {first} can be if one host or domain alone"
        how = "goes down, has no host down, or is emptied"
        lines.append(f"{level} {how}: at least as placed, at most as proven")
        told = [
            [one.domain, one.change, f"{one.at_least:,}", count_text(one.at_most)]
            for change in ("down", "free", "emptied")
            for one in [one for one in found.domains if one.change == change][:num_worth]
        ]
        lines.append(plain_table(["domain", "then", "at least", "at most"], told, right=(2, 3)))
    if num_worth is not None and base.result.instance.running and not found.worth:
        lines.append("no figures of jobs or routers: no certificate that a changed machine can use")
    if found.interrupted:
        lines.append("interrupted: what is missing was not solved")
    return "\n".join(lines)


def _row(one: Scenario) -> list[str]:
    """Return the first level with its bound; of later ones, bounds that are not reached follow."""
    first, *later = [row[1:3] for row in level_rows(one.result)]
    own = [gap_text(one.result.gap), _signed(one.gain), _signed(one.at_most)]
    texts = [value if value == bound else f"{value} ({bound})" for value, bound in later]
    return [one.name, *first, *own, *texts]


def _signed(value: int | None) -> str:
    return "-" if value is None else f"{value:+,}" if value else "0"


def _others(one: Scenario) -> list[str]:
    """Return lines on who starts other than in the base, and on who runs on what goes down."""
    parts = [
        f"{word} {_listed(names)}"
        for word, names in (("also starts", one.starts), ("no longer starts", one.waits))
        if names
    ]
    lines = [f"{one.name}: {'; '.join(parts)}"] if parts else []
    if one.hit:
        jobs = number_of(len(one.hit), "running job")
        own = "it counts as running on" if len(one.hit) == 1 else "they count as running on"
        if one.result.instance.written.domain_levels:
            own += "; with those down, repack --replace JOB finds other hosts"
        lines.append(f"{one.name}: {jobs} on what goes down ({_listed(one.hit)}): {own}")
    return lines


def _new(one: Scenario, base: Scenario) -> list[str]:
    """Return why new requests wait, a line each."""
    known = {request.id for request in base.result.instance.queue}
    waits = view_of(one.result).waits if one.result.solution is not None else {}
    return [f"{one.name}: {name} waits: {why}" for name, why in waits.items() if name not in known]


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def batch_text(done: Batch) -> str:
    """Return how many instances came to what, and where the table is."""
    counts = ", ".join(f"{count} {status}" for status, count in done.counts.items())
    held = f"; {number_of(done.num_held, 'request')} held" if done.num_held else ""
    lines = [f"{number_of(len(done.rows), 'instance')}: {counts}{held}"]
    lines.append(f"solved {done.num_solved}, kept {done.num_kept}, {done.seconds:.1f} s")
    lines.append(f"table: {done.table}")
    if done.num_left:
        left = number_of(done.num_left, "instance")
        lines.append(f"interrupted: {left} left out; the same command goes on")
    return "\n".join(lines)
