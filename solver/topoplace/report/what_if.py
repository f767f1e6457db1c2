"""Scenarios side by side, in words."""

from __future__ import annotations

from topoplace.report.summary import headline, level_rows
from topoplace.report.text import count_text, gap_text, plain_table
from topoplace.result import level_label
from topoplace.study.what_if import Scenario, WhatIf

_MOST_NAMED = 12


def table(found: WhatIf, num_worth: int | None = None) -> str:
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
    lines = [headline(base.result), plain_table(header, rows, right=range(1, len(header)))]
    lines += [line for one in found.scenarios for line in _others(one)]
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
