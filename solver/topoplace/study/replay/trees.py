"""Replays on trees (Mishra 2020, section 5.4)."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from topoplace.interrupts import is_asked
from topoplace.machine.hostlist import format_host_list
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.placement.switches.allocators import registered_allocator
from topoplace.placement.switches.occupancy import Occupancy
from topoplace.placement.switches.problem import TreeProblem
from topoplace.snapshot.hierarchy_state import HierarchyRequest, HierarchyState, PartState
from topoplace.snapshot.schema import RunningJob, Snapshot, TreeObjective
from topoplace.solving import Method, Options, found_by, method_of
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay.log import (
    Decision,
    Decisions,
    JobRecord,
    LogJob,
    Setup,
    require_percent,
)
from topoplace.types import IntArray


class TreeSite:
    """A tree, its free nodes, and the method; a job fits if a switch has enough nodes below it.

    `method` is one for the objective: of allocations, or of hierarchies if domains count. `against`
    is the reference of eq. (7): the method under which jobs run as long as in the log; `occupancy`
    are the nodes free at first, if not those of `state`.
    """

    has_prisms: ClassVar[bool] = False

    def __init__(
        self,
        state: HierarchyState,
        method: str | Allocator,
        options: Options | None = None,
        against: str = "default",
        occupancy: Occupancy | None = None,
        objective: TreeObjective = TreeObjective.CONTENTION,
    ) -> None:
        self.occupancy = occupancy or TreeProblem(state).occupancy()
        self.running: dict[str, tuple[LogJob, Decision]] = {}
        self.decisions = Decisions() if isinstance(method, Allocator) else None
        self._state, self._options = state, options or Options()
        self._by_domains = objective is TreeObjective.DOMAINS
        self._choose = self._chooser(method)
        self._reference = None if against == method else self._chooser(against)

    @classmethod
    def of(
        cls, setup: Setup, method: str | Allocator, occupancy: Occupancy | None = None
    ) -> TreeSite:
        """Return the machine of a replay."""
        return cls(setup.state, method, setup.options, setup.against, occupancy, setup.objective)

    def copy(self) -> Self:
        """Return a copy in which other jobs may run; it decides nothing."""
        other = copy.copy(self)
        other.occupancy, other.running = self.occupancy.copy(), self.running.copy()
        return other

    @property
    def num_free(self) -> int:
        """Nodes that no job holds."""
        return int(self.occupancy.free_per_leaf.sum())

    @property
    def largest(self) -> int:
        """Most free nodes below one switch."""
        return int(self.occupancy.free_per_leaf[self.occupancy.widest_leaves()].sum())

    def holds(self, job: LogJob) -> bool:
        """Return whether a job would fit."""
        return self.occupancy.leaves_that_fit(job.nodes) is not None

    def has_nodes_for(self, *jobs: LogJob) -> bool:
        """Return whether there are enough free nodes for some jobs, wherever they are."""
        return sum(job.nodes for job in jobs) <= self.num_free

    def may_start(self, job: LogJob) -> bool:
        """Return whether a root has enough free nodes below it."""
        return self.holds(job)

    def start(self, job: LogJob, decision: Decision) -> None:
        """Let a job hold the nodes that were decided."""
        self.occupancy.start(decision.nodes, bool(job.patterns))
        self.running[job.id] = job, decision

    def end(self, job: LogJob, decision: Decision) -> None:
        """Free what `start` gave."""
        self.occupancy.end(decision.nodes, bool(job.patterns))
        del self.running[job.id]

    def decide(self, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it does not fit.

        Where the reference finds no place for the job, it runs as long as in the log, and its
        `default_cost` is its cost.
        """
        nodes = self._choose(job)
        if nodes is None:
            return None
        if not bool(job.patterns):
            return Decision(nodes, Fraction(0), Fraction(0), job.seconds)
        cost = default_cost = self.occupancy.cost_with(nodes, job.patterns)
        if self._reference is not None:
            others = self._reference(job)
            if others is not None:
                default_cost = self.occupancy.cost_with(others, job.patterns)
        return Decision(nodes, cost, default_cost, job.seconds_at(cost, default_cost))

    def interior(self, job: LogJob, seconds_left: dict[str, int]) -> None:
        """Return None: jobs on a tree have no prisms."""

    def snapshot(self, name: str, queue: Sequence[LogJob]) -> Snapshot:
        """Return the machine as it is, with these jobs waiting, as a document."""
        base, names = self._state.snapshot, self._state.machine.host_names
        jobs = [
            RunningJob(
                id=job.id,
                nodes=format_host_list([names[node] for node in decision.nodes]),
                communication=job.communication,
                patterns=list(job.patterns) or None,
            )
            for job, decision in self.running.values()
        ]
        waiting = [job.waiting(with_patterns=True) for job in queue]
        return base.model_copy(
            update={"name": name, "running": [*base.running, *jobs], "queue": waiting}
        )

    def _chooser(self, who: str | Allocator) -> Callable[[LogJob], IntArray | None]:
        """Return a function from a job to its nodes, in rank order, or None if it waits."""
        if isinstance(who, Allocator):
            return lambda job: self._asked(who, job)
        if self._by_domains:
            by_domains = method_of("hierarchy", who)
            return lambda job: self._on_domains(by_domains, job)
        method, allocator = method_of("allocation", who), registered_allocator(who)
        rng = np.random.default_rng(self._options.seed)

        def choose(job: LogJob) -> IntArray | None:
            if allocator is not None:
                return allocator(self.occupancy, self._request(job), rng)
            started = found_by(method, TreeProblem(self._state_for(job)), self._options).solution
            return None if started is None else started.get(0)

        return choose

    def _on_domains(self, method: Method, job: LogJob) -> IntArray | None:
        """Return the nodes that a method of hierarchies gives a job, in their order."""
        started = found_by(method, HierarchyProblem(self._state_for(job)), self._options).solution
        return np.sort(np.array([*started[0][0]], dtype=np.int64)) if started else None

    def _asked(self, allocator: Allocator, job: LogJob) -> IntArray | None:
        assert self.decisions is not None
        document = self.snapshot(f"job-{job.id}", [job])
        state = dataclasses.replace(self._state_for(job), snapshot=document)
        found = self.decisions.ask(state, allocator, self._options)
        if found is None:
            return None
        place = {name: node for node, name in enumerate(self._state.machine.host_names)}
        return np.array([place[name] for name in found.nodes], dtype=np.int64)

    def _state_for(self, job: LogJob) -> HierarchyState:
        """Return the machine as it is, with a queue of one job; its document stays as it was."""
        now = self.occupancy.copy()
        return dataclasses.replace(
            self._state,
            free=now.free.astype(np.int64)[:, None],
            occupied=~now.free,
            busy=now.busy,
            comm=now.comm,
            requests=(self._request(job),),
        )

    def _request(self, job: LogJob) -> HierarchyRequest:
        required = 0 if self._state.machine.fabrics else None
        part = PartState(None, job.nodes, (1,), (), required=required)
        return HierarchyRequest(job.id, job.nodes, job.nodes, (part,), job.patterns)


def occupied(state: HierarchyState, jobs: Iterable[LogJob], percent: int) -> Occupancy:
    """Return a machine on which Slurm's default has started jobs, as many as keep below a share.

    They start in their order; those that would exceed `percent` of the free nodes are skipped.
    """
    require_percent(percent)
    site = TreeSite(state, "default")
    left = site.num_free * percent // 100
    for job in jobs:
        decision = site.decide(job) if job.nodes <= left else None
        if decision is not None:
            site.occupancy.start(decision.nodes, bool(job.patterns))
            left -= job.nodes
    return site.occupancy


def individual_runs(
    site: TreeSite, jobs: Iterable[LogJob], progress: Callable[[int], None] | None = None
) -> tuple[JobRecord, ...]:
    """Return the outcome of each job if it alone starts, at once, with those that run.

    Jobs that do not fit are left out, the same ones for every method; the site stays as it is.
    `progress` is called with the number of jobs done.
    """
    records = []
    for done, job in enumerate(jobs, start=1):
        if is_asked():
            break
        decision = site.decide(job)
        if decision is not None:
            end = job.submitted + decision.seconds
            records.append(JobRecord(job, job.submitted, end, decision.cost, decision.default_cost))
        if progress is not None:
            progress(done)
    return tuple(records)
