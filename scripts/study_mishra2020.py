"""Mishra 2020 again: a Theta log on 4,392 nodes, continuous and individual runs, mixes A to E.

Writes a CSV with every run, and the tables of docs/studies/mishra2020.md between its markers.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from study import Column, Record, Study, groups, table, timed, where
from topoplace.placement.switches.occupancy import Occupancy
from topoplace.placement.switches.problem import TreeProblem
from topoplace.snapshot.hierarchy_state import HierarchyState, prepare_contention
from topoplace.snapshot.schema import Pattern, PatternUse, Snapshot, SwitchModel, TreeModel
from topoplace.solving import Options, method_of
from topoplace.study.replay import MIXES, LogJob, MethodRun, Replay, Setup, read_log, with_intensive
from topoplace.study.replay.log import improvements, metrics_of, percent_below
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


# ---- The page ------------------------------------------------------------------------------------


def write(study: Study, rows: Sequence[Record], head: str) -> None:
    """Write every run, and the tables."""
    study.write([_rounded(row) for row in rows])
    continuous = where(rows, protocol="continuous")
    individual = [row for row in rows if row.protocol != "continuous"]
    pure = [row for row in continuous if row.patterns in SECTION_6_4]
    saved = {
        metric: {
            name: [100 * (1 - hours / DEFAULT_HOURS[metric]) for hours in TABLE_3[metric, name]]
            for name in ("RHVD", "RD")
        }
        for metric in DEFAULT_HOURS
    }
    average = {name: [value] for name, value in SECTION_6_2.items()}
    cost = {name: [value] for name, value in SECTION_6_4.items()}
    of_jobs = "Individual runs: percent of a job's execution time saved, mean over jobs"
    parts = [
        ("the total execution time", continuous, "execution", saved["execution"] | average),
        ("the total wait time", pure, "wait", saved["wait"]),
        ("the turnaround time", pure, "turnaround", {}),
        ("the node-hours", pure, "node_seconds", {}),
        ("the cost of communication", pure, "cost", cost),
    ]
    texts = [
        f"### Continuous runs: percent of {what} saved\n\n"
        f"{saved_table(own, f'{field}_percent_saved', paper)}"
        for what, own, field, paper in parts
    ]
    texts.append(f"### {of_jobs}\n\n{saved_table(individual, 'mean_job_gain', TABLE_4 | average)}")
    study.page(head, *texts, title="Mishra 2020")


def saved_table(rows: Sequence[Record], field: str, paper: Mapping[str, Sequence[float]]) -> str:
    """Return a table of a field by machine, protocol and patterns, a column per method."""
    names = [name for name in groups(rows, "method") if name != BASE]
    average = [name for name in names if name in PUBLISHED]

    def mean_of(own: Sequence[Record]) -> str:
        return _percent(_mean([_mean(_values(own, name, field)) for name in average]))

    def of_paper(own: Sequence[Record]) -> str:
        return " / ".join(f"{value:.1f}" for value in paper.get(own[0].patterns, []))

    columns: list[Column] = [
        ("nodes per leaf", lambda own: own[0].nodes_per_leaf),
        *(("runs", "protocol"), "patterns", ("paper", of_paper)),
        *([("mean of " + ", ".join(average), mean_of)] if average else []),
        *((name, lambda own, name=name: _spread(_values(own, name, field))) for name in names),
    ]
    orders = [list(groups(rows, name)) for name in ("nodes_per_leaf", "protocol", "patterns")]
    cases = groups(rows, lambda row: (row.nodes_per_leaf, row.protocol, row.patterns))
    ordered = sorted(
        cases, key=lambda case: [o.index(c) for o, c in zip(orders, case, strict=True)]
    )
    return table([cases[case] for case in ordered], columns, len(columns))


def _values(rows: Sequence[Record], method: str, field: str) -> list[float | None]:
    return [getattr(row, field) for row in where(rows, method=method)]


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


def _rounded(row: Record) -> Record:
    return Record(**{k: f"{v:.4f}" if isinstance(v, float) else v for k, v in vars(row).items()})


# ---- The runs ------------------------------------------------------------------------------------


def records(options: argparse.Namespace, names: Sequence[str]) -> Iterator[Record]:
    """Yield a record for every run of a method; what is saved is against Slurm's default."""
    log = read_log(options.log).jobs[: options.limit]
    for per_leaf in NODES_PER_LEAF:
        state = leaves_of(NUM_NODES, per_leaf)
        for name, patterns in SETS.items():
            for seed in range(options.seeds):
                jobs = with_intensive(log, INTENSIVE, patterns, seed)
                few = [m for m in names if m != "exact" or seed < options.exact_seeds]
                study = _Study(state, jobs, few, Options(options.time_limit, seed=seed))
                for protocol, runs in study.runs():
                    for run in runs:
                        yield record(per_leaf, protocol, name, seed, run, runs[0])
                        print(per_leaf, protocol, name, seed, run.method, file=sys.stderr)


def leaves_of(num_nodes: int, per_leaf: int) -> HierarchyState:
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
    return prepare_contention(
        Snapshot(schema_version="topoplace.snapshot/1", name=machine.name, machine=machine)
    )


@dataclasses.dataclass(frozen=True)
class _Study:
    """All protocols with the same jobs on the same machine."""

    state: HierarchyState
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
            occupancy = TreeProblem(prepare_contention(replay.snapshot("in-use"))).occupancy()
            if 100 * occupancy.free_per_leaf.sum() >= (100 - OCCUPANCY) * NUM_NODES:
                return occupancy
            hour += 1


def record(
    per_leaf: int, protocol: str, patterns: str, seed: int, run: MethodRun, base: MethodRun
) -> Record:
    """Return a run as a record; the gain is the mean over the jobs that ran in both (table 4)."""
    metrics = metrics_of(run.records)
    there = {record.job.id: record.execution for record in base.records}
    gains = [
        percent_below(record.execution, there[record.job.id])
        for record in run.records
        if record.job.id in there
    ]
    return Record(
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
        mean_job_gain=_mean(gains),
        **{f"{k}_percent_saved": v for k, v in improvements(metrics, base.metrics).items()},
    )


def main(given: Sequence[str] | None = None) -> None:
    """Run the study and write its table and document."""
    options = {
        "methods": [str],  # by default those of the paper, and exact
        "seeds": 3,  # draws of 90 % of the jobs
        "exact_seeds": 1,  # draws for exact
        "time_limit": float,  # per job, for exact
        "limit": int,  # take the first jobs only
    }
    study = Study("mishra2020", __doc__, given, {"log": Path}, **options)
    names = [method_of("allocation", name).name for name in study.options.methods or METHODS]
    names = [BASE, *(name for name in names if name != BASE)]
    rows, seconds = timed(lambda: list(records(study.options, names)))
    head = (
        f"{seconds:.0f} s on one core. "
        "Percents saved against Slurm's default, the mean over the seeds (least to largest)."
    )
    write(study, rows, head)


if __name__ == "__main__":
    main()
