"""The page of the study of pencils: its tables, and its plots beside it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pencils_cases import PRISMS, SCATTERED, SNAPSHOT
from study_page import markdown, number, percent, picture, write_between_markers, write_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = {
    "topaware": "Topaware: leftmost",
    "window": "optimal in the same window",
    "pencils": "optimal over all windows",
    "searched": "with local search",
}
"""Fields of a row that hold hop-bytes, in the order in which each starts from the one before."""


@dataclass(frozen=True)
class Row:
    """One grid, and one state of the routers, a `seed`'s draw of so many `percent` unusable.

    Hop-bytes are None where nothing has room: of any layout with nothing unusable (`needed`) and
    of Topaware's (`layout_ideal`), then by method (`METHODS`), then the certified `bound`. A flow
    may prove the selection best in its window; all windows may have been searched or ruled out.
    """

    setting: str
    snapshot: str
    percent: int
    seed: int
    grid: str
    needed: int
    layout_ideal: int | None = None
    topaware: int | None = None
    window: int | None = None
    pencils: int | None = None
    searched: int | None = None
    bound: int | None = None
    window_proven: bool | None = None
    pencils_complete: bool | None = None
    seconds_topaware: float | None = None
    seconds_window: float | None = None
    seconds_pencils: float | None = None


def excess(rows: Sequence[Row], method: str) -> float | None:
    """Return the mean excess of a method over what is needed, as a share of that."""
    return _mean([getattr(row, method) / row.needed - 1 for row in complete(rows)])


def gap(rows: Sequence[Row], method: str) -> float | None:
    """Return the mean gap of a method to the certified bound."""
    return _mean([1 - (row.bound or 0) / getattr(row, method) for row in complete(rows)])


def removed(rows: Sequence[Row], method: str, base: str) -> float | None:
    """Return the share of Topaware's excess over `base`, a field, that a method removes.

    Excesses are added up first, so that rows with hardly any do not count as much as others.
    """
    known = complete(rows)
    before = sum(row.topaware - getattr(row, base) for row in known)
    after = sum(getattr(row, method) - getattr(row, base) for row in known)
    return (before - after) / before if before > 0 else None


def complete(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with figures of every method."""
    return [row for row in rows if row.searched is not None]


def grids_of(rows: Sequence[Row]) -> list[str]:
    """Return the grids of rows in their order, each once."""
    return list(dict.fromkeys(row.grid for row in rows))


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


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


# ---- Plots ---------------------------------------------------------------------------------------

STYLES = {"topaware": "o-", "window": "s-", "pencils": "^-", "searched": "x:"}


def draw_excess(path: Path, rows: Sequence[Row]) -> None:
    """Draw the excess against the share of unusable routers, a panel per setting and grid."""
    grids = grids_of(rows)
    size = {"figsize": (1 + 2.1 * len(grids), 5), "sharex": True, "sharey": "col"}
    with picture(path, 2, len(grids), **size) as (figure, panels):
        for line, setting in zip(panels, (SCATTERED, PRISMS), strict=True):
            for panel, grid in zip(line, grids, strict=True):
                # with nothing unusable there is no setting
                mine = [row for row in rows if row.setting == setting or not row.percent]
                _lines(panel, [row for row in mine if row.grid == grid], lambda row: row.percent)
                panel.set_title(f"{grid}, {setting}", fontsize=9)
            line[0].set_ylabel("excess, %")
        for panel in panels[-1]:
            panel.set_xlabel("unusable routers, %")
        _legend(figure, panels, 0.94)


def draw_removed(path: Path, rows: Sequence[Row]) -> None:
    """Draw the share of Topaware's excess that the optimum removes, per grid."""
    kinds = (("window", "layout_ideal", "same window"), ("pencils", "needed", "all windows"))
    shares = sorted({row.percent for row in rows if row.percent})
    with picture(path, 1, 2, figsize=(10, 4), sharey=True) as (figure, (panels,)):
        for panel, (method, base, title) in zip(panels, kinds, strict=True):
            for k, grid in enumerate(grids_of(rows)):
                for setting, style in ((SCATTERED, "o-"), (PRISMS, "s--")):
                    known = []
                    for share in shares:
                        case = (grid, setting, share)
                        mine = [r for r in rows if (r.grid, r.setting, r.percent) == case]
                        value = removed(mine, method, base)
                        if value is not None:
                            known.append((share, 100 * value))
                    if known:
                        panel.plot(*zip(*known, strict=True), style, color=f"C{k}", markersize=4)
                panel.plot([], [], "-", color=f"C{k}", label=grid)
            panel.set_title(f"{title} (dashed: prisms)", fontsize=10)
            panel.set_xlabel("unusable routers, %")
            panel.set_ylim(top=105)
        panels[0].set_ylabel("excess removed, %")
        panels[1].legend(fontsize=8)
        figure.tight_layout()


def draw_snapshots(path: Path, rows: Sequence[Row]) -> None:
    """Draw the excess on every snapshot, a panel per grid."""
    grids = grids_of(rows)
    with picture(path, 1, len(grids), figsize=(1 + 2.4 * len(grids), 3.2)) as (figure, panels):
        for panel, grid in zip(panels[0], grids, strict=True):
            _lines(panel, [row for row in rows if row.grid == grid], busy)
            panel.set_title(grid, fontsize=9)
            panel.set_xlabel("busy nodes, %")
        panels[0][0].set_ylabel("excess, %")
        _legend(figure, panels, 0.9)


def busy(row: Row) -> int:
    """Return the share of busy nodes that the name of a shipped snapshot states, in percent."""
    last = row.snapshot.rpartition("_")[2]
    return 0 if last == "empty" else int(last)


def _legend(figure: Figure, panels: Any, top: float) -> None:
    handles = panels[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="upper center", ncols=len(METHODS))
    figure.tight_layout(rect=(0, 0, 1, top))


def _lines(panel: Axes, rows: Sequence[Row], at: Callable[[Row], int]) -> None:
    """Draw the mean excess of every method; no point where nothing has room."""
    for method, label in METHODS.items():
        known = []
        for x in sorted({at(row) for row in rows}):
            value = excess([row for row in rows if at(row) == x], method)
            if value is not None:
                known.append((x, 100 * value))
        xs, ys = [x for x, _ in known], [y for _, y in known]
        panel.plot(xs, ys, STYLES[method], label=label, markersize=4)
