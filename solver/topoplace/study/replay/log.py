"""The jobs of a log, who of them communicates, and what becomes of them: decisions and metrics.

Sources: Mishra 2020, sections 5.1 and 6.2; Enos 2014, section III.A.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.formats.alcf import is_alcf, read_alcf
from topoplace.formats.slices import is_rfold, rfold_jobs
from topoplace.formats.swf import SwfLog, read_swf
from topoplace.kinds import kind_named
from topoplace.machine import Prism
from topoplace.placement.switches.cost import runtime
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.schema import (
    Communication,
    Pattern,
    PatternUse,
    Request,
    TorusModel,
    TreeObjective,
)
from topoplace.snapshot.state import SnapshotState
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator, Fault
from topoplace.study.external.trial import try_on
from topoplace.types import IntArray


@dataclass(frozen=True)
class LogJob:
    """A job of a log; times are in seconds, submissions since the log's start.

    `seconds` is the run time in the log, assumed to be that under the reference allocation of eq.
    (7); `walltime` is the requested time: backfilling uses it, and a job may run longer. A job
    without patterns is compute-intensive. `shapes` are the prisms that the job may have on a torus;
    None if any will do. `node_class` is None for the default one. Jobs of a higher `priority` wait
    before others.
    """

    id: str
    nodes: int
    submitted: int
    seconds: int
    walltime: int
    patterns: tuple[PatternUse, ...] = ()
    shapes: str | None = None
    application: str | None = None
    node_class: str | None = None
    priority: int = 1

    @property
    def communication(self) -> Communication:
        """How it shares links: a job that only computes uses none."""
        return Communication.STRICT if self.patterns else Communication.NONE

    def waiting(self, *, with_patterns: bool) -> Request:
        """Return the job as in snapshots while it waits; only trees need its patterns."""
        return Request(
            id=self.id,
            nodes=self.nodes,
            node_class=self.node_class,
            priority=self.priority,
            shapes=self.shapes,
            communication=self.communication,
            patterns=(list(self.patterns) or None) if with_patterns else None,
            walltime=self.walltime,
            submitted=self.submitted,
        )

    def seconds_at(self, cost: Fraction, default_cost: Fraction) -> int:
        """Return its run time by eq. (7) of Mishra 2020, to the nearest second, halves up."""
        share = sum(use.share for use in self.patterns)
        return math.floor(runtime(self.seconds, share, cost, default_cost) + Fraction(1, 2))


@dataclass(frozen=True)
class JobLog:
    """The jobs of a log by submission, and how many of it are left out for a reason.

    `not_modelled` counts the jobs with an option that a replay ignores: their partition, or a job
    that has to end first.
    """

    jobs: tuple[LogJob, ...]
    num_left_out: int
    why_left_out: str
    not_modelled: Mapping[str, int] = field(default_factory=dict)


def read_log(
    path: str | Path,
    *,
    procs_per_node: int = 1,
    machine: TorusModel | None = None,
    partitions: Mapping[str, str] = MappingProxyType({}),
    queues: Mapping[str, int] = MappingProxyType({}),
) -> JobLog:
    """Read a log (the Standard Workload Format, ALCF's) or a trace of RFold, by its first line.

    Submissions count from the first one. Jobs without a known size, submission or run time are left
    out. Sizes, classes by partition and priorities by queue are those of
    `topoplace.formats.text.read_swf`. A job of a trace asks for the seconds
    that it runs, and for the shape that it has on this machine
    (`topoplace.formats.slices.rfold_jobs`).

    Raises
    ------
    InputError
        Naming file, line, field and value; for a trace without a torus or mesh.
    """
    is_trace = is_rfold(path) and not is_alcf(path)
    if (partitions or queues) and (is_trace or is_alcf(path)):
        expected = "a log in the Standard Workload Format, for partitions or queues"
        raise InputError(expected, file=str(path))
    options: Counter[str] = Counter()
    if is_trace:
        jobs, num_jobs = _traced(path, machine)
    else:
        log = (
            read_alcf(path)
            if is_alcf(path)
            else read_swf(path, procs_per_node=procs_per_node, partitions=partitions, queues=queues)
        )
        jobs, num_jobs = _logged(log)
        options.update(one.option for one in log.left_out)
    first = min((job.submitted for job in jobs), default=0)
    jobs = [
        dataclasses.replace(job, submitted=job.submitted - first)
        for job in sorted(jobs, key=lambda job: job.submitted)
    ]
    why = "too large, or of a shape that does not fit" if is_trace else "of unknown size or times"
    return JobLog(tuple(jobs), num_jobs - len(jobs), why, options)


def _logged(log: SwfLog) -> tuple[list[LogJob], int]:
    """Return the jobs of an SWF log with enough known fields, and how many it has in all."""
    jobs = [
        LogJob(
            *(request.id, request.nodes, request.submitted, seconds, request.walltime),
            application=request.application,
            node_class=request.node_class,
            priority=request.priority,
        )
        for request, seconds in zip(log.requests, log.run_times, strict=True)
        if request.submitted is not None and request.walltime is not None and seconds is not None
    ]
    return jobs, log.num_without_size + len(log.requests)


def _traced(path: str | Path, machine: TorusModel | None) -> tuple[list[LogJob], int]:
    """Return the jobs of a trace of RFold that fit a machine, and how many it has in all."""
    if machine is None:
        expected = "a torus or mesh for a trace of RFold, whose jobs have shapes"
        raise InputError(expected, file=str(path), field="machine")
    traced, left_out = rfold_jobs(path, machine)
    jobs = [
        LogJob(q.id, q.nodes, q.submitted, q.walltime, q.walltime, shapes=q.shapes)
        for q in traced
        if q.submitted is not None and q.walltime is not None
    ]
    return jobs, len(traced) + sum(left_out.values())


def require_percent(percent: int) -> None:
    """Raise `InputError` if a number is not between 0 and 100."""
    if not 0 <= percent <= 100:
        raise InputError("a number from 0 to 100", field="percent", value=percent)


def _shares(**shares: int) -> tuple[PatternUse, ...]:
    return tuple(PatternUse(pattern=Pattern(name), share=share) for name, share in shares.items())


MIXES = MappingProxyType(
    {
        "A": _shares(rhvd=33),
        "B": _shares(rhvd=50),
        "C": _shares(rhvd=70),
        "D": _shares(rd=15, binomial=35),
        "E": _shares(rd=21, binomial=49),
    }
)
"""The five mixes of section 6.2: patterns with their share of the run time, the rest computes."""


def with_intensive(
    jobs: Sequence[LogJob], percent: int, patterns: Sequence[PatternUse], seed: int
) -> tuple[LogJob, ...]:
    """Return the jobs, a drawn `percent` of them (rounded down) with these patterns."""
    require_percent(percent)
    order = np.random.default_rng(seed).permutation(len(jobs))
    drawn = set(order[: len(jobs) * percent // 100].tolist())
    return tuple(
        dataclasses.replace(job, patterns=tuple(patterns) if idx in drawn else ())
        for idx, job in enumerate(jobs)
    )


class Protocol(StrEnum):
    """How the jobs of a log are submitted to the machine (Mishra 2020, section 5.4)."""

    CONTINUOUS = "continuous"
    INDIVIDUAL = "individual"


@dataclass(frozen=True)
class Setup:
    """The settings that all runs of a comparison share.

    Attributes
    ----------
    state
        The machine, of a kind that has a site (`topoplace.kinds.Kind.site`).
    against
        The reference of eq. (7) on a tree: the method under which jobs run as long as in the log.
    occupancy
        For individual runs: percent of the machine that the log's first jobs hold.
    options
        Time limit per job, and seed; on a torus the interference rule too.
    fill_interior
        On a torus, offer the idle nodes inside running jobs' prisms to jobs that use no links
        (`topoplace.study.replay.torus.TorusSite.interior`).
    objective
        On a tree, the objective of the methods.
    sharing
        On a torus, by how many percent communication takes longer for each other job on a link
        (`topoplace.study.replay.sharing`).
    running
        On a torus, jobs that run at the start, in addition to those of `state`, and end when their
        decisions say. They count as nodes held, but are not among the records.
    whole_queue
        On a torus, the method places all jobs that wait together, not one at a time
        (`topoplace.study.replay.run.Replay`).
    """

    state: Any
    jobs: Sequence[LogJob]
    protocol: Protocol = Protocol.CONTINUOUS
    against: str = "default"
    occupancy: int = 50
    options: Options = field(default_factory=Options)
    fill_interior: bool = False
    objective: TreeObjective = TreeObjective.CONTENTION
    sharing: int = 0
    running: Sequence[tuple[LogJob, Decision]] = ()
    whole_queue: bool = False

    @property
    def site(self) -> Any:
        """The class of the machine under a replay."""
        return kind_named(self.state.kind).get("site")


# ---- The decisions of a replay, and its metrics --------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """The place of a job, its cost there and under the reference, and its run time.

    Nodes are in rank order on a tree. Costs are of eq. (6) there, of `ShapeModel` on tori. On a
    torus, a job holds the routers and links of its prism; None if its nodes are scattered.
    """

    nodes: IntArray
    cost: Fraction
    default_cost: Fraction
    seconds: int
    prism: Prism | None = None


@dataclass(frozen=True)
class JobRecord:
    """The outcome of a job: its start and end in seconds, its cost, and the default cost."""

    job: LogJob
    start: int
    end: int
    cost: Fraction
    default_cost: Fraction
    prism: Prism | None = None

    @property
    def slowdown(self) -> Fraction:
        """Its run time over that of the log; 1 for a job of no time."""
        return Fraction(self.execution, self.job.seconds) if self.job.seconds else Fraction(1)

    @property
    def execution(self) -> int:
        """Seconds from start to end."""
        return self.end - self.start


@dataclass(frozen=True)
class Metrics:
    """Sums over jobs: times in seconds, `node_seconds` in nodes times seconds, cost by eq. (6)."""

    num_jobs: int
    execution: int
    wait: int
    turnaround: int
    node_seconds: int
    cost: Fraction


def metrics_of(records: Sequence[JobRecord]) -> Metrics:
    """Return the five metrics of some jobs."""
    return Metrics(
        num_jobs=len(records),
        execution=sum(r.execution for r in records),
        wait=sum(r.start - r.job.submitted for r in records),
        turnaround=sum(r.end - r.job.submitted for r in records),
        node_seconds=sum(r.job.nodes * r.execution for r in records),
        cost=sum((r.cost for r in records), Fraction(0)),
    )


def improvements(metrics: Metrics, base: Metrics) -> dict[str, float | None]:
    """Return by how many percent each metric is below that of a base."""
    return {
        name: percent_below(getattr(metrics, name), getattr(base, name))
        for name in ("execution", "wait", "turnaround", "node_seconds", "cost")
    }


@dataclass(frozen=True)
class ApplicationFigures:
    """The jobs of one application and size: their slowdowns, and how these vary.

    `variation` is the standard deviation over the mean (CoV); None for fewer than two jobs. `usage`
    is their share of the log's node-seconds, `efficiency` their part of E_AVE, which is the sum of
    usage times efficiency (Enos 2014, section III.A).
    """

    application: str
    nodes: int
    num_jobs: int
    num_prisms: int
    slowdown: float
    variation: float | None
    usage: float
    efficiency: float | None


def by_application(records: Sequence[JobRecord]) -> list[ApplicationFigures]:
    """Return the figures of every application and size (Enos 2014, Figure 6), in their order."""
    groups: dict[tuple[str, int], list[JobRecord]] = {}
    for record in records:
        groups.setdefault((record.job.application or "", record.job.nodes), []).append(record)
    whole = sum(map(_usage, records))
    found = []
    for (name, nodes), own in sorted(groups.items()):
        slow = np.array([float(record.slowdown) for record in own])
        extents = {record.prism.extents for record in own if record.prism is not None}
        vary = float(slow.std(ddof=1) / slow.mean()) if len(own) > 1 else None
        used = sum(map(_usage, own))
        efficiency = _share(_efficient(own), used)
        found.append(
            ApplicationFigures(
                name,
                nodes,
                len(own),
                len(extents),
                float(slow.mean()),
                vary,
                float(_share(used, whole) or 0),
                None if efficiency is None else float(efficiency),
            )
        )
    return found


def _usage(record: JobRecord) -> int:
    """Return the node-seconds of a job in the log."""
    return record.job.nodes * record.job.seconds


def _efficient(records: Iterable[JobRecord]) -> Fraction:
    """Return the node-seconds of jobs in the log, each times its efficiency."""
    parts = (Fraction(_usage(r) * r.job.seconds, r.execution) for r in records if r.execution)
    return sum(parts, Fraction(0))


def percent_below(value: int | Fraction, base: int | Fraction) -> float | None:
    """Return by how many percent a value is below a base; None where that is 0."""
    return float(100 * Fraction(base - value) / base) if base else None


@dataclass(frozen=True)
class Moment:
    """The machine from one event to the next, after the starts of the first.

    `at` is in seconds since the log's start. Idle nodes inside prisms count neither as held nor as
    free; `largest_job` is the most free nodes that one communicating job could start on.
    """

    at: int
    nodes_held: int
    jobs_running: int
    jobs_waiting: int
    nodes_waiting: int
    nodes_free: int
    largest_job: int


@dataclass(frozen=True)
class Efficiency:
    """How well a machine was used (Enos 2014, section III.A); None where undefined.

    See docs/guide/replay.md, "Metrics".
    """

    utilisation: Fraction | None
    scheduling: Fraction | None
    application: Fraction | None
    system: Fraction | None
    fragmentation: Fraction | None


def efficiency_of(
    records: Sequence[JobRecord], timeline: Sequence[Moment], num_nodes: int
) -> Efficiency:
    """Return the figures of a finished `Replay`, on `num_nodes` nodes that jobs can have."""
    held = held_waiting = seconds = seconds_waiting = free = reached = 0
    for moment, after in itertools.pairwise(timeline):
        length = after.at - moment.at
        seconds += length
        held += length * moment.nodes_held
        free += length * moment.nodes_free
        reached += length * min(moment.largest_job, moment.nodes_free)
        if moment.jobs_waiting:
            seconds_waiting += length
            held_waiting += length * moment.nodes_held
    scheduling = _share(held_waiting, num_nodes * seconds_waiting)
    application = _share(_efficient(records), sum(map(_usage, records)))
    return Efficiency(
        utilisation=_share(held, num_nodes * seconds),
        scheduling=scheduling,
        application=application,
        system=None if scheduling is None or application is None else scheduling * application,
        fragmentation=_share(free - reached, free),
    )


def _share(part: int | Fraction, whole: int) -> Fraction | None:
    return Fraction(part) / whole if whole else None


@dataclass
class Decisions:
    """How often a method or allocator was asked for a place so far, and the outcomes.

    It found none (`nowhere`), although the job fits; it met its time limit; it proved its place to
    be best on all three levels (docs/proofs/placement.md, "The objective").
    """

    asked: int = 0
    nowhere: int = 0
    timed_out: int = 0
    proven: int = 0

    def ask(
        self, state: HierarchyState | SnapshotState, allocator: Allocator, options: Options
    ) -> Any:
        """Return where an external allocator puts the one job of a queue, in the form of results.

        None if it finds no place, or met its time limit; raises `VerdictError` if its answer does
        not count.
        """
        trial = try_on(state, allocator, options)
        if trial.refusal is not None and trial.refusal.fault is not Fault.TIME_OUT:
            raise trial.refusal
        placed = "allocations" if state.kind == "allocation" else "placements"
        found = next(iter(getattr(trial.result.solution, placed, ())), None)
        self.count(found=found is not None, timed_out=trial.result.limits.hit)
        return found

    def count(self, *, found: bool, timed_out: bool, proven: bool = False) -> None:
        """Count one more."""
        self.asked += 1
        self.nowhere += not found
        self.timed_out += timed_out
        self.proven += proven

    @property
    def text(self) -> str:
        """The counts in words; those that are 0 are left out."""
        kinds = {
            "proven best": self.proven,
            "at the time limit": self.timed_out,
            "found no place": self.nowhere,
        }
        told = [f"{count:,} {kind}" for kind, count in kinds.items() if count]
        return ", ".join([f"{self.asked:,}", *told])
