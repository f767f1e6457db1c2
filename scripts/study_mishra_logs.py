"""Mishra 2020 on Intrepid, Theta and Mira, with logs that are given or generated.

A log that is not given is generated from what the paper publishes (section 5.1, table 3): nodes of
the machine, largest request, share of powers of two, and the hours that 1,000 jobs run. Sizes are
spread evenly over powers of two, run times exponentially, submissions at random; how close these
come is set by halving, so that Slurm's default has about the paper's hours of waiting.

Writes mishra_logs.csv and the tables of docs/studies/mishra2020.md, "The three machines".
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from study import STUDIES, Record, Study, groups, table, where
from study_mishra2020 import BASE, PUBLISHED, SETS, leaves_of
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.solving import Options
from topoplace.study.replay import LogJob, MethodRun, Replay, Setup, read_log, with_intensive
from topoplace.study.replay.log import improvements, metrics_of, percent_below
from topoplace.study.replay.trees import TreeSite, individual_runs, occupied

HOUR = 3600
NUM_INDIVIDUAL, OCCUPANCY = 200, 50
HALVINGS = 8
SHARES = (0, 25, 50, 75)
"""Of the jobs of a run, those that save least (figure 7)."""
RANGES = (0, 256, 512, 1024, 4096, 1 << 20)
"""Where ranges of nodes end (figure 8), each with its end."""


@dataclass(frozen=True)
class Machine:
    """A machine and its log in the paper.

    Nodes, nodes of a leaf switch, smallest and largest request, percent of powers of two, hours of
    execution and of waiting under Slurm's default. The smallest request is not published.
    """

    name: str
    nodes: int
    per_leaf: int
    least: int
    most: int
    powers: int
    execution: int
    wait: int


MACHINES = (
    Machine("Intrepid", 40960, 366, 256, 40960, 99, 1382, 57),
    Machine("Theta", 4392, 16, 128, 512, 90, 2189, 45303),
    Machine("Mira", 49152, 366, 512, 16384, 99, 3289, 17387),
)

PAPER = {
    ("Intrepid", "RHVD"): ("2.2 / 9.1 / 9.5", "14 / 53 / 53", "3.65 / 7.23 / 7.81"),
    ("Intrepid", "RD"): ("2.7 / 8.5 / 9.0", "9 / 44 / 42", "1.70 / 8.12 / 8.29"),
    ("Theta", "RHVD"): ("20.5 / 22.3 / 24.0", "31 / 24 / 27", "9.65 / 9.65 / 9.65"),
    ("Theta", "RD"): ("17.3 / 20.9 / 22.1", "23 / 21 / 30", "13.56 / 13.56 / 13.56"),
    ("Mira", "RHVD"): ("-20.3 / 28.8 / 26.0", "-101 / 79 / 73", "10.84 / 19.69 / 21.71"),
    ("Mira", "RD"): ("0.1 / 22.2 / 19.8", "9 / 64 / 68", "9.45 / 24.32 / 24.91"),
}
"""Tables 3 (execution and wait) and 4 in percent saved: greedy, balanced, adaptive."""

CASES = [
    *(("continuous", name, 90) for name in ("RHVD", "RD", "binomial")),
    *(("continuous", "RHVD", percent) for percent in (30, 60)),
    *(("individual", name, 90) for name in ("RHVD", "RD", "binomial")),
]


def generated(machine: Machine, num: int, seed: int) -> list[LogJob]:
    """Return a log of so many jobs, submitted so that the default has the paper's wait."""
    rng = np.random.default_rng(seed)
    powers = [2**k for k in range(4, 20) if machine.least <= 2**k <= machine.most]
    sizes = rng.choice(powers, num)
    others = rng.random(num) >= machine.powers / 100
    sizes[others] = rng.integers(machine.least, machine.most + 1, num)[others]
    sizes[int(rng.integers(num))] = machine.most
    seconds = np.maximum(1, rng.exponential(machine.execution * HOUR / 1000, num)).astype(int)
    gaps = rng.exponential(1.0, num)
    gaps[0] = 0.0
    busy = float((sizes * seconds).mean()) / machine.nodes  # mean gap at which all is busy
    low, high, wanted = 0.0, 20.0, machine.wait * num / 1000
    state = leaves_of(machine.nodes, machine.per_leaf)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        jobs = _log(sizes, seconds, np.cumsum(gaps) * busy * middle)
        wait = metrics_of(_run(state, jobs, BASE, seed).records).wait / HOUR
        low, high = (middle, high) if wait > wanted else (low, middle)
    return jobs


def _log(sizes: Sequence[int], seconds: Sequence[int], submitted: Sequence[float]) -> list[LogJob]:
    rows = zip(sizes, submitted, seconds, strict=True)
    return [
        LogJob(f"job-{k}", int(n), int(at), int(run), int(run))
        for k, (n, at, run) in enumerate(rows)
    ]


def _run(state: HierarchyState, jobs: Sequence[LogJob], method: str, seed: int) -> MethodRun:
    replay = Replay(Setup(state, jobs, options=Options(seed=seed)), method)
    replay.run()
    return MethodRun(method, tuple(replay.records))


def records_of(num: int, seeds: int, case: tuple[Machine, Path | None]) -> tuple[str, list[Record]]:
    """Return the name of a machine, and the records of all its cases."""
    machine, path = case
    state, rows = leaves_of(machine.nodes, machine.per_leaf), list[Record]()
    for seed in range(seeds):
        given = path is not None
        log = read_log(path).jobs[:num] if path is not None else generated(machine, num, seed)
        log = [job for job in log if job.nodes <= machine.nodes]
        for protocol, patterns, percent in CASES:
            jobs = with_intensive(log, percent, SETS[patterns], seed)
            runs = [
                _run(state, jobs, method, seed)
                if protocol == "continuous"
                else _individual(state, jobs, method, seed)
                for method in (BASE, *PUBLISHED)
            ]
            for run in runs:
                own = (machine.name, given, protocol, patterns, percent, seed)
                rows.append(_record(own, run, runs[0]))
    return machine.name, rows


def _individual(state: HierarchyState, jobs: Sequence[LogJob], method: str, seed: int) -> MethodRun:
    order = np.random.default_rng(seed).permutation(len(jobs))[:NUM_INDIVIDUAL]
    before = occupied(state, jobs, OCCUPANCY)
    drawn = [jobs[k] for k in sorted(order) if jobs[k].nodes <= int(before.free_per_leaf.sum())]
    return MethodRun(
        method,
        individual_runs(TreeSite(state, method, Options(seed=seed), occupancy=before), drawn),
    )


def _record(own: tuple[object, ...], run: MethodRun, base: MethodRun) -> Record:
    metrics, there = metrics_of(run.records), {r.job.id: r for r in base.records}
    gains = [percent_below(r.execution, there[r.job.id].execution) for r in run.records]
    known = [gain for gain in gains if gain is not None]
    names = ("machine", "given", "protocol", "patterns", "percent", "seed")
    costs = {}
    for low, high in itertools.pairwise(RANGES):
        some = [float(r.cost) for r in run.records if low < r.job.nodes <= high and r.job.patterns]
        costs[f"cost_to_{high}"] = round(statistics.fmean(some), 2) if some else None
    saved = improvements(metrics, base.metrics)
    return Record(
        **dict(zip(names, own, strict=True)),
        method=run.method,
        jobs=metrics.num_jobs,
        execution_hours=round(metrics.execution / HOUR, 1),
        wait_hours=round(metrics.wait / HOUR, 1),
        turnaround_hours=round(metrics.turnaround / HOUR / metrics.num_jobs, 3),
        node_hours=round(metrics.node_seconds / HOUR / metrics.num_jobs, 1),
        mean_gain=round(statistics.fmean(known), 2),
        largest_gain=round(max(known), 1),
        **{f"gain_{share}": round(float(np.percentile(known, share)), 1) for share in SHARES},
        **{f"{k}_saved": None if v is None else round(v, 2) for k, v in saved.items()},
        **costs,
    )


# ---- The page ------------------------------------------------------------------------------------


def triple(rows: Sequence[Record], field: str, digits: int = 1) -> str:
    """Return the mean over the seeds of a field for greedy, balanced and adaptive."""
    found = []
    for method in PUBLISHED:
        values = [getattr(row, field) for row in where(rows, method=method)]
        known = [value for value in values if value is not None]
        found.append(f"{statistics.fmean(known):.{digits}f}" if known else "-")
    return " / ".join(found)


def texts(rows: Sequence[Record]) -> Iterator[str]:
    """Yield the tables of the page."""
    yield "Percent saved by greedy / balanced / adaptive; means over the seeds."
    lines = []
    for (machine, patterns), paper in PAPER.items():
        own = where(rows, machine=machine, patterns=patterns, percent=90)
        run, alone = (where(own, protocol=name) for name in ("continuous", "individual"))
        first = where(run, method=BASE)
        hours = ", ".join(
            f"{statistics.fmean(getattr(row, field) for row in first):,.0f}"
            for field in ("execution_hours", "wait_hours")
        )
        lines.append(
            (
                *(machine, patterns, hours, paper[0], triple(run, "execution_saved")),
                *(paper[1], triple(run, "wait_saved", 0), paper[2], triple(alone, "mean_gain", 2)),
                f"{max(r.largest_gain for r in run):.0f}, {max(r.largest_gain for r in alone):.0f}",
            )
        )
    heads = (
        *("machine", "patterns", "hours by default: run, wait", "table 3, run", "ours"),
        *("table 3, wait", "ours", "table 4", "ours", "largest of a job: continuous, individual"),
    )
    yield "### Tables 3 and 4\n\n" + _table(heads, lines)
    lines = [
        (
            *(machine, f"{low + 1:,} to {min(high, _most(machine)):,}"),
            *(_mean(own, f"cost_to_{high}", method) for method in (BASE, *PUBLISHED)),
        )
        for machine, own in groups(
            where(rows, protocol="continuous", patterns="binomial"), "machine"
        ).items()
        for low, high in itertools.pairwise(RANGES)
        if any(getattr(row, f"cost_to_{high}") is not None for row in own)
    ]
    heads = ("machine", "nodes", BASE, *PUBLISHED)
    figure_8 = _table(heads, lines)
    lines = [
        (
            *(protocol, method),
            *(_mean(own, f"gain_{share}", method) for share in SHARES),
            _mean(own, "largest_gain", method),
        )
        for protocol, own in groups(where(rows, machine="Theta", patterns="RD"), "protocol").items()
        for method in PUBLISHED
    ]
    heads = ("runs", "method", "least", "a quarter up to", "half", "three quarters", "largest")
    what = "### Figure 7: percent of its run time that a job of Theta saves, RD"
    yield f"{what}\n\n{_table(heads, lines)}"
    yield f"### Figure 8: mean cost of a job by its nodes, binomial\n\n{figure_8}"
    lines = []
    paper_9 = {30: "- / - / 2.55, - / - / 2.61", 60: "-", 90: "- / - / 11.10, - / - / 7.85"}
    for (machine, percent), own in groups(
        where(rows, protocol="continuous", patterns="RHVD"), lambda row: (row.machine, row.percent)
    ).items():
        said = paper_9[percent] if machine == "Intrepid" else "-"
        saved = f"{triple(own, 'turnaround_saved')}; {triple(own, 'node_seconds_saved')}"
        hours = [_mean(own, "turnaround_hours", m) for m in (BASE, *PUBLISHED)]
        lines.append((machine, percent, said, saved, " / ".join(hours)))
    lines.sort(key=lambda one: ([m.name for m in MACHINES].index(one[0]), one[1]))
    heads = (
        *("machine", "percent that communicate", "paper: turnaround, node hours"),
        *("ours: turnaround; node hours", "mean turnaround (h): default and the three"),
    )
    yield "### Figure 9: turnaround and node hours, RHVD\n\n" + _table(heads, lines)


def _most(machine: str) -> int:
    return next(one.most for one in MACHINES if one.name == machine)


def _mean(rows: Sequence[Record], field: str, method: str) -> str:
    values = [getattr(row, field) for row in where(rows, method=method)]
    known = [value for value in values if value is not None]
    return f"{statistics.fmean(known):,.1f}" if known else "-"


def _table(heads: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    def cell(k: int) -> functools.partial[object]:
        return functools.partial(lambda row, k: row[k], k=k)

    return table(lines, [(head, cell(k)) for k, head in enumerate(heads)], len(heads))


def main(given: Sequence[str] | None = None) -> None:
    """Run the study and write its records and tables."""
    options = {
        "intrepid": Path,  # a log in the Standard Workload Format, or ALCF's
        "theta": Path,
        "mira": Path,
        "seeds": 3,  # logs generated, and draws of the jobs that communicate
        "limit": 1000,  # jobs of a log
        "jobs": 1,  # processes
        "quick": False,  # 30 jobs, one seed
    }
    study = Study("mishra_logs", __doc__, given, **options)
    own = study.options
    num, seeds = (30, 1) if own.quick else (own.limit, own.seeds)
    cases = [(machine, getattr(own, machine.name.lower())) for machine in MACHINES]
    found = study.measured(functools.partial(records_of, num, seeds), cases)
    rows = [row for _, some in found for row in some]
    study.write(rows)
    page = study.folder / "mishra2020.md"
    if not page.exists():
        page.write_text((STUDIES / "mishra2020.md").read_text())
    study.page(study.stamp, *texts(rows), page=page, part="machines")


if __name__ == "__main__":
    main()
