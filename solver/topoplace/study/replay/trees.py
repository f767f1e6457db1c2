"""Replays on trees (Mishra 2020, section 5.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import InputError
from topoplace.interrupts import is_asked
from topoplace.machine.hostlist import format_host_list
from topoplace.placement.tree.heuristics.in_turn import registered_allocator
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.placement.tree.problem import TreeProblem
from topoplace.snapshot.schema import RunningJob, Snapshot
from topoplace.snapshot.tree_state import TreeRequest, TreeState
from topoplace.solving import Options, found_by, method_of
from topoplace.study.external.allocator import Allocator
from topoplace.study.external.trial import try_on
from topoplace.study.replay.figures import Decisions, JobRecord
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.site import (
    Decision,
    communication_of,
    require_answer,
    run_seconds,
    waiting_request,
)

IntArray = NDArray[np.int64]

ChooseNodes = Callable[[Occupancy, LogJob], IntArray | None]
"""Returns the nodes of a job, in rank order, or None if it does not start now."""


class Placer:
    """Places one job at a time by a method.

    Parameters
    ----------
    state
        The machine.
    method
        A name of `topoplace.solving.methods`, or what chooses nodes itself.
    options
        Time limit per job, and seed.
    against
        The reference of eq. (7): the method under which jobs run as long as in the log.

    Raises
    ------
    InputError
        If there is no such method.
    """

    def __init__(
        self,
        state: TreeState,
        method: str | ChooseNodes,
        options: Options | None = None,
        against: str = "default",
    ) -> None:
        options = options or Options()
        self._choose: ChooseNodes
        self._choose = _Chooser(state, method, options) if isinstance(method, str) else method
        self._reference = None if against == method else _Chooser(state, against, options)

    def place(self, occupancy: Occupancy, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it does not fit.

        Where the reference has no place for the job (Slurm's default wants one switch above all
        nodes; a method may do with one above any two), it runs as long as in the log, and its
        `default_cost` is its cost.
        """
        nodes = self._choose(occupancy, job)
        if nodes is None:
            return None
        if not job.request.intensive:
            return Decision(nodes, Fraction(0), Fraction(0), job.seconds)
        cost = default_cost = occupancy.cost_with(nodes, job.patterns)
        if self._reference is not None:
            others = self._reference(occupancy, job)
            if others is not None:
                default_cost = occupancy.cost_with(others, job.patterns)
        return Decision(nodes, cost, default_cost, run_seconds(job, cost, default_cost))


class _Chooser:
    """A method as a function from what is free, and a job, to nodes."""

    def __init__(self, state: TreeState, method: str, options: Options) -> None:
        self._state = state
        self._options = options
        self._method = method_of("allocation", method)
        self._allocator = registered_allocator(method)
        self._rng = np.random.default_rng(options.seed)

    def __call__(self, occupancy: Occupancy, job: LogJob) -> IntArray | None:
        request = job.request
        if self._allocator is not None:
            return self._allocator(occupancy, request, self._rng)
        state = state_with(self._state, occupancy, request)
        started = found_by(self._method, TreeProblem(state), self._options).solution
        return None if started is None else started.get(0)


def state_with(state: TreeState, occupancy: Occupancy, request: TreeRequest) -> TreeState:
    """Return a machine as occupied, with a queue of one request; its document stays as it was."""
    return dataclasses.replace(
        state,
        free=occupancy.free.copy(),
        busy=occupancy.busy.copy(),
        comm=occupancy.comm.copy(),
        requests=(request,),
    )


class TreeRoom:
    """The free nodes of a tree; a job fits if one switch has enough of them below it."""

    def __init__(self, occupancy: Occupancy) -> None:
        self.occupancy = occupancy
        self.running: dict[str, tuple[LogJob, Decision]] = {}

    @property
    def num_free(self) -> int:
        """Nodes that nobody holds."""
        return int(self.occupancy.free_per_leaf.sum())

    @property
    def largest(self) -> int:
        """Most free nodes below one switch."""
        return int(self.occupancy.free_per_leaf[self.occupancy.widest_leaves()].sum())

    def copy(self) -> Self:
        """Return an independent copy."""
        other = type(self)(self.occupancy.copy())
        other.running = self.running.copy()
        return other

    def start(self, job: LogJob, decision: Decision) -> None:
        """Let a job hold what was decided."""
        self.occupancy.start(decision.nodes, job.request.intensive)
        self.running[job.id] = job, decision

    def end(self, job: LogJob, decision: Decision) -> None:
        """Take back what `start` gave."""
        self.occupancy.end(decision.nodes, job.request.intensive)
        del self.running[job.id]

    def holds(self, job: LogJob) -> bool:
        """Tell whether a job would fit."""
        return self.occupancy.leaves_that_fit(job.nodes) is not None


class TreeSite:
    """A tree with its allocation method; for the parameters see `Placer`."""

    def __init__(
        self,
        state: TreeState,
        method: str | Allocator,
        options: Options,
        against: str = "default",
    ) -> None:
        self.room = TreeRoom(TreeProblem(state).occupancy())
        self.decisions: Decisions | None = None
        self._state = state
        self._options = options
        if isinstance(method, Allocator):
            self.decisions, self._allocator = Decisions(), method
        choose = self._ask if isinstance(method, Allocator) else method
        self._placer = Placer(state, choose, options, against)

    def may_start(self, job: LogJob) -> bool:
        """Tell whether there are enough free nodes, wherever they are."""
        return job.nodes <= self.room.num_free

    def decide(self, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it finds no place."""
        return self._placer.place(self.room.occupancy, job)

    def interior(self, job: LogJob, seconds_left: dict[str, int]) -> None:
        """Return None: jobs on a tree have no prisms."""

    def snapshot(self, name: str, queue: Sequence[LogJob]) -> Snapshot:
        """Return the machine as it is, with these jobs waiting, as a document."""
        base = self._state.snapshot
        names = self._state.tree.node_names
        jobs = [
            RunningJob(
                id=job.id,
                nodes=format_host_list([names[node] for node in decision.nodes]),
                communication=communication_of(job),
                patterns=list(job.patterns) or None,
            )
            for job, decision in self.room.running.values()
        ]
        waiting = [waiting_request(job, with_patterns=True) for job in queue]
        return base.model_copy(
            update={"name": name, "running": [*base.running, *jobs], "queue": waiting}
        )

    def _ask(self, occupancy: Occupancy, job: LogJob) -> IntArray | None:
        """Return the nodes that an allocator that is not ours gives a job."""
        document = self.snapshot(f"job-{job.id}", [job])
        state = state_with(self._state, occupancy, job.request)
        state = dataclasses.replace(state, snapshot=document)
        trial = try_on(state, self._allocator, self._options)
        require_answer(trial, document)
        solution = trial.result.solution
        found = next(iter(solution.allocations), None) if solution is not None else None
        assert self.decisions is not None
        self.decisions.count(found=found is not None, timed_out=trial.result.limits.hit)
        if found is None:
            return None
        place = {name: node for node, name in enumerate(self._state.tree.node_names)}
        return np.array([place[name] for name in found.nodes], dtype=np.int64)


def occupied(state: TreeState, jobs: Iterable[LogJob], percent: int) -> Occupancy:
    """Return a machine on which Slurm's default has started jobs, as many as keep below a share.

    They start in their order; those that would exceed `percent` of the free nodes are passed over.

    Raises
    ------
    InputError
        If `percent` is not between 0 and 100.
    """
    if not 0 <= percent <= 100:
        raise InputError("a number from 0 to 100", field="percent", value=percent)
    occupancy = TreeProblem(state).occupancy()
    placer = Placer(state, "default")
    left = int(occupancy.free.sum()) * percent // 100
    for job in jobs:
        if job.nodes > left:
            continue
        decision = placer.place(occupancy, job)
        if decision is not None:
            occupancy.start(decision.nodes, job.request.intensive)
            left -= job.nodes
    return occupancy


def individual_runs(
    occupancy: Occupancy,
    jobs: Iterable[LogJob],
    placer: Placer,
    progress: Callable[[int], None] | None = None,
) -> tuple[JobRecord, ...]:
    """Return what becomes of each job if it alone starts, at once, beside those that run.

    Jobs that do not fit are left out, the same ones for every method; `occupancy` stays as it is.
    `progress` is called with the number of jobs done.
    """
    records = []
    for done, job in enumerate(jobs, start=1):
        if is_asked():
            break
        decision = placer.place(occupancy, job)
        if decision is not None:
            end = job.submitted + decision.seconds
            records.append(JobRecord(job, job.submitted, end, decision.cost, decision.default_cost))
        if progress is not None:
            progress(done)
    return tuple(records)
