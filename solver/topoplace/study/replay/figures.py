"""The decisions of a replay, and its metrics."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from topoplace.machine import Prism
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.state import SnapshotState
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator
from topoplace.study.external.trial import try_on
from topoplace.study.external.verdict import Fault
from topoplace.study.replay.log import LogJob
from topoplace.types import IntArray


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
    usage = sum(r.job.nodes * r.job.seconds for r in records)
    efficient = sum(
        (Fraction(r.job.nodes * r.job.seconds**2, r.execution) for r in records if r.execution),
        Fraction(0),
    )
    scheduling = _share(held_waiting, num_nodes * seconds_waiting)
    application = _share(efficient, usage)
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
