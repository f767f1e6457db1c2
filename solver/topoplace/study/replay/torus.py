"""A torus or mesh under a replay: its free part, the places of jobs, and their run times."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.kernels import compile_groups
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
from topoplace.snapshot.machines import prepare_any, resolve_machine
from topoplace.snapshot.schema import Communication, PatternUse, RunningJob, Snapshot
from topoplace.snapshot.state import QueuedState, RunningState, SnapshotState, prepare
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

    Its requests are never tolerant, so that all of them are closed to each.
    """

    used_links: BoolArray = dataclasses.field(default_factory=lambda: np.zeros(0, bool))

    def closed_links(self, communication: Communication) -> BoolArray:
        return self.used_links & self.uses_links(communication)


class TorusSite:
    """A torus, the routers and links that running jobs leave free, and the method that places jobs.

    A job fits if some prism with enough usable nodes of its class has no router of another job
    and, where it communicates under a rule, no link of one. For a method that ignores prisms, and
    for an allocator that does not declare that it needs them, it fits if enough such nodes are
    usable. A job with shapes fits, under a method that uses prisms, if one of its shapes does.

    A method of ours sees one job at a time: jobs of the same size, class, shapes and use of links
    are solved once until a job starts or ends. `decide_all` shows it several. `running` has the
    running jobs in addition to those of `state`; `known` keeps the answers until then.

    Parameters
    ----------
    classes
        The node classes of the jobs to come; None is the default one.

    Raises
    ------
    InputError
        For a class that the machine does not have.
    """

    has_prisms: ClassVar[bool] = True

    def __init__(
        self,
        state: SnapshotState,
        method: str | Allocator,
        options: Options | None = None,
        classes: Iterable[str | None] = (None,),
    ) -> None:
        self._state, self._torus = state, state.torus
        self._options = dataclasses.replace(options or Options(), explains=False)
        compile_groups(["placement.replay"])
        self._problem = PlacementProblem(state, self._options.interference)
        self._who = method if isinstance(method, Allocator) else method_of("placement", method)
        in_prisms = (
            self._who.in_prisms if isinstance(self._who, Allocator) else self._who.uses_prisms
        )
        self._footprints = footprints_of(state.torus) if in_prisms else None
        self._reach: Reach | None = None  # its memory serves every search
        self._model = ShapeModel(state.torus)
        self._classes = sorted({class_idx(state, name) for name in classes})
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
        return cls(
            setup.state, method, setup.options, {job.node_class for job in setup.jobs} or {None}
        )

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

    def _free_of(self, class_idx: int) -> BoolArray:
        free: BoolArray = self._usable & (self._state.node_class == class_idx)
        return free

    def _num_free(self, class_idx: int) -> int:
        """Return how many nodes of a class are usable."""
        key = "free", class_idx
        if key not in self.known:
            self.known[key] = int(np.count_nonzero(self._free_of(class_idx)))
        return int(self.known[key])

    @property
    def num_free(self) -> int:
        """Usable nodes of the classes that jobs ask for."""
        return sum(map(self._num_free, self._classes))

    @property
    def largest(self) -> int:
        """Nodes of the largest communicating job of each class that would fit, in all."""
        return sum(self._most(True, c) for c in self._classes)

    def has_nodes_for(self, *jobs: LogJob) -> bool:
        """Return whether there are enough free nodes for some jobs, wherever they are."""
        wanted: dict[int, int] = {}
        for job in jobs:
            wanted[self._class_of(job)] = wanted.get(self._class_of(job), 0) + job.nodes
        return all(nodes <= self._num_free(c) for c, nodes in wanted.items())

    def holds(self, job: LogJob) -> bool:
        """Return whether a job would fit; if not, no method finds a place."""
        talks, own = bool(job.patterns), self._class_of(job)
        if self._footprints is not None and self._state.anchored:
            return job.nodes in self._anchored(talks, own)
        if self._footprints is not None and job.shapes is not None:
            return self.has_nodes_for(job) and self._has_shape(job)
        return self.has_nodes_for(job) and job.nodes <= self._most(talks, own)

    may_start = holds

    def _class_of(self, job: LogJob) -> int:
        return class_idx(self._state, job.node_class)

    def _most(self, communicates: bool, class_idx: int) -> int:
        """Return how many nodes of a class the best free prism has, if jobs need prisms."""
        footprints, per = self._footprints, self._torus.nodes_per_router
        if footprints is None:
            return self._num_free(class_idx)
        if self._state.anchored:
            return max(self._anchored(communicates, class_idx), default=0)
        if (communicates, class_idx) not in self.known:
            closed = (self._users > 0) & communicates
            self._reach = footprints.reach(self._occupied, closed, over=self._reach)
            there = self._free_of(class_idx).reshape(-1, per).sum(axis=1)
            most = self._reach.deepest * footprints.area * per
            order = np.argsort(-most, kind="stable")
            self.known[communicates, class_idx] = most_usable(
                order, most, per, footprints.area, self._reach.row, self._reach.depths,
                footprints.sums(there), footprints.bases, footprints.box, footprints.signs,
            )  # fmt: skip
        return int(self.known[communicates, class_idx])

    def _has_shape(self, job: LogJob) -> bool:
        """Return whether one of a job's shapes is free: first fit of one job finds it if so."""
        key = "shaped", _alike(job)
        if key not in self.known:
            self.known[key] = bool(first_fit(self._problem_for([job])))
        return bool(self.known[key])

    def _anchored(self, communicates: bool, class_idx: int) -> set[int]:
        """Return the sizes, in nodes, of the free anchored prisms of a class."""
        key = "anchored", communicates, class_idx
        if key not in self.known:
            every, torus = prisms_of(self._problem), self._torus
            free = self._free_of(class_idx).reshape(torus.num_routers, -1)
            gone = np.asarray(~free.all(axis=1))
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
        alike = _alike(job)
        place: Place | None
        if isinstance(self._who, Allocator):
            place = self._asked(self._who, job)
        elif alike in self.known:
            place = self.known[alike]
        else:
            place = self.known[alike] = self._found(self._who, [job]).get(0)
        return None if place is None else self._decision(job, *place)

    def decide_all(self, jobs: Sequence[LogJob], *, first: bool) -> list[tuple[LogJob, Decision]]:
        """Return which of several jobs start now and where, in their order.

        If `first`, the first one counts more than all the others.
        """
        assert not isinstance(self._who, Allocator)
        found = self._found(self._who, jobs, first=first)
        return [(jobs[k], self._decision(jobs[k], *found[k])) for k in sorted(found)]

    def _asked(self, allocator: Allocator, job: LogJob) -> Place | None:
        document = self.snapshot(f"job-{job.id}", [job])
        state = dataclasses.replace(self._state_for([job]), snapshot=document)
        found = self.decisions.ask(state, allocator, self._options)
        if found is None:
            return None
        model = found.prism
        prism = None if model is None else Prism(tuple(model.origin), tuple(model.extents))
        return parse_node_set(found.nodes, self._torus.num_nodes), prism

    def _found(
        self, method: Method, jobs: Sequence[LogJob], *, first: bool = False
    ) -> dict[int, Place]:
        """Return the places that a method finds for jobs, by their position."""
        if method.uses_prisms:
            problem = self._problem_for(jobs, first=first)
        else:
            state = self._state_for(jobs, first=first)
            problem = PlacementProblem(state, self._options.interference)
        outcome = found_by(method, problem, self._options)
        started = outcome.solution or ()
        proven = all(isinstance(item, Candidate) for item in started) and bool(started)
        proven = proven and worth(problem, started) == [
            None if bound is None else bound.value for bound in outcome.bounds
        ]
        self.decisions.count(found=bool(started), timed_out=outcome.time_limit_hit, proven=proven)
        return {
            item.request_idx: (problem.choose_nodes(item), item.prism)
            if isinstance(item, Candidate)
            else (item.nodes, None)
            for item in started
        }

    def _problem_for(self, jobs: Sequence[LogJob], *, first: bool = False) -> PlacementProblem:
        """Return the problem of some jobs on the free machine."""
        rule = self._options.interference
        return _ProblemNow(self._state_for(jobs, first=first), rule, used_links=self._users > 0)

    def _state_for(self, jobs: Sequence[LogJob], *, first: bool = False) -> SnapshotState:
        """Return the machine as it is, with some jobs waiting; its document stays as it was."""
        queue = [self._queued(job) for job in jobs]
        if first:
            queue[0] = dataclasses.replace(queue[0], value=1 + sum(q.value for q in queue[1:]))
        return dataclasses.replace(
            self._state,
            usable=self._usable,
            occupied=self._occupied,
            running=(*self._state.running, *self.running.values()),
            queue=tuple(queue),
        )

    def _queued(self, job: LogJob) -> QueuedState:
        value, shapes = job.priority * job.nodes, self._geometries(job)
        own = self._class_of(job)
        return QueuedState(job.id, job.nodes, value, own, shapes, None, job.communication)

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
        idle = self._state.usable & (self._state.node_class == self._class_of(job))
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


def _alike(job: LogJob) -> tuple[object, ...]:
    """Return what jobs have in common for which a method finds the same place."""
    return job.nodes, job.node_class, job.shapes, job.communication


def class_idx(state: SnapshotState, name: str | None) -> int:
    """Return the number of a node class; None is the default one."""
    if name is None:
        return 0
    if name not in state.classes:
        raise unknown_name(name, state.classes, field="class")
    return state.classes.index(name)


_MAX_NAME = 128
"""Letters of a job's name."""

Leaving = list[tuple[RunningState, int]]
"""Jobs that run at the start and end, each with the seconds until then."""


def begun_at(snapshot: Snapshot) -> tuple[SnapshotState, Leaving]:
    """Return a torus with the running jobs of a snapshot that stay, and those that end.

    They are called ``running-ID``, since jobs of the log may have their names.
    """
    named = [
        one.model_copy(update={"id": f"running-{one.id}"[:_MAX_NAME]}) for one in snapshot.running
    ]
    snapshot = snapshot.model_copy(update={"running": named})
    full = prepare_any(resolve_machine(snapshot))
    if not isinstance(full, SnapshotState):
        expected = "a machine, or a snapshot of a torus or mesh"
        raise InputError(expected, field="--on", value=snapshot.name)
    pairs = list(zip(full.snapshot.running, full.running, strict=True))
    stays = [one for one, _ in pairs if one.ends is None]
    bare = full.snapshot.model_copy(update={"running": stays, "queue": [], "left_out": []})
    state = prepare(bare)
    return state, [(there, one.ends) for one, there in pairs if one.ends is not None]


def leaving_job(
    state: Any,
    job: RunningState,
    ends: int,
    patterns: tuple[PatternUse, ...],
    jobs: Sequence[LogJob],
) -> tuple[LogJob, Decision]:
    """Return a running job for `Setup.running`; nodes count if `jobs` want some of their class."""
    classes = [class_idx(state, name) for name in {one.node_class for one in jobs}]
    own = int(np.count_nonzero(np.isin(state.node_class[job.nodes], classes)))
    talks = patterns if job.communication is not Communication.NONE else ()
    known = LogJob(job.id, own, 0, ends, ends, talks)
    return known, Decision(job.nodes, Fraction(0), Fraction(0), ends, job.prism)


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
