"""One log through one method, under either protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from topoplace.placement.tree.problem import TreeOptions
from topoplace.snapshot.tree_state import TreeState
from topoplace.study.replay.individual import individual_runs, occupied
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.metrics import JobRecord, Metrics, improvements, metrics_of
from topoplace.study.replay.placing import Placer
from topoplace.study.replay.scheduler import Replay


class Protocol(StrEnum):
    """How the jobs of a log meet the machine (Mishra 2020, section 5.4)."""

    CONTINUOUS = "continuous"
    INDIVIDUAL = "individual"


@dataclass(frozen=True)
class Setup:
    """What all runs of a comparison share.

    Attributes
    ----------
    jobs
        The log, with its patterns.
    against
        The reference of eq. (7): the method under which jobs run as long as in the log.
    occupancy
        Individual runs: percent of the machine that the log's first jobs hold.
    options
        Time limit per job, and seed.
    """

    state: TreeState
    jobs: Sequence[LogJob]
    protocol: Protocol = Protocol.CONTINUOUS
    against: str = "default"
    occupancy: int = 50
    options: TreeOptions = field(default_factory=TreeOptions)


@dataclass(frozen=True)
class MethodRun:
    """What a method made of the jobs that the machine had room for."""

    method: str
    records: tuple[JobRecord, ...]

    @property
    def metrics(self) -> Metrics:
        """The five metrics."""
        return metrics_of(self.records)

    def improvements(self, base: MethodRun) -> dict[str, float | None]:
        """Return by how many percent each metric is below that of another run."""
        return improvements(self.metrics, base.metrics)


def run_method(
    setup: Setup,
    method: str,
    progress: Callable[[int], None] | None = None,
    before_starts: Callable[[Replay], None] | None = None,
) -> MethodRun:
    """Return what a method makes of a log.

    Parameters
    ----------
    progress
        Called with the number of jobs done.
    before_starts
        Continuous runs: see `topoplace.study.replay.scheduler.Replay.run`.

    Raises
    ------
    InputError
        If there is no such method, or the occupancy is not a percentage.
    TopoplaceError
        If the method starts a job not even on the empty machine.
    """
    if setup.protocol is Protocol.INDIVIDUAL:
        placer = Placer(setup.state, method, setup.options, setup.against)
        occupancy = occupied(setup.state, setup.jobs, setup.occupancy)
        return MethodRun(method, individual_runs(occupancy, setup.jobs, placer, progress))
    replay = Replay(setup.state, setup.jobs, method, setup.options, setup.against)
    replay.run(
        progress=None if progress is None else lambda started, _: progress(started),
        before_starts=before_starts,
    )
    return MethodRun(method, tuple(replay.records))
