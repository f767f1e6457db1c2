"""Running jobs that may move, as requests together with those that have to start, or may.

`instance_of` turns what a user asks for into an instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.kernels import compile_wide
from topoplace.machine import Prism
from topoplace.options import Repack, names_of
from topoplace.placement.torus.problem import Candidate, Levels, PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.held import candidates_of
from topoplace.snapshot.schema import (
    MAX_COST,
    MAX_MOVES,
    DefragmentInstance,
    KeepShape,
    Order,
    RepackInstance,
    Room,
    Snapshot,
    TorusModel,
)
from topoplace.snapshot.state import QueuedState, RunningState, prepare
from topoplace.types import IntArray

LEVELS: Levels = (("started", "max"), ("moves", "min"), ("moved_nodes", "min"))
ROOM_LEVELS: Levels = (("placed", "max"), ("moves", "min"), ("room", "max"))
"""Levels where moves make room: all running jobs that may move have a place; starts count."""


@dataclass(frozen=True, order=True)
class Seat:
    """A running job or a request, by its number in `RepackProblem.requests`, on a prism.

    `stays` marks a running job that keeps its prism.
    """

    request_idx: int
    prism: Prism
    stays: bool = False


@dataclass(frozen=True)
class RepackProblem:
    """A snapshot whose running jobs may move (docs/proofs/placement.md, "Repacking").

    Attributes
    ----------
    movable
        The running jobs that may move.
    emptied
        The machine without them. They are the first of its queue, the requests that have to start
        the others.
    costs
        The cost of moving each of them, shape ``(num_movable,)``.
    """

    instance: RepackInstance | DefragmentInstance
    interference: Interference
    movable: tuple[RunningState, ...]
    emptied: PlacementProblem
    costs: IntArray
    kind: ClassVar[str] = "repack"

    @property
    def makes_room(self) -> bool:
        """Whether requests may start, and count by their value, or all have to start."""
        return isinstance(self.instance, DefragmentInstance)

    @property
    def levels(self) -> Levels:
        """Names and senses of the levels."""
        return ROOM_LEVELS if self.makes_room else LEVELS

    @property
    def requests(self) -> tuple[QueuedState, ...]:
        """The jobs that may move, then the requests that have to start."""
        return self.emptied.requests

    @property
    def num_movable(self) -> int:
        """How many jobs may move."""
        return len(self.movable)

    @cached_property
    def stays(self) -> list[Seat]:
        """The jobs that may move, where they are."""
        return [Seat(q, _prism(job), stays=True) for q, job in enumerate(self.movable)]

    def settled(self, seats: Iterable[Seat]) -> list[Seat]:
        """Return seats in which no job moves to its own place."""
        there = dict(enumerate(self.stays))
        return [
            there[s.request_idx]
            if s.request_idx in there and there[s.request_idx].prism == s.prism
            else s
            for s in seats
        ]

    def moved(self, seats: Iterable[Seat]) -> list[Seat]:
        """Return the seats of running jobs that move."""
        return [s for s in seats if s.request_idx < self.num_movable and not s.stays]

    def started(self, seats: Iterable[Seat]) -> list[Seat]:
        """Return the seats of requests that start."""
        return [s for s in seats if s.request_idx >= self.num_movable]

    def worth(self, seats: Sequence[Seat]) -> list[int]:
        """Return the figures of the levels, as they are reported."""
        moved = [s.request_idx for s in self.moved(seats)]
        cost = int(self.costs[moved].sum())
        if self.makes_room:
            room = sum(self.requests[s.request_idx].value for s in self.started(seats))
            return [self.num_movable, cost, room]
        nodes = sum(self.requests[q].nodes for q in moved)
        return [len(self.started(seats)), cost, nodes]

    def nodes_of(self, seat: Seat) -> IntArray:
        """Return the nodes of a seat: where a job stays, those it has."""
        if seat.stays:
            return self.movable[seat.request_idx].nodes
        return self.emptied.choose_nodes(Candidate(seat.request_idx, seat.prism))


def _prism(job: RunningState) -> Prism:
    assert job.prism is not None
    return job.prism


def repack_problem(
    instance: RepackInstance | DefragmentInstance,
    interference: Interference = Interference.STRICT,
) -> RepackProblem:
    """Check an instance and return the problem.

    That of the largest prism has a request of one node; see `of_size`.

    Raises
    ------
    InputError
        Naming the field at fault.
    """
    snapshot = instance.aim
    start = instance.wanted(request.id for request in candidates_of(snapshot))
    state = prepare(snapshot)
    if state.anchored:
        raise InputError("a machine on which any prism will do", field="machine.anchored")
    if state.sets:
        raise InputError("no eligible or excluded nodes where jobs move", field="queue")
    if snapshot.order is not Order.VALUE:
        raise InputError("value where jobs move", field="order", value=str(snapshot.order))
    queued = {request.id: request for request in candidates_of(snapshot)}
    running = {job.id for job in snapshot.running}
    require_names(start, queued, "start", "requests that wait and are not held, each once")
    require_names(instance.fixed, running, "fixed", "running jobs, each once")
    require_names([*instance.costs], running, "costs", "running jobs")
    compile_wide(state.torus.shape)
    whole = PlacementProblem(state, interference)
    movable = _may_move(whole, instance)
    names = {job.id for job in movable}
    update = {
        "running": [job for job in snapshot.running if job.id not in names],
        "queue": [queued[name] for name in start],
    }
    left = prepare(snapshot.model_copy(update=update))
    movers = [_as_request(whole, job, instance.keep_shape) for job in movable]
    emptied = PlacementProblem(replace(left, queue=(*movers, *left.queue)), interference)
    costs = [instance.costs.get(job.id, 1) for job in movable]
    return RepackProblem(
        instance, interference, tuple(movable), emptied, np.array(costs, dtype=np.int64)
    )


def of_size(problem: RepackProblem, nodes: int) -> RepackProblem:
    """Return the problem of starting a job of `nodes` nodes, from one of the largest prism."""
    asked = problem.instance
    assert isinstance(asked, DefragmentInstance)
    instance = RepackInstance(
        name=asked.name,
        snapshot=asked.wanting(nodes),
        start=[asked.room_id],
        fixed=asked.fixed,
        costs=asked.costs,
        keep_shape=asked.keep_shape,
    )
    return repack_problem(instance, problem.interference)


def require_names(names: Sequence[str], known: Iterable[str], where: str, expected: str) -> None:
    """Raise `InputError` for the first name that is unknown or repeated."""
    every = list(known)
    for idx, name in enumerate(names):
        if name not in every or name in names[:idx]:
            raise InputError(expected, field=f"{where}[{idx}]", value=name, known=every)


def _may_move(
    whole: PlacementProblem, instance: RepackInstance | DefragmentInstance
) -> list[RunningState]:
    """Return the jobs that may move: they have a prism, nodes of a class, and break no rule."""
    running, links = whole.state.running, whole.running_links
    users, strict = np.zeros((2, whole.torus.num_links), dtype=np.int64)
    for job, own in zip(running, links, strict=True):
        users[own] += 1
        strict[own] |= not whole.is_tolerant(job.communication)
    broken = (users > 1) & (strict > 0)
    return [
        job
        for job, own in zip(running, links, strict=True)
        if job.prism is not None
        and job.id not in instance.fixed
        and len(np.unique(whole.state.node_class[job.nodes])) == 1
        and not broken[own].any()
    ]


def _as_request(whole: PlacementProblem, job: RunningState, keep: KeepShape) -> QueuedState:
    """Return a running job as a request for the prisms that it may move to."""
    torus, nodes = whole.torus, len(job.nodes)
    own = _prism(job).extents
    shapes: tuple[Geometry, ...] = ()
    if keep is KeepShape.SAME:
        shapes = (Geometry(own),)
    elif keep is KeepShape.AS_GOOD:
        score = whole.shape_parts
        least = int(score[tuple(e - 1 for e in own)])
        good = np.argwhere(score >= least) + 1
        large = good.prod(axis=1) * torus.nodes_per_router >= nodes
        shapes = tuple(Geometry(tuple(extents)) for extents in good[large].tolist())
    class_idx = int(whole.state.node_class[job.nodes[0]])
    return QueuedState(job.id, nodes, nodes, class_idx, shapes, None, job.communication)


def instance_of(snapshot: Snapshot, asked: Repack) -> RepackInstance | DefragmentInstance:
    """Return an instance in which requests have to start, or moves of some cost free space.

    The space is for the queue by default, if there is one.
    """
    start, defragment, room = names_of(asked.start), asked.defragment, asked.room
    shared = _shared(snapshot, asked)
    if defragment is None:
        if not start:
            raise InputError("requests to start", field="start", found="none")
        for name, given in (("room", room), ("node_class", asked.node_class)):
            if given is not None:
                raise InputError("defragment beside it", field=name, value=given)
        return RepackInstance(start=[*start], **shared)
    if start:
        raise InputError("no requests beside defragment", field="start", value=",".join(start))
    if not 0 <= defragment <= MAX_MOVES:
        raise InputError(f"from 0 to {MAX_MOVES}", field="defragment", value=defragment)
    room = room or (Room.QUEUE if candidates_of(snapshot) else Room.PRISM)
    if room not in list(Room):
        raise unknown_name(room, Room, field="room")
    if room == Room.QUEUE and not candidates_of(snapshot):
        raise InputError("requests that wait, or room for a prism", field="room", value=room)
    node_class = asked.node_class
    if room == Room.QUEUE and node_class is not None:
        raise InputError("room for a prism", field="node_class", value=node_class)
    if node_class is not None:
        machine = snapshot.on(TorusModel, "a torus or mesh machine")
        known = [machine.default_class, *machine.classes]
        if node_class not in known:
            raise unknown_name(node_class, known, field="node_class")
    return DefragmentInstance(most=defragment, room=Room(room), node_class=node_class, **shared)


def _shared(snapshot: Snapshot, asked: Repack) -> dict[str, Any]:
    """Return the fields of all instances: the snapshot, and what running jobs may do."""
    if asked.keep_shape not in list(KeepShape):
        raise unknown_name(asked.keep_shape, KeepShape, field="keep_shape")
    for name, cost in (asked.costs or {}).items():
        if not 1 <= cost <= MAX_COST:
            raise InputError(f"from 1 to {MAX_COST}", field=f"costs.{name}", value=cost)
    return {
        "name": snapshot.name,
        "snapshot": snapshot,
        "fixed": [*names_of(asked.fixed)],
        "costs": dict(asked.costs or {}),
        "keep_shape": KeepShape(asked.keep_shape),
    }
