"""A torus or mesh machine under a replay, with any placement method."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import InputError
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.placement.outcome import prism_model
from topoplace.placement.problem import Candidate, Options, PlacementProblem
from topoplace.placement.solve import Method, methods
from topoplace.snapshot import QueuedState, SnapshotState
from topoplace.snapshot.schema import Communication, RunningJob, Snapshot
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.shape_model import ShapeModel, box_around
from topoplace.study.replay.site import (
    Decision,
    communication_of,
    run_seconds,
    waiting_request,
)
from topoplace.study.replay.torus_room import TorusRoom

IntArray = NDArray[np.int64]


def placement_method(name: str) -> Method:
    """Return a registered placement method.

    Raises
    ------
    InputError
        If there is no such method.
    """
    known = methods()
    if name not in known:
        raise InputError(f"one of {', '.join(known)}", field="method", value=name)
    return known[name]


@dataclasses.dataclass(frozen=True)
class _ProblemNow(PlacementProblem):
    """A problem told the links in use, which would take most of a decision to find again.

    Its one request is never tolerant, so that all of them are closed to it.
    """

    used_links: NDArray[np.bool_] = dataclasses.field(default_factory=lambda: np.zeros(0, bool))

    def closed_links(self, communication: Communication) -> NDArray[np.bool_]:
        """Return the links running jobs close to such a request, shape ``(num_links,)``."""
        return self.used_links & self.uses_links(communication)


class TorusSite:
    """A torus with its placement method, which sees one job at a time.

    Jobs are of the machine's default class; those that communicate do so strictly, the others
    use no links. Where no prism is left for a job the method is not asked.

    Parameters
    ----------
    state
        The machine. What runs on it and what is down stays so; its queue is not looked at.
    method
        A name of `topoplace.placement.solve.methods`.
    options
        Time limit per decision, interference rule and seed.

    Raises
    ------
    InputError
        If there is no such method.
    """

    def __init__(self, state: SnapshotState, method: str, options: Options) -> None:
        self._state = state
        self._method = placement_method(method)
        self._options = options
        self._model = ShapeModel(state.torus)
        problem = PlacementProblem(state, options.interference)
        self.room = TorusRoom(problem, self._method.uses_prisms)

    def may_start(self, job: LogJob) -> bool:
        """Tell whether a job fits; if not, no method finds a place."""
        return self.room.holds(job)

    def decide(self, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it finds no place."""
        state, rule = self._state_for(job), self._options.interference
        problem = PlacementProblem(state, rule)
        if self._method.uses_prisms:
            problem = _ProblemNow(state, rule, used_links=self.room.used_links)
        started = self._method.solver(problem, self._options).started
        if not started:
            return None
        (item,) = started
        if isinstance(item, Candidate):
            return self._decision(job, problem.choose_nodes(item), item.prism)
        return self._decision(job, item.nodes, None)

    def interior(self, job: LogJob, seconds_left: dict[str, int]) -> Decision | None:
        """Return idle nodes inside running jobs' prisms for a job, or None.

        They are all in one prism, whose job may run at least as long as this one by their
        walltimes; and this one sends nothing over a link: it only computes, or has one router
        (Enos 2014, section III.A). Of several prisms it gets the one with the fewest idle nodes.
        """
        per = self._state.torus.nodes_per_router
        if job.patterns and job.nodes > per:
            return None
        best: IntArray | None = None
        for name, nodes in self._idle_inside().items():
            if seconds_left[name] < job.walltime or len(nodes) < job.nodes:
                continue
            there = nodes
            if job.patterns:  # the first router with enough idle nodes
                routers, count = np.unique(nodes // per, return_counts=True)
                enough = routers[count >= job.nodes]
                if not len(enough):
                    continue
                there = nodes[nodes // per == enough[0]]
            if best is None or len(there) < len(best):
                best = there
        return None if best is None else self._decision(job, best[: job.nodes], None)

    def snapshot(
        self, name: str, running: Sequence[tuple[LogJob, Decision]], queue: Sequence[LogJob]
    ) -> Snapshot:
        """Return the machine with these jobs as a document.

        A job inside another's prism, which the format has no place for, has its nodes marked
        down as long as the other runs: they are as closed to the queue as the prism itself.
        """
        base = self._state.snapshot
        in_prism = self._in_prisms()
        per = self._state.torus.nodes_per_router
        down = parse_node_set(base.down, self._state.torus.num_nodes).tolist()
        jobs = []
        for job, decision in running:
            if decision.prism is None and in_prism[decision.nodes // per].any():
                down += decision.nodes.tolist()
                continue
            jobs.append(
                RunningJob(
                    id=job.id,
                    nodes=format_node_set(decision.nodes.tolist()),
                    prism=None if decision.prism is None else prism_model(decision.prism),
                    communication=communication_of(job),
                )
            )
        waiting = [waiting_request(job, with_patterns=False) for job in queue]
        return base.model_copy(
            update={
                "name": name,
                "down": format_node_set(down),
                "running": [*base.running, *jobs],
                "queue": waiting,
            }
        )

    def _state_for(self, job: LogJob) -> SnapshotState:
        """Return the machine as it is, with a queue of one job."""
        request = QueuedState(job.id, job.nodes, 0, 1, (), None, communication_of(job))
        return dataclasses.replace(
            self._state,
            usable=self.room.usable,
            occupied=self.room.occupied,
            running=(*self._state.running, *self.room.running.values()),
            queue=(request,),
        )

    def _decision(self, job: LogJob, nodes: IntArray, prism: Prism | None) -> Decision:
        if not job.patterns:
            return Decision(nodes, Fraction(0), Fraction(0), job.seconds, prism)
        torus = self._state.torus
        box = prism or box_around(torus, np.unique(nodes // torus.nodes_per_router))
        cost = self._model.cost(box.extents)
        least = self._model.least_cost(job.nodes)
        return Decision(nodes, cost, least, run_seconds(job, cost, least), prism)

    def _idle_inside(self) -> dict[str, IntArray]:
        """Return the idle usable nodes of the default class in every prism, by its job."""
        per = self._state.torus.nodes_per_router
        idle = self._state.usable & (self._state.node_class == 0)
        for job in self.room.running.values():
            idle[job.nodes] = False
        found = {}
        for job in self.room.running.values():
            if job.prism is not None:
                nodes = (job.routers[:, None] * per + np.arange(per)).ravel()
                found[job.id] = nodes[idle[nodes]]
        return found

    def _in_prisms(self) -> NDArray[np.bool_]:
        inside = np.zeros(self._state.torus.num_routers, dtype=bool)
        for job in self.room.running.values():
            if job.prism is not None:
                inside[job.routers] = True
        return inside
