"""One log through one method, under either protocol, and the snapshots on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from topoplace.errors import InputError
from topoplace.interrupts import heeded
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.files import write_document
from topoplace.snapshot.tree_state import TreeState
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay.figures import (
    Decisions,
    Efficiency,
    JobRecord,
    Metrics,
    Moment,
    efficiency_of,
    improvements,
    metrics_of,
)
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.scheduler import Replay
from topoplace.study.replay.trees import TreeSite, individual_runs, occupied


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
        On a tree, the reference of eq. (7): the method under which jobs run as long as in the log.
    occupancy
        Individual runs: percent of the machine that the log's first jobs hold.
    options
        Time limit per job, and seed; on a torus the interference rule too.
    fill_interior
        See `topoplace.study.replay.scheduler.Replay`.
    """

    state: TreeState | SnapshotState
    jobs: Sequence[LogJob]
    protocol: Protocol = Protocol.CONTINUOUS
    against: str = "default"
    occupancy: int = 50
    options: Options = field(default_factory=Options)
    fill_interior: bool = False


@dataclass(frozen=True)
class MethodRun:
    """What a method made of the jobs that the machine had room for.

    The time line is empty for individual runs; `num_nodes` is how many nodes jobs can have;
    `decisions` is None where they are not counted.
    """

    method: str
    records: tuple[JobRecord, ...]
    timeline: tuple[Moment, ...] = ()
    num_nodes: int = 0
    decisions: Decisions | None = None

    @property
    def metrics(self) -> Metrics:
        """The five metrics."""
        return metrics_of(self.records)

    @property
    def efficiency(self) -> Efficiency:
        """How well the machine was used."""
        return efficiency_of(self.records, self.timeline, self.num_nodes)

    def improvements(self, base: MethodRun) -> dict[str, float | None]:
        """Return by how many percent each metric is below that of another run."""
        return improvements(self.metrics, base.metrics)


@heeded()
def run_method(
    setup: Setup,
    method: str | Allocator,
    progress: Callable[[int], None] | None = None,
    before_starts: Callable[[Replay], None] | None = None,
) -> MethodRun:
    """Return what a method makes of a log, or up to a signal of as much of it as it got to.

    Parameters
    ----------
    progress
        Called with the number of jobs done.
    before_starts
        Continuous runs: see `topoplace.study.replay.scheduler.Replay.run`.

    Raises
    ------
    InputError
        If there is no such method, the occupancy is not a percentage, or individual runs are
        asked for on a torus or of an allocator that is not ours.
    DecisionError
        If the answer of such an allocator does not count.
    TopoplaceError
        If the method starts a job not even on the empty machine.
    """
    name = method.name if isinstance(method, Allocator) else method
    if setup.protocol is Protocol.INDIVIDUAL:
        if isinstance(setup.state, SnapshotState):
            raise InputError(
                "continuous on a torus: only trees have individual runs",
                field="protocol",
                value=str(setup.protocol),
            )
        if isinstance(method, Allocator):
            raise InputError(
                "a method of ours in individual runs, which no snapshot tells of",
                field="method",
                value=name,
            )
        occupancy = occupied(setup.state, setup.jobs, setup.occupancy)
        site = TreeSite(setup.state, method, setup.options, setup.against, occupancy)
        return MethodRun(name, individual_runs(site, setup.jobs, progress))
    replay = Replay(
        setup.state,
        setup.jobs,
        method,
        setup.options,
        setup.against,
        fill_interior=setup.fill_interior,
    )
    replay.run(
        progress=None if progress is None else lambda started, _: progress(started),
        before_starts=before_starts,
    )
    return MethodRun(
        name, tuple(replay.records), tuple(replay.timeline), replay.num_nodes, replay.decisions
    )


class SnapshotWriter:
    """Writes the machine and its queue to files, at the points asked for.

    A point is due after a number of starts, or at a time; the snapshot is taken at the next event
    at which someone waits, before it is decided who starts. Hand it to `Replay.run` as
    `before_starts`. Files are named ``NAME-0001.json`` and so on, and are written whole or not
    at all.

    Parameters
    ----------
    folder
        Where to write; it exists.
    name
        Begins the names of the snapshots and of their files.
    every
        Take one after every so many starts.
    times
        Take one at each of these seconds since the log's start.
    """

    def __init__(
        self, folder: Path, name: str, every: int | None = None, times: Iterable[int] = ()
    ) -> None:
        self.written: list[Path] = []
        self._folder = folder
        self._name = name
        self._every = every
        self._next_start = every or 0
        self._times = sorted(times)

    def __call__(self, replay: Replay) -> None:
        """Write a snapshot if one is due."""
        num_started = len(replay.records)
        due = False
        if self._every is not None and num_started >= self._next_start:
            due = True
            self._next_start = (num_started // self._every + 1) * self._every
        while self._times and self._times[0] <= replay.now:
            self._times.pop(0)
            due = True
        if due:
            name = f"{self._name}-{len(self.written) + 1:04d}"
            path = self._folder / f"{name}.json"
            write_document(path, replay.snapshot(name))
            self.written.append(path)
