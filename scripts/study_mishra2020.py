"""Mishra 2020 again: a Theta log on 4,392 nodes, continuous and individual runs, mixes A to E.

Writes a CSV with every run, and the tables of docs/studies/mishra2020.md between its markers.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from study_page import STUDIES, markdown, stamp, write_between_markers, write_rows
from topoplace.placement.switches.occupancy import Occupancy
from topoplace.placement.switches.problem import TreeProblem
from topoplace.snapshot.schema import Pattern, PatternUse, Snapshot, SwitchModel, TreeModel
from topoplace.snapshot.tree_state import TreeState, prepare_tree
from topoplace.solving import Options, method_of, methods
from topoplace.study.replay import MIXES, LogJob, MethodRun, Replay, Setup, read_log, with_intensive
from topoplace.study.replay.figures import improvements, metrics_of, percent_below
from topoplace.study.replay.trees import TreeSite, individual_runs, occupied

DEFAULT_HOURS = {"execution": 2189, "wait": 45303}
TABLE_3 = {
    ("execution", "RHVD"): (1740, 1700, 1663),
    ("execution", "RD"): (1810, 1731, 1706),
    ("wait", "RHVD"): (31190, 34539, 33092),
    ("wait", "RD"): (34901, 35874, 31809),
}
"""Hours of greedy, balanced, adaptive in continuous runs (table 3, row 2)."""
TABLE_4 = {"RHVD": [9.65, 9.65, 9.65], "RD": [13.56, 13.56, 13.56]}
"""Percent saved in execution time in individual runs (table 4, row 2)."""
SECTION_6_2 = {"A": 5.89, "B": 8.92, "C": 12.49, "D": 7.94, "E": 11.11}
"""Average improvement of execution time, over the three algorithms."""
SECTION_6_4 = {"RD": 15.88, "RHVD": 17.84, "binomial": 15.87}
"""Average reduction of the cost of communication, over the three algorithms."""
PUBLISHED = ("greedy", "balanced", "adaptive")


@dataclass(frozen=True)
class Row:
    """One run; `saved` and `mean_job_gain` are percents against Slurm's default."""

    nodes_per_leaf: int
    protocol: str
    patterns: str
    seed: int
    method: str
    jobs: int
    execution_hours: float
    wait_hours: float
    turnaround_hours: float
    node_hours: float
    cost: float
    saved: dict[str, float | None]
    mean_job_gain: float | None


Figure = Callable[[Row], float | None]
T = TypeVar("T")


def tables(rows: Sequence[Row]) -> str:
    """Return the tables as Markdown; the CSV has the rest."""
    table_3 = {
        metric: {
            name: [100 * (1 - hours / DEFAULT_HOURS[metric]) for hours in TABLE_3[metric, name]]
            for name in ("RHVD", "RD")
        }
        for metric in DEFAULT_HOURS
    }
    average = {name: [value] for name, value in SECTION_6_2.items()}
    cost = {name: [value] for name, value in SECTION_6_4.items()}
    continuous = [row for row in rows if row.protocol == "continuous"]
    pure = [row for row in continuous if row.patterns in SECTION_6_4]
    individual = [row for row in rows if row.protocol != "continuous"]
    return "\n\n".join(
        [
            "### Continuous runs: percent of the total execution time saved",
            _table(continuous, lambda row: row.saved["execution"], table_3["execution"] | average),
            "### Continuous runs: percent of the total wait time saved",
            _table(pure, lambda row: row.saved["wait"], table_3["wait"]),
            "### Continuous runs: percent of the turnaround time saved",
            _table(pure, lambda row: row.saved["turnaround"], {}),
            "### Continuous runs: percent of the node-hours saved",
            _table(pure, lambda row: row.saved["node_seconds"], {}),
            "### Continuous runs: percent of the cost of communication saved",
            _table(pure, lambda row: row.saved["cost"], cost),
            "### Individual runs: percent of a job's execution time saved, mean over jobs",
            _table(individual, lambda row: row.mean_job_gain, TABLE_4 | average),
        ]
    )


def _table(rows: Sequence[Row], figure: Figure, paper: Mapping[str, Sequence[float]]) -> str:
    methods = [name for name in _in_order(row.method for row in rows) if name != "default"]
    average = [name for name in methods if name in PUBLISHED]
    header = ["nodes per leaf", "runs", "patterns", "paper", *methods]
    if average:
        header.insert(4, "mean of " + ", ".join(average))
    lines = []
    for per_leaf in _in_order(row.nodes_per_leaf for row in rows):
        for protocol in _in_order(row.protocol for row in rows):
            for patterns in _in_order(row.patterns for row in rows):
                of = {
                    method: [
                        figure(row)
                        for row in rows
                        if (row.nodes_per_leaf, row.protocol, row.patterns, row.method)
                        == (per_leaf, protocol, patterns, method)
                    ]
                    for method in methods
                }
                means = [_mean(of[name]) for name in average]
                cells = [str(per_leaf), protocol, patterns]
                cells.append(" / ".join(f"{value:.1f}" for value in paper.get(patterns, [])))
                if average:
                    cells.append(_percent(_mean(means)))
                lines.append(cells + [_spread(of[name]) for name in methods])
    return markdown(header, len(header), lines)


def _in_order(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _spread(values: Sequence[float | None]) -> str:
    """Return the mean over the seeds, and the least and the largest."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return _percent(_mean(known))
    return f"{_percent(_mean(known))} ({min(known):.1f} to {max(known):.1f})"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


NUM_NODES = 4392
NODES_PER_LEAF = (16, 366)
INTENSIVE = 90
NUM_INDIVIDUAL = 200
OCCUPANCY = 50
BASE = "default"  # what the others are held against: Slurm's own
METHODS = (*PUBLISHED, "exact")
SETS = {
    "RHVD": (PatternUse(pattern=Pattern.VECTOR_DOUBLING),),
    "RD": (PatternUse(pattern=Pattern.RECURSIVE_DOUBLING),),
    "binomial": (PatternUse(pattern=Pattern.BINOMIAL),),
    **MIXES,
}
BEGIN, END = "<!-- tables: written by scripts/study_mishra2020.py -->", "<!-- end of tables -->"


def main() -> None:
    """Run the study and write its table and document."""
    options = _options()
    wanted = options.methods or [name for name in METHODS if name in methods("allocation")]
    methods = [BASE, *(method_of("allocation", name).name for name in wanted if name != BASE)]
    start = time.perf_counter()
    rows: list[Row] = []
    for row in _all_rows(options, methods):
        rows.append(row)
        which = (row.nodes_per_leaf, row.protocol, row.patterns, row.seed, row.method)
        print(f"{time.perf_counter() - start:7.1f} s ", *which, file=sys.stderr)
    options.output.mkdir(parents=True, exist_ok=True)
    write_rows(options.output / "mishra2020.csv", [_record(row) for row in rows])
    seconds = time.perf_counter() - start
    head = (
        f"{stamp('study_mishra2020.py', None)}\n\n{seconds:.0f} s on one core. "
        "Percents saved against Slurm's default, the mean over the seeds (least to largest)."
    )
    page = options.output / "mishra2020.md"
    write_between_markers(page, BEGIN, END, "Mishra 2020", head + "\n\n" + tables(rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path, help="theta_1000.swf")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="default: the paper's, exact")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="draws of 90 %% of jobs")
    parser.add_argument("--exact-seeds", type=int, default=1, metavar="N", help="draws for exact")
    parser.add_argument("--time-limit", type=float, metavar="S", help="per job, for exact")
    parser.add_argument("--limit", type=int, metavar="N", help="take the first N jobs only")
    parser.add_argument("-o", "--output", type=Path, default=STUDIES, metavar="DIR")
    return parser.parse_args()


def _all_rows(options: argparse.Namespace, methods: Sequence[str]) -> Iterator[Row]:
    log = read_log(options.log).jobs[: options.limit]
    for per_leaf in NODES_PER_LEAF:
        state = leaves_of(NUM_NODES, per_leaf)
        for name, patterns in SETS.items():
            for seed in range(options.seeds):
                jobs = with_intensive(log, INTENSIVE, patterns, seed)
                few = [m for m in methods if m != "exact" or seed < options.exact_seeds]
                study = _Study(state, jobs, few, Options(options.time_limit, seed=seed))
                for protocol, runs in study.runs():
                    base = runs[0]
                    for run in runs:
                        yield _row(per_leaf, protocol, name, seed, run, base)


def leaves_of(num_nodes: int, per_leaf: int) -> TreeState:
    """Return one switch above leaves of so many nodes, the last of what is left."""
    num_leaves = math.ceil(num_nodes / per_leaf)
    leaves = [
        SwitchModel(
            name=f"s{k}", nodes=f"n[{k * per_leaf}-{min(num_nodes, (k + 1) * per_leaf) - 1}]"
        )
        for k in range(num_leaves)
    ]
    root = SwitchModel(name="root", switches=f"s[0-{num_leaves - 1}]")
    machine = TreeModel(kind="tree", name=f"theta-{per_leaf}", switches=[*leaves, root])
    return prepare_tree(
        Snapshot(schema_version="topoplace.snapshot/1", name=machine.name, machine=machine)
    )


@dataclasses.dataclass(frozen=True)
class _Study:
    """All protocols with the same jobs on the same machine."""

    state: TreeState
    jobs: Sequence[LogJob]
    methods: Sequence[str]
    options: Options

    def runs(self) -> Iterator[tuple[str, list[MethodRun]]]:
        yield "continuous", [self._continuous(method) for method in self.methods]
        order = np.random.default_rng(self.options.seed).permutation(len(self.jobs))
        drawn = [self.jobs[k] for k in sorted(order[:NUM_INDIVIDUAL])]
        packed = occupied(self.state, self.jobs, OCCUPANCY)
        for protocol, occupancy in (("packed", packed), ("in use", self._in_use())):
            yield protocol, [self._individual(m, occupancy, drawn) for m in self.methods]

    def _continuous(self, method: str) -> MethodRun:
        replay = Replay(Setup(self.state, self.jobs, options=self.options), method)
        replay.run()
        return MethodRun(method, tuple(replay.records))

    def _individual(self, method: str, before: Occupancy, drawn: Sequence[LogJob]) -> MethodRun:
        site = TreeSite(self.state, method, self.options, occupancy=before)
        return MethodRun(method, individual_runs(site, drawn))

    def _in_use(self) -> Occupancy:
        """Return the machine in the continuous run of Slurm's default, with half of it free.

        It is the first hour from the middle of the log on at which so much is free.
        """
        replay = Replay(Setup(self.state, self.jobs, options=self.options), BASE)
        hour = self.jobs[-1].submitted // 7200
        while True:
            replay.run(until=3600 * hour)
            occupancy = TreeProblem(prepare_tree(replay.snapshot("in-use"))).occupancy()
            if 100 * occupancy.free_per_leaf.sum() >= (100 - OCCUPANCY) * NUM_NODES:
                return occupancy
            hour += 1


def mean_gain(run: MethodRun, base: MethodRun) -> float | None:
    """Return the mean percent of execution time saved, over the jobs that ran in both (table 4)."""
    there = {record.job.id: record.execution for record in base.records}
    both = [record for record in run.records if record.job.id in there]
    return _mean([percent_below(record.execution, there[record.job.id]) for record in both])


def _row(
    per_leaf: int, protocol: str, patterns: str, seed: int, run: MethodRun, base: MethodRun
) -> Row:
    metrics = metrics_of(run.records)
    return Row(
        nodes_per_leaf=per_leaf,
        protocol=protocol,
        patterns=patterns,
        seed=seed,
        method=run.method,
        jobs=metrics.num_jobs,
        execution_hours=metrics.execution / 3600,
        wait_hours=metrics.wait / 3600,
        turnaround_hours=metrics.turnaround / 3600,
        node_hours=metrics.node_seconds / 3600,
        cost=float(metrics.cost),
        saved=improvements(metrics, base.metrics),
        mean_job_gain=mean_gain(run, base),
    )


def _record(row: Row) -> dict[str, object]:
    """Return a row as a line of the CSV file, with a column for every share saved."""
    values = dataclasses.asdict(row)
    values |= {f"{name}_percent_saved": value for name, value in values.pop("saved").items()}
    return {k: f"{v:.4f}" if isinstance(v, float) else v for k, v in values.items()}


if __name__ == "__main__":
    main()
