"""The page of the study of pencils: its tables, and its plots beside it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from pencils_cases import PRISMS, SCATTERED, SNAPSHOT
from pencils_plots import draw_excess, draw_removed, draw_snapshots
from pencils_rows import METHODS, Row, complete, excess, gap, grids_of, removed
from study_page import markdown, number, percent, write_between_markers, write_rows

BEGIN, END = "<!-- tables: written by scripts/study_pencils.py -->", "<!-- end of tables -->"
TITLE = "Pencils: the leftmost usable routers against the optimal selection"


def write_study(folder: Path, rows: Sequence[Row], head: str) -> None:
    """Write the table of all rows, the plots, and the tables of the page between its markers.

    `head` says how the rows were made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "pencils.csv", rows)
    drawn = [row for row in rows if row.setting != SNAPSHOT]
    shipped = [row for row in rows if row.setting == SNAPSHOT]
    parts = [head, ""]
    if drawn:
        parts += ["## By share of unusable routers", "", _by_percent(drawn), ""]
        parts += ["## By grid", "", _by_grid(drawn), ""]
    if shipped:
        parts += ["## Snapshots of Blue Waters", "", _by_snapshot(shipped), ""]
    text = "\n".join(parts).rstrip()
    write_between_markers(folder / "pencils.md", BEGIN, END, TITLE, text)
    if drawn:
        draw_excess(folder / "pencils_excess.png", drawn)
        draw_removed(folder / "pencils_removed.png", drawn)
    if shipped:
        draw_snapshots(folder / "pencils_snapshots.png", shipped)


HEAD = (
    "have room",
    "Topaware",
    "same window",
    "all windows",
    "and search",
    "removed in the window",
    "removed by all windows",
    "gap, Topaware",
    "gap, all windows",
)


def _figures(rows: Sequence[Row]) -> list[str]:
    """Return the cells below `HEAD`."""
    return [
        f"{sum(row.topaware is not None for row in rows)} of {len(rows)}",
        *(percent(excess(rows, method)) for method in METHODS),
        percent(removed(rows, "window", "layout_ideal")),
        percent(removed(rows, "pencils", "needed")),
        *(percent(gap(rows, method)) for method in ("topaware", "pencils")),
    ]


def _by_percent(rows: Sequence[Row]) -> str:
    head = ["unusable", "share", *HEAD, "s, Topaware", "s, same window", "s, all windows"]
    lines = []
    for setting in (SCATTERED, PRISMS):
        for share in sorted({row.percent for row in rows if row.setting == setting}):
            mine = [row for row in rows if (row.setting, row.percent) == (setting, share)]
            seconds = [
                _median([getattr(row, f"seconds_{method}") for row in complete(mine)])
                for method in list(METHODS)[:3]
            ]
            kind = setting if share else "none"
            lines.append([kind, f"{share} %", *_figures(mine), *seconds])
    return markdown(head, 1, lines)


def _by_grid(rows: Sequence[Row]) -> str:
    """Return a line for every grid and setting, over all shares of unusable routers but none."""
    lines = []
    for grid in grids_of(rows):
        for setting in (SCATTERED, PRISMS):
            mine = [
                row for row in rows if (row.grid, row.setting) == (grid, setting) and row.percent
            ]
            lines.append([grid, setting, *_figures(mine)])
    return markdown(["grid", "unusable", *HEAD], 2, lines)


def _by_snapshot(rows: Sequence[Row]) -> str:
    head = ["snapshot", "grid", *METHODS.values(), "needed", "bound", "removed", "all windows, s"]
    lines = []
    for row in rows:
        lines.append(
            [
                row.snapshot,
                row.grid,
                *(number(getattr(row, method)) for method in METHODS),
                number(row.needed),
                number(row.bound),
                percent(removed([row], "pencils", "needed")),
                _search_seconds(row),
            ]
        )
    return markdown(head, 2, lines)


def _search_seconds(row: Row) -> str:
    """Return what the search over all windows took, and whether the time limit ended it."""
    if row.topaware is None:
        return "-"
    if row.seconds_pencils is None:
        return "limit, no window"
    return f"{row.seconds_pencils:.1f}{'' if row.pencils_complete else ', limit'}"


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f}" if values else "-"
