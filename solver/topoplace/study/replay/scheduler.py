"""Continuous runs: a job log through first-in-first-out with EASY backfilling."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import TopoplaceError
from topoplace.machine.hostlist import format_host_list
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.placement.tree.problem import TreeOptions, TreeProblem
from topoplace.snapshot.schema import Communication, Request, RunningJob, Snapshot
from topoplace.snapshot.tree_state import TreeState
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.metrics import JobRecord
from topoplace.study.replay.placing import Decision, Placer

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class _Running:
    job: LogJob
    nodes: IntArray
    due: int  # when it ends by its walltime, which is all a scheduler knows


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
        A name of `topoplace.placement.tree.solve.tree_methods`.
    options
        Time limit per job, and seed.
    against
        The reference of eq. (7) (`topoplace.study.replay.placing.Placer`).

    Attributes
    ----------
    now
        Seconds since the log's start, at the last event.
    records
        The jobs started so far, in the order of their starts.
    left_out
        Jobs too large for the machine.

    Raises
    ------
    InputError
        If there is no such method.
    """

    def __init__(
        self,
        state: TreeState,
        jobs: Sequence[LogJob],
        method: str,
        options: TreeOptions | None = None,
        against: str = "default",
    ) -> None:
        self.now = 0
        self.records: list[JobRecord] = []
        self._state = state
        self._placer = Placer(state, method, options, against)
        self._occupancy = TreeProblem(state).occupancy()
        self._queue: list[LogJob] = []
        self._running: dict[int, _Running] = {}  # by place in `records`
        self._ends: list[tuple[int, int]] = []
        fits = [self._occupancy.leaves_that_fit(job.nodes) is not None for job in jobs]
        self.left_out = tuple(job for job, ok in zip(jobs, fits, strict=True) if not ok)
        coming = [job for job, ok in zip(jobs, fits, strict=True) if ok]
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
            before = len(self.records)
            self._free_and_queue(at)
            if self._queue and before_starts is not None:
                before_starts(self)
            self._start_who_can()
            if progress is not None and len(self.records) > before:
                progress(len(self.records), self.num_jobs)
        if until is not None:
            self.now = max(self.now, until)
        elif self._queue:
            raise TopoplaceError(f"the method found no nodes for job {self._queue[0].id}")

    def snapshot(self, name: str) -> Snapshot:
        """Return the machine as it is now: who runs where, and who waits."""
        base = self._state.snapshot
        names = self._state.tree.node_names
        running = [
            RunningJob(
                id=item.job.id,
                nodes=format_host_list([names[node] for node in item.nodes]),
                communication=_communication(item.job),
                patterns=list(item.job.patterns) or None,
            )
            for item in self._running.values()
        ]
        queue = [
            Request(
                id=job.id,
                nodes=job.nodes,
                communication=_communication(job),
                patterns=list(job.patterns) or None,
                walltime=job.walltime,
                submitted=job.submitted,
            )
            for job in self._queue
        ]
        return base.model_copy(
            update={"name": name, "running": [*base.running, *running], "queue": queue}
        )

    def _next_event(self) -> int | None:
        times = [self._ends[0][0]] if self._ends else []
        if self._coming:
            times.append(self._coming[0].submitted)
        return min(times, default=None)

    def _free_and_queue(self, at: int) -> None:
        self.now = at
        while self._ends and self._ends[0][0] == at:
            item = self._running.pop(heapq.heappop(self._ends)[1])
            self._occupancy.end(item.nodes, item.job.request.intensive)
        while self._coming and self._coming[0].submitted == at:
            self._queue.append(self._coming.popleft())

    def _start_who_can(self) -> None:
        while self._queue and (decision := self._decide(self._queue[0])):
            self._start(self._queue.pop(0), decision)
        if len(self._queue) > 1:
            self._backfill()

    def _backfill(self) -> None:
        head, *others = self._queue
        reserved, then = self._reservation(head)
        waiting = [head]
        for job in others:
            in_time = self.now + job.walltime <= reserved
            spare = int(then.free_per_leaf.sum()) - head.nodes
            decision = self._decide(job) if in_time or job.nodes <= spare else None
            if decision is not None and not in_time:
                then.start(decision.nodes, job.request.intensive)
                if then.leaves_that_fit(head.nodes) is None:  # of several roots, the wrong one
                    then.end(decision.nodes, job.request.intensive)
                    decision = None
            if decision is None:
                waiting.append(job)
            else:
                self._start(job, decision)
        self._queue = waiting

    def _reservation(self, head: LogJob) -> tuple[int, Occupancy]:
        """Return when the first in line can start by the walltimes, and who is left then.

        A job that has outrun its walltime may end any moment: it is due now.
        """
        then = self._occupancy.copy()
        reserved = self.now
        fits = then.leaves_that_fit(head.nodes) is not None
        for item in sorted(self._running.values(), key=lambda item: item.due):
            due = max(item.due, self.now)
            if fits and due > reserved:
                break
            then.end(item.nodes, item.job.request.intensive)
            reserved = due
            fits = fits or then.leaves_that_fit(head.nodes) is not None
        return reserved, then

    def _decide(self, job: LogJob) -> Decision | None:
        if job.nodes > self._occupancy.free_per_leaf.sum():
            return None
        return self._placer.place(self._occupancy, job)

    def _start(self, job: LogJob, decision: Decision) -> None:
        self._occupancy.start(decision.nodes, job.request.intensive)
        end = self.now + decision.seconds
        place = len(self.records)
        self._running[place] = _Running(job, decision.nodes, self.now + job.walltime)
        heapq.heappush(self._ends, (end, place))
        self.records.append(JobRecord(job, self.now, end, decision.cost, decision.default_cost))


def _communication(job: LogJob) -> Communication:
    return Communication.STRICT if job.patterns else Communication.NONE
