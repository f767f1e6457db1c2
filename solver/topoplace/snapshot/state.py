"""A validated snapshot of a torus as arrays: the one form in which solvers see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import Faults, InputError
from topoplace.machine import Prism, Torus, parse_node_set
from topoplace.snapshot.geometry import Geometry, parse_geometry
from topoplace.snapshot.schema import (
    Communication,
    PrismModel,
    Request,
    RunningJob,
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
        raise error.inside("machine") from None


def prepare(snapshot: Snapshot) -> SnapshotState:
    """Check a snapshot against its machine and return its arrays.

    Raises
    ------
    InputError
        With every field at fault, for anything the schema alone could not see.
    """
    model = snapshot.machine
    if isinstance(model, str):
        raise InputError("a machine already resolved", field="machine", value=model)
    if isinstance(model, TreeModel):
        raise InputError("a torus or mesh machine", field="machine.kind", value=model.kind)
    torus = torus_of(model)
    classes, node_class = _node_classes(model, torus)
    faults = Faults()
    up = np.ones(torus.num_nodes, dtype=bool)
    with faults.collected():
        up[parse_node_set(snapshot.down, torus.num_nodes, "down")] = False
    running, holder = _running_jobs(snapshot, torus, node_class, faults)
    occupied = holder >= 0
    usable = up & (node_class >= 0) & ~np.repeat(occupied, torus.nodes_per_router)
    regions = _regions(snapshot, torus, faults)
    queue = _queue(snapshot, torus, classes, node_class, model.default_class, faults)
    faults.require_none()
    return SnapshotState(
        snapshot,
        torus,
        classes,
        node_class,
        usable,
        occupied,
        running,
        queue,
        regions,
    )


def _node_classes(model: TorusModel, torus: Torus) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    names = [model.default_class, *(c for c in model.classes if c != model.default_class)]
    node_class = np.zeros(torus.num_nodes, dtype=np.int64)
    taken = np.zeros(torus.num_nodes, dtype=bool)
    sets = {f"machine.classes.{c}": (names.index(c), text) for c, text in model.classes.items()}
    sets["machine.service"] = (-1, model.service)
    faults = Faults()
    for field, (idx, text) in sets.items():
        with faults.collected():
            nodes = parse_node_set(text, torus.num_nodes, field)
            twice = nodes[taken[nodes]]
            if len(twice):
                raise InputError("nodes of one class only", field=field, found=f"node {twice[0]}")
            taken[nodes] = True
            node_class[nodes] = idx
    faults.require_none()
    return tuple(names), node_class


def _running_jobs(
    snapshot: Snapshot, torus: Torus, node_class: NDArray[np.int64], faults: Faults
) -> tuple[tuple[RunningState, ...], NDArray[np.int64]]:
    holders = _Holders(snapshot, torus, node_class)
    jobs: list[RunningState] = []
    seen: set[str] = set()
    for idx, job in enumerate(snapshot.running):
        field = f"running[{idx}]"
        with faults.collected():
            if job.id in seen:
                raise InputError("each job once", field=f"{field}.id", value=job.id)
            seen.add(job.id)
            jobs.append(holders.add(idx, job, field))
    return tuple(jobs), holders.of_router


class _Holders:
    """Who holds every router and every node while running jobs are added; -1 for nobody."""

    def __init__(self, snapshot: Snapshot, torus: Torus, node_class: NDArray[np.int64]) -> None:
        self.of_router = np.full(torus.num_routers, -1, dtype=np.int64)
        self._of_node = np.full(torus.num_nodes, -1, dtype=np.int64)
        self._jobs, self._torus, self._node_class = snapshot.running, torus, node_class

    def add(self, idx: int, job: RunningJob, field: str) -> RunningState:
        """Return a running job checked; if it is sound, it holds its nodes and routers now."""
        nodes = self._nodes(job, f"{field}.nodes")
        routers = np.unique(nodes // self._torus.nodes_per_router)
        prism = None
        if job.prism is not None:
            prism = prism_of(self._torus, job.prism, f"{field}.prism")
            routers = self._routers_of(prism, routers, f"{field}.prism")
        else:
            self._require_outside_prisms(routers, f"{field}.nodes")
        self._of_node[nodes] = idx
        self.of_router[routers] = idx
        return RunningState(job.id, nodes, routers, prism, job.communication)

    def _nodes(self, job: RunningJob, field: str) -> NDArray[np.int64]:
        nodes = parse_node_set(job.nodes, self._torus.num_nodes, field)
        if not len(nodes):
            raise InputError("at least one node", field=field, value=job.nodes)
        service = nodes[self._node_class[nodes] < 0]
        if len(service):
            raise InputError("no service node", field=field, found=f"node {service[0]}")
        self._require_free("node", nodes[self._of_node[nodes] >= 0], self._of_node, field)
        return nodes

    def _routers_of(
        self, prism: Prism, routers: NDArray[np.int64], field: str
    ) -> NDArray[np.int64]:
        inside = np.sort(prism.routers(self._torus))
        if not np.isin(routers, inside).all():
            raise InputError("a prism that holds the job's nodes", field=field, value=prism.text)
        self._require_free("router", inside[self.of_router[inside] >= 0], self.of_router, field)
        return inside

    def _require_free(
        self, what: str, taken: NDArray[np.int64], holder: NDArray[np.int64], field: str
    ) -> None:
        if len(taken):
            found = f"{what} {taken[0]}, held by {self._jobs[holder[taken[0]]].id}"
            raise InputError(f"{what}s no other job holds", field=field, found=found)

    def _require_outside_prisms(self, routers: NDArray[np.int64], field: str) -> None:
        for router in routers[self.of_router[routers] >= 0]:
            holder = self._jobs[self.of_router[router]]
            if holder.prism is not None:
                raise InputError(
                    "routers outside other jobs' prisms",
                    field=field,
                    found=f"router {router}, held by {holder.id}",
                )


def _queue(
    snapshot: Snapshot,
    torus: Torus,
    classes: tuple[str, ...],
    node_class: NDArray[np.int64],
    default_class: str,
    faults: Faults,
) -> tuple[QueuedState, ...]:
    seen = {job.id for job in snapshot.running}
    queue = []
    for idx, request in enumerate(snapshot.queue):
        field = f"queue[{idx}]"
        with faults.collected():
            if request.id in seen:
                raise InputError("each job once", field=f"{field}.id", value=request.id)
            seen.add(request.id)
            queue.append(
                _request(request, snapshot, torus, classes, node_class, default_class, field)
            )
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
            f"a class of this machine ({', '.join(classes)})",
            field=f"{field}.class",
            value=wanted,
            known=classes,
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
        raise InputError(
            "a region of the snapshot",
            field=f"{field}.region",
            value=request.region,
            known=snapshot.regions,
        )
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


def _regions(snapshot: Snapshot, torus: Torus, faults: Faults) -> dict[str, BoolArray]:
    regions = {}
    for name, prisms in snapshot.regions.items():
        inside = regions[name] = np.zeros(torus.num_routers, dtype=bool)
        for idx, model in enumerate(prisms):
            with faults.collected():
                prism = prism_of(torus, model, f"regions.{name}[{idx}]")
                inside[prism.routers(torus)] = True
    return regions
