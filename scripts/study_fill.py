"""How far first fit and best fit are from the certified bound as a machine fills.

Snapshots of two machines at fills from 0 to 90 %, several seeds each: Blue Waters with the workload
of Enos 2014, and a torus of 8x8x8 with that workload scaled down. Every method runs on each as a
batch, so that a study that was killed goes on where it stopped; the checker verifies every result,
or the study stops. Writes fill.md (between its markers), fill.csv and the plots.

    python scripts/study_fill.py [--seeds N N] [--time-limits S S] [--jobs N] [--work DIR]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from build_instances import SEED
from generate_snapshots import Workload, generate_snapshot, workload_for
from study_page import (
    STUDIES,
    markdown,
    number,
    picture,
    spawned,
    stamp,
    write_between_markers,
    write_rows,
)
from topoplace.certify import check_file
from topoplace.errors import InputError, TopoplaceError
from topoplace.result import Proof
from topoplace.snapshot.files import write_document
from topoplace.snapshot.machines import load_snapshot, load_torus
from topoplace.snapshot.schema import TorusModel
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.run import SOLVER, Batch, run_batch
from topoplace.study.batch.task import Limits, Settings

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
        plot(folder / f"fill_{machine}.png", rows, machine)
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


def plot(path: Path, rows: Sequence[Row], machine: str) -> None:
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


FILLS = tuple(range(0, 100, 10))
MACHINES = ("blue_waters", "bluegene_8x8x8")
WORK = STUDIES.parent.parent / "out" / "study_fill"
_SEED_STEP = 1000  # of the draws of one fill; the first is that of the shipped snapshots
_MAX_DRAWS = 10


@dataclass(frozen=True)
class Drawn:
    """A snapshot file and where it comes from."""

    path: Path
    fill: int
    seed: int


def draw(machine: TorusModel, fills: Iterable[int], num_seeds: int, folder: Path) -> list[Drawn]:
    """Write snapshots of every fill, those of earlier runs excepted, and return them all.

    Of the first `_MAX_DRAWS` seeds of a fill those with which the generator reaches it, at most
    `num_seeds`: a machine that is nearly full often has no hole left that is right for any job.

    Raises
    ------
    InputError
        If no seed reaches a fill.
    """
    folder.mkdir(parents=True, exist_ok=True)
    workload = workload_for(machine)
    found: list[Drawn] = []
    for fill in fills:
        mine: list[Drawn] = []
        for seed in range(SEED + fill, SEED + fill + _SEED_STEP * _MAX_DRAWS, _SEED_STEP):
            path = folder / f"{machine.name}-{fill}-{seed}.json"
            if len(mine) < num_seeds and _written(path, machine, workload, fill, seed):
                mine.append(Drawn(path, fill, seed))
        if not mine:
            raise InputError(
                f"a fill that a seed reaches on {machine.name}", field="--fills", value=fill
            )
        found += mine
    return found


def _written(path: Path, machine: TorusModel, workload: Workload, fill: int, seed: int) -> bool:
    """Write a snapshot unless it is there; tell whether the generator reaches the fill."""
    unreached = path.with_suffix(".unreached")  # so that a later run need not try again
    if not path.exists() and not unreached.exists():
        try:
            write_document(path, generate_snapshot(machine, workload, fill, seed))
        except InputError:
            unreached.touch()
    return path.exists()


def solve(method: str, drawn: Sequence[Drawn], folder: Path, time_limit: float, jobs: int) -> Batch:
    """Run a method on all snapshots that have no result of it yet."""
    limit = time_limit if method == EXACT else None
    limits = Limits(kill_after=None if limit is None else 2 * limit + 120)
    done = run_batch(
        [entry.path for entry in drawn],
        folder,
        Settings(method=method, time_limit=limit),
        executor=Pool(SOLVER, jobs, limits),
        progress=lambda k, n: print(f"{folder.parent.name} {method}: {k} of {n}", file=sys.stderr),
    )
    for row in done.rows:
        if row.failed:
            raise TopoplaceError(f"{row.file}, {method}: {row.status}, {row.message}")
    return done


def verified(path: Path) -> bool:
    """Tell whether the checker confirms every claim of a result file, none by search alone."""
    return check_file(path).verified


def require_verified(paths: Sequence[Path], jobs: int) -> None:
    """Raise `TopoplaceError` unless the checker verifies every result file."""
    with spawned(jobs) as pool:
        for path, holds in zip(paths, pool.map(verified, paths), strict=True):
            if not holds:
                raise TopoplaceError(f"{path}: the checker does not verify it")


def rows_of(machine: str, drawn: Sequence[Drawn], batches: dict[str, Batch]) -> list[Row]:
    """Return a row for every snapshot and method."""
    found = {(row.file, method): row for method, batch in batches.items() for row in batch.rows}
    rows: list[Row] = []
    for entry in drawn:
        mine = {method: found[entry.path.as_posix(), method] for method in batches}
        if mine[EXACT].proof != Proof.CERTIFICATE:
            raise TopoplaceError(f"{entry.path}: exact has no certificate")
        incumbent = max(int(row.objective) for m, row in mine.items() if m not in NODE_ORDERS)
        bound = int(mine[EXACT].bound)
        idle = int(load_snapshot(entry.path).usable.sum())
        for method, row in mine.items():
            started = int(row.objective)
            rows.append(
                Row(
                    machine=machine,
                    fill=entry.fill,
                    seed=entry.seed,
                    method=method,
                    status=row.status,
                    idle=idle,
                    queued=row.queued or 0,
                    jobs_started=row.started or 0,
                    started=started,
                    incumbent=incumbent,
                    bound=bound,
                    gap=None if method in NODE_ORDERS else (bound - started) / max(1, started),
                    shared_links=row.shared_links or 0,
                    seconds=row.seconds or 0.0,
                )
            )
    return rows


def study(name: str, options: argparse.Namespace, num_seeds: int, time_limit: float) -> list[Row]:
    """Return the rows of one machine."""
    work = options.work / name
    drawn = draw(load_torus(name), options.fills, num_seeds, work / "snapshots")
    batches = {m: solve(m, drawn, work / m, time_limit, options.jobs) for m in METHODS}
    results = [work / m / row.result for m, batch in batches.items() for row in batch.rows]
    require_verified(results, options.jobs)
    return rows_of(name, drawn, batches)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page, its table and its plots."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--machines", nargs="*", choices=MACHINES, default=MACHINES)
    parser.add_argument("--fills", nargs="*", type=int, default=FILLS, metavar="P")
    parser.add_argument(
        "--seeds", nargs=2, type=int, default=(3, 6), metavar="N", help="per fill, by machine"
    )
    parser.add_argument(
        "--time-limits", nargs=2, type=float, default=(60, 20), metavar="S", help="of exact"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    parser.add_argument("--work", type=Path, default=WORK, metavar="DIR", help="results are kept")
    parser.add_argument("-o", "--output", type=Path, default=STUDIES, metavar="DIR")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    notes = []
    for name, seeds, limit in zip(MACHINES, options.seeds, options.time_limits, strict=True):
        if name in options.machines:
            rows += study(name, options, seeds, limit)
            notes.append(
                f"{name}: at most {seeds} snapshots for every fill, {limit:g} s for exact;"
            )
    notes.append(f"{options.jobs} processes.")
    head = stamp("study_fill.py", arguments) + "\n\n" + "\n".join(notes)
    write_study(options.output, rows, head)


if __name__ == "__main__":
    main()
