"""What a machine under a replay decides, be it a tree or a torus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from topoplace.machine import Prism
from topoplace.placement.switches.cost import runtime
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.schema import Communication, Request
from topoplace.snapshot.tree_state import TreeState
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator
from topoplace.study.external.trial import try_on
from topoplace.study.external.verdict import Fault
from topoplace.study.replay.figures import Decisions
from topoplace.study.replay.log import LogJob
from topoplace.types import IntArray


@dataclass(frozen=True)
class Decision:
    """Where a job goes, what it costs there, what it would at the reference, and how long it runs.

    Nodes are in rank order on a tree. Costs are of eq. (6) there, of `ShapeModel` on tori. On a
    torus, a job holds the routers and links of its prism; None if its nodes are scattered.
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


def answered(
    state: TreeState | SnapshotState, allocator: Allocator, options: Options, counted: Decisions
) -> Any:
    """Return where an allocator that is not ours puts the one job of a queue, as results have it.

    None if nowhere, or if it met its time limit. `counted` counts the decision.

    Raises
    ------
    VerdictError
        If its answer does not count.
    """
    trial = try_on(state, allocator, options)
    if trial.refusal is not None and trial.refusal.fault is not Fault.TIME_OUT:
        raise trial.refusal
    solution: Any = trial.result.solution
    placed = "allocations" if isinstance(state, TreeState) else "placements"
    found = next(iter(getattr(solution, placed, ())), None)
    counted.count(found=found is not None, timed_out=trial.result.limits.hit)
    return found
