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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from build_instances import SEED
from generate_snapshots import Workload, generate_snapshot, workload_for
from study import ROOT, Column, Record, Study, curve, groups, spawned, table, total
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

Group = dict[str, list[Record]]
"""The records of one fill of a machine, by method."""

PRISM_METHODS = ("first-fit", "best-fit")
NODE_ORDERS = ("alps-o2", "alps-2y", "alps-4y")
"""They give nodes in a fixed order, with shared links and without prisms: no bound holds for it."""

EXACT = "exact"
METHODS = (*PRISM_METHODS, *NODE_ORDERS, EXACT)
SHOWN_ORDER = "alps-o2"  # all orders start about as many nodes
COLOURS = {"first-fit": "C0", "best-fit": "C1", EXACT: "C2", SHOWN_ORDER: "C3"}
MACHINES = ["blue_waters", "bluegene_8x8x8"]
_SEED_STEP = 1000  # of the draws of one fill; the first is that of the shipped snapshots
_MAX_DRAWS = 10


# ---- The page ------------------------------------------------------------------------------------


def short_of(rows: Sequence[Record]) -> tuple[float, float]:
    """Return how far the rows of one method fall short of the optimum, as a share of that.

    It is between two values, by the best placements known and by the bounds, each added up.
    """
    started, bests = total(rows, "started"), [total(rows, name) for name in ("incumbent", "bound")]
    least, most = ((best - started) / best if best else 0.0 for best in bests)
    return least, most


def _mean(method: str, field: str) -> Callable[[Group], int]:
    return lambda own: round(statistics.fmean(getattr(row, field) for row in own[method]))


def _short(method: str) -> Callable[[Group], str]:
    def shown(own: Group) -> str:
        least, most = (f"{100 * share:.1f}" for share in short_of(own[method]))
        return f"{least} %" if least == most else f"{least} to {most} %"

    return shown


def _proven(own: Group) -> str:
    return f"{sum(row.started == row.bound for row in own[EXACT])} of {len(own[EXACT])}"


BUSY: Column = ("busy", lambda own: f"{own[EXACT][0].fill} %")
PRISMS: list[Column] = [
    *(BUSY, ("idle nodes", _mean(EXACT, "idle"))),
    *((method, _mean(method, "started")) for method in (*PRISM_METHODS, EXACT)),
    *(("bound", _mean(EXACT, "bound")), ("proven optimal", _proven)),
    *((f"{method} short by", _short(method)) for method in (*PRISM_METHODS, EXACT)),
    ("exact, s", lambda own: f"{statistics.median(row.seconds for row in own[EXACT]):.1f}"),
]
"""Of the methods that the bound holds for."""

ORDERS: list[Column] = [BUSY]
for _method in NODE_ORDERS:
    ORDERS.append((f"{_method}, nodes", _mean(_method, "started")))
    ORDERS.append((f"{_method}, shared links", _mean(_method, "shared_links")))


def write(study: Study, rows: Sequence[Record], notes: str) -> None:
    """Write the records, and tables and a plot for every machine."""
    study.write(rows)
    parts = [notes]
    for machine, mine in groups(rows, "machine").items():
        by_fill = {
            fill: groups(own, "method") for fill, own in sorted(groups(mine, "fill").items())
        }
        parts += [f"## {machine}"]
        parts += [table(by_fill.values(), columns, 0) for columns in (PRISMS, ORDERS)]
        plot(study, machine, by_fill)
    study.page(*parts, title="First fit and best fit against the bound as the machine fills")


def plot(study: Study, machine: str, by_fill: dict[int, Group]) -> None:
    """Draw a machine: shares short of the optimum, nodes started, links shared, against fill."""

    def percents(method: str, field: str) -> list[float]:
        """Return nodes as a share of the idle ones, over all snapshots of a fill."""
        mine = [own[method] for own in by_fill.values()]
        return [100 * total(rows, field) / total(rows, "idle") for rows in mine]

    def drawn(panel: Axes, values: Iterable[float], label: str, colour: str) -> None:
        curve(panel, zip(by_fill, values, strict=True), color=colour, label=label)

    fills = list(by_fill)
    with study.picture(f"_{machine}", 1, 3, figsize=(13, 4)) as (figure, panels):
        short, started, links = panels[0]
        for method in (*PRISM_METHODS, EXACT):
            shares = [[100 * s for s in short_of(own[method])] for own in by_fill.values()]
            least, most = zip(*shares, strict=True)
            short.fill_between(fills, least, most, color=COLOURS[method], alpha=0.3)
            drawn(short, most, method, COLOURS[method])
            drawn(started, percents(method, "started"), method, COLOURS[method])
        drawn(started, percents(EXACT, "bound"), "bound", "black")
        between = percents(EXACT, "incumbent"), percents(EXACT, "bound")
        started.fill_between(fills, *between, color=COLOURS[EXACT], alpha=0.3)
        drawn(started, percents(SHOWN_ORDER, "started"), SHOWN_ORDER, COLOURS[SHOWN_ORDER])
        for k, method in enumerate(NODE_ORDERS):
            mine = [own[method] for own in by_fill.values()]
            means = [statistics.fmean(row.shared_links for row in rows) for rows in mine]
            drawn(links, means, method, f"C{3 + k}")
        for panel, title, what in (
            (short, "short of the bound (band: unproven)", "nodes not started, % of the optimum"),
            (started, "started", "nodes, % of the idle ones"),
            (links, "shared against the rule", "links"),
        ):
            panel.set_title(title, fontsize=10)
            panel.set(ylabel=what, xlabel="busy nodes, %")
            panel.legend(fontsize=8)
        figure.suptitle(machine)
        figure.tight_layout()


# ---- Measuring -----------------------------------------------------------------------------------


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
    """Return whether the checker confirms every claim of a result file, none by search alone."""
    return check_file(path).verified


def require_verified(paths: Sequence[Path], jobs: int) -> None:
    """Raise `TopoplaceError` unless the checker verifies every result file."""
    with spawned(jobs) as pool:
        for path, holds in zip(paths, pool.map(verified, paths), strict=True):
            if not holds:
                raise TopoplaceError(f"{path}: the checker does not verify it")


def rows_of(machine: str, drawn: Sequence[Drawn], batches: dict[str, Batch]) -> Iterator[Record]:
    """Yield a record for every snapshot and method.

    `fill` is what was asked of the generator, `idle` the usable nodes that no job holds; between
    `incumbent` and `bound` are the most nodes any conforming placement starts. `gap` is
    ``(bound - started) / max(1, started)``, None if the method does not conform.
    """
    found = {(row.file, method): row for method, batch in batches.items() for row in batch.rows}
    for entry in drawn:
        mine = {method: found[entry.path.as_posix(), method] for method in batches}
        if mine[EXACT].proof != Proof.CERTIFICATE:
            raise TopoplaceError(f"{entry.path}: exact has no certificate")
        bound = int(mine[EXACT].bound)
        for method, row in mine.items():
            started = int(row.objective)
            yield Record(
                machine=machine,
                fill=entry.fill,
                seed=entry.seed,
                method=method,
                status=row.status,
                idle=int(load_snapshot(entry.path).usable.sum()),
                queued=row.queued or 0,
                jobs_started=row.started or 0,
                started=started,
                incumbent=max(int(r.objective) for m, r in mine.items() if m not in NODE_ORDERS),
                bound=bound,
                gap=None if method in NODE_ORDERS else (bound - started) / max(1, started),
                shared_links=row.shared_links or 0,
                seconds=row.seconds or 0.0,
            )


def measure(
    name: str, options: argparse.Namespace, num_seeds: int, time_limit: float
) -> Iterator[Record]:
    """Yield the records of one machine."""
    work = options.work / name
    drawn = draw(load_torus(name), options.fills, num_seeds, work / "snapshots")
    batches = {m: solve(m, drawn, work / m, time_limit, options.jobs) for m in METHODS}
    results = [work / m / row.result for m, batch in batches.items() for row in batch.rows]
    require_verified(results, options.jobs)
    return rows_of(name, drawn, batches)


def main(given: Sequence[str] | None = None) -> None:
    """Run the study and write its page, its table and its plots."""
    options = {
        "machines": MACHINES,
        "fills": list(range(0, 100, 10)),
        "seeds": [3, 6],  # per fill, by machine
        "time_limits": [60.0, 20.0],  # of exact, likewise
        "jobs": 2,
        "work": ROOT / "out" / "study_fill",
    }
    study = Study("fill", __doc__, given, **options)
    own = study.options
    rows: list[Record] = []
    notes = []
    for name, seeds, limit in zip(MACHINES, own.seeds, own.time_limits, strict=True):
        if name in own.machines:
            rows += measure(name, own, seeds, limit)
            note = f"{name}: at most {seeds} snapshots for every fill, {limit:g} s for exact;"
            notes.append(note)
    write(study, rows, "\n".join([*notes, f"{own.jobs} processes."]))


if __name__ == "__main__":
    main()
