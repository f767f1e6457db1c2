"""The page of the profile of the exact method: its tables, its picture and its CSV file."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from families import Family
from profiles import BEFORE, THIS, Run
from study_page import markdown, picture, stamp, write_between_markers, write_rows

BEGIN = "<!-- tables: written by scripts/bench_place.py --unseen -->"
END = "<!-- end of tables -->"
TITLE = "Exact placement on snapshots nobody looked at"
MOMENTS = (1, 10, 30, 60, 120)
"""Seconds of a solve at which a profile is taken, as far as the time limit reaches."""

_FIRST_PANEL = "blue_waters"  # families whose names begin so share a panel


def write_profile(folder: Path, families: Sequence[Family], runs: Sequence[Run]) -> None:
    """Write the tables of the page between its markers, the picture and all runs."""
    ordered = sorted(runs, key=lambda run: (run.family, run.seed, run.version))
    write_rows(folder / "profiles.csv", [_row(run) for run in ordered])
    parts = [
        _head(runs),
        "",
        "## This version",
        "",
        _profile(families, runs),
        "",
        _needs(families, runs),
    ]
    if any(run.version == BEFORE for run in runs):
        parts += ["", "## Beside the version before", "", _beside(families, runs)]
    write_between_markers(folder / "profiles.md", BEGIN, END, TITLE, "\n".join(parts))
    draw(folder / "profiles.png", families, [run for run in runs if run.version == THIS])


def _head(runs: Sequence[Run]) -> str:
    """Say of what the tables are; every row has its seeds in the CSV file."""
    seeds = sorted({run.seed for run in runs})
    return (
        f"{stamp('bench_place.py', None)}\n\nSeeds {seeds[0]} to {seeds[-1]}, {os.cpu_count()} "
        "cores, one solve at a time, in a process of its own."
    )


def _row(run: Run) -> dict[str, object]:
    """Return a run as a line of the CSV file: shares at moments instead of the trace."""
    return {
        "family": run.family,
        "seed": run.seed,
        "version": run.version,
        "time_limit": run.time_limit,
        "objective": run.objective,
        "bound": run.bound,
        "proven_after": run.proven,
        **{f"gap_{moment}": run.gap(moment) for moment in MOMENTS},
        "seconds": run.seconds,
        "command_seconds": run.command_seconds,
        "peak_mb": run.peak_mb,
        "certificate_bytes": run.certificate_bytes,
        "check_seconds": run.check_seconds,
        "checked": run.checked,
    }


def _of(family: Family, runs: Sequence[Run], version: str = THIS) -> list[Run]:
    return [run for run in runs if (run.family, run.version) == (family.name, version)]


def _moments(runs: Iterable[Run]) -> list[int]:
    longest = max(run.time_limit for run in runs)
    return [moment for moment in MOMENTS if moment <= longest]


def share_proven(runs: Sequence[Run], seconds: float) -> float:
    """Return the share of runs whose first level was proven optimal within so many seconds."""
    return sum(run.proven is not None and run.proven <= seconds for run in runs) / len(runs)


def _profile(families: Sequence[Family], runs: Sequence[Run]) -> str:
    """Return the table of what is proven, and of the gaps there are, after some seconds."""
    moments = _moments(runs)
    head = ["snapshots", "number", *(f"proven in {moment} s" for moment in moments)]
    head += [f"gap at {moment} s" for moment in moments]
    lines = []
    for family in families:
        mine = _of(family, runs)
        if mine:
            shares = [f"{100 * share_proven(mine, moment):.0f} %" for moment in moments]
            gaps = [_gaps(mine, moment) for moment in moments]
            lines.append([family.title, str(len(mine)), *shares, *gaps])
    return markdown(head, 1, lines)


def _gaps(runs: Sequence[Run], seconds: float) -> str:
    """Return the median gap, and the largest; a dash where there is none yet."""
    gaps = sorted(_or_infinite(run.gap(seconds)) for run in runs)
    return f"{_percent(gaps[len(gaps) // 2])} ({_percent(gaps[-1])})"


def _or_infinite(gap: float | None) -> float:
    return float("inf") if gap is None else gap


def _percent(gap: float) -> str:
    return "-" if gap == float("inf") else "0" if gap == 0 else f"{100 * gap:.2f} %"


def _needs(families: Sequence[Family], runs: Sequence[Run]) -> str:
    """Return the table of time, memory, certificates and their check."""
    head = ["snapshots", "solve, median s", "longest s", "of a limit of", "peak memory, MB"]
    head += ["largest result, MB", "longest check, s", "check / solve, most", "accepted"]
    lines = []
    for family in families:
        mine = _of(family, runs)
        if mine:
            lines.append(
                [
                    family.title,
                    f"{statistics.median(run.seconds for run in mine):.1f}",
                    f"{max(run.seconds for run in mine):.1f}",
                    f"{mine[0].time_limit:g}",
                    f"{max(run.peak_mb for run in mine):.0f}",
                    f"{max(run.certificate_bytes for run in mine) / 1e6:.1f}",
                    f"{max(run.check_seconds for run in mine):.1f}",
                    f"{max(run.check_seconds / run.command_seconds for run in mine):.2f}",
                    f"{sum(run.checked for run in mine)} of {len(mine)}",
                ]
            )
    return markdown(head, 1, lines)


def _beside(families: Sequence[Family], runs: Sequence[Run]) -> str:
    """Return the table of this version and the one before, where both have a run."""
    head = ["snapshots", "number"]
    for what in ("proven in 30 s", "proven in the limit", "gap at the limit", "solve, median s"):
        head += [what, "before"]
    lines = []
    for family in families:
        both = {version: _of(family, runs, version) for version in (THIS, BEFORE)}
        common = {run.seed for run in both[THIS]} & {run.seed for run in both[BEFORE]}
        pair = [[run for run in mine if run.seed in common] for mine in both.values()]
        if common:
            cells = [family.title, str(len(common))]
            for mine in zip(*(_compared(mine) for mine in pair), strict=True):
                cells += mine
            lines.append(cells)
    return markdown(head, 1, lines)


def _compared(runs: Sequence[Run]) -> list[str]:
    limit = runs[0].time_limit
    return [
        f"{round(len(runs) * share_proven(runs, 30))}",
        f"{round(len(runs) * share_proven(runs, limit + 1))}",
        _gaps(runs, limit + 1),
        f"{statistics.median(run.seconds for run in runs):.1f}",
    ]


def draw(path: Path, families: Sequence[Family], runs: Sequence[Run]) -> None:
    """Draw the share of snapshots that are proven over the seconds of the solve."""
    longest = max(run.time_limit for run in runs)
    there = [family for family in families if _of(family, runs)]
    sides = {
        "Blue Waters by fill": [f for f in there if f.name.startswith(_FIRST_PANEL)],
        "other families": [f for f in there if not f.name.startswith(_FIRST_PANEL)],
    }
    shown = {title: side for title, side in sides.items() if side}
    size = (5.5 * len(shown), 4.5)
    with picture(path, 1, len(shown), figsize=size, sharey=True) as (_, panels):
        panels[0, 0].set_ylabel("snapshots proven optimal, %")
        for panel, (title, side) in zip(panels[0], shown.items(), strict=True):
            for family in side:
                mine = _of(family, runs)
                times = sorted(run.proven for run in mine if run.proven is not None)
                shares = [100 * k / len(mine) for k in range(len(times) + 1)]
                steps = [0.1, *times, longest], [*shares, shares[-1]]
                panel.step(*steps, where="post", label=family.title)
            panel.set(title=title, xscale="log", xlabel="seconds of the solve")
            panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2)
