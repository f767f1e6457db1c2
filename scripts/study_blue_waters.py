"""The workload of Enos 2014 on Blue Waters: strict prisms against node orders.

First the shipped snapshots, whose queue every method places, beside the bound that exact proves;
the checker accepts every result, or the study stops. Then a log drawn from the same table, replayed
through every method. Writes blue_waters.md (between its markers), two CSV files and the plots.

    python scripts/study_blue_waters.py [--time-limit S] [--num-jobs N] [--seed N] [--jobs N]
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from draw_log import draw_log
from generate_snapshots import load_workload
from study_page import (
    STUDIES,
    markdown,
    number,
    percent,
    picture,
    spawned,
    stamp,
    write_between_markers,
    write_rows,
)
from topoplace.certify import check_document
from topoplace.errors import TopoplaceError
from topoplace.machine import parse_node_set
from topoplace.placement.torus.problem import job_links
from topoplace.result import PlacementResult
from topoplace.snapshot.machines import load_snapshot, load_torus
from topoplace.snapshot.schema import Communication, Snapshot
from topoplace.snapshot.state import SnapshotState, prepare
from topoplace.solving import Options, solve
from topoplace.study.replay import MIXES, MethodRun, Replay, Setup, run_method, with_intensive
from topoplace.study.replay.torus import ShapeModel, box_around

BEGIN = "<!-- tables: written by scripts/study_blue_waters.py -->"
END = "<!-- end of tables -->"
TITLE = "Blue Waters: strict prisms against node orders"

PRISM_METHODS = ("exact", "best-fit", "first-fit")
METHODS = (*PRISM_METHODS, "alps-o2", "alps-2y", "alps-4y", "random-nodes")
PLOTTED = ("exact", "best-fit", "alps-2y")

Trace = list[tuple[int, float, int]]
"""Per event: second, share of the nodes held, jobs waiting; valid until the next one."""


@dataclass(frozen=True)
class SnapshotRow:
    """One method on one snapshot, `jobs` and `nodes` started of the `idle` usable ones.

    `bound` and `gap`, ``(bound - nodes) / nodes``, are certified for conforming placements, None
    for others. `bisection` is the bandwidth per node of the started jobs, averaged over their
    nodes, in thousandths of an x link's.
    """

    snapshot: str
    method: str
    idle: int
    jobs: int
    nodes: int
    bound: int | None
    gap: float | None
    shared_links: int
    bisection: float
    seconds: float


@dataclass(frozen=True)
class ReplayRow:
    """One method on the log; the shares are those of docs/guide/replay.md, "Metrics".

    `bisection` is as in `SnapshotRow`, of the communicating jobs, averaged over their node-seconds;
    `shared_links` and `disturbed` are means of samples: the links that two communicating jobs use,
    and the share of these jobs that have such a link.
    """

    method: str
    jobs: int
    utilisation: float
    scheduling: float
    application: float
    system: float
    hours: float
    mean_wait_hours: float
    mean_waiting: float
    bisection: float
    shared_links: float
    disturbed: float
    decisions: int
    proven: int
    seconds: float


def write_study(
    folder: Path,
    snapshots: Sequence[SnapshotRow],
    replays: Sequence[ReplayRow],
    traces: Sequence[Trace],
    head: str,
) -> None:
    """Write the tables of all rows, the plots, and the tables of the page between its markers.

    Parameters
    ----------
    traces
        One per replay.
    head
        How the rows were made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "blue_waters_snapshots.csv", snapshots)
    write_rows(folder / "blue_waters_replay.csv", replays)
    by_method = dict(zip((row.method for row in replays), traces, strict=True))
    draw_snapshots(folder / "blue_waters_snapshots.png", snapshots)
    draw_replays(folder / "blue_waters_replay.png", by_method)
    parts = [
        head,
        "### Snapshots: nodes started",
        _started(snapshots),
        "![Nodes started, links shared and bisection](blue_waters_snapshots.png)",
        "### Snapshots: links shared",
        _snapshots(snapshots, lambda row: number(row.shared_links)),
        "### Snapshots: bisection bandwidth per node, thousandths of an x link",
        _snapshots(snapshots, lambda row: f"{row.bisection:.1f}"),
        "### Replay",
        _replays(replays),
        "![Utilisation and queue over time](blue_waters_replay.png)",
    ]
    page = folder / "blue_waters.md"
    write_between_markers(page, BEGIN, END, TITLE, "\n\n".join(parts))


def _started(rows: Sequence[SnapshotRow]) -> str:
    """Return the table of nodes started, with what exact proves."""
    head = ["busy", "idle nodes", "bound", "gap of exact", *METHODS]
    lines = []
    for busy, mine in _by_snapshot(rows):
        exact = mine["exact"]
        proven = number(exact.idle), number(exact.bound), percent(exact.gap)
        lines.append([busy, *proven, *(number(mine[method].nodes) for method in METHODS)])
    return markdown(head, 0, lines)


def _snapshots(rows: Sequence[SnapshotRow], cell: Callable[[SnapshotRow], str]) -> str:
    """Return a table with a line per snapshot and a column per method."""
    lines = [[busy, *(cell(mine[m]) for m in METHODS)] for busy, mine in _by_snapshot(rows)]
    return markdown(["busy", *METHODS], 0, lines)


def _by_snapshot(rows: Sequence[SnapshotRow]) -> Iterator[tuple[str, dict[str, SnapshotRow]]]:
    """Yield how busy each snapshot is, and its rows by method."""
    for name in dict.fromkeys(row.snapshot for row in rows):
        busy = "0 %" if name == "empty" else f"{name} %"
        yield busy, {row.method: row for row in rows if row.snapshot == name}


def _replays(rows: Sequence[ReplayRow]) -> str:
    head = ["method", "utilisation", "scheduling efficiency", "E_AVE", "system efficiency"]
    head += ["mean wait, h", "mean queue", "bisection", "links shared", "jobs disturbed"]
    head += ["decisions", "proven best", "s"]
    lines = [
        [
            row.method,
            *(percent(share) for share in (row.utilisation, row.scheduling)),
            *(percent(share) for share in (row.application, row.system)),
            f"{row.mean_wait_hours:.2f}",
            f"{row.mean_waiting:.1f}",
            f"{row.bisection:.1f}",
            f"{row.shared_links:,.0f}",
            percent(row.disturbed),
            number(row.decisions),
            percent(row.proven / row.decisions) if row.proven else "-",
            f"{row.seconds:,.0f}",
        ]
        for row in rows
    ]
    return markdown(head, 1, lines)


def draw_snapshots(path: Path, rows: Sequence[SnapshotRow]) -> None:
    """Draw nodes started, links shared and bisection against how busy the machine is."""
    kinds = {
        "nodes": "nodes started",
        "shared_links": "links shared",
        "bisection": "bisection per node, x link / 1000",
    }
    with picture(path, 1, 3, figsize=(13, 4), layout="constrained") as (_, (panels,)):
        for k, method in enumerate(METHODS):
            mine = [row for row in rows if row.method == method]
            busy = [0 if row.snapshot == "empty" else int(row.snapshot) for row in mine]
            style = "o-" if method in PRISM_METHODS else "x--"
            for panel, name in zip(panels, kinds, strict=True):
                values = [getattr(row, name) for row in mine]
                panel.plot(busy, values, style, color=f"C{k}", ms=4, label=method)
            if method == "exact":
                panels[0].plot(busy, [row.bound for row in mine], "k:", label="bound for prisms")
        for panel, label in zip(panels, kinds.values(), strict=True):
            panel.set_ylabel(label)
            panel.set_xlabel("busy nodes, %")
        panels[0].legend(fontsize=8)


def draw_replays(path: Path, traces: dict[str, Trace]) -> None:
    """Draw utilisation and the queue over time."""
    with picture(path, 2, 1, figsize=(10, 6), sharex=True) as (_, ((held,), (queue,))):
        for method in PLOTTED:
            hours = [at / 3600 for at, _, _ in traces[method]]
            shares = [100 * share for _, share, _ in traces[method]]
            held.step(hours, shares, where="post", lw=1, label=method)
            waiting = [jobs for _, _, jobs in traces[method]]
            queue.step(hours, waiting, where="post", lw=1, label=method)
        held.set_ylabel("nodes held, %")
        queue.set_ylabel("jobs waiting")
        queue.set_xlabel("hours")
        held.legend(fontsize=8, loc="lower center", ncols=len(PLOTTED))


SNAPSHOTS = STUDIES.parent.parent / "instances" / "snapshots"
NAMES = ("empty", "20", "30", "40", "50", "60", "70", "80")
MACHINE = "blue_waters"
_SAMPLE_EVERY = 10
"""Events, at which somebody waits, from one count of shared links to the next."""


def snapshot_rows(names: Sequence[str], time_limit: float, seed: int) -> Iterator[SnapshotRow]:
    """Yield a row per snapshot and method, exact first, whose bound stands beside the others.

    Raises
    ------
    TopoplaceError
        If the checker refuses a result.
    """
    if names:  # compile what has to be before any clock starts
        solve(load_snapshot(SNAPSHOTS / f"{MACHINE}_80.json"), "exact", Options(time_limit=1))
    for name in names:
        state = load_snapshot(SNAPSHOTS / f"{MACHINE}_{name}.json")
        bound = 0
        for method in METHODS:
            result = solve(state, method, Options(time_limit=time_limit, seed=seed))
            checked = check_document(result)
            if not checked.holds:
                raise TopoplaceError(f"{name}, {method}: the checker refuses the result")
            if method == "exact":
                if not checked.verified or result.bound is None:
                    raise TopoplaceError(f"{name}: no certified bound")
                bound = int(result.bound)
            yield _snapshot_row(name, state, result, bound)
            print(f"{name} {method} {result.seconds} s", file=sys.stderr)


def _snapshot_row(
    name: str, state: SnapshotState, result: PlacementResult, bound: int
) -> SnapshotRow:
    assert result.solution is not None
    assert result.objective is not None
    torus, model = state.torus, ShapeModel(state.torus)
    started = Fraction(0)
    num_nodes = 0
    for placement in result.solution.placements:
        nodes = parse_node_set(placement.nodes, torus.num_nodes)
        if placement.prism is not None:
            extents = tuple(placement.prism.extents)
        else:
            extents = box_around(torus, np.unique(nodes // torus.nodes_per_router)).extents
        started += len(nodes) / model.cost(extents)
        num_nodes += len(nodes)
    conforms = result.solution.conforming
    return SnapshotRow(
        snapshot=name,
        method=result.method,
        idle=int(state.usable.sum()),
        jobs=len(result.solution.placements),
        nodes=num_nodes,
        bound=bound if conforms else None,
        gap=(bound - num_nodes) / max(1, num_nodes) if conforms else None,
        shared_links=result.solution.num_shared_links,
        bisection=_in_x_links(state, started / max(1, num_nodes)),
        seconds=result.seconds,
    )


def _in_x_links(state: SnapshotState, bandwidth: Fraction) -> float:
    """Return a bandwidth in thousandths of an x link's."""
    return float(1000 * bandwidth / state.torus.bandwidth[0])


class LinkCount:
    """Counts, on the way through a replay, the links that two running jobs share."""

    def __init__(self) -> None:
        self.shared: list[int] = []
        self.disturbed: list[float] = []
        self._calls = 0

    def __call__(self, replay: Replay) -> None:
        """Count, if it is time; handed to `run_method` as `before_starts`."""
        self._calls += 1
        if self._calls % _SAMPLE_EVERY:
            return
        state = prepare(replay.snapshot("now"))
        talking = [job for job in state.running if job.communication is not Communication.NONE]
        links = [job_links(state.torus, job) for job in talking]
        users = np.zeros(state.torus.num_links, dtype=np.int64)
        for mine in links:
            users[mine] += 1
        self.shared.append(int((users > 1).sum()))
        hit = [bool((users[mine] > 1).any()) for mine in links]
        self.disturbed.append(sum(hit) / max(1, len(hit)))


def replayed(method: str, setup: Setup) -> tuple[ReplayRow, Trace]:
    """Replay the log through a method; return its row and what is plotted of it."""
    began, count = time.perf_counter(), LinkCount()
    run = run_method(setup, method, before_starts=count)
    assert isinstance(setup.state, SnapshotState)
    row = _replay_row(run, count, setup.state, time.perf_counter() - began)
    print(f"replay, {method}: {row.seconds:.0f} s", file=sys.stderr)
    trace = [(m.at, m.nodes_held / run.num_nodes, m.jobs_waiting) for m in run.timeline]
    return row, trace


def _replay_row(
    run: MethodRun, count: LinkCount, state: SnapshotState, seconds: float
) -> ReplayRow:
    found, decisions = run.efficiency, run.decisions
    assert decisions is not None
    talking = [record for record in run.records if record.cost]
    weight = sum(record.job.nodes * record.execution for record in talking)
    share = sum((r.job.nodes * r.execution / r.cost for r in talking), Fraction(0))
    span = run.timeline[-1].at - run.timeline[0].at
    waiting = sum(m.jobs_waiting * (n.at - m.at) for m, n in itertools.pairwise(run.timeline))
    return ReplayRow(
        method=run.method,
        jobs=len(run.records),
        utilisation=float(found.utilisation or 0),
        scheduling=float(found.scheduling or 0),
        application=float(found.application or 0),
        system=float(found.system or 0),
        hours=span / 3600,
        mean_wait_hours=run.metrics.wait / 3600 / len(run.records),
        mean_waiting=waiting / span,
        bisection=_in_x_links(state, share / weight),
        shared_links=float(np.mean(count.shared)) if count.shared else 0.0,
        disturbed=float(np.mean(count.disturbed)) if count.disturbed else 0.0,
        decisions=decisions.asked,
        proven=decisions.proven,
        seconds=seconds,
    )


def setup_of(num_jobs: int, load: float, decision_limit: float, seed: int) -> Setup:
    """Return the machine with nothing running, and a drawn log; 90 % of its jobs communicate."""
    machine = load_torus(MACHINE)
    state = prepare(Snapshot(schema_version="topoplace.snapshot/1", name=MACHINE, machine=machine))
    num_nodes = int(np.count_nonzero(state.node_class == 0))
    jobs = draw_log(load_workload(), machine.default_class, num_jobs, num_nodes, load, seed)
    jobs = with_intensive(jobs, 90, MIXES["B"], seed)
    return Setup(state, jobs, options=Options(time_limit=decision_limit, seed=seed))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page, its tables and its plots."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--snapshots", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--time-limit", type=float, default=45, help="of exact on a snapshot, s")
    parser.add_argument("--num-jobs", type=int, default=400, help="of the log")
    parser.add_argument("--load", type=float, default=120, help="of the log, percent")
    parser.add_argument("--decision-limit", type=float, default=1, help="of exact in the log, s")
    parser.add_argument("--seed", type=int, default=2014)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    parser.add_argument("-o", "--output", type=Path, default=STUDIES)
    options = parser.parse_args(arguments)
    rows = list(snapshot_rows(options.snapshots, options.time_limit, options.seed))
    setup = setup_of(options.num_jobs, options.load, options.decision_limit, options.seed)
    with spawned(options.jobs) as pool:
        found = list(pool.map(functools.partial(replayed, setup=setup), METHODS))
    head = stamp("study_blue_waters.py", arguments)
    write_study(
        options.output, rows, [row for row, _ in found], [trace for _, trace in found], head
    )


if __name__ == "__main__":
    main()
