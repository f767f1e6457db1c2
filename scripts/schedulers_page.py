"""The page of the study of schedulers: its tables, and its plots beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from study_page import markdown, number, percent, picture, write_between_markers, write_rows
from topoplace.study.audit.judging import Verdict
from topoplace.study.audit.run import Audit, Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "Schedulers of hierarchies against the optimum"
END = "<!-- end of tables -->"

METHODS = (
    *("exact", "kueue", "kueue-balanced", "kueue-least-free", "slurm-block", "slurm-tree"),
    *("tree-best-fit", "first-fit", "random"),
)
QUEUE_METHODS = tuple(method for method in METHODS if method != "slurm-tree")
TORUS_METHODS = ("exact", "slurm-torus3d", "best-fit", "first-fit")
PLOTTED = ("kueue", "kueue-least-free", "slurm-block", "slurm-tree", "tree-best-fit", "first-fit")


def begin(part: str) -> str:
    """Return the marker before the tables of a part."""
    return f"<!-- {part}: written by scripts/study_schedulers.py -->"


@dataclass(frozen=True)
class RecordedRow:
    """A recorded decision: what is found, under a contract where it is held to one, and free.

    `used` and `fewest` are domains of the level of its regret; None where nothing counts.
    """

    scheduler: str
    decision: str
    group: str
    verdict: str
    free_verdict: str
    used: int | None
    fewest: int | None


@dataclass
class Counted:
    """Jobs placed one by one that could be, how a method does, added up.

    Attributes
    ----------
    fit, placed, optimal
        Jobs that fit; of these placed; of these with the least.
    used, fewest
        Over the jobs placed: what they use, racks or blocked nodes, and the least.
    """

    fit: int = 0
    placed: int = 0
    optimal: int = 0
    used: int = 0
    fewest: int = 0

    def count(self, is_placed: bool, used: int, fewest: int) -> None:
        """Add a job that fits."""
        self.fit += 1
        if is_placed:
            self.placed += 1
            self.optimal += used == fewest
            self.used += used
            self.fewest += fewest

    def add(self, other: Counted) -> None:
        """Add what others have counted."""
        for name in Counted.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def regret(self) -> float:
        """What is used above the least, as a share of the least."""
        return (self.used - self.fewest) / max(1, self.fewest)


@dataclass
class _Alone:
    load: int
    seed: int
    segments: bool
    method: str


@dataclass
class AloneRow(Counted, _Alone):
    """A method on a cluster, each job of its queue alone."""


@dataclass(frozen=True)
class QueueRow:
    """A method on the queue of a cluster; bounds of `exact` only."""

    load: int
    seed: int
    method: str
    jobs: int
    hosts: int
    bound: int | None
    racks: int
    racks_bound: int | None


@dataclass
class _Torus:
    load: int
    seed: int
    method: str


@dataclass
class TorusRow(Counted, _Torus):
    """A method on a torus: each job alone, and nodes started of the whole queue with the bound."""

    started: int = 0
    bound: int = 0


# ---- Recorded decisions --------------------------------------------------------------------------


def write_recorded(
    folder: Path, run: str, audits: Mapping[str, Audit], rows: Sequence[RecordedRow]
) -> None:
    """Write the tables of all audits, each on the page of its scheduler too, and the CSV file."""
    write_rows(folder / "schedulers_recorded.csv", rows)
    tables = {name: recorded_table(audit) for name, audit in audits.items()}
    joined = "\n\n".join(f"### {name}\n\n{table}" for name, table in tables.items())
    _write(folder, "recorded", f"{run}\n\n{joined}")
    pages = folder.parent / "schedulers"
    for name, table in tables.items():
        path = pages / f"{name}.md"
        if path.exists():
            write_between_markers(path, begin("recorded"), END, name, table)


def recorded_table(audit: Audit) -> str:
    """Return a table with a row per group of decisions, and one for all."""
    head = ["decisions", "", "started", "optimal", "used", "fewest", "regret"]
    head += ["waiting", "fits, free", "invalid"]
    if audit.contract is not None:
        head[8:8] = ["fits the contract"]
    return markdown(head, 1, [_recorded_cells(group) for group in (*audit.groups, audit.total)])


def _recorded_cells(group: Group) -> list[str]:
    free, started = group.free, group.free.started
    cells = [group.name, number(group.decisions), number(started)]
    cells += [percent((started - free.above) / started if started else None)]
    cells += [number(free.used), number(free.fewest)]
    cells += [f"{float(free.percent):.1f} %" if started else "-", number(group.waiting)]
    cells += [] if group.fits_contract is None else [number(group.fits_contract)]
    return [*cells, number(group.fits), number(group.verdicts[Verdict.INVALID])]


# ---- Drawn states --------------------------------------------------------------------------------

Row = TypeVar("Row", AloneRow, TorusRow)


def summed(rows: Iterable[Counted]) -> Counted:
    """Return what rows have counted, added up."""
    total = Counted()
    for row in rows:
        total.add(row)
    return total


def write_alone(folder: Path, run: str, rows: Sequence[AloneRow]) -> None:
    """Write the tables of jobs placed one by one, the CSV file and the plots."""
    write_rows(folder / "schedulers_alone.csv", rows)
    parts = [run]
    for segments, title in ((True, "With segments"), (False, "Without segments")):
        own = [row for row in rows if row.segments is segments]
        parts.append(f"### {title}\n\n{alone_table(own, METHODS)}")
    _write(folder, "alone", "\n\n".join(parts))
    _draw_alone(folder / "schedulers_alone.png", rows)


def alone_table(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """Return a table with a row per method: all loads added up, and the regret by load."""
    loads = sorted({row.load for row in rows})
    head = ["method", "jobs that fit", "placed", "with the least", "used", "least", "regret"]
    head += [f"at {load} %" for load in loads]
    return markdown(head, 1, [_alone_cells(rows, method, loads) for method in methods])


def _alone_cells(rows: Sequence[Row], method: str, loads: Sequence[int]) -> list[str]:
    own = [row for row in rows if row.method == method]
    total = summed(own)
    cells = [method, number(total.fit), number(total.placed)]
    cells += [percent(total.optimal / total.placed if total.placed else None)]
    cells += [number(total.used), number(total.fewest), _regret(total)]
    return cells + [_regret(summed(row for row in own if row.load == load)) for load in loads]


def _regret(counted: Counted) -> str:
    return percent(counted.regret if counted.placed else None)


def _draw_alone(path: Path, rows: Sequence[AloneRow]) -> None:
    with picture(path, 1, 2, figsize=(10, 4)) as (figure, panels):
        for panel, segments in zip(panels[0], (True, False), strict=True):
            own = [row for row in rows if row.segments is segments]
            _lines(panel, own, PLOTTED, lambda some: 100 * summed(some).regret)
            panel.set_title(f"each job alone, with{'' if segments else 'out'} segments", size=10)
            panel.set_ylabel("domains above the fewest, %")
        figure.tight_layout()


def _lines(
    panel: Axes,
    rows: Sequence[Row],
    methods: Sequence[str],
    figure_of: Callable[[list[Row]], float],
) -> None:
    """Draw a line per method over the loads, if it places half of the jobs at least."""
    loads = sorted({row.load for row in rows})
    for colour, method in enumerate(methods):
        own = [[r for r in rows if r.method == method and r.load == load] for load in loads]
        if all(2 * summed(some).placed >= summed(some).fit for some in own):
            values = [figure_of(some) for some in own]
            panel.plot(loads, values, "o-", ms=4, color=f"C{colour}", label=method)
    panel.set_xlabel("hosts in use, %")
    panel.legend(fontsize=8)


def write_queue(folder: Path, run: str, rows: Sequence[QueueRow]) -> None:
    """Write the table of whole queues, the CSV file and the plot."""
    write_rows(folder / "schedulers_queue.csv", rows)
    loads = sorted({row.load for row in rows})
    head = ["load", *QUEUE_METHODS, "bound", "proven", "racks of exact", "bound"]
    _write(
        folder, "queue", f"{run}\n\n{markdown(head, 1, [_queue_cells(rows, ld) for ld in loads])}"
    )
    _draw_queue(folder / "schedulers_queue.png", rows, loads)


def _queue_cells(rows: Sequence[QueueRow], load: int) -> list[str]:
    by_method = {
        m: [row for row in rows if row.load == load and row.method == m] for m in QUEUE_METHODS
    }
    exact = by_method["exact"]
    proven = sum(row.hosts == row.bound for row in exact)
    return [
        f"{load} %",
        *(number(sum(row.hosts for row in own)) for own in by_method.values()),
        number(sum(row.bound or 0 for row in exact)),
        f"{proven} of {len(exact)}",
        number(sum(row.racks for row in exact)),
        number(sum(row.racks_bound or 0 for row in exact)),
    ]


def _draw_queue(path: Path, rows: Sequence[QueueRow], loads: Sequence[int]) -> None:
    def total(method: str, load: int, figure_of: Callable[[QueueRow], int]) -> int:
        return sum(figure_of(r) for r in rows if r.method == method and r.load == load)

    bounds = [total("exact", load, lambda row: row.bound or 0) for load in loads]
    with picture(path, 1, 1, figsize=(6, 4)) as (figure, panels):
        panel = panels[0, 0]
        for colour, method in enumerate((*QUEUE_METHODS[1:], "exact")):
            hosts = [total(method, load, lambda row: row.hosts) for load in loads]
            short = [100 * (most - own) / most for own, most in zip(hosts, bounds, strict=True)]
            panel.plot(loads, short, "o-", ms=4, color=f"C{colour}", label=method)
        panel.set_title("whole queues, with segments", size=10)
        panel.set_ylabel("hosts not started, % of the bound")
        panel.set_xlabel("hosts in use, %")
        panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.tight_layout()


def write_torus(folder: Path, run: str, rows: Sequence[TorusRow]) -> None:
    """Write the tables of tori with anchored prisms, on Slurm's page too, and the CSV file."""
    write_rows(folder / "schedulers_torus.csv", rows)
    table = f"{alone_table(rows, TORUS_METHODS)}\n\n{_started_table(rows)}"
    _write(folder, "torus", f"{run}\n\n{table}")
    path = folder.parent / "schedulers" / "slurm-torus3d.md"
    if path.exists():
        write_between_markers(path, begin("torus"), END, "slurm-torus3d", table)


def _started_table(rows: Sequence[TorusRow]) -> str:
    loads = sorted({row.load for row in rows})
    cells = []
    for load in loads:
        by_method = [[r for r in rows if r.load == load and r.method == m] for m in TORUS_METHODS]
        started = [number(sum(row.started for row in own)) for own in by_method]
        cells.append([f"{load} %", *started, number(sum(row.bound for row in by_method[0]))])
    return markdown(["load", *TORUS_METHODS, "bound"], 1, cells)


def _write(folder: Path, part: str, text: str) -> None:
    write_between_markers(folder / "schedulers.md", begin(part), END, TITLE, text)
