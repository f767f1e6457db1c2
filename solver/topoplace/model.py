"""Instances built in Python: machines, what runs on them, what waits, and applications."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from topoplace.errors import WHOLE, InputError, blamed_on, number_of, unknown_name
from topoplace.given import fitting, parse_bytes, parse_extents, plain
from topoplace.machine import Prism, format_node_set
from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.changes import changed, known_nodes
from topoplace.snapshot.faults import faults_of
from topoplace.snapshot.files import write_document
from topoplace.snapshot.machines import (
    AnyState,
    load_machine,
    prepare_any,
    regular_hierarchy,
    regular_tree,
    resolve_machine,
)
from topoplace.snapshot.objects import ObjectsApplication
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    AnyApplication,
    CubesModel,
    GraphApplication,
    GridApplication,
    HierarchyModel,
    MachineDocument,
    MachineModel,
    Name,
    PrismModel,
    Request,
    RunningJob,
    SetName,
    ShapeWeights,
    Snapshot,
    SwitchModel,
    TorusModel,
    TreeModel,
    TreeObjective,
)
from topoplace.snapshot.schema import Model as Document
from topoplace.snapshot.state import torus_of
from topoplace.traffic import is_foreign, traffic_of

Machine = MachineModel
Nodes = str | Iterable[int] | Iterable[str]
"""Nodes: numbers, names (on trees), or a text such as ``0-47,60`` or ``n[01-16]``."""

Kind = TypeVar("Kind", bound=Document)


class Model:
    """A snapshot of a machine that is built step by step: running jobs, requests, nodes down.

    Each step is checked when it is made, against the machine and all that is there: whatever is
    refused changes nothing. So regions and sets come before the requests that name them.

    Parameters
    ----------
    machine
        A machine of `torus`, `mesh`, `tree`, `hierarchy` or `cubes`; or a shipped name, a file or
        a shorthand such as ``torus:8x8x8``.
    name
        The name of the instance in results and pictures.

    Attributes
    ----------
    snapshot
        The snapshot that the model is now.

    Raises
    ------
    InputError
        If the machine contradicts itself, or there is none.

    Examples
    --------
    >>> import topoplace as tp
    >>> model = tp.Model(tp.torus(4, 4, 4))
    >>> model.add_running("old", origin=(0, 0, 0), extents=(2, 4, 4))
    >>> model.add_request("new", 16)
    >>> tp.place(model).objective
    16
    """

    def __init__(self, machine: Machine | str | Path, name: str = "model") -> None:
        if isinstance(machine, str | Path):
            machine = load_machine(str(machine))
        if not isinstance(machine, MachineDocument):
            expected = "a machine such as tp.torus(4, 4), its name or file"
            raise InputError(expected, field="machine", found=type(machine).__name__)
        document = {"schema": SNAPSHOT_SCHEMA, "name": name, "machine": machine}
        self._begin(_checked(Snapshot, **document))
        self._check()

    @classmethod
    def of(cls, snapshot: Snapshot) -> Model:
        """Return a model that begins as a snapshot, to add to it."""
        model = cls.__new__(cls)
        model._begin(resolve_machine(snapshot))
        return model

    def _begin(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._known: tuple[object, dict[object, list[RunningJob]]] = (None, {})

    def copy(self, name: str | None = None) -> Model:
        """Return a model that begins as this one, perhaps with another name."""
        fields = {} if name is None else {"name": _checked(_Named, name=name).name}
        return Model.of(self.snapshot.model_copy(update=fields))

    def __copy__(self) -> Model:
        """Return a model of its own, as `copy` does."""
        return self.copy()

    @property
    def machine(self) -> Machine:
        """The machine."""
        assert not isinstance(self.snapshot.machine, str)
        return self.snapshot.machine

    @property
    def name(self) -> str:
        """The name of the instance."""
        return self.snapshot.name

    @property
    def running(self) -> Sequence[RunningJob]:
        """The running jobs."""
        return tuple(self.snapshot.running)

    @property
    def queue(self) -> Sequence[Request]:
        """The requests that wait, in the order in which they were added."""
        return tuple(self.snapshot.queue)

    def add_running(
        self,
        id: str,
        nodes: Nodes | None = None,
        *,
        origin: Sequence[int] | None = None,
        extents: Sequence[int] | None = None,
        communication: str = "strict",
        patterns: Mapping[str, int] | None = None,
        takes: Mapping[str, int] | None = None,
        **more: Any,
    ) -> None:
        """Add a job that runs and stays.

        Parameters
        ----------
        nodes
            Its nodes; by default all nodes of its prism.
        origin, extents
            The prism it holds, in routers; without one it holds the routers of its nodes.
        communication
            ``strict`` (shares no link), ``tolerant`` (with tolerant jobs only) or ``none``.
        patterns
            On trees: share of the run time, in percent, of every communication pattern
            (``rd``, ``rhvd``, ``binomial``, ``ring``, ``stencil2d``, ``stencil3d``).
        takes
            On hierarchies: how much of every resource it has of each of its hosts; by default all.
        more
            Other fields of a running job: `ends`, and on hierarchies `apart`.

        Raises
        ------
        InputError
            With the argument at fault, also if another job has its name or one of its nodes.
        """
        given = {"nodes": nodes, "origin": origin, "extents": extents, "patterns": patterns}
        more |= {"communication": communication, "takes": takes}
        self._set_running(id, self._running_fields(**given, **more))

    def add_request(
        self,
        id: str,
        nodes: int,
        *,
        shapes: str | None = None,
        priority: int = 1,
        node_class: str | None = None,
        region: str | Sequence[str] | None = None,
        communication: str = "strict",
        patterns: Mapping[str, int] | None = None,
        application: Any = None,
        tasks_per_node: int = 1,
        segment: int | None = None,
        **more: Any,
    ) -> None:
        """Add a job that waits.

        Parameters
        ----------
        nodes
            Number of nodes it needs; on hierarchies of units, of which a host may hold several.
        shapes
            On tori: prisms it takes, such as ``4x4x4/8x4x2``; any by default. On cubes: parts of a
            cube, or what whole cubes make.
        priority
            The value of every node that starts.
        node_class, region
            On tori: class of its nodes, and region in which its prism has to lie, or several,
            of which it is the first with enough free nodes.
        communication, patterns
            As in `add_running`.
        application, tasks_per_node
            On tori: a `grid`, `parallelism`, or `graph` or what that takes, whose tasks are mapped
            to its nodes, and the most tasks on a node, where the objective is ``nodes,hop-bytes``.
        segment
            On tori with anchored prisms: nodes of every prism, of which the job has several.
        more
            Other fields of a request (docs/reference/formats.md): `eligible`, an expression over
            the sets, `excluded`, `walltime`; on a torus `near`; on a hierarchy `takes`, `segments`,
            `required`, `preferred`, `exclusive`, `spread`, `balance`, `at_most`, `apart`, `parts`
            and the like (docs/guide/hierarchies.md).

        Raises
        ------
        InputError
            With the argument at fault, also if another job has its name, or the machine is too
            small for it.
        """
        if region is not None and not isinstance(region, str):
            region = list(region)
        more |= {"shapes": shapes, "priority": priority, "region": region, "segment": segment}
        more |= {"communication": communication, "patterns": patterns, "nodes": nodes}
        if application is not None:
            more |= {"application": application, "tasks_per_node": tasks_per_node}
        self._set_request(id, _request_fields(node_class=node_class, **more))

    def replace(self, id: str, **fields: Any) -> None:
        """Give a job that runs or waits other fields; what is not given stays, also its place.

        Parameters
        ----------
        fields
            Arguments of `add_running` or `add_request`.

        Raises
        ------
        InputError
            As of these, and if there is no such job.
        """
        for job in self.snapshot.running:
            if job.id == id:
                own = self._running_fields(**fields)
                if "prism" in own and "nodes" not in fields:
                    own["nodes"] = self._nodes_of(own["prism"])
                self._set_running(id, _fields_of(job) | own, job)
                return
        for request in self.snapshot.queue:
            if request.id == id:
                self._set_request(id, _fields_of(request) | _request_fields(**fields), request)
                return
        raise self._no_job(id)

    def remove(self, id: str) -> None:
        """Remove a job that runs or waits; `InputError` if there is none of this name."""
        with blamed_on(inside="id"):
            self.snapshot = changed(self.snapshot, [("without_job", id)])

    def add_down(self, nodes: Nodes) -> None:
        """Say that nodes are down, besides those that are down already."""
        text = _node_text(nodes)
        self._check(down=text)
        self.snapshot = changed(self.snapshot, [("add_down", text)])

    def free(self, nodes: Nodes) -> None:
        """Say that nodes that were down are up again, or that service nodes take jobs."""
        text = _node_text(nodes)
        self._check(down=text)
        with blamed_on(inside="nodes"):
            self.snapshot = changed(self.snapshot, [("free", text)])

    def add_region(self, name: str, origin: Sequence[int], extents: Sequence[int]) -> None:
        """Add a prism, in routers, to a region that requests may ask for."""
        prism = _checked(PrismModel, origin=_listed(origin), extents=_listed(extents))
        _checked(_Named, name=name)
        self._check(regions={name: [prism]})
        regions = self.snapshot.regions
        self._change(regions={**regions, name: [*regions.get(name, ()), prism]})

    def add_set(self, name: str, nodes: Nodes) -> None:
        """Name a set of nodes, for the expressions `eligible` of requests."""
        _checked(_SetNamed, name=name)
        text = _node_text(nodes)
        self._check(sets={name: text})
        self._change(sets={**self.snapshot.sets, name: text})

    def set_weights(self, **weights: int) -> None:
        """Set weights of the shape (docs/reference/formats.md); `InputError` for others.

        They are `bisection`, `volume`, `hops`, `idle` and `wrap`.
        """
        checked = _checked(ShapeWeights, **self.snapshot.weights.model_dump() | weights)
        self._change(weights=checked)

    def prepare(self, objective: TreeObjective | None = None) -> AnyState:
        """Return the snapshot, checked against its machine, as arrays.

        `objective` says what counts on a switch tree (`topoplace.snapshot.machines.objective_of`).

        Raises
        ------
        InputError
            With all fields at fault, as in a snapshot file.
        """
        return prepare_any(self.snapshot, objective)

    def save(self, path: str | Path) -> None:
        """Write the snapshot into a file that `load` and all commands take.

        Raises
        ------
        InputError
            If the model is not a valid snapshot, or the file cannot be written.
        """
        self.prepare()
        write_document(path, self.snapshot)

    def __repr__(self) -> str:
        running, waiting = len(self.snapshot.running), len(self.snapshot.queue)
        return f"<Model {self.name}: {self.machine.name}, {running} running, {waiting} waiting>"

    def _change(self, **fields: object) -> None:
        self.snapshot = self.snapshot.model_copy(update=fields)

    def _ids(self) -> list[str]:
        running = [job.id for job in self.snapshot.running]
        return [*running, *(request.id for request in self.snapshot.queue)]

    def _no_job(self, id: object) -> InputError:
        return InputError("a job that runs or waits", field="id", value=id, known=self._ids())

    def _require_new(self, id: str) -> None:
        if id in self._ids():
            raise InputError("each job once", field="id", value=id)

    def _set_running(
        self, id: str, fields: Mapping[str, Any], before: RunningJob | None = None
    ) -> None:
        """Add a running job, or put it in the place of one."""
        job = _checked(RunningJob, **{**fields, "id": id})
        if before is None:
            self._require_new(job.id)
        self._check(running=[job])
        beside = [one for one in self._beside(job) if one is not before]
        if beside:
            self._check(running=[*beside, job])
        _, index = self._known
        running = [job if one is before else one for one in self.snapshot.running]
        if before is None:
            running.append(job)
            for place in self._places(job):
                index.setdefault(place, []).append(job)
        self._change(running=running)
        self._known = (running if before is None else None, index)

    def _set_request(
        self, id: str, fields: Mapping[str, Any], before: Request | None = None
    ) -> None:
        """Add a request, or put it in the place of one."""
        with _as_arguments():
            request = _checked(Request, **{**fields, "id": id})
        if before is None:
            self._require_new(request.id)
        if request.tasks is not None:
            most = request.nodes * request.tasks.per_node
            if request.tasks.application.num_tasks > most:
                expected = f"at most {number_of(most, 'task')} on the nodes of the request"
                found = str(request.tasks.application.num_tasks)
                raise InputError(expected, field="application", found=found)
        regions, sets = self.snapshot.regions, self.snapshot.sets
        self._check(queue=[request], regions=regions, sets=sets)
        queue = [request if one is before else one for one in self.snapshot.queue]
        self._change(queue=queue if before is not None else [*queue, request])

    def _check(self, **fields: Any) -> None:
        """Check some fields of the snapshot against its machine, all others being empty.

        A faulty field is named as the argument that it comes from.
        """
        empty: dict[str, Any] = {
            "schema_version": SNAPSHOT_SCHEMA,
            "name": self.name,
            "machine": self.machine,
        }
        objective = TreeObjective.DOMAINS if self.machine.has_contention else None
        with _as_arguments():
            prepare_any(Snapshot.model_construct(**empty, **fields), objective)

    def _beside(self, job: RunningJob) -> list[RunningJob]:
        """Return the running jobs on nodes of a job, or on its prism."""
        if self._known[0] is not self.snapshot.running:
            index: dict[object, list[RunningJob]] = {}
            for one in self.snapshot.running:
                for place in self._places(one):
                    index.setdefault(place, []).append(one)
            self._known = (self.snapshot.running, index)
        found = (one for place in self._places(job) for one in self._known[1].get(place, ()))
        return list({one.id: one for one in found}.values())

    def _places(self, job: RunningJob) -> Iterable[object]:
        """Return the nodes of a job and of its prism; of kinds of others, one place for all."""
        if self.machine.kind not in _WITH_NODES:
            return (None,)
        found = known_nodes(self.machine, job.nodes)
        return found if job.prism is None else {*found, *self._inside(job.prism)}

    def _running_fields(
        self, *, origin: Any = None, extents: Any = None, **given: Any
    ) -> dict[str, Any]:
        """Return the fields of a running job that arguments stand for."""
        if origin is not None or extents is not None:
            box = {"origin": _listed(origin), "extents": _listed(extents)}
            given["prism"] = _checked(PrismModel, **box)
        if "nodes" in given:
            nodes = given["nodes"]
            given["nodes"] = self._nodes_of(given.get("prism")) if nodes is None else nodes
            given["nodes"] = _node_text(given["nodes"])
        return _with_patterns(given)

    def _nodes_of(self, prism: PrismModel | None) -> str:
        if prism is None:
            raise InputError("the nodes of the job", field="nodes", found="nothing")
        return format_node_set(self._inside(prism))

    def _inside(self, prism: PrismModel) -> Sequence[int]:
        expected = "a torus or mesh for a prism"
        torus = torus_of(self.machine.only(TorusModel, expected, field="origin"))
        box = Prism(tuple(prism.origin), tuple(prism.extents))
        box.require_inside(torus, "origin")
        nodes: list[int] = torus.nodes_of(box.routers(torus)).tolist()
        return nodes


_WITH_NODES = ("torus", "tree", "hierarchy", "cubes")
"""Kinds of machines whose running jobs hold nodes, by which those that meet are found."""


class _Named(Document):
    name: Name


class _SetNamed(Document):
    name: SetName


_ARGUMENTS = {
    **{"down": "nodes", "class": "node_class", "": "origin", "prism": "origin"},
    **{"tasks": "application", "tasks.per_node": "tasks_per_node"},
}


@contextlib.contextmanager
def _as_arguments() -> Iterator[None]:
    """Name the arguments of `Model` in an `InputError` that names fields of a document."""
    try:
        yield
    except InputError as error:
        for fault in error.faults:
            own = re.sub(
                r"^((running|queue)\[\d+\]|regions\.[^\[]*\[0\])\.?", "", fault.field or ""
            )
            own = re.sub(r"^sets\..*", "nodes", own)
            fault.field = _ARGUMENTS.get(own, own)
        raise


def _fields_of(job: RunningJob | Request) -> dict[str, Any]:
    return {name: value for name, value in job if name in job.model_fields_set}


def _request_fields(**given: Any) -> dict[str, Any]:
    """Return the fields of a request that arguments stand for."""
    per_node = given.pop("tasks_per_node", 1)
    if given.get("application") is not None:
        application = application_of(given.pop("application"))
        if not isinstance(application, AnyApplication):
            expected = "an application such as tp.grid(4, 4)"
            raise InputError(expected, field="application", found=type(application).__name__)
        given["tasks"] = {"application": application, "per_node": per_node}
    return _with_patterns(given)


def _with_patterns(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("patterns") is not None:
        given["patterns"] = _pattern_uses(given["patterns"])
    return given


def torus(
    *shape: int,
    nodes_per_router: int = 1,
    bandwidth: Sequence[int] | None = None,
    wrap: bool | Sequence[bool] = True,
    classes: Mapping[str, Nodes] | None = None,
    service: Nodes = "",
    names: Sequence[str] | None = None,
    anchored: Sequence[Sequence[int] | Mapping[str, Sequence[int]]] | None = None,
    name: str | None = None,
) -> TorusModel:
    """Return a torus of routers.

    Parameters
    ----------
    shape
        Routers along every dimension.
    nodes_per_router
        Nodes on every router; node n is on router ``n // nodes_per_router``, and routers count
        the last dimension fastest.
    bandwidth
        The bandwidth of the links of every dimension, relative to each other; all 1 by default.
    wrap
        Whether the dimensions close, all or each.
    classes
        Nodes of every class other than the default one, ``compute``.
    service
        Nodes that run no jobs.
    names
        What nodes are called, in the order of their numbers: all, or all but the service nodes.
    anchored
        The only prisms that jobs may have, as on Slurm's `topology/torus3d`: shapes such as
        ``(2, 2, 1)``, or ``{"dims": (2, 2, 1), "seed": (0, 0, 1), "spacing": (1, 2, 1)}``; by
        default the seed is 0, the spacing the shape itself.

    Raises
    ------
    InputError
        With the argument at fault.
    """
    wraps = _each(wrap, len(shape), bool)
    is_torus = any(wraps) if isinstance(wraps, list) else True
    kind = "torus" if is_torus else "mesh"
    sizes = [fitting(extent, "int", f"shape[{k}]") for k, extent in enumerate(shape)]
    return _checked(
        TorusModel,
        name=name or f"{kind}-{'x'.join(map(str, sizes))}",
        shape=sizes,
        wrap=wraps,
        bandwidth=_listed(bandwidth),
        nodes_per_router=nodes_per_router,
        classes={
            key: _node_text(nodes, f"classes[{key}]")
            for key, nodes in _items(classes or {}, "classes", "nodes by class")
        },
        service=_node_text(service, "service"),
        names=None if names is None else _node_text(names, "names"),
        anchored=_anchored_shapes(anchored),
    )


def _anchored_shapes(shapes: Any) -> Any:
    if not isinstance(shapes, Iterable) or isinstance(shapes, str):
        return shapes
    fields = (one if isinstance(one, Mapping) else {"dims": one} for one in shapes)
    return [{name: _listed(numbers) for name, numbers in one.items()} for one in fields]


def mesh(*shape: int, **options: Any) -> TorusModel:
    """Return a mesh: a torus none of whose dimensions closes. It takes the options of `torus`."""
    return torus(*shape, wrap=False, **options)


def tree(*sizes: int, leaves: Mapping[str, Nodes] | None = None, name: str = "tree") -> TreeModel:
    """Return a switch tree.

    Parameters
    ----------
    sizes
        Switches below every switch, from the root down, and the nodes of a leaf at the end:
        ``tree(24, 16)`` is a root above 24 leaves of 16 nodes.
    leaves
        Instead of sizes: the nodes of every leaf switch below one root.

    Raises
    ------
    InputError
        If there is not just one of the two, or numbers are out of range.
    """
    if bool(sizes) == bool(leaves):
        raise InputError("sizes such as tree(24, 16), or leaves", field="tree")
    if not leaves:
        numbers = [fitting(size, "int", f"sizes[{k}]") for k, size in enumerate(sizes)]
        return regular_tree(numbers, f"tree:{'x'.join(map(str, numbers))}")
    switches = [
        _checked(SwitchModel, name=leaf, nodes=_node_text(own, f"leaves[{leaf}]"))
        for leaf, own in _items(leaves, "leaves", "nodes by leaf switch")
    ]
    if len(switches) > 1:
        below = format_host_list(leaves)
        switches.append(_checked(SwitchModel, name=f"root-{name}", switches=below))
    return _checked(TreeModel, kind="tree", name=name, switches=switches)


def cubes(
    num_cubes: int, side: Sequence[int] = (4, 4, 4), *, name: str | None = None
) -> CubesModel:
    """Return a pod of cubes that optical switches join, such as ``cubes(64)`` for a TPU v4.

    Parameters
    ----------
    num_cubes
        How many cubes there are.
    side
        Chips of a cube along every dimension; chip n is in cube ``n // prod(side)``, where chips
        count the last dimension fastest.

    Raises
    ------
    InputError
        With the argument at fault.
    """
    sides = _listed(side)
    told = "x".join(map(str, sides)) if isinstance(sides, list) else sides
    name = name or f"cubes-{num_cubes}-{told}"
    return _checked(CubesModel, kind="cubes", name=name, cubes=num_cubes, side=sides)


def hierarchy(
    sizes: Mapping[str, int],
    *,
    capacity: int | Mapping[str, int] = 1,
    name: str = "hierarchy",
) -> HierarchyModel:
    """Return a regular hierarchy of domains with hosts at the bottom.

    Parameters
    ----------
    sizes
        By level, top first, how many domains are in every domain of the level above; the last one
        says how many hosts: ``{"block": 4, "rack": 8, "host": 18}``. Hosts are called h0, h1, ...
    capacity
        Of every host: the number of its slots, or amounts of resources by name.

    Raises
    ------
    InputError
        With the argument at fault.
    """
    own = fitting(capacity, "int | Mapping[str, int]", "capacity")
    own = own if isinstance(own, dict) else {"slots": own}
    items = _items(sizes, "sizes", "numbers by level, such as {'rack': 8, 'host': 18}")
    numbers = {level: fitting(size, "int", f"sizes[{level}]") for level, size in items}
    try:
        return regular_hierarchy(numbers, own, name)
    except ValidationError as error:
        raise faults_of(error, HierarchyModel, {"name": name, "levels": list(sizes)}) from None


def grid(
    *shape: int | str,
    periodic: bool | str | Sequence[bool] = False,
    bytes: int | str | Sequence[int] = 1,
    diagonal_bytes: Sequence[int] | None = None,
) -> GridApplication:
    """Return an application whose tasks form a Cartesian grid and exchange halos.

    Parameters
    ----------
    shape
        Tasks along every dimension, 1 to 4 of them; the last one counts fastest. Or ``"8x8x8"``.
    periodic
        Whether the dimensions close, all or each; or the letters of those that do, ``"xyz"``.
    bytes
        The size of a message to a neighbour, in all dimensions or in each; as a text ``"8/4,8"``,
        where 8 go up the first dimension and 4 down.
    diagonal_bytes
        Bytes to the neighbours that differ in 2, 3, ... dimensions; none by default.

    Raises
    ------
    InputError
        With the argument at fault.
    """
    if len(shape) == 1 and isinstance(shape[0], str):
        shape = parse_extents(shape[0], "shape")
    num_dims = len(shape)
    if isinstance(periodic, str):
        letters = "xyzt"[:num_dims]
        if not {*periodic} <= {*letters}:
            raise InputError(f"letters of {letters}", field="periodic", value=periodic)
        periodic = [letter in periodic for letter in letters]
    if isinstance(bytes, str):
        sizes: Any = parse_bytes(bytes, num_dims, "bytes")
    else:
        sizes = _each(bytes, num_dims, int)
        sizes = [[size, size] for size in sizes] if isinstance(sizes, list) else sizes
    return _checked(
        GridApplication,
        shape=_listed(shape),
        periodic=_each(periodic, num_dims, bool),
        bytes=sizes,
        stencil="nearest" if diagonal_bytes is None else "full",
        diagonal_bytes=_listed(diagonal_bytes or []),
    )


def graph(messages: Any, num_tasks: int | None = None) -> GraphApplication:
    """Return an application with any communication graph.

    `map`, `recognise` and requests take what this takes, except triples, without this call.

    Parameters
    ----------
    messages
        The bytes of messages, in whole numbers: a square array or a sparse matrix of SciPy, of what
        every task sends to every other; triples of source, target and bytes, or an array of shape
        ``(num_messages, 3)``; a data frame of pandas, with the columns ``source``, ``target`` and
        ``bytes``, else ``weight``, or square, with the same labels of rows and columns in any
        order; or a graph of NetworkX with ``bytes``, else ``weight``, on its edges, each one
        message. Where no bytes are given at all, a message has 1, and a warning says so. Nodes and
        labels that are not just numbers become the names of tasks.
    num_tasks
        By default one more than the largest task that occurs, or as many as the matrix has rows.

    Raises
    ------
    InputError
        With the argument, and the place in it, at fault.
    """
    return _graph(messages, num_tasks, "messages")


def _graph(messages: Any, num_tasks: int | None, field: str) -> GraphApplication:
    found = traffic_of(messages, field)
    sources, targets, sizes = (np.asarray(part).tolist() for part in found[:3])
    known = plain(num_tasks) or found.num_tasks or 1 + max((*sources, *targets), default=0)
    fields = {"sources": sources, "targets": targets, "bytes": sizes, "num_tasks": known}
    try:
        return GraphApplication.model_validate(fields | {"names": found.names})
    except ValidationError as error:
        raise faults_of(error, GraphApplication, fields) from None


def application_of(given: Any, field: str = "application") -> Any:
    """Return the graph of an array, data frame, sparse matrix or graph; all else as it is."""
    return _graph(given, None, field) if is_foreign(given) else given


COSTS = {
    "hops": {"cost": "hops"},
    "multicast": {"cost": "multicast"},
    "reduction": {"cost": "reduction"},
    "node": {"once": "node"},
}
"""What the messages of a rule may cost: their hops, the links of trees, or once per node."""


def objects(
    arrays: Mapping[str, Sequence[int]],
    rules: Mapping[str, int],
    *,
    loads: Mapping[str, int | Sequence[int]] | None = None,
    costs: Mapping[str, str] | None = None,
    periodic: bool = False,
    name: str = "objects",
) -> ObjectsApplication:
    """Return an application of arrays of objects and rules of messages (docs/guide/objects.md).

    Parameters
    ----------
    arrays
        The shape of every array, by its name.
    rules
        The bytes of a message, by its rule: ``{"G(s,*) -> R(s,*)": 8}``.
    loads
        Loads of the objects of an array: one for all, or one for each, row-major; 1 by default.
    costs
        ``"multicast"`` or ``"reduction"`` by rule: its messages are trees, which cost their links.
        ``"node"``: what an element sends goes once to every node, however many receive it there.
    periodic
        Whether sums of an index, such as ``i+1``, wrap round.

    Raises
    ------
    InputError
        With the argument at fault.
    """
    given = dict(_items(loads or {}, "loads", "loads by array"))
    shapes = dict(_items(arrays, "arrays", "shapes by array"))
    sizes = dict(_items(rules, "rules", "bytes by rule"))
    for one in given:
        if one not in arrays:
            raise unknown_name(one, arrays, field="loads")
    for rule, cost in _items(costs or {}, "costs", "costs by rule"):
        if rule not in rules:
            raise unknown_name(rule, rules, field="costs")
        if cost not in COSTS:
            raise unknown_name(cost, COSTS, field=f"costs[{rule}]")
    listed: list[dict[str, Any]] = []
    for array, shape in shapes.items():
        load = given.get(array, 1)
        loads_of = _listed(load)
        own = {"loads": loads_of} if isinstance(loads_of, list) else {"load": load}
        listed.append({"name": array, "shape": _listed(shape), **own})
    return _checked(
        ObjectsApplication,
        schema_version="topoplace.application/1",
        name=name,
        arrays=listed,
        messages=[
            {
                "rule": rule,
                "bytes": size,
                "periodic": periodic,
                **COSTS[(costs or {}).get(rule, "hops")],
            }
            for rule, size in sizes.items()
        ],
    )


def _checked(model: type[Kind], /, **given: Any) -> Kind:
    """Return a document; its faults are told as those of a file, where whole floats are none."""
    fields = plain(given)
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        found = faults_of(error, model, fields)
    for fault in found.faults:
        if isinstance(fault.value, float) and fault.expected == "an integer":
            fault.expected = WHOLE
    raise found


def _listed(values: Any) -> Any:
    """Return values of any iterable as a list; others as the model finds them."""
    if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
        return values
    return plain(list(values))


def _each(values: Any, number: int, kind: type) -> Any:
    """Return one value for each of a number of dimensions; those that are given as a list."""
    value = plain(values)
    return [value] * number if isinstance(value, kind) else _listed(values)


def _items(given: Any, field: str, expected: str) -> Iterable[tuple[Any, Any]]:
    """Return the items of a dictionary; `InputError` if another type is given."""
    if not isinstance(given, Mapping):
        raise InputError(f"a dictionary of {expected}", field=field, value=given)
    return given.items()


def _pattern_uses(shares: Any) -> list[dict[str, Any]]:
    items = _items(shares, "patterns", "shares by pattern, such as {'ring': 100}")
    return [{"pattern": name, "share": share} for name, share in items]


def _node_text(nodes: Any, field: str = "nodes") -> str:
    if isinstance(nodes, str):
        return nodes
    listed: list[Any] = plain(list(nodes)) if isinstance(nodes, Iterable) else [None]
    if any(isinstance(node, str) for node in listed):
        return format_host_list(map(str, listed))
    if not all(isinstance(node, int) for node in listed):
        expected = "numbers of nodes, names, or a text such as 0-47,60"
        raise InputError(expected, field=field, value=nodes)
    return format_node_set(sorted(listed))
