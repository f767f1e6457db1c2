"""A torus or mesh machine under a replay, with any placement method."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism
from topoplace.placement.problem import PlacementProblem
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.shape_model import ShapeModel, box_around
from topoplace.study.replay.site import Decision, run_seconds
from topoplace.study.replay.torus_chooser import chooser_of
from topoplace.study.replay.torus_room import TorusRoom

IntArray = NDArray[np.int64]


class TorusSite:
    """A torus with its placement method, which sees one job at a time.

    Jobs are of the machine's default class; those that communicate do so strictly, the others
    use no links. Where no prism is left for a job the method is not asked.

    Parameters
    ----------
    state
        The machine. What runs on it and what is down stays so; its queue is not looked at.
    method
        A name of `topoplace.solving.methods`, or an allocator that is not ours.
    options
        Time limit per decision, interference rule and seed.

    Raises
    ------
    InputError
        If there is no such method.
    """

    def __init__(self, state: SnapshotState, method: str | Allocator, options: Options) -> None:
        self._state = state
        self._chooser = chooser_of(method, options)
        self._model = ShapeModel(state.torus)
        problem = PlacementProblem(state, options.interference)
        self.room = TorusRoom(problem, self._chooser.in_prisms)
        self.decisions = self._chooser.decisions

    def may_start(self, job: LogJob) -> bool:
        """Tell whether a job fits; if not, no method finds a place."""
        return self.room.holds(job)

    def decide(self, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it finds no place."""
        place = self._chooser.choose(job, self.room)
        return None if place is None else self._decision(job, place.nodes, place.prism)

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

    def snapshot(self, name: str, queue: Sequence[LogJob]) -> Snapshot:
        """Return the machine as it is, with these jobs waiting, as a document."""
        return self.room.document(name, queue)

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
