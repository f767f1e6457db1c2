"""Plots of the study of pencils."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pencils_cases import PRISMS, SCATTERED
from pencils_rows import METHODS, Row, excess, grids_of, removed
from study_page import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {"topaware": "o-", "window": "s-", "pencils": "^-", "searched": "x:"}


def draw_excess(path: Path, rows: Sequence[Row]) -> None:
    """Draw the excess against the share of unusable routers, a panel per setting and grid."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - heavy

    grids = grids_of(rows)
    figure, panels = plt.subplots(
        2, len(grids), figsize=(1 + 2.1 * len(grids), 5), sharex=True, sharey="col", squeeze=False
    )
    for line, setting in zip(panels, (SCATTERED, PRISMS), strict=True):
        for panel, grid in zip(line, grids, strict=True):
            # with nothing unusable there is no setting
            mine = [row for row in rows if row.grid == grid and row.setting in (setting, SCATTERED)]
            mine = [row for row in mine if row.setting == setting or not row.percent]
            _lines(panel, mine, lambda row: row.percent)
            panel.set_title(f"{grid}, {setting}", fontsize=9)
        line[0].set_ylabel("excess, %")
    for panel in panels[-1]:
        panel.set_xlabel("unusable routers, %")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="upper center", ncols=len(METHODS))
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    save_figure(figure, path)
    plt.close(figure)


def draw_removed(path: Path, rows: Sequence[Row]) -> None:
    """Draw the share of Topaware's excess that the optimum removes, per grid."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - heavy

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    kinds = (("window", "layout_ideal", "same window"), ("pencils", "needed", "all windows"))
    for panel, (method, base, title) in zip(panels, kinds, strict=True):
        for k, grid in enumerate(grids_of(rows)):
            for setting, style in ((SCATTERED, "o-"), (PRISMS, "s--")):
                shares = sorted({row.percent for row in rows if row.percent})
                values = [
                    removed(
                        [r for r in rows if (r.grid, r.setting, r.percent) == (grid, setting, p)],
                        method,
                        base,
                    )
                    for p in shares
                ]
                known = [(p, 100 * v) for p, v in zip(shares, values, strict=True) if v is not None]
                if known:
                    panel.plot(*zip(*known, strict=True), style, color=f"C{k}", markersize=4)
            panel.plot([], [], "-", color=f"C{k}", label=grid)
        panel.set_title(f"{title} (dashed: prisms)", fontsize=10)
        panel.set_xlabel("unusable routers, %")
        panel.set_ylim(0, 105)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("excess removed, %")
    panels[1].legend(fontsize=8)
    figure.tight_layout()
    save_figure(figure, path)
    plt.close(figure)


def draw_snapshots(path: Path, rows: Sequence[Row]) -> None:
    """Draw the excess on every snapshot, a panel per grid."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - heavy

    grids = grids_of(rows)
    figure, panels = plt.subplots(1, len(grids), figsize=(1 + 2.4 * len(grids), 3.2), squeeze=False)
    for panel, grid in zip(panels[0], grids, strict=True):
        _lines(panel, [row for row in rows if row.grid == grid], busy)
        panel.set_title(grid, fontsize=9)
        panel.set_xlabel("busy nodes, %")
    panels[0][0].set_ylabel("excess, %")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="upper center", ncols=len(METHODS))
    figure.tight_layout(rect=(0, 0, 1, 0.9))
    save_figure(figure, path)
    plt.close(figure)


def busy(row: Row) -> int:
    """Return the share of busy nodes that the name of a shipped snapshot states, in percent."""
    last = row.snapshot.rpartition("_")[2]
    return 0 if last == "empty" else int(last)


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
    panel.set_ylim(bottom=0)
    panel.grid(alpha=0.3)
