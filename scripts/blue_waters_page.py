"""The page of the Blue Waters study: its tables, and its plots beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from study_page import markdown, number, percent, picture, write_between_markers, write_rows

BEGIN = "<!-- tables: written by scripts/study_blue_waters.py -->"
END = "<!-- end of tables -->"
TITLE = "Blue Waters: strict prisms against node orders"

PRISM_METHODS = ("exact", "best-fit", "first-fit")
METHODS = (*PRISM_METHODS, "alps-o2", "alps-2y", "alps-4y", "random-nodes")
PLOTTED = ("exact", "best-fit", "alps-2y")

Trace = list[tuple[int, float, int]]
"""Per event: second, share of the nodes held, jobs waiting; valid until the next one."""


@dataclass(frozen=True)
class SnapshotRow:
    """One method on one snapshot, `jobs` and `nodes` started of the `idle` usable ones.

    `bound` and `gap`, ``(bound - nodes) / nodes``, are certified for conforming placements, None
    for others. `bisection` is the bandwidth per node of the started jobs, averaged over their
    nodes, in thousandths of an x link's.
    """

    snapshot: str
    method: str
    idle: int
    jobs: int
    nodes: int
    bound: int | None
    gap: float | None
    shared_links: int
    bisection: float
    seconds: float


@dataclass(frozen=True)
class ReplayRow:
    """One method on the log; the shares are those of docs/guide/replay.md, "Metrics".

    `bisection` is as in `SnapshotRow`, of the communicating jobs, averaged over their node-seconds;
    `shared_links` and `disturbed` are means of samples: the links that two communicating jobs use,
    and the share of these jobs that have such a link.
    """

    method: str
    jobs: int
    utilisation: float
    scheduling: float
    application: float
    system: float
    hours: float
    mean_wait_hours: float
    mean_waiting: float
    bisection: float
    shared_links: float
    disturbed: float
    decisions: int
    proven: int
    seconds: float


def write_study(
    folder: Path,
    snapshots: Sequence[SnapshotRow],
    replays: Sequence[ReplayRow],
    traces: Sequence[Trace],
    head: str,
) -> None:
    """Write the tables of all rows, the plots, and the tables of the page between its markers.

    Parameters
    ----------
    traces
        One per replay.
    head
        How the rows were made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "blue_waters_snapshots.csv", snapshots)
    write_rows(folder / "blue_waters_replay.csv", replays)
    by_method = dict(zip((row.method for row in replays), traces, strict=True))
    draw_snapshots(folder / "blue_waters_snapshots.png", snapshots)
    draw_replays(folder / "blue_waters_replay.png", by_method)
    parts = [
        head,
        "### Snapshots: nodes started",
        _started(snapshots),
        "![Nodes started, links shared and bisection](blue_waters_snapshots.png)",
        "### Snapshots: links shared",
        _snapshots(snapshots, lambda row: number(row.shared_links)),
        "### Snapshots: bisection bandwidth per node, thousandths of an x link",
        _snapshots(snapshots, lambda row: f"{row.bisection:.1f}"),
        "### Replay",
        _replays(replays),
        "![Utilisation and queue over time](blue_waters_replay.png)",
    ]
    page = folder / "blue_waters.md"
    write_between_markers(page, BEGIN, END, TITLE, "\n\n".join(parts))


def _started(rows: Sequence[SnapshotRow]) -> str:
    """Return the table of nodes started, with what exact proves."""
    head = ["busy", "idle nodes", "bound", "gap of exact", *METHODS]
    lines = []
    for busy, mine in _by_snapshot(rows):
        exact = mine["exact"]
        proven = number(exact.idle), number(exact.bound), percent(exact.gap)
        lines.append([busy, *proven, *(number(mine[method].nodes) for method in METHODS)])
    return markdown(head, 0, lines)


def _snapshots(rows: Sequence[SnapshotRow], cell: Callable[[SnapshotRow], str]) -> str:
    """Return a table with a line per snapshot and a column per method."""
    lines = [[busy, *(cell(mine[m]) for m in METHODS)] for busy, mine in _by_snapshot(rows)]
    return markdown(["busy", *METHODS], 0, lines)


def _by_snapshot(rows: Sequence[SnapshotRow]) -> Iterator[tuple[str, dict[str, SnapshotRow]]]:
    """Yield how busy each snapshot is, and its rows by method."""
    for name in dict.fromkeys(row.snapshot for row in rows):
        busy = "0 %" if name == "empty" else f"{name} %"
        yield busy, {row.method: row for row in rows if row.snapshot == name}


def _replays(rows: Sequence[ReplayRow]) -> str:
    head = ["method", "utilisation", "scheduling efficiency", "E_AVE", "system efficiency"]
    head += ["mean wait, h", "mean queue", "bisection", "links shared", "jobs disturbed"]
    head += ["decisions", "proven best", "s"]
    lines = [
        [
            row.method,
            *(percent(share) for share in (row.utilisation, row.scheduling)),
            *(percent(share) for share in (row.application, row.system)),
            f"{row.mean_wait_hours:.2f}",
            f"{row.mean_waiting:.1f}",
            f"{row.bisection:.1f}",
            f"{row.shared_links:,.0f}",
            percent(row.disturbed),
            number(row.decisions),
            percent(row.proven / row.decisions) if row.proven else "-",
            f"{row.seconds:,.0f}",
        ]
        for row in rows
    ]
    return markdown(head, 1, lines)


def draw_snapshots(path: Path, rows: Sequence[SnapshotRow]) -> None:
    """Draw nodes started, links shared and bisection against how busy the machine is."""
    kinds = {
        "nodes": "nodes started",
        "shared_links": "links shared",
        "bisection": "bisection per node, x link / 1000",
    }
    with picture(path, 1, 3, figsize=(13, 4), layout="constrained") as (_, (panels,)):
        for k, method in enumerate(METHODS):
            mine = [row for row in rows if row.method == method]
            busy = [0 if row.snapshot == "empty" else int(row.snapshot) for row in mine]
            style = "o-" if method in PRISM_METHODS else "x--"
            for panel, name in zip(panels, kinds, strict=True):
                values = [getattr(row, name) for row in mine]
                panel.plot(busy, values, style, color=f"C{k}", ms=4, label=method)
            if method == "exact":
                panels[0].plot(busy, [row.bound for row in mine], "k:", label="bound for prisms")
        for panel, label in zip(panels, kinds.values(), strict=True):
            panel.set_ylabel(label)
            panel.set_xlabel("busy nodes, %")
        panels[0].legend(fontsize=8)


def draw_replays(path: Path, traces: dict[str, Trace]) -> None:
    """Draw utilisation and the queue over time."""
    with picture(path, 2, 1, figsize=(10, 6), sharex=True) as (_, ((held,), (queue,))):
        for method in PLOTTED:
            hours = [at / 3600 for at, _, _ in traces[method]]
            shares = [100 * share for _, share, _ in traces[method]]
            held.step(hours, shares, where="post", lw=1, label=method)
            waiting = [jobs for _, _, jobs in traces[method]]
            queue.step(hours, waiting, where="post", lw=1, label=method)
        held.set_ylabel("nodes held, %")
        queue.set_ylabel("jobs waiting")
        queue.set_xlabel("hours")
        held.legend(fontsize=8, loc="lower center", ncols=len(PLOTTED))
