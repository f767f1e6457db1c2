"""The workload of Enos 2014 on Blue Waters: strict prisms against node orders.

First the shipped snapshots, whose queue every method places, beside the bound that exact proves;
the checker accepts every result, or the study stops. Then a log drawn from the same table, replayed
through every method. Writes blue_waters.md (between its markers), two CSV files and the plots.

    python scripts/study_blue_waters.py [--time-limit S] [--num-jobs N] [--seed N] [--jobs N]
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from draw_log import draw_log, nodes_by_class
from generate_snapshots import load_workload
from study import (
    FILLS,
    SNAPSHOTS,
    Column,
    Record,
    Study,
    busy,
    groups,
    percent,
    table,
    timed,
    where,
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
from topoplace.study.replay import MIXES, Replay, Setup, run_method, with_intensive
from topoplace.study.replay.torus import ShapeModel, box_around

PRISM_METHODS = ("exact", "best-fit", "first-fit")
METHODS = (*PRISM_METHODS, "alps-o2", "alps-2y", "alps-4y", "random-nodes")
PLOTTED = ("exact", "best-fit", "alps-2y")
MACHINE = "blue_waters"

Trace = list[tuple[int, float, int]]
"""Per event: second, share of the nodes held, jobs waiting; valid until the next one."""

_SAMPLE_EVERY = 10
"""Events, at which somebody waits, from one count of shared links to the next."""


# ---- The page ------------------------------------------------------------------------------------

REPLAY: list[Column] = [
    *("method", ("utilisation", lambda row: percent(row.utilisation))),
    ("scheduling efficiency", lambda row: percent(row.scheduling)),
    ("E_AVE", lambda row: percent(row.application)),
    ("system efficiency", lambda row: percent(row.system)),
    ("mean wait, h", lambda row: f"{row.mean_wait_hours:.2f}"),
    ("mean queue", lambda row: f"{row.mean_waiting:.1f}"),
    ("bisection", lambda row: f"{row.bisection:.1f}"),
    ("links shared", lambda row: f"{row.shared_links:,.0f}"),
    ("jobs disturbed", lambda row: percent(row.disturbed)),
    "decisions",
    ("proven best", lambda row: percent(row.proven / row.decisions if row.proven else None)),
    ("s", lambda row: f"{row.seconds:,.0f}"),
]


def write(
    study: Study, rows: Sequence[Record], replays: Sequence[Record], traces: Sequence[Trace]
) -> None:
    """Write the records, the tables and the plots; there is a trace per replay."""
    study.write(rows, "_snapshots")
    study.write(replays, "_replay")
    draw_snapshots(study, rows)
    draw_replays(study, dict(zip((row.method for row in replays), traces, strict=True)))
    exact: list[Column] = [
        ("idle nodes", lambda own: own["exact"].idle),
        ("bound", lambda own: own["exact"].bound),
        ("gap of exact", lambda own: percent(own["exact"].gap)),
    ]
    study.page(
        "### Snapshots: nodes started",
        by_method(rows, "nodes", exact),
        "![Nodes started, links shared and bisection](blue_waters_snapshots.png)",
        "### Snapshots: links shared",
        by_method(rows, "shared_links"),
        "### Snapshots: bisection bandwidth per node, thousandths of an x link",
        by_method(rows, "bisection"),
        "### Replay",
        table(replays, REPLAY),
        "![Utilisation and queue over time](blue_waters_replay.png)",
        title="Blue Waters: strict prisms against node orders",
    )


def by_method(rows: Sequence[Record], field: str, more: Sequence[Column] = ()) -> str:
    """Return a table with a line per snapshot and a column per method, behind `more`."""

    def cell(method: str) -> Column:
        def value(own: dict[str, Record]) -> object:
            found = getattr(own[method], field)
            return f"{found:.1f}" if isinstance(found, float) else found

        return method, value

    lines = [{row.method: row for row in own} for own in groups(rows, "snapshot").values()]
    columns: list[Column] = [("busy", lambda own: f"{busy(own['exact'].snapshot)} %"), *more]
    return table(lines, [*columns, *map(cell, METHODS)], 0)


def draw_snapshots(study: Study, rows: Sequence[Record]) -> None:
    """Draw nodes started, links shared and bisection against how busy the machine is."""
    kinds = {
        "nodes": "nodes started",
        "shared_links": "links shared",
        "bisection": "bisection per node, x link / 1000",
    }
    with study.picture("_snapshots", 1, 3, figsize=(13, 4), layout="constrained") as (_, (panels,)):
        for k, method in enumerate(METHODS):
            mine = where(rows, method=method)
            fills = [busy(row.snapshot) for row in mine]
            style = "o-" if method in PRISM_METHODS else "x--"
            for panel, name in zip(panels, kinds, strict=True):
                values = [getattr(row, name) for row in mine]
                panel.plot(fills, values, style, color=f"C{k}", ms=4, label=method)
            if method == "exact":
                panels[0].plot(fills, [row.bound for row in mine], "k:", label="bound for prisms")
        for panel, label in zip(panels, kinds.values(), strict=True):
            panel.set(ylabel=label, xlabel="busy nodes, %")
        panels[0].legend(fontsize=8)


def draw_replays(study: Study, traces: dict[str, Trace]) -> None:
    """Draw utilisation and the queue over time."""
    size = {"figsize": (10, 6), "sharex": True}
    with study.picture("_replay", 2, 1, **size) as (_, ((held,), (queue,))):
        for method in PLOTTED:
            seconds, shares, waiting = zip(*traces[method], strict=True)
            hours = [at / 3600 for at in seconds]
            held.step(hours, [100 * s for s in shares], where="post", lw=1, label=method)
            queue.step(hours, waiting, where="post", lw=1, label=method)
        held.set_ylabel("nodes held, %")
        queue.set(ylabel="jobs waiting", xlabel="hours")
        held.legend(fontsize=8, loc="lower center", ncols=len(PLOTTED))


# ---- Snapshots -----------------------------------------------------------------------------------


def snapshot_rows(names: Sequence[str], time_limit: float, seed: int) -> Iterator[Record]:
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


def _snapshot_row(name: str, state: SnapshotState, result: PlacementResult, bound: int) -> Record:
    """Return the record of a result; a bound is certified for conforming placements only.

    The bisection is the bandwidth per node of the started jobs, averaged over their nodes, in
    thousandths of an x link's.
    """
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
    return Record(
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


def replayed(method: str, setup: Setup) -> tuple[Record, Trace]:
    """Replay the log through a method; return its record and what is plotted of it.

    Shares are those of docs/guide/replay.md, "Metrics". The bisection is that of communicating
    jobs, averaged over their node-seconds; `shared_links` and `disturbed` are means of samples: the
    links that two communicating jobs use, and the share of these jobs that have such a link.
    """
    count, state = LinkCount(), setup.state
    assert isinstance(state, SnapshotState)
    run, seconds = timed(lambda: run_method(setup, method, before_starts=count))
    found, decisions = run.efficiency, run.decisions
    assert decisions is not None
    talking = [record for record in run.records if record.cost]
    weight = sum(record.job.nodes * record.execution for record in talking)
    share = sum((r.job.nodes * r.execution / r.cost for r in talking), Fraction(0))
    span = run.timeline[-1].at - run.timeline[0].at
    waiting = sum(m.jobs_waiting * (n.at - m.at) for m, n in itertools.pairwise(run.timeline))
    row = Record(
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
    return row, [(m.at, m.nodes_held / run.num_nodes, m.jobs_waiting) for m in run.timeline]


def setup_of(num_jobs: int, load: float, decision_limit: float, seed: int) -> Setup:
    """Return the machine with nothing running, and a drawn log; 90 % of its jobs communicate."""
    machine = load_torus(MACHINE)
    state = prepare(Snapshot(schema_version="topoplace.snapshot/1", name=MACHINE, machine=machine))
    num_nodes = nodes_by_class(state, state.classes[:1])
    name = machine.default_class
    jobs = draw_log(load_workload(), num_nodes, num_jobs, load, seed, default=name)
    jobs = with_intensive(jobs, 90, MIXES["B"], seed)
    return Setup(state, jobs, options=Options(time_limit=decision_limit, seed=seed))


def main(given: Sequence[str] | None = None) -> None:
    """Run the study and write its page, its tables and its plots."""
    options = {
        "snapshots": FILLS,
        "time_limit": 45.0,  # of exact on a snapshot
        "num_jobs": 400,  # of the log, as the next two
        "load": 120.0,
        "decision_limit": 1.0,
        "seed": 2014,
        "jobs": 2,
    }
    study = Study("blue_waters", __doc__, given, **options)
    own = study.options
    rows = list(snapshot_rows(own.snapshots, own.time_limit, own.seed))
    setup = setup_of(own.num_jobs, own.load, own.decision_limit, own.seed)
    found = study.measured(functools.partial(replayed, setup=setup), METHODS)
    write(study, rows, [row for row, _ in found], [trace for _, trace in found])


if __name__ == "__main__":
    main()
