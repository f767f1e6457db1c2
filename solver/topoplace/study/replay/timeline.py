"""How full a machine is over a replay, and what Enos 2014 makes of that."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from topoplace.study.replay.metrics import JobRecord


@dataclass(frozen=True)
class Moment:
    """The machine from one event to the next, after those who could have started.

    Attributes
    ----------
    at
        Seconds since the log's start.
    nodes_held, jobs_running
        What the jobs of the log hold, idle nodes inside prisms not counted; how many run.
    jobs_waiting, nodes_waiting
        The queue.
    nodes_free, largest_job
        Nodes nobody holds, prisms' idle ones not counted, and the most of them that one
        communicating job could start on.
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
    """How well a machine was used (Enos 2014, section III.A); None where there is nothing to say.

    Attributes
    ----------
    utilisation
        Node-seconds held by jobs, of all from the first event to the last.
    scheduling
        The same in the seconds in which somebody waits.
    application
        E_AVE: the log's run time over the replay's, averaged over the jobs with the weight of
        their node-seconds in the log.
    system
        Product of `scheduling` and `application`.
    fragmentation
        The share of the free node-seconds out of reach of the largest job that could start.
    """

    utilisation: Fraction | None
    scheduling: Fraction | None
    application: Fraction | None
    system: Fraction | None
    fragmentation: Fraction | None


def efficiency_of(
    records: Sequence[JobRecord], timeline: Sequence[Moment], num_nodes: int
) -> Efficiency:
    """Return the figures of a replay.

    Parameters
    ----------
    records, timeline
        Of a `topoplace.study.replay.scheduler.Replay` that has ended.
    num_nodes
        The nodes that jobs can have.
    """
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
    application = _application(records)
    return Efficiency(
        utilisation=_share(held, num_nodes * seconds),
        scheduling=scheduling,
        application=application,
        system=None if scheduling is None or application is None else scheduling * application,
        fragmentation=_share(free - reached, free),
    )


def _application(records: Sequence[JobRecord]) -> Fraction | None:
    """Return E_AVE: usage times efficiency, over usage."""
    usage = sum(r.job.nodes * r.job.seconds for r in records)
    efficient = sum(
        (Fraction(r.job.nodes * r.job.seconds**2, r.execution) for r in records if r.execution),
        Fraction(0),
    )
    return _share(efficient, usage)


def _share(part: int | Fraction, whole: int) -> Fraction | None:
    return Fraction(part) / whole if whole else None
