"""A torus or mesh under a replay: who says where a job goes on it, and how long it runs there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from topoplace.machine import Prism, Torus, bisection_per_node, parse_node_set
from topoplace.placement.torus.outcome import worth
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.schema import Communication, Snapshot
from topoplace.solving import Method, Options, found_by, method_of
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay.figures import Decisions
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.site import Decision, answered, communication_of, run_seconds
from topoplace.study.replay.torus_room import TorusRoom
from topoplace.types import BoolArray, IntArray

Place = tuple[IntArray, Prism | None]
"""The nodes of a job, and its prism unless they are scattered."""


@dataclass(frozen=True)
class _ProblemNow(PlacementProblem):
    """A problem told the links in use, which would take most of a decision to find again.

    Its one request is never tolerant, so that all of them are closed to it.
    """

    used_links: BoolArray = dataclasses.field(default_factory=lambda: np.zeros(0, bool))

    def closed_links(self, communication: Communication) -> BoolArray:
        """Return the links running jobs close to such a request, shape ``(num_links,)``."""
        return self.used_links & self.uses_links(communication)


class TorusSite:
    """A torus with its placement method, which sees one job at a time.

    Jobs are of the machine's default class; those that communicate do so strictly, the others
    use no links. Where no prism is left for a job the method is not asked; jobs that look alike to
    a method of ours are one question as long as nothing changes.
    """

    def __init__(self, state: SnapshotState, method: str | Allocator, options: Options) -> None:
        self.decisions = Decisions()
        self._state, self._options = state, options
        self._who = method if isinstance(method, Allocator) else method_of("placement", method)
        prisms = self._who.in_prisms if isinstance(method, Allocator) else self._who.uses_prisms
        self.room = TorusRoom(PlacementProblem(state, options.interference), prisms)
        self._model = ShapeModel(state.torus)
        self._known: dict[tuple[int, Communication], Place | None] = {}
        self._known_at = -1

    def may_start(self, job: LogJob) -> bool:
        """Tell whether a job fits; if not, no method finds a place."""
        return self.room.holds(job)

    def decide(self, job: LogJob) -> Decision | None:
        """Return what is decided for a job now, or None if no place is found."""
        if isinstance(self._who, Allocator):
            place = self._asked(self._who, job)
        else:
            if self.room.version != self._known_at:
                self._known, self._known_at = {}, self.room.version
            key = (job.nodes, communication_of(job))
            if key not in self._known:
                self._known[key] = self._found(self._who, job)
            place = self._known[key]
        return None if place is None else self._decision(job, *place)

    def snapshot(self, name: str, queue: Sequence[LogJob]) -> Snapshot:
        """Return the machine as it is, with these jobs waiting, as a document."""
        return self.room.document(name, queue)

    def _asked(self, allocator: Allocator, job: LogJob) -> Place | None:
        document = self.snapshot(f"job-{job.id}", [job])
        state = dataclasses.replace(self.room.state_for(job), snapshot=document)
        found = answered(state, allocator, self._options, self.decisions)
        if found is None:
            return None
        model = found.prism
        prism = None if model is None else Prism(tuple(model.origin), tuple(model.extents))
        return parse_node_set(found.nodes, self._state.torus.num_nodes), prism

    def _found(self, method: Method, job: LogJob) -> Place | None:
        state, rule = self.room.state_for(job), self._options.interference
        problem = PlacementProblem(state, rule)
        if method.uses_prisms:
            problem = _ProblemNow(state, rule, used_links=self.room.used_links)
        outcome = found_by(method, problem, self._options)
        started = outcome.solution or ()
        item = next(iter(started), None)
        proven = isinstance(item, Candidate) and worth(problem, started) == [
            None if bound is None else bound.value for bound in outcome.bounds
        ]
        self.decisions.count(
            found=item is not None, timed_out=outcome.time_limit_hit, proven=proven
        )
        if isinstance(item, Candidate):
            return problem.choose_nodes(item), item.prism
        return None if item is None else (item.nodes, None)

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
        for name, nodes in self.room.idle_inside().items():
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

    def _decision(self, job: LogJob, nodes: IntArray, prism: Prism | None) -> Decision:
        if not job.patterns:
            return Decision(nodes, Fraction(0), Fraction(0), job.seconds, prism)
        torus = self._state.torus
        box = prism or box_around(torus, np.unique(nodes // torus.nodes_per_router))
        cost = self._model.cost(box.extents)
        least = self._model.least_cost(job.nodes)
        return Decision(nodes, cost, least, run_seconds(job, cost, least), prism)


class ShapeModel:
    """Run times by bisection bandwidth per node (Fiedler 2014, "Bisection Bandwidth").

    A job's cost is the number of nodes of its prism that share a unit of the prism's bisection
    bandwidth. The reference is the cheapest prism of the empty machine with enough nodes, down
    and service ones included: the dedicated system of Enos 2014, section III.A. Nodes that form
    no prism are priced as the smallest prism around them, all of whose nodes, also those of
    others, send through the same bisection.
    """

    def __init__(self, torus: Torus) -> None:
        self._torus = torus

    def cost(self, extents: tuple[int, ...]) -> Fraction:
        """Return the cost of a prism: its nodes per unit of bisection bandwidth."""
        return 1 / bisection_per_node(self._torus, extents)

    def least_cost(self, num_nodes: int) -> Fraction:
        """Return the cost of the best prism with room for so many nodes."""
        volumes, costs = self._best
        least = -(-num_nodes // self._torus.nodes_per_router)
        return costs[int(np.searchsorted(volumes, least))]

    @cached_property
    def _best(self) -> tuple[IntArray, Sequence[Fraction]]:
        """Volumes of prisms, ascending, and the least cost from each on."""
        torus = self._torus
        # The bandwidth per node of a prism is the least over its dimensions (`shape_parts`), so
        # that a line's in each dimension, ranked exactly, stands for all prisms.
        lines = [
            [
                bisection_per_node(Torus((n,), (wraps,), (width,), torus.nodes_per_router), (e,))
                for e in range(1, n + 1)
            ]
            for n, wraps, width in zip(torus.shape, torus.wrap, torus.bandwidth, strict=True)
        ]
        values = sorted({value for line in lines for value in line})
        rank = {value: k for k, value in enumerate(values)}
        ranks = np.full(torus.shape, len(values), dtype=np.int64)
        volumes = np.ones(torus.shape, dtype=np.int64)
        for d, line in enumerate(lines):
            along = [1] * torus.num_dims
            along[d] = len(line)
            np.minimum(ranks, np.array([rank[value] for value in line]).reshape(along), out=ranks)
            volumes *= np.arange(1, len(line) + 1).reshape(along)
        order = np.argsort(volumes, axis=None)
        widest = np.maximum.accumulate(ranks.ravel()[order][::-1])[::-1]
        cost_of = [1 / value for value in values]
        return volumes.ravel()[order], [cost_of[k] for k in widest.tolist()]


def box_around(torus: Torus, routers: IntArray) -> Prism:
    """Return the smallest prism around routers; on a ring it spans all but the widest gap."""
    origin, extents = [], []
    for d, n in enumerate(torus.shape):
        at = np.unique(torus.coordinates[routers, d])
        if torus.wrap[d]:
            gaps = np.diff(at, append=at[0] + n)
            widest = int(gaps.argmax())
            extent = n - int(gaps[widest]) + 1
            start = int(at[(widest + 1) % len(at)])
        else:
            extent, start = int(at[-1] - at[0]) + 1, int(at[0])
        origin.append(0 if torus.wrap[d] and extent == n else start)
        extents.append(extent)
    return Prism(tuple(origin), tuple(extents))
