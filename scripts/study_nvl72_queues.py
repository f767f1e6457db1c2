"""Measure large queues on clusters of NVL72 racks: exact, heuristics and a plain CP-SAT model.

Limits count CPU seconds, of all threads together, so that figures mean the same on a busy machine.
Every run is recorded in docs/studies/nvl72_queues.csv, in place of what is there of its cluster,
and the tables of docs/studies/nvl72_queues.md are written from all that is recorded; so they may be
measured in pieces, or written anew without measuring (`--small 0 --large 0`).

    python scripts/study_nvl72_queues.py [--small N] [--large N] [--huge N] [--from-seed S]
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from families import cluster
from study import Column, Record, Study, read_rows, table, timed, where
from topoplace import clock
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed, Started
from topoplace.result.placement import HierarchyResult
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.solving import Options, Outcome, methods, solve
from topoplace.solving.solve import result_of

WORKERS = 8
PLAIN = "plain CP-SAT"


@dataclass(frozen=True)
class Size:
    """What the clusters of a table have in common.

    `rules` are the heuristics measured; None for all, and for the plain model, too.
    """

    title: str
    racks: int
    jobs: int
    limit: float
    load: float = 0.6
    rules: tuple[str, ...] | None = None


SIZES = {
    "small": Size("1,008 hosts in 56 racks, 40 jobs, 10 s", 56, 40, 10.0),
    "large": Size("10,080 hosts in 560 racks, 200 jobs, 60 s", 560, 200, 60.0),
    "huge": Size(
        "100,800 hosts in 5,600 racks, 80 % held, 1,000 jobs, 60 s",
        *(5600, 1000, 60.0, 0.8),
        ("first-fit", "tree-best-fit"),
    ),
}


def by_method(seed: int, size: Size, method: str) -> Record:
    """Run one of our methods; its clock is that of the CPU."""
    state = prepare_hierarchy(cluster(seed, size.racks, size.load, size.jobs))
    options = Options(time_limit=size.limit)
    result, seconds = timed(lambda: solve(state, method, options), time.process_time)
    first, second = result.levels[:2]
    figures = first.objective, first.bound, second.objective, second.bound
    return record(seed, size, method, figures, seconds, result)


def record(
    seed: int,
    size: Size,
    method: str,
    figures: Sequence[int | None],
    seconds: float,
    result: HierarchyResult,
) -> Record:
    """Return value and bound of nodes and of racks, None where there is none.

    `checked` is what `check` says of the result: verified, if all bounds are proven, or holds.
    """
    nodes, most, racks, fewest = figures
    report = result.check()
    return Record(
        size=size.racks,
        seed=seed,
        method=method,
        nodes=nodes,
        most=most,
        racks=racks,
        fewest=fewest,
        seconds=round(seconds, 1),
        checked="verified" if report.verified else "holds" if report.holds else "FAILS",
    )


def by_plain_model(seed: int, size: Size) -> Record:
    """Give CP-SAT the segments of every job in every rack: nodes first, then racks."""
    problem = HierarchyProblem(prepare_hierarchy(cluster(seed, size.racks, jobs=size.jobs)))
    model = PlainModel(problem)
    began = time.process_time()
    figures: list[int | None] = []
    started: Started | None = None
    for objective, maximise in ((model.value, True), (model.racks, False)):
        solver: Any = cp_model.CpSolver()
        solver.parameters.num_workers = WORKERS
        model.program.clear_objective()
        (model.program.maximize if maximise else model.program.minimize)(objective)
        status = _solved(solver, model.program, began + size.limit)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        started = model.started(solver)
        figures += [round(solver.objective_value), round(solver.best_objective_bound)]
        if status != cp_model.OPTIMAL:
            break
        model.program.add(objective == figures[-2])
        model.program.clear_hints()
        for index, known in enumerate(solver.response_proto.solution):
            model.program.add_hint(model.program.get_int_var_from_proto_index(index), known)
    seconds = time.process_time() - began
    result = result_of(problem, Outcome(started), "exact", Options(), seconds)
    figures = [*figures, None, None, None, None][:4]
    assert figures[0] == result.objective
    return record(seed, size, PLAIN, figures, seconds, result)


class PlainModel:
    """The model as one writes it down first: segments of jobs in racks, and racks used.

    Attributes
    ----------
    program, value, racks
        For CP-SAT, the value of what starts, and the racks used, summed over the jobs.
    """

    def __init__(self, problem: HierarchyProblem) -> None:
        self._problem, state = problem, problem.state
        self._rack_of = problem.machine.domain_of[0]
        free = np.bincount(self._rack_of, weights=state.free[:, 0]).astype(int).tolist()
        self.program: Any = cp_model.CpModel()
        taken: list[list[Any]] = [[] for _ in free]
        self._units: list[dict[int, Any]] = []
        starts, used = [], []
        for request in state.requests:
            [part] = request.parts
            size = part.segments[0][1] if part.segments else 1
            starts.append(self.program.new_bool_var(""))
            own = {}
            for rack, room in enumerate(free):
                if room >= size:
                    most = min(room, part.units) // size
                    segments = self.program.new_int_var(0, most, "")
                    own[rack] = size * segments
                    used.append(self.program.new_bool_var(""))
                    self.program.add(segments <= most * used[-1])
                    taken[rack].append(own[rack])
            self.program.add(sum(own.values()) == part.units * starts[-1])
            self._units.append(own)
        for rack, room in enumerate(free):
            self.program.add(sum(taken[rack]) <= room)
        worth = zip(state.requests, starts, strict=True)
        self.value, self.racks = sum(r.value * start for r, start in worth), sum(used)

    def started(self, solver: Any) -> Started:
        """Return what a solution starts, on the first hosts of every rack that are free."""
        free = np.flatnonzero(self._problem.state.free[:, 0])
        hosts = {
            rack: free[self._rack_of[free] == rack].tolist()
            for rack in {rack for own in self._units for rack in own}
        }
        found: dict[int, Placed] = {}
        for q, own in enumerate(self._units):
            units = {rack: int(solver.value(number)) for rack, number in own.items()}
            placed = {hosts[rack].pop(0): 1 for rack, n in units.items() for _ in range(n)}
            if placed:
                found[q] = (placed,)
        return found


def _solved(solver: Any, model: Any, until: float) -> Any:
    """Solve until the process has used so many CPU seconds."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            if time.process_time() >= until:
                solver.stop_search()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return solver.solve(model)
    finally:
        over.set()
        watcher.join()


def runs_of(seed: int, size: Size) -> Iterator[Record]:
    """Yield the exact method's run, the plain model's, and those of heuristics.

    These are the rules of Slurm and Kueue, and the one that starts the most nodes; or those of the
    size.
    """
    yield by_method(seed, size, "exact")
    if size.rules is not None:
        yield from (by_method(seed, size, name) for name in size.rules)
        return
    yield by_plain_model(seed, size)
    names = [name for name in methods("hierarchy") if name not in ("exact", "minizinc")]
    heuristics = [by_method(seed, size, name) for name in names]
    best = max(heuristics, key=lambda run: (run.nodes or 0, -(run.racks or 0)))
    shown = [run for run in heuristics if run.method in (best.method, "slurm-block", "kueue")]
    yield from sorted(shown, key=lambda run: run is not best)


# ---- The page ------------------------------------------------------------------------------------


def gap(run: Record) -> float | None:
    """Return how far the bound of nodes is above those started, as a share of these."""
    return None if run.most is None or not run.nodes else run.most / run.nodes - 1


COLUMNS: list[Column] = [
    *("seed", "method", "nodes", ("bound", "most")),
    ("gap", lambda run: "" if gap(run) is None else f"{gap(run):.2%}"),
    *("racks", ("bound", "fewest"), ("CPU s", lambda run: f"{run.seconds:.1f}"), "checked"),
]


def summary(method: str, runs: Sequence[Record]) -> str:
    """Return what the runs of a method on all clusters of a size have in common."""
    own = where(runs, method=method)
    gaps = [share for share in map(gap, own) if share is not None]
    seconds = [run.seconds for run in own]
    closed = [run for run in own if run.nodes is not None and run.nodes == run.most]
    return (
        f"{method}: nodes proven {len(closed)} of {len(own)}, nodes and racks "
        f"{sum(run.racks == run.fewest for run in closed)} of {len(own)}; largest gap of nodes "
        f"{max(gaps, default=0):.2%}; CPU seconds at most {max(seconds):.1f}, "
        f"median {statistics.median(seconds):.1f}."
    )


def write(study: Study, rows: Sequence[Record]) -> None:
    """Write the records, and a table for every size."""
    study.write(rows)
    parts = []
    for size in SIZES.values():
        own = where(rows, size=size.racks)
        if own:
            parts += [f"## {size.title}", table(own, COLUMNS, len(COLUMNS))]
            parts += [
                summary(method, own) for method in ("exact", PLAIN) if where(own, method=method)
            ]
    study.page(*parts, title="Queues on NVL72 clusters")


def main(given: Sequence[str] | None = None) -> None:
    """Measure, record and write."""
    study = Study("nvl72_queues", __doc__, given, small=10, large=10, huge=5, from_seed=500)
    warm_up = prepare_hierarchy(cluster(999, 4, jobs=4))  # so that what is compiled is compiled
    solve(warm_up, "exact", Options(time_limit=60))
    setattr(clock, "time", SimpleNamespace(perf_counter=time.process_time))  # noqa: B010
    measured: list[Record] = []
    for name, size in SIZES.items():
        for seed in range(getattr(study.options, name)):
            for run in runs_of(study.options.from_seed + seed, size):
                measured.append(run)
                print(run, file=sys.stderr)
    anew = {(run.size, run.seed) for run in measured}
    kept = [run for run in read_rows(study.file(".csv")) if (run.size, run.seed) not in anew]
    write(study, sorted([*kept, *measured], key=lambda run: (run.size, run.seed)))


if __name__ == "__main__":
    main()
