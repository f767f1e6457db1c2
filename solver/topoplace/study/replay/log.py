"""The jobs of a log, and which of them communicate (Mishra 2020, sections 5.1 and 6.2)."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.formats.slices import is_rfold, rfold_jobs
from topoplace.formats.text import SwfLog, read_swf
from topoplace.kinds import kind_named
from topoplace.placement.switches.cost import runtime
from topoplace.snapshot.schema import (
    Communication,
    Pattern,
    PatternUse,
    Request,
    TorusModel,
    TreeObjective,
)
from topoplace.solving import Options


@dataclass(frozen=True)
class LogJob:
    """A job of a log; times are in seconds, submissions since the log's start.

    `seconds` is the run time in the log, assumed to be that under the reference allocation of eq.
    (7); `walltime` is the requested time: backfilling uses it, and a job may run longer. A job
    without patterns is compute-intensive. `shapes` are the prisms that the job may have on a torus;
    None if any will do.
    """

    id: str
    nodes: int
    submitted: int
    seconds: int
    walltime: int
    patterns: tuple[PatternUse, ...] = ()
    shapes: str | None = None

    @property
    def communication(self) -> Communication:
        """How it shares links: a job that only computes uses none."""
        return Communication.STRICT if self.patterns else Communication.NONE

    def waiting(self, *, with_patterns: bool) -> Request:
        """Return the job as in snapshots while it waits; only trees need its patterns."""
        return Request(
            id=self.id,
            nodes=self.nodes,
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
    path: str | Path, *, procs_per_node: int = 1, machine: TorusModel | None = None
) -> JobLog:
    """Read a log in the Standard Workload Format, or a trace of RFold, depending on its first line.

    Submissions count from the first one. Jobs without a known size, submission or run time are left
    out. Sizes are those of `topoplace.formats.text.read_swf`. A job of a trace asks for the seconds
    that it runs, and for the shape that it has on this machine
    (`topoplace.formats.slices.rfold_jobs`).

    Raises
    ------
    InputError
        Naming file, line, field and value; for a trace without a torus or mesh.
    """
    is_trace = is_rfold(path)
    options: Counter[str] = Counter()
    if is_trace:
        jobs, num_jobs = _traced(path, machine)
    else:
        log = read_swf(path, procs_per_node=procs_per_node)
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
        LogJob(request.id, request.nodes, request.submitted, seconds, request.walltime)
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
    """

    state: Any
    jobs: Sequence[LogJob]
    protocol: Protocol = Protocol.CONTINUOUS
    against: str = "default"
    occupancy: int = 50
    options: Options = field(default_factory=Options)
    fill_interior: bool = False
    objective: TreeObjective = TreeObjective.CONTENTION

    @property
    def site(self) -> Any:
        """The class of the machine under a replay."""
        return kind_named(self.state.kind).get("site")
