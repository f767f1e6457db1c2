"""Continuous runs: a job log through first-in-first-out with EASY backfilling."""

from __future__ import annotations

import contextlib
import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from topoplace.errors import TopoplaceError
from topoplace.interrupts import Interrupted, is_asked
from topoplace.machine import Prism
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.tree_state import TreeState
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay.figures import Decisions, JobRecord, Moment
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.site import Decision
from topoplace.study.replay.torus import TorusSite
from topoplace.study.replay.torus_room import TorusRoom
from topoplace.study.replay.trees import TreeRoom, TreeSite

Room = TreeRoom | TorusRoom


@dataclass(frozen=True)
class Running:
    """A job, where it runs, and when it is due by its walltime: all a scheduler knows."""

    job: LogJob
    decision: Decision
    due: int


@dataclass(frozen=True)
class Reservation:
    """When a job can start if all running ones last to their walltimes, and what is free then.

    `refused` has the ids of those that would have delayed it where their method put them. They are
    not tried again while it stands: with a deep queue that would be most of the work.
    """

    job: LogJob
    at: int
    then: Room
    refused: set[str] = field(default_factory=set)
    _bad_places: set[tuple[bytes, Prism | None, bool]] = field(default_factory=set)

    def admits(self, job: LogJob, decision: Decision) -> bool:
        """Enter a job that lasts beyond the reservation, if the first in line fits beside it."""
        # What is free then only shrinks, so that a place too many remains one.
        place = (decision.nodes.tobytes(), decision.prism, bool(job.patterns))
        if place not in self._bad_places:
            self.then.start(job, decision)
            if self.then.holds(self.job):
                return True
            self.then.end(job, decision)  # enough nodes, but in the wrong places
            self._bad_places.add(place)
        self.refused.add(job.id)
        return False


def reserve(job: LogJob, room: Room, running: Iterable[Running], now: int) -> Reservation:
    """Return the earliest reservation of a job.

    A running job that has outrun its walltime may end any moment: it is due now. More room never
    makes a job fit less, so that the time is found by bisection. `room` is what is free now.
    """
    leaving = sorted(running, key=lambda item: item.due)
    dues = [max(item.due, now) for item in leaving]
    times = sorted({now, *dues})
    then, num_ended = room.copy(), 0  # what is free before times[low]
    low, high = 0, len(times) - 1
    while low < high:
        middle = (low + high) // 2
        later, upto = then.copy(), bisect_right(dues, times[middle])
        _end(later, leaving[num_ended:upto])
        if later.holds(job):
            high = middle
        else:
            low, then, num_ended = middle + 1, later, upto
    _end(then, leaving[num_ended : bisect_right(dues, times[low])])
    return Reservation(job, times[low], then)


def _end(room: Room, leaving: Iterable[Running]) -> None:
    for item in leaving:
        room.end(item.job, item.decision)


class Replay:
    """A job log running through an allocator, from one event to the next.

    Jobs start in the order of their submission. If the first in line does not fit, it gets a
    reservation at the earliest time at which it would by the walltimes of the running jobs;
    later ones may start before it if they end by then or leave it enough nodes (EASY).

    Parameters
    ----------
    state
        The machine. What runs on it and what is down stays so; its queue is not looked at.
    jobs
        The log; jobs too large for the machine are left out.
    method
        A name of `topoplace.solving.methods`, or an allocator that is not ours.
    options
        Time limit per job, and seed; on a torus the interference rule too.
    against
        The reference of eq. (7) on a tree (`topoplace.study.replay.trees.TreeSite`).
    fill_interior
        On a torus, offer the idle nodes inside running jobs' prisms to jobs that use no links
        (`topoplace.study.replay.torus.TorusSite.interior`).

    Attributes
    ----------
    now
        Seconds since the log's start, at the last event.
    records, timeline
        The jobs started so far, in the order of their starts, and the machine after every event.
    left_out
        Jobs too large for the machine.
    num_nodes
        Nodes that jobs can have.

    Raises
    ------
    InputError
        If there is no such method.
    DecisionError
        While it runs: if the answer of an allocator that is not ours does not count. One that met
        its time limit starts nothing, and goes on.
    """

    def __init__(
        self,
        state: TreeState | SnapshotState,
        jobs: Sequence[LogJob],
        method: str | Allocator,
        options: Options | None = None,
        against: str = "default",
        *,
        fill_interior: bool = False,
    ) -> None:
        self.now = 0
        self.records: list[JobRecord] = []
        self.timeline: list[Moment] = []
        options = options or Options()
        self._site: TreeSite | TorusSite
        if isinstance(state, TreeState):
            self._site = TreeSite(state, method, options, against)
        else:
            self._site = TorusSite(state, method, options)
        self._fills = fill_interior
        self._queue: list[LogJob] = []
        self._running: dict[int, Running] = {}  # by place in `records`
        self._ends: list[tuple[int, int]] = []
        self._reserved: Reservation | None = None
        room = self._site.room
        self.num_nodes = room.num_free
        self.left_out = tuple(job for job in jobs if not room.holds(job))
        coming = [job for job in jobs if room.holds(job)]
        self._coming = deque(sorted(coming, key=lambda job: job.submitted))
        self.num_jobs = len(coming)

    def run(
        self,
        until: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        before_starts: Callable[[Replay], None] | None = None,
    ) -> None:
        """Go through all events, or those up to a time in seconds.

        Parameters
        ----------
        until
            Last second to look at.
        progress
            Called with the numbers of jobs started and of all, whenever some have started.
        before_starts
            Called at every event at which someone waits, before it is decided who starts: the
            moment to take a snapshot, as its queue is what the allocator is about to see.

        Raises
        ------
        TopoplaceError
            If the method starts a job not even on the empty machine.
        """
        while (at := self._next_event()) is not None and (until is None or at <= until):
            if is_asked():
                return
            before = len(self.records)
            self._free_and_queue(at)
            if self._queue and before_starts is not None:
                before_starts(self)
            with contextlib.suppress(Interrupted):
                self._start_who_can()
            self._note()
            if progress is not None and len(self.records) > before:
                progress(len(self.records), self.num_jobs)
        if until is not None:
            self.now = max(self.now, until)
        elif self._queue:
            raise TopoplaceError(f"the method found no nodes for job {self._queue[0].id}")

    def snapshot(self, name: str) -> Snapshot:
        """Return the machine as it is now: who runs where, and who waits."""
        return self._site.snapshot(name, self._queue)

    @property
    def decisions(self) -> Decisions | None:
        """How often the method was asked, and what it said; on trees only of foreign allocators."""
        return self._site.decisions

    def _next_event(self) -> int | None:
        times = [self._ends[0][0]] if self._ends else []
        if self._coming:
            times.append(self._coming[0].submitted)
        return min(times, default=None)

    def _free_and_queue(self, at: int) -> None:
        self.now = at
        while self._ends and self._ends[0][0] == at:
            item = self._running.pop(heapq.heappop(self._ends)[1])
            self._site.room.end(item.job, item.decision)
            self._reserved = None  # it may have ended before its walltime
        while self._coming and self._coming[0].submitted == at:
            self._queue.append(self._coming.popleft())

    def _start_who_can(self) -> None:
        waiting: list[LogJob] = []
        for job in self._queue:
            decision = self._place(job, waiting[0] if waiting else None)
            if decision is None:
                waiting.append(job)
            else:
                self._start(job, decision)
        self._queue = waiting

    def _place(self, job: LogJob, head: LogJob | None) -> Decision | None:
        """Return where a job starts that does not delay the first in line, if there is one.

        A job that may last beyond the reservation is entered into it.
        """
        if self._fills:
            left = {item.job.id: item.due - self.now for item in self._running.values()}
            inside = self._site.interior(job, left)
            if inside is not None:
                return inside
        if not self._site.may_start(job):
            return None
        if head is None:
            return self._site.decide(job)
        reserved = self._reservation(head)
        in_time = self.now + job.walltime <= reserved.at
        room_left = reserved.then.num_free - head.nodes
        if not in_time and (job.id in reserved.refused or job.nodes > room_left):
            return None
        decision = self._site.decide(job)
        if decision is None or in_time or reserved.admits(job, decision):
            return decision
        return None

    def _reservation(self, head: LogJob) -> Reservation:
        """Return the reservation of the first in line, which stands until a job ends."""
        known = self._reserved
        if known is None or known.job is not head or known.at < self.now:
            running = self._running.values()
            known = self._reserved = reserve(head, self._site.room, running, self.now)
        return known

    def _start(self, job: LogJob, decision: Decision) -> None:
        self._site.room.start(job, decision)
        end = self.now + decision.seconds
        place = len(self.records)
        self._running[place] = Running(job, decision, self.now + job.walltime)
        heapq.heappush(self._ends, (end, place))
        self.records.append(JobRecord(job, self.now, end, decision.cost, decision.default_cost))

    def _note(self) -> None:
        room = self._site.room
        self.timeline.append(
            Moment(
                at=self.now,
                nodes_held=sum(item.job.nodes for item in self._running.values()),
                jobs_running=len(self._running),
                jobs_waiting=len(self._queue),
                nodes_waiting=sum(job.nodes for job in self._queue),
                nodes_free=room.num_free,
                largest_job=room.largest,
            )
        )
