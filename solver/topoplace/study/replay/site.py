"""What the scheduler of a replay asks of a machine, be it a tree or a torus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism
from topoplace.placement.tree.cost import runtime
from topoplace.snapshot.schema import Communication, Request, Snapshot
from topoplace.study.replay.decisions import Decisions
from topoplace.study.replay.log import LogJob

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Decision:
    """Where a job goes, what it costs there and what it would at the reference.

    Attributes
    ----------
    nodes
        Its nodes; on a tree in rank order.
    cost, default_cost
        Of eq. (6) on trees, of `topoplace.study.replay.shape_model` on tori.
    seconds
        Its run time by eq. (7), rounded to the nearest second as logs count them.
    prism
        On a torus, the prism whose routers and links it holds; None if its nodes are scattered.
    """

    nodes: IntArray
    cost: Fraction
    default_cost: Fraction
    seconds: int
    prism: Prism | None = None


class Room(Protocol):
    """What is free on a machine, now or at a time the scheduler reckons with."""

    @property
    def num_free(self) -> int:
        """Nodes that nobody holds."""

    @property
    def largest(self) -> int:
        """Nodes of the largest communicating job that would fit."""

    def copy(self) -> Self:
        """Return an independent copy."""

    def start(self, job: LogJob, decision: Decision) -> None:
        """Let a job hold what was decided."""

    def end(self, job: LogJob, decision: Decision) -> None:
        """Take back what `start` gave."""

    def holds(self, job: LogJob) -> bool:
        """Tell whether a job would fit."""


class Site(Protocol):
    """A machine with its method: what is free now, and where the next job goes."""

    @property
    def room(self) -> Room:
        """What is free now; the scheduler starts and ends jobs in it."""

    @property
    def decisions(self) -> Decisions | None:
        """What the method decided so far; None where it is not counted."""

    def may_start(self, job: LogJob) -> bool:
        """Tell cheaply whether the method is worth asking; False only if no method could."""

    def decide(self, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it finds no place."""

    def interior(self, job: LogJob, seconds_left: dict[str, int]) -> Decision | None:
        """Return idle nodes inside running jobs' prisms for a job, or None.

        `seconds_left` has the seconds that every running job may still take by its walltime.
        """

    def snapshot(self, name: str, queue: Sequence[LogJob]) -> Snapshot:
        """Return the machine as it is, with these jobs waiting, as a document."""


def run_seconds(job: LogJob, cost: Fraction, default_cost: Fraction) -> int:
    """Return a job's run time by eq. (7) of Mishra 2020, to the nearest second, halves up."""
    share = sum(use.share for use in job.patterns)
    return math.floor(runtime(job.seconds, share, cost, default_cost) + Fraction(1, 2))


def communication_of(job: LogJob) -> Communication:
    """Return how a job of a log shares links: one that only computes uses none."""
    return Communication.STRICT if job.patterns else Communication.NONE


def waiting_request(job: LogJob, *, with_patterns: bool) -> Request:
    """Return a waiting job as a snapshot has it; only trees ask for its patterns."""
    return Request(
        id=job.id,
        nodes=job.nodes,
        communication=communication_of(job),
        patterns=(list(job.patterns) or None) if with_patterns else None,
        walltime=job.walltime,
        submitted=job.submitted,
    )
