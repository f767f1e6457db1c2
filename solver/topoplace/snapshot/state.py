"""A validated snapshot as arrays: the one form in which solvers see a machine and its jobs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, parse_node_set
from topoplace.snapshot.geometry import Geometry, parse_geometry
from topoplace.snapshot.schema import (
    Communication,
    PrismModel,
    Request,
    Snapshot,
    TorusModel,
    TreeModel,
)

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class RunningState:
    """A running job: the routers it holds, and what its links are."""

    id: str
    nodes: NDArray[np.int64]
    routers: NDArray[np.int64]
    prism: Prism | None
    communication: Communication


@dataclass(frozen=True)
class QueuedState:
    """A queued request with its defaults filled in."""

    id: str
    nodes: int
    class_idx: int
    priority: int
    geometries: tuple[Geometry, ...]
    region: str | None
    communication: Communication

    @property
    def value(self) -> int:
        """What starting the request adds to the first objective level."""
        return self.priority * self.nodes


@dataclass(frozen=True)
class SnapshotState:
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
    """

    snapshot: Snapshot
    torus: Torus
    classes: tuple[str, ...]
    node_class: NDArray[np.int64]
    usable: BoolArray
    occupied: BoolArray
    running: tuple[RunningState, ...]
    queue: tuple[QueuedState, ...]
    regions: dict[str, BoolArray]

    @cached_property
    def usable_per_router(self) -> NDArray[np.int64]:
        """Usable nodes of each class on each router, shape ``(num_classes, num_routers)``."""
        per_node = self.node_class.reshape(self.torus.num_routers, -1)
        free = self.usable.reshape(self.torus.num_routers, -1)
        return np.stack(
            [((per_node == c) & free).sum(axis=1) for c in range(len(self.classes))]
        ).astype(np.int64)


def torus_of(model: TorusModel) -> Torus:
    """Return the machine a model describes."""
    try:
        return Torus(
            tuple(model.shape),
            tuple(model.wrap or ()),
            tuple(model.bandwidth or ()),
            model.nodes_per_router,
        )
    except InputError as error:
        raise InputError(
            error.expected, field=f"machine.{error.field}", value=error.value
        ) from None


def prepare(snapshot: Snapshot) -> SnapshotState:
    """Check a snapshot against its machine and return its arrays.

    Raises
    ------
    InputError
        With the field at fault, for anything the schema alone could not see.
    """
    model = snapshot.machine
    if isinstance(model, str):
        raise InputError("a machine already resolved", field="machine", value=model)
    if isinstance(model, TreeModel):
        raise InputError("a torus or mesh machine", field="machine.kind", value=model.kind)
    torus = torus_of(model)
    classes, node_class = _node_classes(model, torus)
    up = np.ones(torus.num_nodes, dtype=bool)
    up[parse_node_set(snapshot.down, torus.num_nodes, "down")] = False
    running, holder = _running_jobs(snapshot, torus, node_class)
    occupied = holder >= 0
    usable = up & (node_class >= 0) & ~np.repeat(occupied, torus.nodes_per_router)
    regions = {
        name: _region(torus, prisms, f"regions.{name}") for name, prisms in snapshot.regions.items()
    }
    return SnapshotState(
        snapshot,
        torus,
        classes,
        node_class,
        usable,
        occupied,
        running,
        _queue(snapshot, torus, classes, node_class, model.default_class),
        regions,
    )


def _node_classes(model: TorusModel, torus: Torus) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    names = [model.default_class, *(c for c in model.classes if c != model.default_class)]
    node_class = np.zeros(torus.num_nodes, dtype=np.int64)
    taken = np.zeros(torus.num_nodes, dtype=bool)
    sets = {f"machine.classes.{c}": (names.index(c), text) for c, text in model.classes.items()}
    sets["machine.service"] = (-1, model.service)
    for field, (idx, text) in sets.items():
        nodes = parse_node_set(text, torus.num_nodes, field)
        twice = nodes[taken[nodes]]
        if len(twice):
            raise InputError("nodes of one class only", field=field, value=f"node {twice[0]}")
        taken[nodes] = True
        node_class[nodes] = idx
    return tuple(names), node_class


def _running_jobs(
    snapshot: Snapshot, torus: Torus, node_class: NDArray[np.int64]
) -> tuple[tuple[RunningState, ...], NDArray[np.int64]]:
    holder = np.full(torus.num_routers, -1, dtype=np.int64)
    node_holder = np.full(torus.num_nodes, -1, dtype=np.int64)
    jobs: list[RunningState] = []
    seen: set[str] = set()
    for idx, job in enumerate(snapshot.running):
        field = f"running[{idx}]"
        if job.id in seen:
            raise InputError("each job once", field=f"{field}.id", value=job.id)
        seen.add(job.id)
        nodes = parse_node_set(job.nodes, torus.num_nodes, f"{field}.nodes")
        if not len(nodes):
            raise InputError("at least one node", field=f"{field}.nodes", value=job.nodes)
        service = nodes[node_class[nodes] < 0]
        if len(service):
            raise InputError("no service node", field=f"{field}.nodes", value=f"node {service[0]}")
        twice = nodes[node_holder[nodes] >= 0]
        if len(twice):
            raise InputError(
                "nodes no other job holds",
                field=f"{field}.nodes",
                value=f"node {twice[0]}, held by {jobs[node_holder[twice[0]]].id}",
            )
        node_holder[nodes] = idx
        routers = np.unique(nodes // torus.nodes_per_router)
        prism = None
        if job.prism is not None:
            prism = prism_of(torus, job.prism, f"{field}.prism")
            inside = prism.routers(torus)
            if not np.isin(routers, inside).all():
                raise InputError(
                    "a prism that holds the job's nodes", field=f"{field}.prism", value=prism.text
                )
            routers = np.sort(inside)
            foreign = routers[holder[routers] >= 0]
            if len(foreign):
                raise InputError(
                    "routers no other job holds",
                    field=f"{field}.prism",
                    value=f"router {foreign[0]}, held by {jobs[holder[foreign[0]]].id}",
                )
        else:
            in_prism = [r for r in routers if holder[r] >= 0 and jobs[holder[r]].prism is not None]
            if in_prism:
                raise InputError(
                    "routers outside other jobs' prisms",
                    field=f"{field}.nodes",
                    value=f"router {in_prism[0]}, held by {jobs[holder[in_prism[0]]].id}",
                )
        holder[routers] = idx
        jobs.append(RunningState(job.id, nodes, routers, prism, job.communication))
    return tuple(jobs), holder


def _queue(
    snapshot: Snapshot,
    torus: Torus,
    classes: tuple[str, ...],
    node_class: NDArray[np.int64],
    default_class: str,
) -> tuple[QueuedState, ...]:
    seen = {job.id for job in snapshot.running}
    queue = []
    for idx, request in enumerate(snapshot.queue):
        field = f"queue[{idx}]"
        if request.id in seen:
            raise InputError("each job once", field=f"{field}.id", value=request.id)
        seen.add(request.id)
        queue.append(_request(request, snapshot, torus, classes, node_class, default_class, field))
    return tuple(queue)


def _request(
    request: Request,
    snapshot: Snapshot,
    torus: Torus,
    classes: tuple[str, ...],
    node_class: NDArray[np.int64],
    default_class: str,
    field: str,
) -> QueuedState:
    wanted = request.node_class or default_class
    if wanted not in classes:
        raise InputError(
            f"a class of this machine ({', '.join(classes)})", field=f"{field}.class", value=wanted
        )
    class_idx = classes.index(wanted)
    there = int((node_class == class_idx).sum())
    if request.nodes > there:
        raise InputError(
            f"no more nodes than the machine's {there} of class {wanted}",
            field=f"{field}.nodes",
            value=request.nodes,
        )
    if request.region is not None and request.region not in snapshot.regions:
        raise InputError("a region of the snapshot", field=f"{field}.region", value=request.region)
    geometries: tuple[Geometry, ...] = ()
    if request.shapes is not None:
        geometries = parse_geometry(request.shapes, torus, request.nodes, f"{field}.shapes")
    return QueuedState(
        request.id,
        request.nodes,
        class_idx,
        request.priority,
        geometries,
        request.region,
        request.communication,
    )


def prism_of(torus: Torus, model: PrismModel, field: str) -> Prism:
    """Return a checked prism of this machine."""
    prism = Prism(tuple(model.origin), tuple(model.extents))
    prism.require_inside(torus, field)
    return prism


def _region(torus: Torus, prisms: list[PrismModel], field: str) -> BoolArray:
    inside = np.zeros(torus.num_routers, dtype=bool)
    for idx, model in enumerate(prisms):
        inside[prism_of(torus, model, f"{field}[{idx}]").routers(torus)] = True
    return inside
