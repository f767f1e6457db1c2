"""A job log through one method: first in, first out with EASY backfilling, or job by job."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from topoplace.errors import InputError, TopoplaceError
from topoplace.interrupts import Interrupted, heeded, is_asked
from topoplace.machine import Prism
from topoplace.snapshot.files import write_document
from topoplace.snapshot.schema import Snapshot
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay.log import (
    Decision,
    Decisions,
    Efficiency,
    JobRecord,
    LogJob,
    Metrics,
    Moment,
    Protocol,
    Setup,
    efficiency_of,
    improvements,
    metrics_of,
)
from topoplace.study.replay.sharing import Sharing
from topoplace.study.replay.torus import TorusSite
from topoplace.study.replay.trees import TreeSite, individual_runs, occupied

Site = TreeSite | TorusSite


@dataclass(frozen=True)
class Running:
    """A job, where it runs, and when it is due by its walltime, as a scheduler knows it."""

    job: LogJob
    decision: Decision
    due: int


@dataclass(frozen=True)
class Reservation:
    """When a job can start if all running ones last to their walltimes, and the free machine then.

    `refused` has the ids of jobs that would have delayed it at the places their method chose. They
    are not tried again while the reservation lasts: with a long queue that would be most of the
    work.
    """

    job: LogJob
    at: int
    then: Site
    refused: set[str] = field(default_factory=set)
    _bad_places: set[tuple[bytes, Prism | None, bool]] = field(default_factory=set)

    def may_admit(self, job: LogJob, now: int) -> bool:
        """Return whether a job ends by then, or could leave enough nodes for the first in line."""
        if now + job.walltime <= self.at:
            return True
        return job.id not in self.refused and self.then.has_nodes_for(self.job, job)

    def admits(self, job: LogJob, decision: Decision, now: int) -> bool:
        """Return whether a job may start; one that lasts longer is entered, if there is room."""
        if now + job.walltime <= self.at:
            return True
        # The free part only shrinks, so a place that is refused now stays refused.
        place = (decision.nodes.tobytes(), decision.prism, bool(job.patterns))
        if place not in self._bad_places:
            self.then.start(job, decision)
            if self.then.holds(self.job):
                return True
            self.then.end(job, decision)  # enough nodes, but in the wrong places
            self._bad_places.add(place)
        self.refused.add(job.id)
        return False


def reserve(job: LogJob, site: Site, running: Iterable[Running], now: int) -> Reservation:
    """Return the earliest reservation of a job.

    A running job that has outrun its walltime may end at any moment: it is due now. More free space
    never makes a job unfit, so the time is found by bisection. `site` is the machine now.
    """
    leaving = sorted(running, key=lambda item: item.due)
    dues = [max(item.due, now) for item in leaving]
    times = sorted({now, *dues})
    then, num_ended = site.copy(), 0  # what is free before times[low]
    low, high = 0, len(times) - 1
    while low < high:
        middle = (low + high) // 2
        later, upto = then.copy(), bisect_right(dues, times[middle])
        for item in leaving[num_ended:upto]:
            later.end(item.job, item.decision)
        if later.holds(job):
            high = middle
        else:
            low, then, num_ended = middle + 1, later, upto
    for item in leaving[num_ended : bisect_right(dues, times[low])]:
        then.end(item.job, item.decision)
    return Reservation(job, times[low], then)


class Replay:
    """A job log running through an allocator, from one event to the next.

    Jobs start in the order of their priorities, those of the same in the order of submission. If
    the first in line does not fit, it gets a reservation at the earliest time at which it would by
    the walltimes of the running jobs; later ones may start before it if they end by then or leave
    enough nodes for it (EASY).

    If the set-up says so, the method places the whole queue at once: who could delay the first in
    line if it waits is not shown to it, and does not start where it would. If the first fits, it
    counts more than all others. Then the method is asked again for the rest, until nobody starts.

    Jobs that run on the machine and nodes that are down stay so, but for the jobs that the set-up
    says end; its queue is ignored. Jobs too
    large for it are `left_out`. The method is a name of `topoplace.solving.methods`, or an external
    allocator.

    Attributes
    ----------
    now
        Seconds since the log's start, at the last event.
    records, timeline
        The jobs started so far, in the order of their starts, and the machine after every event.
    num_nodes
        Nodes that jobs can have.
    decisions
        How often the method was asked, and the outcomes; on trees only for external allocators.

    Raises
    ------
    VerdictError
        While it runs: if the answer of an external allocator does not count. One that met its time
        limit starts nothing, and goes on.
    """

    def __init__(self, setup: Setup, method: str | Allocator) -> None:
        self.now = 0
        self.records: list[JobRecord] = []
        self.timeline: list[Moment] = []
        jobs = setup.jobs
        self._site: Site = setup.site.of(setup, method)
        self._fills, self._together = setup.fill_interior, setup.whole_queue
        if self._together and (isinstance(method, Allocator) or not self._site.has_prisms):
            expected = "a method of ours on a torus, to place whole queues"
            raise InputError(expected, field="whole_queue")
        self._queue: list[LogJob] = []
        self._running: dict[int, Running] = {}  # by place in `records`
        self._ends: list[tuple[int, int]] = []
        self._reserved: Reservation | None = None
        self._sharing = Sharing(setup.state.torus, setup.sharing) if setup.sharing else None
        self.num_nodes, self.decisions = self._site.num_free, self._site.decisions
        self.left_out = tuple(job for job in jobs if not self._site.holds(job))
        coming = [job for job in jobs if self._site.holds(job)]
        self._coming = deque(sorted(coming, key=lambda job: job.submitted))
        for number, (job, decision) in enumerate(setup.running, start=1):
            self._hold(-number, job, decision, decision.seconds)

    def run(
        self,
        until: int | None = None,
        progress: Callable[[int], None] | None = None,
        before_starts: Callable[[Replay], None] | None = None,
    ) -> None:
        """Go through all events, or those up to a second.

        `progress` is called with the number of jobs started, after each start; `before_starts` at
        every event at which a job waits, before it is decided which jobs start: the moment to take
        a snapshot, as its queue is what the allocator is about to see. A method that cannot even
        start a job on the empty machine is a `TopoplaceError`.
        """
        while (at := self._next_event()) is not None and (until is None or at <= until):
            if is_asked():
                return
            before = len(self.records)
            self._free_and_queue(at)
            if self._queue and before_starts is not None:
                before_starts(self)
            if self._together:
                self._start_together()
            else:
                self._start_who_can()
            self._retime()
            self._note()
            if progress is not None and len(self.records) > before:
                progress(len(self.records))
        if until is not None:
            self.now = max(self.now, until)
        elif self._queue:
            raise TopoplaceError(f"the method found no nodes for job {self._queue[0].id}")

    def snapshot(self, name: str) -> Snapshot:
        """Return the machine as it is now: which jobs run where, and which wait.

        On a torus jobs end at their walltimes (`RunningJob.ends`), as a scheduler knows it.
        """
        found = self._site.snapshot(name, self._queue)
        if not self._site.has_prisms:
            return found
        due = {item.job.id: max(0, item.due - self.now) for item in self._running.values()}
        running = [
            one.model_copy(update={"ends": due.get(one.id, one.ends)}) for one in found.running
        ]
        return found.model_copy(update={"running": running})

    def _next_event(self) -> int | None:
        times = [self._ends[0][0]] if self._ends else []
        if self._coming:
            times.append(self._coming[0].submitted)
        return min(times, default=None)

    def _free_and_queue(self, at: int) -> None:
        self.now = at
        while self._ends and self._ends[0][0] == at:
            place = heapq.heappop(self._ends)[1]
            item = self._running.pop(place)
            self._site.end(item.job, item.decision)
            if self._sharing is not None:
                self._sharing.end(place)
            self._reserved = None  # it may have ended before its walltime
        while self._coming and self._coming[0].submitted == at:
            self._queue.append(self._coming.popleft())
        self._queue.sort(key=lambda job: -job.priority)  # stable

    def _start_together(self) -> None:
        """Let the method place the whole queue, again and again until nobody starts."""
        assert isinstance(self._site, TorusSite)
        for job in [*self._queue]:
            inside = self._inside(job)
            if inside is not None:
                self._start(job, inside)
                self._queue.remove(job)
        while fitting := [job for job in self._queue if self._site.may_start(job)]:
            is_first = fitting[0] is self._queue[0]
            reserved = None if is_first else self._reservation(self._queue[0])
            shown = [
                job for job in fitting if reserved is None or reserved.may_admit(job, self.now)
            ]
            try:
                found = self._site.decide_all(shown, first=is_first) if shown else []
            except Interrupted:
                return
            for job, decision in found:
                if reserved is None or reserved.admits(job, decision, self.now):
                    self._start(job, decision)
                    self._queue.remove(job)
            if not found:
                return

    def _start_who_can(self) -> None:
        queue, self._queue = self._queue, []
        for k, job in enumerate(queue):
            try:
                decision = self._place(job, self._queue[0] if self._queue else None)
            except Interrupted:
                self._queue += queue[k:]
                return
            if decision is None:
                self._queue.append(job)
            else:
                self._start(job, decision)

    def _place(self, job: LogJob, head: LogJob | None) -> Decision | None:
        """Return where a job starts that does not delay the first in line, if there is one.

        A job that may last beyond the reservation is entered into it.
        """
        inside = self._inside(job)
        if inside is not None:
            return inside
        if not self._site.may_start(job):
            return None
        if head is None:
            return self._site.decide(job)
        reserved = self._reservation(head)
        if not reserved.may_admit(job, self.now):
            return None
        decision = self._site.decide(job)
        if decision is None or reserved.admits(job, decision, self.now):
            return decision
        return None

    def _inside(self, job: LogJob) -> Decision | None:
        """Return idle nodes inside a prism for a job, if they are to be offered."""
        if not self._fills:
            return None
        left = {item.job.id: item.due - self.now for item in self._running.values()}
        return self._site.interior(job, left)

    def _reservation(self, head: LogJob) -> Reservation:
        """Return the reservation of the first in line, which lasts until a job ends."""
        known = self._reserved
        if known is None or known.job is not head or known.at < self.now:
            running = self._running.values()
            known = self._reserved = reserve(head, self._site, running, self.now)
        return known

    def _start(self, job: LogJob, decision: Decision) -> None:
        end, place = self.now + decision.seconds, len(self.records)
        self._hold(place, job, decision, self.now + job.walltime)
        costs = decision.cost, decision.default_cost
        self.records.append(JobRecord(job, self.now, end, *costs, decision.prism))

    def _hold(self, place: int, job: LogJob, decision: Decision, due: int) -> None:
        """Let a job run from now on, by its place in the records; below 0 it has none."""
        self._site.start(job, decision)
        self._running[place] = Running(job, decision, due)
        heapq.heappush(self._ends, (self.now + decision.seconds, place))
        if self._sharing is not None:
            self._sharing.start(place, job, decision, self.now)

    def _retime(self) -> None:
        """Let jobs end later or earlier whose links more or fewer others use from now on."""
        ends = {} if self._sharing is None else self._sharing.ends(self.now)
        if not ends:
            return
        for place, end in ends.items():
            if place >= 0:
                self.records[place] = replace(self.records[place], end=end)
        self._ends = [(ends.get(place, end), place) for end, place in self._ends]
        heapq.heapify(self._ends)

    def _note(self) -> None:
        self.timeline.append(
            Moment(
                at=self.now,
                nodes_held=sum(item.job.nodes for item in self._running.values()),
                jobs_running=len(self._running),
                jobs_waiting=len(self._queue),
                nodes_waiting=sum(job.nodes for job in self._queue),
                nodes_free=self._site.num_free,
                largest_job=self._site.largest,
            )
        )


@dataclass(frozen=True)
class MethodRun:
    """The run of a method on the jobs that fit the machine.

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
    """Return the run of a method on a log, or on the part of it before a signal.

    `progress` is called with the number of jobs done; `before_starts` is that of `Replay.run`.

    Individual runs on a torus, or of an external allocator, are an `InputError`; for others see
    `Replay`.
    """
    name = method.name if isinstance(method, Allocator) else method
    if setup.protocol is Protocol.INDIVIDUAL:
        if setup.site.has_prisms:
            text = "continuous on a torus: only trees have individual runs"
            raise InputError(text, field="protocol", value=str(setup.protocol))
        if isinstance(method, Allocator):
            text = "a method of ours in individual runs, which no snapshot tells of"
            raise InputError(text, field="method", value=name)
        site = TreeSite.of(setup, method, occupied(setup.state, setup.jobs, setup.occupancy))
        return MethodRun(name, individual_runs(site, setup.jobs, progress))
    replay = Replay(setup, method)
    replay.run(progress=progress, before_starts=before_starts)
    return MethodRun(
        name, tuple(replay.records), tuple(replay.timeline), replay.num_nodes, replay.decisions
    )


class SnapshotWriter:
    """Writes the machine and its queue to files, at the points asked for.

    A point is due after a number of starts, or at a time; the snapshot is taken at the next event
    at which a job waits, before it is decided which jobs start. Hand it to `Replay.run` as
    `before_starts`. Files are named ``NAME-0001.json`` and so on, and are written whole or not at
    all, into a `folder` that exists.
    """

    def __init__(
        self, folder: Path, name: str, every: int | None = None, times: Iterable[int] = ()
    ) -> None:
        self.written: list[Path] = []
        self._folder, self._name, self._every = folder, name, every
        self._rounds, self._times = 0, list(times)

    def __call__(self, replay: Replay) -> None:
        """Write a snapshot if one is due."""
        rounds = len(replay.records) // self._every if self._every else 0
        times = [at for at in self._times if at > replay.now]
        due = rounds > self._rounds or len(times) < len(self._times)
        self._rounds, self._times = rounds, times
        if due:
            name = f"{self._name}-{len(self.written) + 1:04d}"
            path = self._folder / f"{name}.json"
            write_document(path, replay.snapshot(name))
            self.written.append(path)
