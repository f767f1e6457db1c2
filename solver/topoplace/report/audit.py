"""What an audit found: tables for a terminal, and the same as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from topoplace.errors import number_of
from topoplace.report.text import Table, count_text, plain_table, records_csv
from topoplace.study.audit.judging import Row, Standing, Verdict
from topoplace.study.audit.run import Audit, Group

MOST_FINDINGS = 20
"""Decisions that the text names; the CSV file has all."""

_WIDEST = 64  # characters of a column of words
_OF_REASONS = 160

_GRAVEST_FIRST = (
    Verdict.INVALID,
    Verdict.MISSED,
    Verdict.OUT_OF_TURN,
    Verdict.SUBOPTIMAL,
    Verdict.UNPROVEN,
    Verdict.UNJUDGED,
)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of which all columns but the first are numbers."""
    return Table(header, rows, range(1, len(header)))


def _counted(audit: Audit) -> list[Group]:
    groups = audit.groups
    return [*groups, audit.total] if len(groups) > 1 else groups


def verdicts_table(audit: Audit) -> Table:
    """Return how many decisions of each group were found to be what."""
    groups = _counted(audit)
    rare = (Verdict.STARTED, Verdict.OUT_OF_TURN, Verdict.UNPROVEN, Verdict.UNJUDGED)
    shown = [v for v in Verdict if v not in rare or any(g.verdicts[v] for g in groups)]
    rows = [
        [group.name or "all", count_text(group.decisions)]
        + [count_text(group.verdicts[verdict]) for verdict in shown]
        for group in groups
    ]
    return _table(["group", "decisions", *shown], rows)


def domains_table(audit: Audit) -> Table:
    """Return by group the domains used and the fewest, and what waits though it fits."""
    contract, groups = audit.contract, _counted(audit)
    header = ["group", "started", "above", "used", "fewest", "regret"]
    header += ["contract: above", "contract: fewest"] if contract else []
    header += ["stranded more", "waiting", "room for", "fits"]
    header += ["contract: fits"] if contract else []
    rows = []
    for group in groups:
        free, under = group.free, group.contract
        cells: list[object] = [
            free.started,
            free.above,
            free.used,
            free.fewest,
            percent_text(free.percent),
        ]
        if contract:
            cells += [under.above, under.fewest] if under else [None, None]
        cells += [group.stranded_more, group.waiting, group.with_room, group.fits]
        cells += [group.fits_contract] if contract else []
        rows.append([group.name or "all", *map(count_text, cells)])
    return _table(header, rows)


def fragmentation_table(audit: Audit) -> Table | None:
    """Return by group Slurm's own figure of fragmentation; None if no machine has its blocks."""
    groups = [group for group in _counted(audit) if group.fragmentation is not None]
    if not groups:
        return None
    rows = []
    for group in groups:
        own = group.fragmentation
        assert own is not None, "the others are left out"
        rows.append([group.name or "all", *map(count_text, (own.before, own.after, own.optimum))])
    return _table(["group", "fragmentation before", "after", "after the optimum"], rows)


def tables_of(audit: Audit) -> list[tuple[str, Table]]:
    """Return the tables by group, with titles."""
    found = [("Verdicts", verdicts_table(audit))]
    if audit.order is None:  # in an order it is about who starts, not where
        found.append(("Domains, and what waits", domains_table(audit)))
    fragmentation = fragmentation_table(audit)
    if fragmentation is not None:
        found.append(("Slurm's fragmentation, in nodes", fragmentation))
    return found


def jobs_text(row: Row) -> str:
    """Return the requests that a verdict is about, those that fit into a column."""
    return shorten(" ".join(row.standing.jobs))


def shorten(text: str, widest: int = _WIDEST) -> str:
    """Return a text that fits into a column."""
    return text if len(text) <= widest else f"{text[: widest - 3]}..."


def _why(row: Row) -> str:
    return shorten(row.why, _OF_REASONS)


def percent_text(percent: Fraction) -> str:
    """Return a percentage; one that is not zero never reads as zero."""
    text = f"{float(percent):.1f} %"
    return "< 0.1 %" if percent > 0 and text == "0.0 %" else text


def findings(audit: Audit) -> list[Row]:
    """Return the decisions that are not proven right, the gravest first."""
    found = [row for row in audit.rows if row.verdict in _GRAVEST_FIRST]
    order = {verdict: rank for rank, verdict in enumerate(_GRAVEST_FIRST)}
    return sorted(found, key=lambda row: (order[row.verdict], -(row.standing.regret or 0)))


def audit_text(audit: Audit) -> str:
    """Return tables by group, the decisions that are not proven right, and the sum of it."""
    parts = [str(table) for _, table in tables_of(audit)]
    if len(audit.rows) == 1:
        parts.append(str(levels_table(audit.rows[0].standing)))
    found = findings(audit)
    if found:
        cells = [
            [
                row.instance,
                shorten(row.request),
                row.verdict,
                jobs_text(row),
                shorten(row.why, _OF_REASONS),
            ]
            for row in found[:MOST_FINDINGS]
        ]
        text = plain_table(["decision", "request", "verdict", "jobs", "why"], cells)
        if len(found) > MOST_FINDINGS:
            text += f"\nand {len(found) - MOST_FINDINGS} more, which --csv and --html list"
        parts.append(text)
    return "\n\n".join([*parts, "\n".join([conclusion(audit), *audit.notes])])


def conclusion(audit: Audit) -> str:
    """Return a line: what is wrong, and how large the regret is; in an order, who is right."""
    total, names = audit.total, [verdict for verdict in _GRAVEST_FIRST if verdict != "suboptimal"]
    counts = [f"{total.verdicts[v]} {v}" for v in names if total.verdicts[v]]
    if audit.order is not None:
        right = [f"{total.verdicts[v]} {v}" for v in (Verdict.STARTED, Verdict.RIGHTLY_WAITING)]
        open_ends = (Verdict.UNPROVEN, Verdict.UNJUDGED)
        is_open = audit.num_left or any(total.verdicts[v] for v in open_ends)
        return ", ".join([*right, *counts, *([] if is_open else ["all proven"])])
    own = total.domains
    is_open = total.verdicts[Verdict.UNPROVEN]
    most = f"at least {own.fewest} needed: regret at most" if is_open else ""
    most = most or f"{own.fewest} possible: regret"
    text = f"{number_of(own.used, 'domain')} used, {most} {percent_text(own.percent)}"
    rules = f" under {audit.contract}" if audit.contract else ""
    return f"{number_of(total.decisions, 'decision')}{rules}: {'; '.join([*counts, text])}"


def levels_table(standing: Standing) -> Table:
    """Return the levels of one decision, compared with what is possible."""
    rows = [
        [lv.label, *map(count_text, (lv.decision, lv.best, lv.bound))] for lv in standing.levels
    ]
    return _table(["level", "decision", "possible", "bound"], rows)


def audit_csv(audit: Audit) -> str:
    """Return a row per decision as CSV with a header line; absent values are empty."""
    return records_csv([_record(row) for row in audit.rows])


def _record(row: Row) -> dict[str, object]:
    found: dict[str, object] = {
        "decision": row.instance,
        "group": row.group,
        "request": row.request,
        "outcome": row.outcome,
        "verdict": row.verdict,
        "jobs": " ".join(row.standing.jobs),
        "why": row.why,
        "room_for": row.has_room,
        "left_out": " ".join(row.left_out),
    }
    if row.held:
        found["held"] = "; ".join(f"{name} {text}" for name, text in row.held.items())
    if row.fragmentation is not None:
        own = row.fragmentation
        found |= {
            "fragmentation before": own.before,
            "fragmentation after": own.after,
            "fragmentation after the optimum": own.optimum,
        }
    found |= _standing_record(row.free, "")
    if row.contract is not None:
        found |= _standing_record(row.contract, "contract ")
    return found


def _standing_record(standing: Standing, prefix: str) -> dict[str, object]:
    own: dict[str, object] = {
        "verdict" if prefix else "free verdict": standing.verdict,
        "differs": standing.differs,
        "used": standing.used,
        "fewest": standing.fewest,
        "regret": standing.regret,
        "stranded more": standing.strands,
    }
    for level in standing.levels:
        own[level.name] = level.decision
        own[f"{level.name} possible"] = level.best
        own[f"{level.name} bound"] = level.bound
    return {f"{prefix}{name}": value for name, value in own.items()}


def rows_of(audit: Audit) -> Sequence[Row]:
    """Return all decisions, those not proven right first."""
    found = findings(audit)
    return [*found, *(row for row in audit.rows if row.verdict not in _GRAVEST_FIRST)]
