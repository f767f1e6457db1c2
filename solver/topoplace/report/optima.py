"""All optima in words and as pictures, and each as a result of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.errors import number_of
from topoplace.report.figure import full_figure, png_of
from topoplace.report.frontier import level_headers, told
from topoplace.report.text import plain_table
from topoplace.result import level_label
from topoplace.result.several import Optima
from topoplace.snapshot.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_SHOWN = 40
_MOST_NAMED = 4
_MOST_DRAWN = 6


def summary(optima: Optima, width: int = 0) -> str:
    """Return the placements as a table: what they are worth, and how they differ."""
    header = level_headers(optima)
    rows = [
        [
            str(number),
            *(f"{value:,}" for value in point.values),
            str(len(point.solution.placements)),
            _difference(optima, number) if number else "",
        ]
        for number, point in enumerate(optima.points)
    ]
    header = ["", *header, "start", "other than 0"]
    lines = [headline(optima), plain_table(header, rows[:_MOST_SHOWN], range(len(header) - 1))]
    if len(rows) > _MOST_SHOWN:
        lines.append(f"... and {number_of(len(rows) - _MOST_SHOWN, 'more point')} in the file")
    return "\n".join(lines)


def headline(optima: Optima) -> str:
    """Return one line: what counts, how many placements there are, and whether these are all."""
    state = "these are all" if optima.complete else "others may be as good"
    chosen = ", ".join(level_label(optima.instance, name) for name in optima.chosen)
    return told(optima, f"{chosen} at the optimum, {_APART[optima.distinct]}", state)


_APART = {
    "started": "distinct by who starts",
    "prisms": "distinct by prisms",
    "nodes": "distinct by nodes",
}


def _difference(optima: Optima, number: int) -> str:
    """Return who starts, does not, or starts elsewhere in a placement, against the first."""
    first, other = (
        {placement.request: placement for placement in optima.points[k].solution.placements}
        for k in (0, number)
    )
    moved = [name for name in other if name in first and first[name] != other[name]]
    parts = {
        "starts": [name for name in other if name not in first],
        "waits": [name for name in first if name not in other],
        "elsewhere": moved if optima.distinct != "started" else [],
    }
    return "; ".join(f"{_named(names)} {what}" for what, names in parts.items() if names)


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_MOST_NAMED])} and {more} more"


def plot(optima: Optima, ax: Axes | None = None, *, dark: bool = False) -> Axes:
    """Draw the first placement into `ax`, or into a new figure of pyplot."""
    return optima.result().plot(ax, dark=dark)


def write_picture(optima: Optima, path: str | Path, *, dark: bool = False) -> None:
    """Write a PNG file: the machine with the first placements."""
    figures = []
    for number in range(min(_MOST_DRAWN, len(optima.points))):
        head = [f"{number}: {_difference(optima, number)}"] if number else [headline(optima)]
        figures.append(full_figure(optima.result(number), dark=dark, head=head, essential=True))
    write_bytes(path, png_of(*figures))
