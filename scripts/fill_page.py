"""The page of the study of filling machines: its tables, and its plots beside it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from study_page import markdown, number, picture, write_between_markers, write_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRISM_METHODS = ("first-fit", "best-fit")
NODE_ORDERS = ("alps-o2", "alps-2y", "alps-4y")
"""They give nodes in a fixed order, with shared links and without prisms: no bound holds for it."""

EXACT = "exact"
METHODS = (*PRISM_METHODS, *NODE_ORDERS, EXACT)


@dataclass(frozen=True)
class Row:
    """One method on one snapshot.

    `fill` is what was asked of the generator, `idle` the usable nodes that no job holds; between
    `incumbent` and `bound` are the most nodes any conforming placement starts. `gap` is
    ``(bound - started) / max(1, started)``, None if the method does not conform.
    """

    machine: str
    fill: int
    seed: int
    method: str
    status: str
    idle: int
    queued: int
    jobs_started: int
    started: int
    incumbent: int
    bound: int
    gap: float | None
    shared_links: int
    seconds: float


@dataclass(frozen=True)
class Short:
    """What a method starts less than the optimum, as a share of that: between two values."""

    least: float
    most: float


def short_of(rows: Sequence[Row]) -> Short:
    """Return how far the rows of one method fall short of the optimum; sums over the snapshots."""
    started = sum(row.started for row in rows)
    incumbent, bound = sum(row.incumbent for row in rows), sum(row.bound for row in rows)
    return Short(_loss(started, incumbent), _loss(started, bound))


def _loss(started: int, best: int) -> float:
    return (best - started) / best if best else 0.0


def per_fill(rows: Sequence[Row], machine: str, method: str) -> dict[int, list[Row]]:
    """Return the rows of a method on a machine by fill, ascending."""
    mine = [row for row in rows if (row.machine, row.method) == (machine, method)]
    fills = sorted({row.fill for row in mine})
    return {fill: [row for row in mine if row.fill == fill] for fill in fills}


def machines_of(rows: Sequence[Row]) -> list[str]:
    """Return the machines of rows in their order, each once."""
    return list(dict.fromkeys(row.machine for row in rows))


BEGIN, END = "<!-- tables: written by scripts/study_fill.py -->", "<!-- end of tables -->"
TITLE = "First fit and best fit against the bound as the machine fills"
SHOWN_ORDER = "alps-o2"  # all orders start about as many nodes
COLOURS = {"first-fit": "C0", "best-fit": "C1", EXACT: "C2"}


def write_study(folder: Path, rows: Sequence[Row], head: str) -> None:
    """Write the table of all rows, the plots, and the tables of the page between its markers.

    `head` says how the rows were made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "fill.csv", rows)
    parts = [head, ""]
    for machine in machines_of(rows):
        parts += [f"## {machine}", "", _prisms(rows, machine), "", _orders(rows, machine), ""]
        draw(folder / f"fill_{machine}.png", rows, machine)
    text = "\n".join(parts).rstrip()
    write_between_markers(folder / "fill.md", BEGIN, END, TITLE, text)


def _prisms(rows: Sequence[Row], machine: str) -> str:
    """Return the table of the methods that the bound holds for."""
    found = {m: per_fill(rows, machine, m) for m in (*PRISM_METHODS, EXACT)}
    head = ["busy", "idle nodes", "first-fit", "best-fit", "exact", "bound", "proven optimal"]
    head += ["first-fit short by", "best-fit short by", "exact short by", "exact, s"]
    lines = []
    for fill, exact in found[EXACT].items():
        proven = sum(row.started == row.bound for row in exact)
        lines.append(
            [
                f"{fill} %",
                _mean([row.idle for row in exact]),
                *(_mean([row.started for row in by_fill[fill]]) for by_fill in found.values()),
                _mean([row.bound for row in exact]),
                f"{proven} of {len(exact)}",
                *(_shown(short_of(by_fill[fill])) for by_fill in found.values()),
                f"{statistics.median(row.seconds for row in exact):.1f}",
            ]
        )
    return markdown(head, 0, lines)


def _orders(rows: Sequence[Row], machine: str) -> str:
    """Return the table of the node orders: nodes started and links shared."""
    found = {m: per_fill(rows, machine, m) for m in NODE_ORDERS}
    head = ["busy", *(f"{m}, {what}" for m in NODE_ORDERS for what in ("nodes", "shared links"))]
    lines = []
    for fill in found[NODE_ORDERS[0]]:
        cells = [
            _mean([getattr(row, field) for row in by_fill[fill]])
            for by_fill in found.values()
            for field in ("started", "shared_links")
        ]
        lines.append([f"{fill} %", *cells])
    return markdown(head, 0, lines)


def _mean(values: Sequence[int]) -> str:
    return number(round(statistics.fmean(values)))


def _shown(short: Short) -> str:
    least, most = f"{100 * short.least:.1f}", f"{100 * short.most:.1f}"
    return f"{least} %" if least == most else f"{least} to {most} %"


def draw(path: Path, rows: Sequence[Row], machine: str) -> None:
    """Draw a machine: shares short of the optimum, nodes started, links shared, against fill."""
    with picture(path, 1, 3, figsize=(13, 4)) as (figure, panels):
        short, started, links = panels[0]
        for method in (*PRISM_METHODS, EXACT):
            by_fill = per_fill(rows, machine, method)
            shares = [short_of(mine) for mine in by_fill.values()]
            bounds = [100 * s.least for s in shares], [100 * s.most for s in shares]
            short.fill_between(list(by_fill), *bounds, color=COLOURS[method], alpha=0.3)
            short.plot(list(by_fill), bounds[1], "o-", color=COLOURS[method], ms=4, label=method)
            _shares(started, by_fill, lambda row: row.started, method, COLOURS[method])
        exact = per_fill(rows, machine, EXACT)
        _shares(started, exact, lambda row: row.bound, "bound", "black")
        between = (_percents(exact, lambda r: r.incumbent), _percents(exact, lambda r: r.bound))
        started.fill_between(list(exact), *between, color=COLOURS[EXACT], alpha=0.3)
        ordered = per_fill(rows, machine, SHOWN_ORDER)
        _shares(started, ordered, lambda row: row.started, SHOWN_ORDER, "C3")
        for k, method in enumerate(NODE_ORDERS):
            mine = per_fill(rows, machine, method).items()
            means = [statistics.fmean(row.shared_links for row in some) for _, some in mine]
            fills = [fill for fill, _ in mine]
            links.plot(fills, means, "o-", ms=4, color=f"C{3 + k}", label=method)
        for panel, title, what in (
            (short, "short of the bound (band: unproven)", "nodes not started, % of the optimum"),
            (started, "started", "nodes, % of the idle ones"),
            (links, "shared against the rule", "links"),
        ):
            panel.set_title(title, fontsize=10)
            panel.set_ylabel(what)
            panel.set_xlabel("busy nodes, %")
            panel.legend(fontsize=8)
        figure.suptitle(machine)
        figure.tight_layout()


def _shares(
    panel: Axes,
    by_fill: dict[int, list[Row]],
    nodes: Callable[[Row], int],
    label: str,
    colour: str,
) -> None:
    """Draw nodes as a share of the idle ones, over all snapshots of a fill."""
    panel.plot(list(by_fill), _percents(by_fill, nodes), "o-", ms=4, label=label, color=colour)


def _percents(by_fill: dict[int, list[Row]], nodes: Callable[[Row], int]) -> list[float]:
    return [100 * sum(map(nodes, m)) / sum(row.idle for row in m) for m in by_fill.values()]
