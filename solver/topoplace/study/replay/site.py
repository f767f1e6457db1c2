"""What a machine under a replay decides, be it a tree or a torus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism
from topoplace.placement.tree.cost import runtime
from topoplace.snapshot.schema import Communication, Request, Snapshot
from topoplace.study.external.trial import AnyTrial
from topoplace.study.external.verdict import Fault, VerdictError
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
        Of eq. (6) on trees, of `topoplace.study.replay.torus` on tori.
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


class DecisionError(VerdictError):
    """An allocator that is not ours got a verdict on one of its decisions.

    Attributes
    ----------
    trial
        The run, with its verdict.
    snapshot
        What it was asked about, to try again.
    """

    def __init__(self, trial: AnyTrial, snapshot: Snapshot) -> None:
        assert trial.verdict is not None
        super().__init__(trial.snapshot, trial.allocator, trial.verdict, trial.stderr)
        self.trial = trial
        self.snapshot = snapshot


def require_answer(trial: AnyTrial, snapshot: Snapshot) -> None:
    """Raise `DecisionError` for a run whose answer does not count, unless time ran out on it."""
    if trial.verdict is not None and trial.verdict.fault is not Fault.TIME_OUT:
        raise DecisionError(trial, snapshot)
