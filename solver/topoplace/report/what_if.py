"""Scenarios side by side, in words."""

from __future__ import annotations

from topoplace.report.summary import headline, level_rows
from topoplace.report.text import gap_text, plain_table
from topoplace.study.what_if import Scenario, WhatIf

_MOST_NAMED = 12


def table(found: WhatIf, num_worth: int | None = None) -> str:
    """Return a row per scenario, who starts otherwise, and what running jobs are worth.

    Parameters
    ----------
    num_worth
        How many running jobs to name; all by default.
    """
    base = found.scenarios[0]
    names = [name for row in level_rows(base.result) for name in (row[0], "bound")]
    header = ["scenario", *names[:2], "gap", "gain", "at most", *names[2:]]
    rows = [_row(one) for one in found.scenarios]
    lines = [headline(base.result), plain_table(header, rows, right=range(1, len(header)))]
    lines += [line for one in found.scenarios for line in _others(one)]
    if found.worth:
        shown = found.worth[:num_worth]
        told = [[one.job, _signed(one.at_most)] for one in shown]
        lines.append("what a running job's release can gain at most, as the base's proof bounds it")
        lines.append(plain_table(["running job", "at most"], told, right=(1,)))
    if found.interrupted:
        lines.append("interrupted: what is missing was not solved")
    return "\n".join(lines)


def _row(one: Scenario) -> list[str]:
    levels = [text for row in level_rows(one.result) for text in row[1:3]]
    own = [gap_text(one.result.gap), _signed(one.gain), _signed(one.at_most)]
    return [one.name, *levels[:2], *own, *levels[2:]]


def _signed(value: int | None) -> str:
    return "-" if value is None else f"{value:+,}" if value else "0"


def _others(one: Scenario) -> list[str]:
    """Return a line on who starts other than in the base, if anybody does."""
    parts = [
        f"{word} {_listed(names)}"
        for word, names in (("also starts", one.starts), ("no longer starts", one.waits))
        if names
    ]
    return [f"{one.name}: {'; '.join(parts)}"] if parts else []


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
