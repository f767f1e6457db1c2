"""Measure large queues on clusters of NVL72 racks: exact, heuristics and a plain CP-SAT model.

    python scripts/bench_hierarchy.py [--small N] [--large N] [--from-seed S] [--write]

Limits count CPU seconds, of all threads together, so that figures mean the same on a busy machine.
`--write` writes docs/studies/nvl72_queues.md.
"""

from __future__ import annotations

import argparse
import csv
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
from topoplace import clock
from topoplace.snapshot import HierarchyState, prepare_hierarchy
from topoplace.solving import Options, methods, solve

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "nvl72_queues.md"
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
    """What a method found: value and bound of nodes and of racks, None where it says nothing."""

    method: str
    nodes: int | None
    most: int | None
    racks: int | None
    fewest: int | None
    seconds: float
    checked: str = ""

    @property
    def closed(self) -> bool:
        """Whether both levels are proven."""
        return self.nodes is not None and (self.nodes, self.racks) == (self.most, self.fewest)


def by_method(seed: int, size: Size, method: str) -> Run:
    """Run one of our methods; its clock is that of the CPU."""
    state = prepare_hierarchy(cluster(seed, size.racks, jobs=size.jobs))
    began = time.process_time()
    result = solve(state, method, Options(time_limit=size.limit))
    seconds = time.process_time() - began
    first, second = result.levels[:2]
    checked = ""
    if method == "exact":
        checked = "verified" if result.check().verified else "FAILS"
    return Run(
        method, first.objective, first.bound, second.objective, second.bound, seconds, checked
    )


def by_plain_model(seed: int, size: Size) -> Run:
    """Give CP-SAT the segments of every job in every rack: nodes first, then racks."""
    state = prepare_hierarchy(cluster(seed, size.racks, jobs=size.jobs))
    model, value, racks = plain_model(state)
    began = time.process_time()
    figures: list[int | None] = []
    for objective, maximise in ((value, True), (racks, False)):
        solver: Any = cp_model.CpSolver()
        solver.parameters.num_workers = WORKERS
        model.clear_objective()
        (model.maximize if maximise else model.minimize)(objective)
        status = _solved(solver, model, began + size.limit)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        figures += [round(solver.objective_value), round(solver.best_objective_bound)]
        if status != cp_model.OPTIMAL:
            break
        model.add(objective == figures[-2])
        model.clear_hints()
        for index, known in enumerate(solver.response_proto.solution):
            model.add_hint(model.get_int_var_from_proto_index(index), known)
    nodes, most, used, fewest = [*figures, None, None, None, None][:4]
    return Run("plain CP-SAT", nodes, most, used, fewest, time.process_time() - began)


def plain_model(state: HierarchyState) -> tuple[Any, Any, Any]:
    """Return the model as one writes it down first, the nodes started, and the racks used."""
    free = np.bincount(state.machine.domain_of[0], weights=state.free[:, 0]).astype(int).tolist()
    model: Any = cp_model.CpModel()
    taken: list[list[Any]] = [[] for _ in free]
    starts, used = [], []
    for request in state.requests:
        [part] = request.parts
        size = part.segments[0][1] if part.segments else 1
        starts.append(model.new_bool_var(""))
        own = []
        for rack, room in enumerate(free):
            if room >= size:
                most = min(room, part.units) // size
                own.append(model.new_int_var(0, most, ""))
                used.append(model.new_bool_var(""))
                model.add(own[-1] <= most * used[-1])
                taken[rack].append(size * own[-1])
        model.add(size * sum(own) == part.units * starts[-1])
    for rack, room in enumerate(free):
        model.add(sum(taken[rack]) <= room)
    value = sum(r.value * start for r, start in zip(state.requests, starts, strict=True))
    return model, value, sum(used)


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
    lines: list[str] = []
    for size, count in ((SMALL, options.small), (LARGE, options.large)):
        if count:
            seeds = range(options.from_seed, options.from_seed + count)
            lines += ["", f"## {size.title}", "", *_table(size, seeds)]
    if options.write:
        _write(lines)
        rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
        with PAGE.with_suffix(".csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(r for r in rows if r[0] != "---")


def _table(size: Size, seeds: range) -> list[str]:
    """Return the rows of all methods and seeds, and what they have in common."""
    lines = _say([_row(HEAD), _row(["---"] * len(HEAD))])
    runs: dict[str, list[Run]] = {}
    for seed in seeds:
        for name, run in _runs(seed, size):
            runs.setdefault(name, []).append(run)
            lines += _say([_row(_cells(seed, run))])
    exact, plain = runs["exact"], runs["plain CP-SAT"]
    lines += _say(["", _summary("The exact method", exact), _summary("Plain CP-SAT", plain)])
    return lines


def _runs(seed: int, size: Size) -> list[tuple[str, Run]]:
    """Return the exact method's run, the plain model's, and the heuristic's of the most nodes."""
    exact, plain = by_method(seed, size, "exact"), by_plain_model(seed, size)
    names = [name for name in methods("hierarchy") if name != "exact"]
    heuristics = [by_method(seed, size, name) for name in names]
    best = max(heuristics, key=lambda run: (run.nodes or 0, -(run.racks or 0)))
    slurm = next(run for run in heuristics if run.method == "slurm-block")
    kueue = next(run for run in heuristics if run.method == "kueue")
    rules = {run.method: run for run in (best, slurm, kueue)}
    return [*({"exact": exact, "plain CP-SAT": plain} | rules).items()]


def _summary(who: str, runs: list[Run]) -> str:
    gaps = [(run.most - run.nodes) / run.nodes for run in runs if run.nodes and run.most]
    seconds = [run.seconds for run in runs]
    closed = sum(run.nodes is not None and run.nodes == run.most for run in runs)
    return (
        f"{who}: nodes proven {closed} of {len(runs)}, nodes and racks "
        f"{sum(run.closed for run in runs)} of {len(runs)}; largest gap of nodes "
        f"{100 * max(gaps, default=0):.2f} %; CPU seconds at most {max(seconds):.1f}, "
        f"median {statistics.median(seconds):.1f}.\n"
    )


def _cells(seed: int, run: Run) -> list[str]:
    gap = "" if run.most is None or not run.nodes else f"{(run.most - run.nodes) / run.nodes:.2%}"
    figures = (run.nodes, run.most), (run.racks, run.fewest)
    (nodes, most), (racks, fewest) = (["-" if n is None else f"{n:,}" for n in p] for p in figures)
    return [
        str(seed),
        run.method,
        nodes,
        most,
        gap,
        racks,
        fewest,
        f"{run.seconds:.1f}",
        run.checked,
    ]


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _say(lines: list[str]) -> list[str]:
    for line in lines:
        print(line, flush=True)
    return lines


def _write(lines: list[str]) -> None:
    head = f"""# Queues on NVL72 clusters

Written by `scripts/bench_hierarchy.py --write` on {datetime.date.today().isoformat()}.

Clusters are drawn by `scripts/nvl72.py`: racks of 18 hosts, one host in a hundred down, 60 % of the
hosts held by jobs that came and went, and a queue that asks for more than is free. A job has one to
eight segments, of 1 to 18 hosts that stay in one rack. All jobs of the queue are decided together:
first the most nodes start, then these jobs use the fewest racks, summed over the jobs.

`exact` is `topoplace place` with all levels and their certificates, which `check` verified. The
plain model has a number of segments for every job and rack, and a switch where it is not 0; CP-SAT
solves it for nodes, and then for racks, with {WORKERS} workers. Of the heuristics the table has the
rules of Slurm and Kueue, and the one that starts the most nodes. All have the same limit, which
counts the CPU seconds of all their threads. Tuning used seeds from 900.
"""
    PAGE.write_text(head + "\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
