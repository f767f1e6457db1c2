"""A validated snapshot of a torus as arrays: the one form in which solvers see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from topoplace.errors import Faults, InputError, blamed_on, number_of
from topoplace.kinds import State
from topoplace.machine import Prism, Torus, parse_node_set
from topoplace.machine.hostlist import NodeLists
from topoplace.snapshot.anchored import AnchoredShape, anchored_shapes
from topoplace.snapshot.geometry import Geometry, parse_geometry
from topoplace.snapshot.held import holds_of
from topoplace.snapshot.schema import (
    BY_SETS,
    FREE_PREFIX,
    ON_HIERARCHIES,
    Communication,
    Order,
    PrismModel,
    Request,
    RunningJob,
    Snapshot,
    TasksModel,
    TorusModel,
)
from topoplace.snapshot.sets import HostSet, NodeSets
from topoplace.snapshot.value import require_value, value_of
from topoplace.types import BoolArray, IntArray

MAX_SEGMENTS = 256
"""Prisms of a request at most."""

Job = TypeVar("Job", RunningJob, Request)
Checked = TypeVar("Checked")
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class RunningState:
    """A running job: the routers it holds, and what its links are."""

    id: str
    nodes: IntArray
    routers: IntArray
    prism: Prism | None
    communication: Communication


@dataclass(frozen=True)
class Queued:
    """What queued requests have on machines of all kinds.

    `value` is what starting one adds to the first level of the objective.
    """

    id: str
    nodes: int
    value: int


@dataclass(frozen=True)
class NumberedState(State):
    """A snapshot of a machine whose nodes have numbers, checked and turned into arrays.

    Attributes
    ----------
    free
        Nodes that are there, up and held by nobody, shape ``(num_nodes,)``.
    held
        The nodes of every running job.
    """

    snapshot: Snapshot
    free: BoolArray
    held: tuple[IntArray, ...]


class NearState(NamedTuple):
    """How many routers of some a request has in its prism or next to it at least."""

    num: int
    routers: HostSet


@dataclass(frozen=True)
class QueuedState(Queued):
    """A queued request with its defaults filled in; `tasks` numbers `SnapshotState.tasks`.

    Of several regions, `region` is the first with enough usable nodes, or the first if none has.

    `class_idx` numbers `SnapshotState.kinds`; so do `others`, the further kinds of a request that
    has all its nodes of one of several. `segment` are the nodes of each of its prisms if it has
    several. `near` are routers that it has in its prism or next to it.
    """

    class_idx: int
    geometries: tuple[Geometry, ...]
    region: str | None
    communication: Communication
    tasks: int | None = None
    segment: int | None = None
    others: tuple[int, ...] = ()
    near: NearState | None = None

    @property
    def num_prisms(self) -> int:
        """The number of prisms that the request needs."""
        return 1 if self.segment is None else self.nodes // self.segment

    @property
    def classes(self) -> frozenset[int]:
        """The kinds of nodes of one of which it has all its nodes."""
        return frozenset((self.class_idx, *self.others))

    @property
    def has_depths(self) -> bool:
        """Whether not every depth of a prism along the last dimension that is free will do."""
        return bool(self.geometries) or self.near is not None

    @cached_property
    def ways(self) -> tuple[QueuedState, ...]:
        """The request with each of its kinds of nodes alone, in their order."""
        if not self.others:
            return (self,)
        kinds = self.class_idx, *self.others
        return tuple(replace(self, class_idx=kind, others=()) for kind in kinds)


@dataclass(frozen=True)
class SnapshotState(State):
    """What a snapshot says, checked and turned into arrays.

    Attributes
    ----------
    torus
        The machine.
    classes
        Names of the node classes; `node_class` indexes them.
    node_class
        Class of every node, -1 for service nodes, shape ``(num_nodes,)``.
    usable
        Nodes a request may take: of a class, up, and held by nobody, shape ``(num_nodes,)``.
    occupied
        Routers held by running jobs, shape ``(num_routers,)``.
    regions
        Per region, which routers it holds, shape ``(num_routers,)``.
    anchored
        The shapes that jobs may have, at their anchors; none where any prism will do.
    tasks
        What requests want to map to their nodes, each once.
    sets
        Classes, and some of their nodes, that requests may have alone, each once.
    """

    kind = "placement"

    snapshot: Snapshot
    torus: Torus
    classes: tuple[str, ...]
    node_class: IntArray
    usable: BoolArray
    occupied: BoolArray
    running: tuple[RunningState, ...]
    queue: tuple[QueuedState, ...]
    regions: dict[str, BoolArray]
    anchored: tuple[AnchoredShape, ...] = ()
    tasks: tuple[TasksModel, ...] = ()
    sets: tuple[tuple[int, HostSet], ...] = ()

    @property
    def kinds(self) -> tuple[tuple[int, HostSet | None], ...]:
        """What nodes requests may have: those of a class, of which some alone if a set is named.

        The first ones are the classes.
        """
        return (*((c, None) for c in range(len(self.classes))), *self.sets)

    def of_kind(self, kind: int) -> BoolArray:
        """Mark the nodes of a kind, usable or not, shape ``(num_nodes,)``."""
        class_idx, some = self.kinds[kind]
        found = self.node_class == class_idx
        return np.asarray(found if some is None else found & some.mask)

    def class_of(self, request: QueuedState) -> str:
        """Return the name of the class of a request."""
        return self.classes[self.kinds[request.class_idx][0]]

    @cached_property
    def usable_per_router(self) -> IntArray:
        """Usable nodes of each kind on each router, shape ``(num_kinds, num_routers)``."""
        shape = self.torus.num_routers, -1
        counts = [
            (self.of_kind(k) & self.usable).reshape(shape).sum(axis=1)
            for k in range(len(self.kinds))
        ]
        return np.stack(counts).astype(np.int64)

    @property
    def held(self) -> tuple[IntArray, ...]:
        """The nodes of every running job."""
        return tuple(job.nodes for job in self.running)

    @property
    def usable_of_any(self) -> IntArray:
        """Usable nodes on each router, shape ``(num_routers,)``."""
        return np.asarray(self.usable_per_router[: len(self.classes)].sum(axis=0))


def torus_of(model: TorusModel) -> Torus:
    """Return the machine a model describes."""
    with blamed_on(inside="machine"):
        torus = Torus(
            tuple(model.shape),
            tuple(model.wrap or ()),
            tuple(model.bandwidth or ()),
            model.nodes_per_router,
        )
        anchored_shapes(model.anchored, torus)  # for its faults
        _ = model.node_names  # for its faults
        return torus


def prism_of(torus: Torus, model: PrismModel, field: str) -> Prism:
    """Return a checked prism of this machine."""
    prism = Prism(tuple(model.origin), tuple(model.extents))
    prism.require_inside(torus, field)
    return prism


def prepare(snapshot: Snapshot) -> SnapshotState:
    """Check a snapshot against its machine and return its arrays.

    Raises
    ------
    InputError
        With every field at fault, for anything the schema alone could not see.
    """
    model = snapshot.on(TorusModel, "a torus or mesh machine")
    require_value(snapshot)
    torus = torus_of(model)
    classes, node_class = _node_classes(model, torus)
    faults = Faults()
    lists = NodeLists(max(1, len(snapshot.sets) + len(snapshot.queue)) * torus.num_nodes)
    sets = NodeSets(
        snapshot.sets,
        torus.num_nodes,
        lambda text, field: lists.numbers(text, torus.num_nodes, field),
    )
    kinds: list[tuple[int, HostSet]] = []
    up = np.ones(torus.num_nodes, dtype=bool)
    with faults.collected():
        up[parse_node_set(snapshot.down, torus.num_nodes, "down")] = False
    ids: set[str] = set()
    holders = _Holders(snapshot.running, torus, node_class)
    running = checked_jobs(snapshot.running, "running", ids, faults, holders.add)
    occupied = holders.of_router >= 0
    usable = up & (node_class >= 0) & ~np.repeat(occupied, torus.nodes_per_router)
    regions = _regions(snapshot, torus, faults)
    num_of_class = {name: int((node_class == idx).sum()) for idx, name in enumerate(classes)}

    tasks: list[TasksModel] = []

    def kind_of(class_idx: int, mask: BoolArray) -> int:
        """Return the number of a kind of nodes (see `SnapshotState.kinds`)."""
        kind = class_idx, HostSet(mask)
        if mask.all():
            return class_idx
        if kind not in kinds:
            kinds.append(kind)
        return len(classes) + kinds.index(kind)

    def checked(_: int, request: Request, field: str) -> QueuedState:
        require_none(request, ON_HIERARCHIES, "a torus or mesh", field)
        if model.anchored:
            _require_for_anchored(request, field)
        else:
            require_none(request, ["segment"], "a machine without anchored prisms", field)
        wanted = request.node_class or model.default_class
        queued = _request(request, snapshot, torus, wanted, num_of_class, field)
        class_idx, *others = dict.fromkeys(
            kind_of(queued.class_idx, mask) for mask in sets.of_request(request, field)
        )
        queued = replace(
            queued,
            class_idx=class_idx,
            others=tuple(others),
            near=_near(request, sets, up, torus, f"{field}.near.of"),
        )
        if isinstance(request.region, list):
            require_none(request, ["one_of"], "a request with several regions", field)
            own = usable & (node_class == classes.index(wanted))
            own &= sets.of_request(request, field)[0]
            free = own.reshape(torus.num_routers, -1)
            room = (name for name in request.region if free[regions[name]].sum() >= request.nodes)
            queued = replace(queued, region=next(room, request.region[0]))
        if request.tasks is None:
            return queued
        require_none(request, (*BY_SETS, "near"), "a request with tasks", field)
        if request.tasks not in tasks:
            tasks.append(request.tasks)
        return replace(queued, tasks=tasks.index(request.tasks))

    queue = checked_queue(snapshot, ids, faults, checked)
    faults.require_none()
    anchored = tuple(anchored_shapes(model.anchored, torus))
    return SnapshotState(
        snapshot, torus, classes, node_class, usable, occupied, running, queue, regions, anchored,
        tuple(tasks), tuple(kinds),
    )  # fmt: skip


def checked_snapshot(
    snapshot: Snapshot,
    where: str,
    running: Callable[[int, RunningJob, str], Checked],
    down: Callable[[str], IntArray],
    request: Callable[[int, Request, str], Asked],
) -> tuple[tuple[Checked, ...], IntArray, tuple[Asked, ...]]:
    """Return what checks make of running jobs, of the nodes that are down, and of requests.

    There are no regions: `where` says on what.

    Raises
    ------
    InputError
        With every field at fault.
    """
    faults, ids = Faults(), set[str]()
    if snapshot.regions:
        name = next(iter(snapshot.regions))
        faults.found.append(InputError(f"no regions on {where}", field="regions", value=name))
    jobs = checked_jobs(snapshot.running, "running", ids, faults, running)
    out = np.empty(0, dtype=np.int64)
    with faults.collected():
        out = down(snapshot.down)
    requests = checked_queue(snapshot, ids, faults, request)
    faults.require_none()
    return jobs, out, requests


def checked_nodes(
    snapshot: Snapshot,
    where: str,
    lists: NodeLists,
    closed: IntArray,
    foreign: Iterable[str],
    request: Callable[[int, Request, str], Asked],
    *,
    called: Callable[[int], str] = str,
    unit: str = "node",
) -> tuple[tuple[IntArray, ...], BoolArray, tuple[Asked, ...]]:
    """Return the nodes of running jobs, those that are free, and what a check makes of requests.

    Nodes have numbers here. A node may be down (draining) and held by a running job.

    Parameters
    ----------
    closed
        Marks the nodes that are not there, shape ``(num_nodes,)``.
    foreign
        Fields that running jobs on other kinds of machines have.
    called, unit
        How nodes are called in errors.

    Raises
    ------
    InputError
        With every field at fault.
    """
    num, holder = len(closed), np.where(closed, -2, -1)

    def running(idx: int, job: RunningJob, field: str) -> IntArray:
        require_none(job, foreign, where, field)
        nodes = lists.numbers(job.nodes, num, f"{field}.nodes")
        if not len(nodes) or closed[nodes].any():
            expected = f"at least one {unit}" + (", none of them missing" if closed.any() else "")
            raise InputError(expected, field=f"{field}.nodes", value=job.nodes)
        require_free(nodes, holder, snapshot.running, f"{field}.nodes", called, unit)
        holder[nodes] = idx
        return nodes

    held, down, asked = checked_snapshot(
        snapshot, where, running, lambda text: parse_node_set(text, num, "down"), request
    )
    free = holder == -1
    free[down] = False
    return held, free, asked


def numbers_of(names: list[str], numbers: Mapping[str, int], what: str, field: str) -> IntArray:
    """Return the numbers of nodes or hosts, whatever they are called, each of which is there."""
    seen: set[str] = set()
    for name in names:
        if name not in numbers:
            raise InputError(f"{what}s of the machine", field=field, value=name, known=numbers)
        if name in seen:
            raise InputError(f"each {what} once", field=field, value=name)
        seen.add(name)
    return np.asarray([numbers[name] for name in names], dtype=np.int64)


def checked_jobs(
    jobs: Sequence[Job],
    where: str,
    ids: set[str],
    faults: Faults,
    check: Callable[[int, Job, str], Checked],
) -> tuple[Checked, ...]:
    """Return what a check makes of every job: its index, itself, its field; each has its own id."""
    found = []
    for idx, job in enumerate(jobs):
        field = f"{where}[{idx}]"
        with faults.collected():
            if job.id in ids:
                raise InputError("each job once", field=f"{field}.id", value=job.id)
            ids.add(job.id)
            found.append(check(idx, job, field))
    return tuple(found)


def checked_queue(
    snapshot: Snapshot, ids: set[str], faults: Faults, check: Callable[[int, Request, str], Checked]
) -> tuple[Checked, ...]:
    """Return what a check makes of every request that may start; those held are checked too."""
    held = holds_of(snapshot)
    found = checked_jobs(
        snapshot.queue, "queue", ids, faults, lambda *one: (one[1].id, check(*one))
    )
    return tuple(request for name, request in found if name not in held)


def require_none(
    job: RunningJob | Request, names: Iterable[str], where: str, field: str, *, shown: bool = False
) -> None:
    """Raise `InputError` for the first field that jobs on another kind of machine have."""
    for name in names if shown else sorted(names):
        value = getattr(job, name, None)
        if value is not None:
            alias = "class" if name == "node_class" else name
            found = value if shown else None
            raise InputError(f"no {alias} on {where}", field=f"{field}.{alias}", value=found)


def require_free(
    places: IntArray,
    holder: IntArray,
    jobs: Sequence[RunningJob],
    field: str,
    name: Callable[[int], str],
    kind: str = "node",
) -> None:
    """Raise `InputError` for the first place that a job holds; `holder` is -1 for nobody."""
    taken = places[holder[places] >= 0]
    if len(taken):
        found = f"{name(taken[0])}, held by {jobs[holder[taken[0]]].id}"
        raise InputError(f"{kind}s no other job holds", field=field, found=found)


def _node_classes(model: TorusModel, torus: Torus) -> tuple[tuple[str, ...], IntArray]:
    names = [model.default_class, *(c for c in model.classes if c != model.default_class)]
    node_class = np.zeros(torus.num_nodes, dtype=np.int64)
    taken = np.zeros(torus.num_nodes, dtype=bool)
    sets = {f"machine.classes.{c}": (names.index(c), text) for c, text in model.classes.items()}
    sets["machine.service"] = (-1, model.service)
    faults = Faults()
    lists = NodeLists(torus.num_nodes)
    for field, (idx, text) in sets.items():
        with faults.collected():
            nodes = lists.numbers(text, torus.num_nodes, field)
            twice = nodes[taken[nodes]]
            if len(twice):
                raise InputError("nodes of one class only", field=field, found=f"node {twice[0]}")
            taken[nodes] = True
            node_class[nodes] = idx
    faults.require_none()
    return tuple(names), node_class


class _Holders:
    """Who holds every router and every node while running jobs are added; -1 for nobody."""

    def __init__(self, jobs: Sequence[RunningJob], torus: Torus, node_class: IntArray) -> None:
        self.of_router = np.full(torus.num_routers, -1, dtype=np.int64)
        self._of_node = np.full(torus.num_nodes, -1, dtype=np.int64)
        self._with_prism = np.asarray([job.prism is not None for job in jobs] + [False])
        self._jobs, self._torus, self._node_class = jobs, torus, node_class
        self._lists = NodeLists(torus.num_nodes)

    def add(self, idx: int, job: RunningJob, field: str) -> RunningState:
        """Return a running job checked; if it is sound, it holds its nodes and routers now."""
        nodes = self._nodes(job, f"{field}.nodes")
        routers = np.unique(nodes // self._torus.nodes_per_router)
        prism = None
        require_none(job, ("apart", "exclusive"), "a torus or mesh", field)
        if job.prism is not None:
            prism = prism_of(self._torus, job.prism, f"{field}.prism")
            inside = np.sort(prism.routers(self._torus))
            if not np.isin(routers, inside).all():
                expected = "a prism that holds the job's nodes"
                raise InputError(expected, field=f"{field}.prism", value=prism.text)
            routers = inside
            self._require_free("router", routers, self.of_router, f"{field}.prism")
        boxed = routers[self._with_prism[self.of_router[routers]]]
        if len(boxed):
            found = f"router {boxed[0]}, held by {self._jobs[self.of_router[boxed[0]]].id}"
            expected = "routers outside other jobs' prisms"
            raise InputError(expected, field=f"{field}.nodes", found=found)
        self._of_node[nodes] = idx
        self.of_router[routers] = idx
        return RunningState(job.id, nodes, routers, prism, job.communication)

    def _nodes(self, job: RunningJob, field: str) -> IntArray:
        nodes = self._lists.numbers(job.nodes, self._torus.num_nodes, field)
        if not len(nodes):
            raise InputError("at least one node", field=field, value=job.nodes)
        service = nodes[self._node_class[nodes] < 0]
        if len(service):
            raise InputError("no service node", field=field, found=f"node {service[0]}")
        self._require_free("node", nodes, self._of_node, field)
        return nodes

    def _require_free(self, kind: str, places: IntArray, holder: IntArray, field: str) -> None:
        require_free(places, holder, self._jobs, field, lambda k: f"{kind} {k}", kind)


def _require_for_anchored(request: Request, field: str) -> None:
    """Raise for what a request cannot have on a machine whose prisms are anchored."""
    require_none(request, ["near"], "a machine whose prisms are anchored", field)
    if request.shapes is not None:
        expected = "no shapes on a machine whose prisms are anchored"
        raise InputError(expected, field=f"{field}.shapes", value=request.shapes)
    if request.segment is not None and request.nodes % request.segment:
        expected = f"segments that divide the {number_of(request.nodes, 'node')} of the request"
        raise InputError(expected, field=f"{field}.segment", value=request.segment)
    if request.segment is not None and request.nodes > MAX_SEGMENTS * request.segment:
        expected = f"at most {MAX_SEGMENTS} segments"
        raise InputError(expected, field=f"{field}.segment", value=request.segment)
    if request.id.startswith(FREE_PREFIX):
        expected = f"a name that does not begin with {FREE_PREFIX}, as those of prisms do"
        raise InputError(expected, field=f"{field}.id", value=request.id)


def _request(
    request: Request,
    snapshot: Snapshot,
    torus: Torus,
    wanted: str,
    num_of_class: dict[str, int],
    field: str,
) -> QueuedState:
    if wanted not in num_of_class:
        expected = f"a class of this machine ({', '.join(num_of_class)})"
        raise InputError(expected, field=f"{field}.class", value=wanted, known=num_of_class)
    there = num_of_class[wanted]
    if request.nodes > there:
        expected = f"no more nodes than the machine's {there} of class {wanted}"
        raise InputError(expected, field=f"{field}.nodes", value=request.nodes)
    for name in regions_of(request):
        if name not in snapshot.regions:
            expected, at = "a region of the snapshot", f"{field}.region"
            raise InputError(expected, field=at, value=name, known=snapshot.regions)
    if isinstance(request.region, list) and snapshot.order is Order.BACKFILL:
        expected = "one region in the order backfill, as another may have room by a reservation"
        raise InputError(expected, field=f"{field}.region", value=request.region)
    geometries: tuple[Geometry, ...] = ()
    if request.shapes is not None:
        geometries = parse_geometry(request.shapes, torus, request.nodes, f"{field}.shapes")
    return QueuedState(
        request.id,
        request.nodes,
        value_of(request, snapshot.value),
        list(num_of_class).index(wanted),
        geometries,
        next(iter(regions_of(request)), None),
        request.communication,
        segment=request.segment,
    )


def _near(
    request: Request, sets: NodeSets, up: BoolArray, torus: Torus, field: str
) -> NearState | None:
    """Return how many routers a request has near its prism, and which ones count."""
    if request.near is None:
        return None
    there = sets.named(request.near.of, field) & up
    routers = np.asarray(there.reshape(torus.num_routers, -1).any(axis=1))
    return NearState(request.near.routers, HostSet(routers))


def regions_of(request: Request) -> list[str]:
    """Return the regions that a request names, in its order."""
    if request.region is None:
        return []
    return request.region if isinstance(request.region, list) else [request.region]


def _regions(snapshot: Snapshot, torus: Torus, faults: Faults) -> dict[str, BoolArray]:
    regions = {}
    for name, prisms in snapshot.regions.items():
        inside = regions[name] = np.zeros(torus.num_routers, dtype=bool)
        for idx, model in enumerate(prisms):
            with faults.collected():
                prism = prism_of(torus, model, f"regions.{name}[{idx}]")
                inside[prism.routers(torus)] = True
    return regions
