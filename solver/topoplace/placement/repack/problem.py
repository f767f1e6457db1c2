"""Running jobs that may move or end, together with the requests that have to start, or may.

`instance_of` turns what a user asks for into an instance. A `Site` is what a kind of machine says.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.kinds import kind_named
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.options import Repack, names_of
from topoplace.packing.budget import Budget
from topoplace.packing.problem import PackingProblem, Program, Subproblem
from topoplace.placement.repack.spares import with_spares
from topoplace.result import Interference
from topoplace.snapshot import schema
from topoplace.snapshot.held import OF_ITS_NODES, candidates_of
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.machines import prepare_any
from topoplace.snapshot.running import job_name, restricted
from topoplace.snapshot.schema import (
    MAX_COST,
    MAX_MOVES,
    RESERVATION_PREFIX,
    SPARE_PREFIX,
    CubesModel,
    DefragmentInstance,
    HierarchyModel,
    KeepShape,
    Order,
    RepackInstance,
    Request,
    Room,
    Snapshot,
    TorusModel,
    TreeModel,
)
from topoplace.types import BoolArray, IntArray, Levels

ROOM_LEVELS: Levels = (("placed", "max"), ("moves", "min"), ("room", "max"))
"""Levels where moves make room: all running jobs that may move have a place; starts count."""

STAYS, GOES, ENDS = range(3)


@dataclass(frozen=True, order=True)
class Seat:
    """A running job or a request, by its number in `Site.names`, in a place.

    `way` says whether a running job stays in its place, goes to another or ends; who starts goes.
    """

    request_idx: int
    way: int
    place: Any = ()


Offer = tuple[int, Any]
"""A place, and what a job pays there."""

Wishes = Sequence[tuple[int, bool]]
"""Rows, and whether a candidate has to take them or must not: of the packing, then the pairs."""


class Relaxed(Protocol):
    """A linear program of all movers and requests, without columns."""

    def solved(
        self, sub: Subproblem, costs: IntArray, values: IntArray, deadline: float
    ) -> Program | None:
        """Return prices for a subproblem, of rows of the machine, of pairs and of budgets.

        Parameters
        ----------
        costs, values
            What jobs cost by way, job and level after the first, and their values on the first.
        """


class Site(ABC):
    """The running jobs of a machine that may move, and the requests that have to start.

    Attributes
    ----------
    names, nodes
        Ids and nodes, of running jobs (the *movers*) first.
    own
        Where the movers are.
    values
        What starting each request counts where moves make room.
    packing
        Movers and requests as a queue on the machine without the movers. Of it the rows count, and
        which rows its candidates take.
    num_pairs
        Rows that some place of a request takes together with movers that cannot stay then.
    """

    names: Sequence[str]
    nodes: Sequence[int]
    own: Sequence[Any]
    values: Sequence[int]
    packing: PackingProblem
    num_pairs: int

    @abstractmethod
    def candidate(self, q: int, place: Any) -> Any:
        """Return a place as a candidate of the packing."""

    @abstractmethod
    def pairs(self, q: int, place: Any, *, stays: bool = False) -> IntArray:
        """Return the pairs that a request takes in a place, or a mover that stays."""

    @abstractmethod
    def priced(self, rows: IntArray, pairs: IntArray) -> Callable[[int, int, Wishes], list[Offer]]:
        """Return what finds the cheapest places at prices of rows and pairs.

        It is called with the number of a job, with how many places to return at most, the cheapest
        first, and what these have to take.
        """

    def openings(self, q: int, rows: IntArray, pairs: IntArray, most: int) -> list[Any]:
        """Return places of a request, cheaper than `most`, that leave no room for other movers."""
        return [place for cost, place in self.priced(rows, pairs)(q, 1, ()) if cost < most]

    @abstractmethod
    def refuge(self, q: int, left: IntArray, avoided: IntArray) -> Any:
        """Return a place for a job in what is left of the rows, None if there is none.

        It takes as little as possible of the rows to be avoided, at their prices.
        """

    def key(self, q: int) -> Hashable:
        """Return what the cheapest places of a job depend on besides prices."""
        return q

    @abstractmethod
    def work(self) -> float:
        """Return what finding the cheapest places of all takes, in nominal seconds."""

    def begun(self, snapshot: Snapshot, budget: Budget, seed: int) -> list[Seat]:
        """Return requests that start, if possible most of their value, while no job moves."""
        return []

    def plans(
        self, problem: RepackProblem, costs: IntArray, deadline: float
    ) -> Iterator[list[Seat]]:
        """Yield plans to begin with, better ones later; by default there are none.

        Costs are by way, job and level after the first.
        """
        return iter(())

    def program(self, problem: RepackProblem) -> Relaxed | None:
        """Return a linear program whose prices are good, None if there is none."""
        return None

    @abstractmethod
    def placement(self, q: int, place: Any) -> Any:
        """Return a place as documents have it."""

    def exact(self, seats: Sequence[Seat]) -> list[Any]:
        """Return exact places of jobs together: those that stay have theirs, and come first."""
        return [seat.place for seat in seats]

    @abstractmethod
    def taken(self, q: int, place: Any) -> Mapping[Hashable, int]:
        """Return what a job takes in an exact place, by what it is of."""

    @abstractmethod
    def left(self, of: Hashable) -> int:
        """Return how much of something there is beside the jobs that are no movers."""


@dataclass(frozen=True)
class RepackProblem:
    """A snapshot whose running jobs may move or end (docs/proofs/placement.md, "Repacking").

    Attributes
    ----------
    costs, ends
        What it costs to move or to end each mover; 0 if it may not. Shape ``(num_movers,)``.
    budgets
        Movers, and how many of them may move or end.
    """

    instance: RepackInstance | DefragmentInstance
    interference: Interference
    site: Site
    costs: IntArray
    ends: IntArray
    budgets: tuple[tuple[frozenset[int], int], ...]
    kind: ClassVar[str] = "repack"

    @property
    def makes_room(self) -> bool:
        """Whether requests may start, and count by their value, or all have to start."""
        return isinstance(self.instance, DefragmentInstance)

    @property
    def levels(self) -> Levels:
        """Names and senses of the levels."""
        if self.makes_room:
            return ROOM_LEVELS
        lost = [(name, "min") for name in self.losses]
        return (("started", "max"), *lost, ("moves", "min"), ("moved_nodes", "min"))

    @property
    def num_movers(self) -> int:
        """How many running jobs may move or end."""
        return len(self.site.own)

    @cached_property
    def _is_spare(self) -> BoolArray:
        """Which movers hold spares, shape ``(num_movers,)``."""
        names = self.site.names[: self.num_movers]
        return np.array([name.startswith(SPARE_PREFIX) for name in names], dtype=bool)

    @cached_property
    def losses(self) -> dict[str, IntArray]:
        """What it costs to end each mover, by level: of spares first, then of jobs."""
        ends, spares = self.instance.ends, getattr(self.instance, "spares", [])
        found = {"spares": self.ends * self._is_spare} if spares else {}
        return found | ({"ended": self.ends * ~self._is_spare} if len(ends) > len(spares) else {})

    @cached_property
    def nodes(self) -> IntArray:
        """The nodes of each mover that count if it moves or ends: those of jobs."""
        return np.array(self.site.nodes[: self.num_movers], dtype=np.int64) * ~self._is_spare

    @cached_property
    def stays(self) -> list[Seat]:
        """The movers where they are."""
        return [Seat(q, STAYS, place) for q, place in enumerate(self.site.own)]

    def settled(self, seats: Iterable[Seat]) -> list[Seat]:
        """Return seats in which no job moves to its own place."""
        found = []
        for seat in seats:
            own = self.stays[seat.request_idx] if seat.request_idx < self.num_movers else None
            stays = own and seat.way == GOES and seat.place == own.place
            found.append(own if own and stays else seat)
        return found

    def exact(self, seats: Iterable[Seat]) -> list[Seat]:
        """Return seats in exact places, in which no job moves to its own place."""
        every = sorted(self.settled(seats))
        # who stays keeps what it has, so it comes first
        placed = sorted((s for s in every if s.way != ENDS), key=lambda s: s.way)
        places = self.site.exact(placed)
        own = {s: replace(s, place=p) for s, p in zip(placed, places, strict=True)}
        return self.settled(own.get(seat, seat) for seat in every)

    def changed(self, seats: Iterable[Seat], way: int) -> list[Seat]:
        """Return the movers that go, or end."""
        return [s for s in seats if s.request_idx < self.num_movers and s.way == way]

    def started(self, seats: Iterable[Seat]) -> list[Seat]:
        """Return the requests that start."""
        return [s for s in seats if s.request_idx >= self.num_movers]

    def worth(self, seats: Iterable[Seat]) -> list[int]:
        """Return the figures of the levels, as they are reported."""
        every = [*seats]
        moved, ended = ([s.request_idx for s in self.changed(every, w)] for w in (GOES, ENDS))
        cost = int(self.costs[moved].sum())
        if self.makes_room:
            values = [
                self.site.values[s.request_idx - self.num_movers] for s in self.started(every)
            ]
            return [self.num_movers, cost, sum(values)]
        lost = [int(own[ended].sum()) for own in self.losses.values()]
        return [len(self.started(every)), *lost, cost, int(self.nodes[[*moved, *ended]].sum())]


def may_change(instance: RepackInstance | DefragmentInstance) -> Callable[[str], bool]:
    """Return what says whether an instance lets a running job of a name move or end."""
    held = {name for budget in instance.budgets if not budget.most for name in budget.jobs}
    held |= {*instance.fixed, *getattr(instance, "replace", ())}
    moves = _may_move(instance)
    return lambda name: name not in held and (name in instance.ends or moves(name))


def _may_move(instance: RepackInstance | DefragmentInstance) -> Callable[[str], bool]:
    """Return what says whether a job may move: not where a rule is not modelled, and no spare."""
    stays = restricted(instance.snapshot)
    return lambda name: instance.moving and name not in stays and not name.startswith(SPARE_PREFIX)


def repack_problem(
    instance: RepackInstance | DefragmentInstance, interference: Interference = Interference.STRICT
) -> RepackProblem:
    """Return the problem of an instance.

    Raises
    ------
    InputError
        If jobs do not move on its machine, or the instance names somebody twice, or nobody.
    """
    snapshot = _aim(instance)
    kind = "hierarchy" if snapshot.written.has_contention else prepare_any(snapshot).kind
    make = kind_named(kind).offered("moves", "a machine", field="--on")
    if snapshot.order is not Order.VALUE:
        raise InputError("value where jobs move", field="order", value=str(snapshot.order))
    if snapshot.free is not None:
        raise InputError("none where jobs move, but room", field="free", value=snapshot.free)
    queued = {request.id: request for request in candidates_of(snapshot)}
    running = dict.fromkeys(map(job_name, snapshot.running))
    start = instance.wanted(queued)
    require_names(start, queued, "start", "requests that wait and are not held, each once")
    named = {"fixed": instance.fixed, "costs": [*instance.costs], "ends": [*instance.ends]}
    named["replace"] = getattr(instance, "replace", [])
    named |= {f"budgets[{k}].jobs": own.jobs for k, own in enumerate(instance.budgets)}
    jobs = [name for name in running if not name.startswith(SPARE_PREFIX)]
    for where, names in named.items():
        known = jobs if where == "replace" else running
        require_names(names, known, where, "running jobs, each once")
    site: Site = make(snapshot, [queued[name] for name in start], instance, interference)
    movers = {name: q for q, name in enumerate(site.names[: len(site.own)])}
    moves = _may_move(instance)
    costs = [instance.costs.get(name, 1) * moves(name) for name in movers]
    ends = [instance.ends.get(name, 0) for name in movers]
    budgets = tuple(
        (frozenset(movers[name] for name in own.jobs if name in movers), own.most)
        for own in instance.budgets
    )
    return RepackProblem(
        instance,
        interference,
        site,
        np.array(costs, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        budgets,
    )


def _aim(instance: RepackInstance | DefragmentInstance) -> Snapshot:
    """Return the snapshot of whose queue moves start requests.

    For free domains, there is a request for each that has no host down: one unit with a domain to
    itself.
    """
    if not isinstance(instance, DefragmentInstance) or instance.room is not Room.DOMAINS:
        return instance.aim
    snapshot = instance.snapshot
    if instance.level is None:
        pod = snapshot.on(CubesModel, "a pod of cubes")
        return instance.sparing(pod.cubes, nodes=math.prod(pod.side))
    machine, lists = hierarchy_of(snapshot.written), NodeLists()
    level = machine.levels.index(instance.level)
    down = [machine.numbers[name] for name in lists.hosts(snapshot.down, "down")]
    whole = machine.without(level, down)
    spoilt = ~whole[machine.domain_of[level]]
    everywhere = np.flatnonzero((machine.capacity > 0).all(axis=0)).tolist()
    if not everywhere:
        raise InputError("a resource that every host has", field="room", value=instance.level)
    excluded = format_host_list(machine.host_names[host] for host in np.flatnonzero(spoilt))
    asked = {"takes": {machine.resources[everywhere[0]]: 1}, "excluded": excluded or None}
    return instance.sparing(int(whole.sum()), nodes=1, **asked)


def require_names(names: Sequence[str], known: Iterable[str], where: str, expected: str) -> None:
    """Raise `InputError` for the first name that is unknown or repeated."""
    every = list(known)
    for idx, name in enumerate(names):
        if name not in every or name in names[:idx]:
            raise InputError(expected, field=f"{where}[{idx}]", value=name, known=every)


def instance_of(snapshot: Snapshot, asked: Repack) -> RepackInstance | DefragmentInstance:
    """Return an instance in which requests have to start, or moves of some cost free space.

    The space is for the queue by default, if there is one.
    """
    start, defragment, room = names_of(asked.start), asked.defragment, asked.room
    if asked.spares is not None and defragment is None:
        snapshot = with_spares(snapshot, asked.spares)
    shared = _shared(snapshot, asked)
    if defragment is None:
        if not start and not asked.replace:
            raise InputError("requests to start", field="start", found="none")
        for name, given in (("room", room), ("node_class", asked.node_class)):
            if given is not None:
                raise InputError("defragment beside it", field=name, value=given)
        if asked.no_moves and not asked.evict and not asked.replace:
            expected = "jobs that may move, or some that may end"
            raise InputError(expected, field="ends", found="neither")
        spares = (n for n in map(job_name, snapshot.running) if n.startswith(SPARE_PREFIX))
        ends = dict.fromkeys(spares, 1) | _ends(snapshot, asked.evict, start)
        replaced = [*names_of(asked.replace)]
        moving = not asked.no_moves
        return RepackInstance(start=[*start], replace=replaced, ends=ends, moving=moving, **shared)
    if start:
        raise InputError("no requests beside defragment", field="start", value=",".join(start))
    if asked.evict or asked.no_moves or asked.replace:
        raise InputError("no ends beside defragment", field="evict", found="some")
    if asked.spares is not None:
        raise InputError("no spares beside defragment", field="spares", value=asked.spares)
    if not 0 <= defragment <= MAX_MOVES:
        raise InputError(f"from 0 to {MAX_MOVES}", field="defragment", value=defragment)
    own = _room_of(snapshot, room, asked.node_class)
    return DefragmentInstance(most=defragment, **own, **shared)


def _room_of(snapshot: Snapshot, room: str | None, node_class: str | None) -> dict[str, Any]:
    """Return the fields of an instance that say for what there shall be room."""
    room = room or (Room.QUEUE if candidates_of(snapshot) else Room.PRISM)
    machine = snapshot.written
    on_levels = isinstance(machine, HierarchyModel | TreeModel)
    levels = [*hierarchy_of(machine).levels] if on_levels else []
    if isinstance(machine, CubesModel):
        levels = [CUBES]
    if room not in (Room.QUEUE, Room.PRISM, *levels):
        raise unknown_name(room, [Room.QUEUE, Room.PRISM, *levels], field="room")
    if room == Room.QUEUE and not candidates_of(snapshot):
        raise InputError("requests that wait, or room for a prism", field="room", value=room)
    if room != Room.PRISM and node_class is not None:
        raise InputError("room for a prism", field="node_class", value=node_class)
    if room in levels:
        return {"room": Room.DOMAINS, "level": None if room == CUBES else room}
    if room == Room.PRISM:
        torus = snapshot.on(TorusModel, "a torus or mesh machine for the largest prism")
        known = [torus.default_class, *torus.classes]
        if node_class is not None and node_class not in known:
            raise unknown_name(node_class, known, field="node_class")
    return {"room": Room(room), "node_class": node_class}


CUBES = "cubes"
"""The only level of a pod."""

LOWER, ALL = "lower", "all"


def _ends(
    snapshot: Snapshot, evict: Sequence[str] | Mapping[str, int] | str | None, start: Sequence[str]
) -> dict[str, int]:
    """Return who may be ended, and at what cost: those named, all, or those of lower priority.

    Those of lower priority are so for each request that has to start, and of queues whose jobs it
    may end. A gang has the highest priority of its jobs.
    """
    if not isinstance(evict, str):
        return dict(evict) if isinstance(evict, Mapping) else dict.fromkeys(evict or (), 1)
    if evict not in (LOWER, ALL):
        return {evict: 1}
    wanted = [request for request in snapshot.queue if request.id in start]
    least = min(map(_rank, wanted), default=0)
    found: dict[str, int] = {}
    stays = {
        n for n, own in restricted(snapshot).items() if any(x.option == OF_ITS_NODES for x in own)
    }
    kept = stays | {
        job_name(j)
        for j in snapshot.running
        if j.priority is None
        or j.priority >= least
        or any(r.evicts is not None and j.queue not in r.evicts for r in wanted)
    }
    for name in map(job_name, snapshot.running):
        if name not in (stays if evict == ALL else kept) and not name.startswith(
            RESERVATION_PREFIX
        ):
            found[name] = 1
    return found


def _rank(request: Request) -> int:
    return request.priority if request.rank is None else request.rank


def _shared(snapshot: Snapshot, asked: Repack) -> dict[str, Any]:
    """Return the fields of all instances: the snapshot, and what running jobs may do."""
    if asked.keep_shape not in list(KeepShape):
        raise unknown_name(asked.keep_shape, KeepShape, field="keep_shape")
    every = {"costs": asked.costs or {}}
    if isinstance(asked.evict, Mapping):
        every["evict"] = asked.evict
    for field, costs in every.items():
        for name, cost in costs.items():
            if not 1 <= cost <= MAX_COST:
                raise InputError(f"from 1 to {MAX_COST}", field=f"{field}.{name}", value=cost)
    reservations = [j.id for j in snapshot.running if j.id.startswith(RESERVATION_PREFIX)]
    return {
        "name": snapshot.name,
        "snapshot": snapshot,
        "fixed": [*dict.fromkeys([*names_of(asked.fixed), *reservations])],
        "costs": dict(asked.costs or {}),
        "budgets": [schema.Budget(jobs=[*jobs], most=most) for jobs, most in asked.budgets],
        "keep_shape": KeepShape(asked.keep_shape),
    }
