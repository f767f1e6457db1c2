"""Measure large queues on clusters of NVL72 racks: exact, heuristics and a plain CP-SAT model.

    python scripts/bench_hierarchy.py [--small N] [--large N] [--from-seed S] [--write]

Limits count CPU seconds, of all threads together, so that figures mean the same on a busy machine.
`--write` records every run in docs/studies/nvl72_queues.csv, in place of what is there of its
cluster, and writes docs/studies/nvl72_queues.md from all that is recorded; so a table may be
measured in pieces, or the page written anew without measuring (`--small 0 --large 0 --write`).
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from nvl72 import cluster
from study_page import line, number, read_rows, say, table_head, write_rows
from topoplace import clock
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed, Started
from topoplace.result.hierarchy import HierarchyResult
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.solving import Options, Outcome, methods, solve
from topoplace.solving.solve import result_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "nvl72_queues.md"
RECORD = PAGE.with_suffix(".csv")
WORKERS = 8
FOR_WARMTH = 999
"""Seed of a cluster that is solved first, so that what is compiled is compiled."""


@dataclass(frozen=True)
class Size:
    """What the clusters of a table have in common."""

    title: str
    racks: int
    jobs: int
    limit: float


SMALL = Size("1,008 hosts in 56 racks, 40 jobs, 10 s", 56, 40, 10.0)
LARGE = Size("10,080 hosts in 560 racks, 200 jobs, 60 s", 560, 200, 60.0)
HEAD = ("seed", "method", "nodes", "bound", "gap", "racks", "bound", "CPU s", "checked")


@dataclass(frozen=True)
class Run:
    """What a method found: value and bound of nodes and of racks, None where it says nothing.

    `checked` is what `check` says of the result: verified, if all bounds are proven, or holds.
    """

    size: int
    seed: int
    method: str
    nodes: int | None
    most: int | None
    racks: int | None
    fewest: int | None
    seconds: float
    checked: str

    @property
    def closed(self) -> bool:
        """Whether both levels are proven."""
        return self.nodes is not None and (self.nodes, self.racks) == (self.most, self.fewest)

    @property
    def gap(self) -> float | None:
        """How far the bound of nodes is above those started, as a share of these."""
        return None if self.most is None or not self.nodes else self.most / self.nodes - 1


def by_method(seed: int, size: Size, method: str) -> Run:
    """Run one of our methods; its clock is that of the CPU."""
    state = prepare_hierarchy(cluster(seed, size.racks, jobs=size.jobs))
    began = time.process_time()
    result = solve(state, method, Options(time_limit=size.limit))
    seconds = round(time.process_time() - began, 1)
    first, second = result.levels[:2]
    nodes, racks = (first.objective, first.bound), (second.objective, second.bound)
    return Run(size.racks, seed, method, *nodes, *racks, seconds, said_by_check(result))


def said_by_check(result: HierarchyResult) -> str:
    """Return what the checker says of a result."""
    report = result.check()
    return "verified" if report.verified else "holds" if report.holds else "FAILS"


def by_plain_model(seed: int, size: Size) -> Run:
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
    seconds = round(time.process_time() - began, 1)
    nodes, most, used, fewest = [*figures, None, None, None, None][:4]
    result = result_of(problem, Outcome(started), "exact", Options(), seconds)
    assert nodes == result.objective
    of_check = said_by_check(result)
    return Run(size.racks, seed, "plain CP-SAT", nodes, most, used, fewest, seconds, of_check)


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


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=int, default=10, metavar="N", help="clusters of 56 racks")
    parser.add_argument("--large", type=int, default=10, metavar="N", help="clusters of 560 racks")
    parser.add_argument("--from-seed", type=int, default=500, metavar="S", help="the first seed")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    solve(prepare_hierarchy(cluster(FOR_WARMTH, 4, jobs=4)), "exact", Options(time_limit=60))
    setattr(clock, "time", SimpleNamespace(perf_counter=time.process_time))  # noqa: B010
    measured: list[Run] = []
    for size, count in ((SMALL, options.small), (LARGE, options.large)):
        if count:
            say(table_head(HEAD))
        for seed in range(options.from_seed, options.from_seed + count):
            runs = _runs(seed, size)
            say([line(_cells(run)) for run in runs])
            measured += runs
    if options.write:
        anew = {(run.size, run.seed) for run in measured}
        kept = [run for run in read_rows(RECORD, Run) if (run.size, run.seed) not in anew]
        every = sorted([*kept, *measured], key=lambda run: (run.size, run.seed))
        write_rows(RECORD, every)
        _write(every)


def _table(size: Size, runs: list[Run]) -> list[str]:
    """Return the rows of all methods and seeds of a size, and what they have in common."""
    own = [run for run in runs if run.size == size.racks]
    if not own:
        return []
    lines = ["", f"## {size.title}", "", *table_head(HEAD)]
    lines += [line(_cells(run)) for run in own]
    for who in ("exact", "plain CP-SAT"):
        lines += ["", _summary(who, [run for run in own if run.method == who])]
    return lines


def _runs(seed: int, size: Size) -> list[Run]:
    """Return the exact method's run, the plain model's, and those of three heuristics.

    These are the rules of Slurm and Kueue, and the one that starts the most nodes.
    """
    exact, plain = by_method(seed, size, "exact"), by_plain_model(seed, size)
    names = [name for name in methods("hierarchy") if name not in ("exact", "minizinc")]
    heuristics = [by_method(seed, size, name) for name in names]
    best = max(heuristics, key=lambda run: (run.nodes or 0, -(run.racks or 0)))
    told = [run for run in heuristics if run.method in (best.method, "slurm-block", "kueue")]
    return [exact, plain, *sorted(told, key=lambda run: run is not best)]


def _summary(who: str, runs: list[Run]) -> str:
    gaps = [run.gap for run in runs if run.gap is not None]
    seconds = [run.seconds for run in runs]
    closed = sum(run.nodes is not None and run.nodes == run.most for run in runs)
    return (
        f"{who}: nodes proven {closed} of {len(runs)}, nodes and racks "
        f"{sum(run.closed for run in runs)} of {len(runs)}; largest gap of nodes "
        f"{max(gaps, default=0):.2%}; CPU seconds at most {max(seconds):.1f}, "
        f"median {statistics.median(seconds):.1f}."
    )


def _cells(run: Run) -> list[str]:
    figures = (run.nodes, run.most), (run.racks, run.fewest)
    (nodes, most), (racks, fewest) = ([number(n) for n in p] for p in figures)
    gap = "" if run.gap is None else f"{run.gap:.2%}"
    seconds = f"{run.seconds:.1f}"
    return [str(run.seed), run.method, nodes, most, gap, racks, fewest, seconds, run.checked]


def _write(runs: list[Run]) -> None:
    today = datetime.date.today().isoformat()
    head = f"""# Queues on NVL72 clusters

Written by `scripts/bench_hierarchy.py --write` on {today}, from the runs recorded in
`{RECORD.name}`.

Clusters are drawn by `scripts/nvl72.py`: racks of 18 hosts, one host in a hundred down, 60 % of the
hosts held by jobs that came and went, and a queue that needs more than the free hosts. A job has
one to eight segments, of 1 to 18 hosts that stay in one rack. All jobs of the queue are decided
together: first the most nodes start, then these jobs use the fewest racks, summed over the jobs.

`exact` is `topoplace place` with all levels and their certificates. The plain model has a number of
segments for every job and rack, and a switch where it is not 0; CP-SAT solves it for nodes, and
then for racks, with {WORKERS} workers. The tables have these heuristics: the rules of Slurm
and Kueue, and the one that starts the most nodes. `verified` means that `check` has accepted
the result and proved all its bounds. The bounds of the plain model are those that CP-SAT reports,
and are not checked.

The machine was busy with other work. So all limits, and the column of seconds, are CPU seconds
of the process, summed over its threads. Tuning used seeds from 900.
"""
    lines = [*_table(SMALL, runs), *_table(LARGE, runs)]
    PAGE.write_text(head + "\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
