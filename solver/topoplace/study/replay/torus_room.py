"""What is free on a torus as jobs of a replay start and end, and as a document."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np

from topoplace.machine import Torus, format_node_set, parse_node_set
from topoplace.placement.torus.heuristics.footprints import footprints_of
from topoplace.placement.torus.heuristics.room import Reach, reach_of, refill
from topoplace.placement.torus.outcome import prism_model
from topoplace.placement.torus.problem import PlacementProblem, job_links
from topoplace.snapshot import QueuedState, RunningState, SnapshotState
from topoplace.snapshot.schema import RunningJob, Snapshot
from topoplace.study.replay import _largest
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.site import Decision, communication_of, waiting_request
from topoplace.types import BoolArray, IntArray


class TorusRoom:
    """The routers and links that running jobs leave to others.

    A job fits if some prism with enough usable nodes of the default class has no router of
    another job and, where it communicates under a rule, no link of one. Under a method that
    ignores prisms it fits if enough such nodes are usable. `running` has who runs besides those of
    the problem; while `version` stays, nothing has changed.
    """

    def __init__(self, problem: PlacementProblem, in_prisms: bool) -> None:
        state = problem.state
        self.running: dict[str, RunningState] = {}
        self._links: dict[str, IntArray] = {}
        self._problem = problem
        self._largest_prism = _LargestPrism(state.torus) if in_prisms else None
        # How many jobs hold each router or use each link: jobs filled into another's prism hold
        # routers with it, and scattered jobs may share links.
        self._holders = state.occupied.astype(np.int64)
        self._users = np.zeros(state.torus.num_links, dtype=np.int64)
        for job in state.running:
            self._users[self._links_of(job)] += 1
        self.version = 0
        self._known: dict[bool, int] = {}
        self._num_free: int | None = None

    def copy(self) -> Self:
        other = copy.copy(self)
        for name in ("running", "_links", "_holders", "_users", "_known"):
            setattr(other, name, getattr(self, name).copy())
        return other

    @property
    def occupied(self) -> BoolArray:
        """Routers held by jobs, shape ``(num_routers,)``."""
        return self._holders > 0

    @property
    def usable(self) -> BoolArray:
        """Nodes a job may take, shape ``(num_nodes,)``."""
        state = self._problem.state
        return state.usable & ~np.repeat(self.occupied, state.torus.nodes_per_router)

    @property
    def used_links(self) -> BoolArray:
        """Links that jobs close to a communicating one, shape ``(num_links,)``."""
        return self._users > 0

    @property
    def torus(self) -> Torus:
        """The machine."""
        return self._problem.torus

    @property
    def num_free(self) -> int:
        """Usable nodes of the default class."""
        if self._num_free is None:
            members = self.usable & (self._problem.state.node_class == 0)
            self._num_free = int(np.count_nonzero(members))
        return self._num_free

    @property
    def largest(self) -> int:
        return self._most(True)

    def holds(self, job: LogJob) -> bool:
        return job.nodes <= self.num_free and job.nodes <= self._most(bool(job.patterns))

    def state_for(self, job: LogJob) -> SnapshotState:
        """Return the machine as it is, with a queue of one job; its document stays as it was."""
        state = self._problem.state
        request = QueuedState(job.id, job.nodes, 0, 1, (), None, communication_of(job))
        return dataclasses.replace(
            state,
            usable=self.usable,
            occupied=self.occupied,
            running=(*state.running, *self.running.values()),
            queue=(request,),
        )

    def document(self, name: str, queue: Sequence[LogJob]) -> Snapshot:
        """Return the machine as it is as a document, with these jobs in its queue.

        A job inside another's prism, which the format has no place for, has its nodes marked down
        as long as the other runs: they are as closed to the queue as the prism itself.
        """
        base, torus = self._problem.state.snapshot, self.torus
        in_prism = np.zeros(torus.num_routers, dtype=bool)
        for job in self.running.values():
            if job.prism is not None:
                in_prism[job.routers] = True
        down = parse_node_set(base.down, torus.num_nodes).tolist()
        jobs = []
        for job in self.running.values():
            if job.prism is None and in_prism[job.routers].any():
                down += job.nodes.tolist()
                continue
            jobs.append(
                RunningJob(
                    id=job.id,
                    nodes=format_node_set(job.nodes.tolist()),
                    prism=None if job.prism is None else prism_model(job.prism),
                    communication=job.communication,
                )
            )
        return base.model_copy(
            update={
                "name": name,
                "down": format_node_set(down),
                "running": [*base.running, *jobs],
                "queue": [waiting_request(job, with_patterns=False) for job in queue],
            }
        )

    def idle_inside(self) -> dict[str, IntArray]:
        """Return the idle usable nodes of the default class in every prism, by its job."""
        state, per = self._problem.state, self.torus.nodes_per_router
        idle = state.usable & (state.node_class == 0)
        for job in self.running.values():
            idle[job.nodes] = False
        found = {}
        for job in self.running.values():
            if job.prism is not None:
                nodes = (job.routers[:, None] * per + np.arange(per)).ravel()
                found[job.id] = nodes[idle[nodes]]
        return found

    def start(self, job: LogJob, decision: Decision) -> None:
        torus = self._problem.torus
        if decision.prism is None:
            routers = np.unique(decision.nodes // torus.nodes_per_router)
        else:
            routers = np.sort(decision.prism.routers(torus))
        running = RunningState(
            job.id, decision.nodes, routers, decision.prism, communication_of(job)
        )
        self.running[job.id] = running
        self._links[job.id] = self._links_of(running)
        self._hold(running, 1)

    def end(self, job: LogJob, decision: Decision) -> None:
        del decision
        self._hold(self.running.pop(job.id), -1)
        del self._links[job.id]

    def _hold(self, job: RunningState, change: int) -> None:
        self._holders[job.routers] += change
        self._users[self._links[job.id]] += change
        self.version += 1
        self._known = {}
        self._num_free = None

    def _links_of(self, job: RunningState) -> IntArray:
        if self._largest_prism is None or not self._problem.uses_links(job.communication):
            return np.zeros(0, dtype=np.int64)
        return job_links(self._problem.torus, job)

    def _most(self, communicates: bool) -> int:
        if self._largest_prism is None:
            return self.num_free
        if communicates not in self._known:
            closed = self.used_links & communicates
            usable = self.usable & (self._problem.state.node_class == 0)
            self._known[communicates] = self._largest_prism.nodes(self.occupied, closed, usable)
        return self._known[communicates]


class _LargestPrism:
    """Finds how many nodes of the default class the best prism left has."""

    def __init__(self, torus: Torus) -> None:
        self._torus = torus
        self._footprints = footprints_of(torus)
        self._reach: Reach | None = None  # its memory serves every search

    def nodes(self, blocked: BoolArray, closed: BoolArray, usable: BoolArray) -> int:
        footprints, per = self._footprints, self._torus.nodes_per_router
        if self._reach is None:
            self._reach = reach_of(footprints, blocked, closed)
        else:
            refill(self._reach, footprints, blocked, closed)
        there = usable.reshape(-1, per).sum(axis=1)
        most = self._reach.deepest * footprints.area * per
        order = np.argsort(-most, kind="stable")
        return int(
            _largest.most_usable(
                order, most, per, footprints.area, self._reach.table, footprints.sums(there),
                footprints.bases, footprints.box, footprints.signs,
            )
        )  # fmt: skip
