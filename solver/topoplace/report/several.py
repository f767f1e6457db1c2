"""What levels cost each other, and all optima, in words and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topoplace.errors import ExitCode, number_of
from topoplace.report.figure import full_figure, styled
from topoplace.report.text import plain_table
from topoplace.report.tiles import job_colour
from topoplace.report.view import view_of
from topoplace.result import level_label, level_title
from topoplace.result.several import Frontier, OpenBox, Optima, Several
from topoplace.snapshot.held import held_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_SHOWN = 40
_HEIGHT, _WIDTH = 4.2, 900 / 96
_TWO = 2


def summary(frontier: Frontier, width: int = 0) -> str:
    """Return the points as a table, and what is open."""
    curve = view_of(frontier).curve()
    if curve is not None:
        return "\n".join([headline(frontier), *curve])
    header = level_headers(frontier)
    rows = [
        [f"{value:,}" for value in point.values] + [str(len(point.solution.placements))]
        for point in frontier.points
    ]
    more = len(rows) - _MOST_SHOWN
    shown = rows if more <= 0 else rows[: _MOST_SHOWN - 1]
    lines = [
        headline(frontier),
        plain_table([*header, "start"], shown, right=range(len(header) + 1)),
    ]
    if more > 0:
        lines.append(f"... and {number_of(len(rows) - len(shown), 'more point')} in the file")
    return "\n".join([*lines, *(_open_text(frontier, box) for box in frontier.open)])


def level_headers(document: Several) -> list[str]:
    """Return the levels of several placements as a table heads them."""
    levels, instance = document.levels, document.instance
    return [level_title(instance, level.name, level.sense) for level in levels]


def headline(frontier: Frontier) -> str:
    """Return one line: what is traded, how many points there are, and whether these are all."""
    num = len(frontier.open)
    state = "complete" if frontier.complete else f"{number_of(num, 'box')} open"
    return told(frontier, " against ".join(_traded(frontier)), state)


def _traded(frontier: Frontier) -> list[str]:
    return [level_label(frontier.instance, name) for name in frontier.traded]


def told(document: Several, what: str, state: str) -> str:
    """Return one line about several placements: what they are, how many, and what is proven."""
    num, limits = len(document.points), document.limits
    if limits.hit:
        state += (
            f" at the time limit of {limits.time_limit:g} s" if limits.time_limit else ", ended"
        )
    text = f"{what}, {number_of(num, 'point')}, {state}"
    solver = f"{document.method}, {view_of(document).rule}{document.seconds:.2f} s"
    return f"{document.instance.name}: {text}{held_text(document.instance)} ({solver})"


def exit_code_of(document: Several) -> ExitCode:
    """Return the exit code that tells a script whether there are points."""
    return ExitCode.DONE if document.points else ExitCode.NO_SOLUTION


def _open_text(frontier: Frontier, box: OpenBox) -> str:
    ranges = zip(_traded(frontier), box.worst, box.best, strict=True)
    return "open: " + ", ".join(f"{name} {_range(*ends)}" for name, *ends in ranges)


def _range(worst: int | None, best: int | None) -> str:
    """Return a range as text, the worse end first."""
    low, high = (None if v is None else f"{v:,}" for v in (worst, best))
    if low is None or high is None:
        return "any" if low == high else f"from {low}" if high is None else f"up to {high}"
    return low if low == high else f"{low} to {high}"


def plot(frontier: Frontier, ax: Axes | None = None, *, dark: bool = False) -> Axes:
    """Draw the points, and what may be between them, into `ax` or a new figure of pyplot."""
    if ax is None:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - heavy

        ax = plt.figure().add_subplot()
    return draw(frontier, ax, dark=dark)


def draw(frontier: Frontier, axes: Axes, *, dark: bool = False) -> Axes:
    """Draw the first two levels traded against each other; colours tell the third."""
    senses = {level.name: level.sense for level in frontier.levels}
    numbers = [[*senses].index(name) for name in frontier.traded]
    columns = [[point.values[k] for point in frontier.points] for k in numbers]
    labels = [f"{level_label(frontier.instance, n)} ({senses[n]})" for n in frontier.traded]
    with styled(dark):
        from matplotlib import rcParams  # noqa: PLC0415 - heavy
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - heavy

        ink = rcParams["text.color"]
        axes.set_facecolor(rcParams["axes.facecolor"])
        axes.tick_params(colors=ink)
        axes.grid(visible=True)
        axes.set_axisbelow(True)
        axes.set_xlabel(labels[0], color=ink, fontsize=8)
        axes.set_ylabel(labels[1], color=ink, fontsize=8)
        if len(columns) == _TWO:
            xs, ys = _staircase(*columns)
            most = view_of(frontier).most()
            if most is not None:  # and on up to the most
                xs, ys = [*xs, most], [*ys, columns[1][-1]]
                for axis in (axes.xaxis, axes.yaxis):
                    axis.set_major_locator(MaxNLocator(integer=True))
            axes.plot(xs, ys, color=job_colour(0), linewidth=1)
            axes.plot(*columns, "o", color=job_colour(0), markersize=5)
            _draw_open(frontier, axes, [senses[name] for name in frontier.traded])
        else:
            dots = axes.scatter(columns[0], columns[1], c=columns[2], cmap="viridis", zorder=3)
            bar = axes.figure.colorbar(dots, ax=axes)
            bar.set_label(labels[2], color=ink, fontsize=8)
            bar.ax.tick_params(colors=ink)
    return axes


def _staircase(first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the best of the second level for every value of the first, as corners of a line."""
    xs, ys = [x for x in first for _ in range(2)], [y for y in second for _ in range(2)]
    return xs[1:], ys[:-1]


def _draw_open(frontier: Frontier, axes: Axes, senses: Sequence[str]) -> None:
    """Shade where another point may be, up to the edge where there is no limit."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - heavy

    edges = [axes.get_xlim(), axes.get_ylim()]
    for box in frontier.open:
        ends = []
        for (low, high), sense, *own in zip(edges, senses, box.worst, box.best, strict=True):
            limits = (low, high) if sense == "max" else (high, low)
            ends.append([e if v is None else v for e, v in zip(limits, own, strict=True)])
        (left, right), (down, up) = ends
        shade = Rectangle((left, down), right - left, up - down, color=job_colour(3), alpha=0.35)
        shade.set_label("may hold other points" if box is frontier.open[0] else "")
        axes.add_patch(shade)
    if frontier.open:
        axes.autoscale_view()
        axes.legend(loc="best")


def plot_figures(frontier: Frontier, *, dark: bool = False) -> list[Figure]:
    """Return the picture as a figure."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    with styled(dark):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        draw(frontier, figure.add_subplot(), dark=dark)
        figure.suptitle(headline(frontier), fontsize=9, x=0.02, ha="left")
    return [figure]


# ---- All optima ----------------------------------------------------------------------------------


_MOST_NAMED = 4
_MOST_DRAWN = 6


def optima_summary(optima: Optima, width: int = 0) -> str:
    """Return the placements as a table: their values, and how they differ."""
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
    lines = [
        optima_headline(optima),
        plain_table(header, rows[:_MOST_SHOWN], range(len(header) - 1)),
    ]
    if len(rows) > _MOST_SHOWN:
        lines.append(f"... and {number_of(len(rows) - _MOST_SHOWN, 'more point')} in the file")
    return "\n".join(lines)


def optima_headline(optima: Optima) -> str:
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


def plot_optima(optima: Optima, ax: Axes | None = None, *, dark: bool = False) -> Axes:
    """Draw the first placement into `ax`, or into a new figure of pyplot."""
    return optima.result().plot(ax, dark=dark)


def optima_figures(optima: Optima, *, dark: bool = False) -> list[Figure]:
    """Return the machine with the first placements, one above the other."""
    figures = []
    for number in range(min(_MOST_DRAWN, len(optima.points))):
        head = [f"{number}: {_difference(optima, number)}"] if number else [optima_headline(optima)]
        figures.append(full_figure(optima.result(number), dark=dark, head=head, essential=True))
    return figures
