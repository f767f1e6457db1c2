"""A torus or mesh under a replay: its free part, the places of jobs, and their run times."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from topoplace.kernels import compile_groups, compile_wide
from topoplace.machine import (
    Prism,
    Torus,
    bisection_per_node,
    format_node_set,
    parse_node_set,
    prism_links,
)
from topoplace.placement.torus.anchored import prisms_of
from topoplace.placement.torus.footprints import Reach, footprints_of
from topoplace.placement.torus.heuristics.fits import first_fit
from topoplace.placement.torus.outcome import prism_model, worth
from topoplace.placement.torus.problem import Candidate, PlacementProblem, job_links
from topoplace.snapshot.geometry import Geometry, parse_geometry
from topoplace.snapshot.schema import Communication, RunningJob, Snapshot
from topoplace.snapshot.state import QueuedState, RunningState, SnapshotState
from topoplace.solving import Method, Options, found_by, method_of
from topoplace.study.external.allocator import Allocator
from topoplace.study.replay._largest import most_usable
from topoplace.study.replay.log import Decision, Decisions, LogJob, Setup
from topoplace.types import BoolArray, IntArray

Place = tuple[IntArray, Prism | None]
"""The nodes of a job, and its prism unless they are scattered."""


@dataclass(frozen=True)
class _ProblemNow(PlacementProblem):
    """A problem with given links in use, as finding them again would take most of a decision.

    Its one request is never tolerant, so that all of them are closed to it.
    """

    used_links: BoolArray = dataclasses.field(default_factory=lambda: np.zeros(0, bool))

    def closed_links(self, communication: Communication) -> BoolArray:
        return self.used_links & self.uses_links(communication)


class TorusSite:
    """A torus, the routers and links that running jobs leave free, and the method that places jobs.

    A job fits if some prism with enough usable nodes of the default class has no router of
    another job and, where it communicates under a rule, no link of one. For a method that ignores
    prisms, and for an allocator that does not declare that it needs them, it fits if enough such
    nodes are usable. A job with shapes fits, under a method that uses prisms, if one of its shapes
    does.

    A method of ours sees one job at a time: jobs of the same size, shapes and use of links are
    solved once until a job starts or ends. `running` has the running jobs in addition to those of
    `state`; `known` keeps the answers until then.
    """

    has_prisms: ClassVar[bool] = True

    def __init__(
        self, state: SnapshotState, method: str | Allocator, options: Options | None = None
    ) -> None:
        self._state, self._torus, self._options = state, state.torus, options or Options()
        compile_groups(["placement.replay"])
        compile_wide(state.torus.shape)
        self._problem = PlacementProblem(state, self._options.interference)
        self._who = method if isinstance(method, Allocator) else method_of("placement", method)
        in_prisms = (
            self._who.in_prisms if isinstance(self._who, Allocator) else self._who.uses_prisms
        )
        self._footprints = footprints_of(state.torus) if in_prisms else None
        self._reach: Reach | None = None  # its memory serves every search
        self._model = ShapeModel(state.torus)
        self.decisions = Decisions()
        self.running: dict[str, RunningState] = {}
        self._links: dict[str, IntArray] = {}
        # How many jobs hold each router or use each link: jobs filled into another's prism hold
        # routers with it, and scattered jobs may share links.
        self._holders = state.occupied.astype(np.int64)
        self._users = np.zeros(state.torus.num_links, dtype=np.int64)
        for job in state.running:
            self._users[self._links_of(job)] += 1
        self.known: dict[object, Any] = {}

    @classmethod
    def of(cls, setup: Setup, method: str | Allocator) -> TorusSite:
        """Return the machine of a replay."""
        return cls(setup.state, method, setup.options)

    def copy(self) -> Self:
        """Return a copy in which other jobs may run."""
        other = copy.copy(self)
        for name in ("running", "_links", "_holders", "_users", "known"):
            setattr(other, name, getattr(self, name).copy())
        return other

    # ---- What is free ----------------------------------------------------------------------------

    @property
    def _occupied(self) -> BoolArray:
        """Routers held by jobs, shape ``(num_routers,)``."""
        return self._holders > 0

    @property
    def _usable(self) -> BoolArray:
        """Nodes a job may take, shape ``(num_nodes,)``."""
        return self._state.usable & ~np.repeat(self._occupied, self._torus.nodes_per_router)

    @property
    def _free(self) -> BoolArray:
        free: BoolArray = self._usable & (self._state.node_class == 0)
        return free

    @property
    def num_free(self) -> int:
        """Usable nodes of the default class."""
        if "free" not in self.known:
            self.known["free"] = int(np.count_nonzero(self._free))
        return int(self.known["free"])

    @property
    def largest(self) -> int:
        """Nodes of the largest communicating job that would fit."""
        return self._most(True)

    def holds(self, job: LogJob) -> bool:
        """Return whether a job would fit; if not, no method finds a place."""
        if self._footprints is not None and self._state.anchored:
            return job.nodes in self._anchored(bool(job.patterns))
        if self._footprints is not None and job.shapes is not None:
            return job.nodes <= self.num_free and self._has_shape(job)
        return job.nodes <= self.num_free and job.nodes <= self._most(bool(job.patterns))

    may_start = holds

    def _most(self, communicates: bool) -> int:
        """Return how many nodes of the default class the best free prism has, if it needs one."""
        footprints, per = self._footprints, self._torus.nodes_per_router
        if footprints is None:
            return self.num_free
        if self._state.anchored:
            return max(self._anchored(communicates), default=0)
        if communicates not in self.known:
            closed = (self._users > 0) & communicates
            self._reach = footprints.reach(self._occupied, closed, over=self._reach)
            there = self._free.reshape(-1, per).sum(axis=1)
            most = self._reach.deepest * footprints.area * per
            order = np.argsort(-most, kind="stable")
            self.known[communicates] = most_usable(
                order, most, per, footprints.area, self._reach.row, self._reach.depths,
                footprints.sums(there), footprints.bases, footprints.box, footprints.signs,
            )  # fmt: skip
        return int(self.known[communicates])

    def _has_shape(self, job: LogJob) -> bool:
        """Return whether one of a job's shapes is free: first fit of one job finds it if so."""
        key = "shaped", job.nodes, job.shapes, job.communication
        if key not in self.known:
            self.known[key] = bool(first_fit(self._problem_for(job)))
        return bool(self.known[key])

    def _anchored(self, communicates: bool) -> set[int]:
        """Return the sizes, in nodes, of the free anchored prisms."""
        key = "anchored", communicates
        if key not in self.known:
            every, torus = prisms_of(self._problem), self._torus
            gone = np.asarray(~self._free.reshape(torus.num_routers, -1).all(axis=1))
            left = np.flatnonzero(~every.meeting(gone)).tolist()
            if communicates:
                used = self._users > 0
                left = [k for k in left if not used[prism_links(torus, every.prisms[k])].any()]
            self.known[key] = {int(every.nodes[k]) for k in left}
        found: set[int] = self.known[key]
        return found

    def start(self, job: LogJob, decision: Decision) -> None:
        """Let a job hold the nodes that were decided."""
        nodes, prism = decision.nodes, decision.prism
        if prism is None:
            routers = np.unique(nodes // self._torus.nodes_per_router)
        else:
            routers = np.sort(prism.routers(self._torus))
        running = RunningState(job.id, nodes, routers, prism, job.communication)
        self.running[job.id] = running
        self._links[job.id] = self._links_of(running)
        self._hold(running, 1)

    def end(self, job: LogJob, decision: Decision) -> None:
        """Free what `start` gave."""
        del decision
        self._hold(self.running.pop(job.id), -1)
        del self._links[job.id]

    def _hold(self, job: RunningState, change: int) -> None:
        self._holders[job.routers] += change
        self._users[self._links[job.id]] += change
        self.known = {}

    def _links_of(self, job: RunningState) -> IntArray:
        if self._footprints is None or not self._problem.uses_links(job.communication):
            return np.zeros(0, dtype=np.int64)
        return job_links(self._torus, job)

    # ---- Where jobs go ---------------------------------------------------------------------------

    def decide(self, job: LogJob) -> Decision | None:
        """Return the decision for a job now, or None if no place is found."""
        alike = job.nodes, job.shapes, job.communication
        place: Place | None
        if isinstance(self._who, Allocator):
            place = self._asked(self._who, job)
        elif alike in self.known:
            place = self.known[alike]
        else:
            place = self.known[alike] = self._found(self._who, job)
        return None if place is None else self._decision(job, *place)

    def _asked(self, allocator: Allocator, job: LogJob) -> Place | None:
        document = self.snapshot(f"job-{job.id}", [job])
        state = dataclasses.replace(self._state_for(job), snapshot=document)
        found = self.decisions.ask(state, allocator, self._options)
        if found is None:
            return None
        model = found.prism
        prism = None if model is None else Prism(tuple(model.origin), tuple(model.extents))
        return parse_node_set(found.nodes, self._torus.num_nodes), prism

    def _found(self, method: Method, job: LogJob) -> Place | None:
        if method.uses_prisms:
            problem = self._problem_for(job)
        else:
            problem = PlacementProblem(self._state_for(job), self._options.interference)
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

    def _problem_for(self, job: LogJob) -> PlacementProblem:
        """Return the problem of one job on the free machine."""
        rule = self._options.interference
        return _ProblemNow(self._state_for(job), rule, used_links=self._users > 0)

    def _state_for(self, job: LogJob) -> SnapshotState:
        """Return the machine as it is, with a queue of one job; its document stays as it was."""
        shapes = self._geometries(job)
        request = QueuedState(job.id, job.nodes, job.nodes, 0, shapes, None, job.communication)
        return dataclasses.replace(
            self._state,
            usable=self._usable,
            occupied=self._occupied,
            running=(*self._state.running, *self.running.values()),
            queue=(request,),
        )

    def _geometries(self, job: LogJob) -> tuple[Geometry, ...]:
        if job.shapes is None:
            return ()
        return parse_geometry(job.shapes, self._torus, job.nodes, f"job {job.id}")

    def interior(self, job: LogJob, seconds_left: dict[str, int]) -> Decision | None:
        """Return idle nodes inside running jobs' prisms for a job, or None.

        They are all in one prism, whose job may run at least as long as this one by their
        walltimes; and this one sends nothing over a link, as it only computes or has one router
        (Enos 2014, section III.A), and does not ask for shapes. If there are several prisms, it
        gets the one with the fewest idle nodes.
        """
        per = self._torus.nodes_per_router
        if (job.patterns and job.nodes > per) or job.shapes is not None:
            return None
        best: IntArray | None = None
        idle = self._state.usable & (self._state.node_class == 0)
        for other in self.running.values():
            idle[other.nodes] = False
        for other in self.running.values():
            if other.prism is None or seconds_left[other.id] < job.walltime:
                continue
            there = self._torus.nodes_of(other.routers)
            there = there[idle[there]]
            if job.patterns:  # the first router with enough idle nodes
                routers, count = np.unique(there // per, return_counts=True)
                there = there[np.isin(there // per, routers[count >= job.nodes][:1])]
            if len(there) >= job.nodes and (best is None or len(there) < len(best)):
                best = there
        return None if best is None else self._decision(job, best[: job.nodes], None)

    def _decision(self, job: LogJob, nodes: IntArray, prism: Prism | None) -> Decision:
        if not job.patterns:
            return Decision(nodes, Fraction(0), Fraction(0), job.seconds, prism)
        box = prism or box_around(self._torus, np.unique(nodes // self._torus.nodes_per_router))
        cost = self._model.cost(box.extents)
        own = [self._model.cost(shape.extents) for shape in self._geometries(job)]
        least = min(own) if own else self._model.least_cost(job.nodes)
        return Decision(nodes, cost, least, job.seconds_at(cost, least), prism)

    def snapshot(self, name: str, queue: Sequence[LogJob]) -> Snapshot:
        """Return the machine as it is as a document, with these jobs in its queue.

        The format cannot express a job inside another's prism, so its nodes are marked down as long
        as the other runs: they are as closed to the queue as the prism itself.
        """
        base, torus = self._state.snapshot, self._torus
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
                "queue": [job.waiting(with_patterns=False) for job in queue],
            }
        )


class ShapeModel:
    """Run times by bisection bandwidth per node (Fiedler 2014, "Bisection Bandwidth").

    A job's cost is the number of nodes of its prism that share a unit of the prism's bisection
    bandwidth. The reference is the cheapest prism of the empty machine with enough nodes, down
    and service ones included: the dedicated system of Enos 2014, section III.A. Nodes that form no
    prism have the cost of the smallest prism around them, where all nodes, also those of other
    jobs, send through the same bisection.
    """

    def __init__(self, torus: Torus) -> None:
        self._torus = torus

    def cost(self, extents: tuple[int, ...]) -> Fraction:
        """Return the cost of a prism: its nodes per unit of bisection bandwidth."""
        return 1 / bisection_per_node(self._torus, extents)

    def least_cost(self, num_nodes: int) -> Fraction:
        """Return the cost of the best prism with at least a number of nodes."""
        per = self._torus.nodes_per_router
        return next(1 / width for width, volume in self._largest if volume * per >= num_nodes)

    @cached_property
    def _largest(self) -> list[tuple[Fraction, int]]:
        """Bandwidths per node, descending, each with the volume of the largest prism that has it.

        That of a prism is the least over its dimensions (`shape_parts`), each treated as a line.
        """
        torus = self._torus
        lines = [
            [
                bisection_per_node(Torus((n,), (wraps,), (width,), torus.nodes_per_router), (e,))
                for e in range(1, n + 1)
            ]
            for n, wraps, width in zip(torus.shape, torus.wrap, torus.bandwidth, strict=True)
        ]
        found = []
        for value in sorted({value for line in lines for value in line}, reverse=True):
            wide = [[e for e, width in enumerate(line, 1) if width >= value] for line in lines]
            found.append((value, math.prod(max(extents, default=0) for extents in wide)))
        return found


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
