"""The five metrics of a replay (Mishra 2020, section 5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from topoplace.study.replay.log import LogJob


@dataclass(frozen=True)
class JobRecord:
    """What became of a job: its start and end in seconds, its cost and what it had by default."""

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
    """Return by how many percent each metric is below that of a base; None where that is 0."""
    return {
        name: _percent_below(getattr(metrics, name), getattr(base, name))
        for name in ("execution", "wait", "turnaround", "node_seconds", "cost")
    }


def mean_execution_gain(records: Sequence[JobRecord], base: Sequence[JobRecord]) -> float | None:
    """Return the mean over jobs of the percent saved in execution time (Mishra 2020, table 4).

    Jobs count that ran in both; None if there are none.
    """
    there = {record.job.id: record.execution for record in base}
    gains = [
        _percent_below(record.execution, there[record.job.id])
        for record in records
        if record.job.id in there
    ]
    known = [gain for gain in gains if gain is not None]
    return sum(known) / len(known) if known else None


def _percent_below(value: int | Fraction, base: int | Fraction) -> float | None:
    return float(100 * Fraction(base - value) / base) if base else None
