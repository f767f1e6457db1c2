"""How far first fit and best fit are from the certified bound as a machine fills.

Snapshots of two machines at fills from 0 to 90 %, several seeds each: Blue Waters with the workload
of Enos 2014, and a torus of 8x8x8 with that workload scaled down. Every method runs on each as a
batch, so that a study that was killed goes on where it stopped; the checker verifies every result,
or the study stops. Writes fill.md (between its markers), fill.csv and the plots.

    python scripts/study_fill.py [--seeds N N] [--time-limits S S] [--jobs N] [--work DIR]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_instances import SEED
from fill_page import EXACT, METHODS, NODE_ORDERS, Row, write_study
from generate_snapshots import Workload, generate_snapshot, workload_for
from study_page import STUDIES, spawned, stamp
from topoplace.certify import check_file
from topoplace.errors import InputError, TopoplaceError
from topoplace.result import Proof
from topoplace.snapshot.files import write_document
from topoplace.snapshot.machines import load_snapshot, load_torus
from topoplace.snapshot.schema import TorusModel
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.run import SOLVER, Batch, run_batch
from topoplace.study.batch.task import Limits, Settings

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
