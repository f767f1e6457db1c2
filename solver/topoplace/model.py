"""Instances built in Python: machines, what runs on them, what waits, and applications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from topoplace.errors import InputError, unknown_name
from topoplace.machine import Prism, format_node_set
from topoplace.machine.hostlist import format_host_list
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
    MachineModel,
    PrismModel,
    Request,
    RunningJob,
    ShapeWeights,
    Snapshot,
    SwitchModel,
    TorusModel,
    TreeModel,
    TreeObjective,
)
from topoplace.snapshot.schema import Model as Document
from topoplace.snapshot.state import torus_of

Machine = MachineModel
Nodes = str | Iterable[int] | Iterable[str]
"""Nodes: numbers, names (on trees), or a text such as ``0-47,60`` or ``n[01-16]``."""

Kind = TypeVar("Kind", bound=Document)


class Model:
    """A snapshot of a machine that is built step by step: running jobs, requests, nodes down.

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
        document = {"schema": SNAPSHOT_SCHEMA, "name": name, "machine": machine}
        self.snapshot = _checked(Snapshot, **document)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Model:
        """Return a model that begins as a snapshot, to add to it."""
        resolved = resolve_machine(snapshot)
        assert not isinstance(resolved.machine, str)
        model = cls(resolved.machine)
        model.snapshot = resolved
        return model

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

        Raises
        ------
        InputError
            With the argument at fault. What other jobs and the machine decide (nodes taken twice,
            say) is checked when the model is solved or saved.
        """
        prism = None
        if origin is not None or extents is not None:
            prism = _checked(PrismModel, origin=_listed(origin), extents=_listed(extents))
        if nodes is None:
            nodes = self._nodes_of(prism)
        job = {"id": id, "nodes": _node_text(nodes), "prism": prism, "communication": communication}
        added = _checked(RunningJob, **job, patterns=_pattern_uses(patterns), takes=takes)
        self._change(running=[*self.snapshot.running, added])

    def add_request(
        self,
        id: str,
        nodes: int,
        *,
        shapes: str | None = None,
        priority: int = 1,
        node_class: str | None = None,
        region: str | None = None,
        communication: str = "strict",
        patterns: Mapping[str, int] | None = None,
        application: AnyApplication | None = None,
        tasks_per_node: int = 1,
        segment: int | None = None,
        **on_hierarchy: Any,
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
            What every node started is worth.
        node_class, region
            On tori: class of its nodes, and region in which its prism has to lie.
        communication, patterns
            As in `add_running`.
        application, tasks_per_node
            On tori: a `grid`, `graph` or `parallelism` whose tasks are mapped to its nodes, and the
            most tasks on a node, where the objective is ``nodes,hop-bytes``.
        segment
            On tori with anchored prisms: nodes of every prism, of which the job has several.
        on_hierarchy
            The fields of a request on a hierarchy: `takes`, `segments`, `required`, `preferred`,
            `exclusive`, `spread`, `balance`, `at_most`, `apart`, `parts` and the like
            (docs/guide/hierarchies.md).

        Raises
        ------
        InputError
            With the argument at fault.
        """
        added = _checked(
            Request,
            **{"class": node_class},
            id=id,
            nodes=nodes,
            shapes=shapes,
            priority=priority,
            region=region,
            communication=communication,
            patterns=_pattern_uses(patterns),
            tasks=application and {"application": application, "per_node": tasks_per_node},
            segment=segment,
            **on_hierarchy,
        )
        self._change(queue=[*self.snapshot.queue, added])

    def add_down(self, nodes: Nodes) -> None:
        """Say that nodes are down, besides those that are down already.

        Whether the machine has them is checked when the model is solved or saved.
        """
        self._change(down=",".join(filter(None, (self.snapshot.down, _node_text(nodes)))))

    def add_region(self, name: str, origin: Sequence[int], extents: Sequence[int]) -> None:
        """Add a prism, in routers, to a region that requests may ask for."""
        prism = _checked(PrismModel, origin=_listed(origin), extents=_listed(extents))
        if not isinstance(name, str):
            raise InputError("the name of a region", field="name", value=name)
        regions = self.snapshot.regions
        self._change(regions={**regions, name: [*regions.get(name, ()), prism]})

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

    def _nodes_of(self, prism: PrismModel | None) -> str:
        if prism is None:
            raise InputError("the nodes of the job", field="nodes", found="nothing")
        expected = "a torus or mesh for a prism"
        torus = torus_of(self.machine.only(TorusModel, expected, field="origin"))
        box = Prism(tuple(prism.origin), tuple(prism.extents))
        box.require_inside(torus, "origin")
        return format_node_set(torus.nodes_of(box.routers(torus)))


def torus(
    *shape: int,
    nodes_per_router: int = 1,
    bandwidth: Sequence[int] | None = None,
    wrap: bool | Sequence[bool] = True,
    classes: Mapping[str, Nodes] | None = None,
    service: Nodes = "",
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
    return _checked(
        TorusModel,
        name=name or f"{kind}-{'x'.join(map(str, shape))}",
        shape=_listed(shape),
        wrap=wraps,
        bandwidth=_listed(bandwidth),
        nodes_per_router=nodes_per_router,
        classes={
            key: _node_text(nodes, f"classes[{key}]")
            for key, nodes in _items(classes or {}, "classes", "nodes by class")
        },
        service=_node_text(service, "service"),
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
        spec = f"tree:{'x'.join(map(str, sizes))}"
        if not all(isinstance(size, int) for size in sizes):
            raise InputError("numbers of switches and nodes", field="sizes", value=sizes)
        return regular_tree(sizes, spec)
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
    own: dict[str, Any] = {"slots": capacity}
    if not isinstance(capacity, int):
        own = dict(_items(capacity, "capacity", "amounts by resource, or a number of slots"))
    for level, size in _items(sizes, "sizes", "numbers by level, such as {'rack': 8, 'host': 18}"):
        if not isinstance(size, int):
            raise InputError("a number of domains or hosts", field=f"sizes[{level}]", value=size)
    try:
        return regular_hierarchy(sizes, own, name)
    except ValidationError as error:
        raise faults_of(error, HierarchyModel, {"name": name, "levels": list(sizes)}) from None


def grid(
    *shape: int,
    periodic: bool | Sequence[bool] = False,
    bytes: int | Sequence[int] = 1,
    diagonal_bytes: Sequence[int] | None = None,
) -> GridApplication:
    """Return an application whose tasks form a Cartesian grid and exchange halos.

    Parameters
    ----------
    shape
        Tasks along every dimension, 1 to 4 of them; the last one counts fastest.
    periodic
        Whether the dimensions close, all or each.
    bytes
        The size of a message to a neighbour, in all dimensions or in each.
    diagonal_bytes
        Bytes to the neighbours that differ in 2, 3, ... dimensions; none by default.

    Raises
    ------
    InputError
        With the argument at fault.
    """
    num_dims = len(shape)
    sizes = _each(bytes, num_dims, int)
    return _checked(
        GridApplication,
        shape=_listed(shape),
        periodic=_each(periodic, num_dims, bool),
        bytes=[[size, size] for size in sizes] if isinstance(sizes, list) else sizes,
        stencil="nearest" if diagonal_bytes is None else "full",
        diagonal_bytes=_listed(diagonal_bytes or []),
    )


_MESSAGES = "triples of source, target and bytes, or a square array"


def graph(
    messages: Iterable[tuple[int, int, int]] | np.typing.NDArray[Any],
    num_tasks: int | None = None,
) -> GraphApplication:
    """Return an application with any communication graph.

    Parameters
    ----------
    messages
        Source, target and bytes of every message, shape ``(num_messages, 3)``; or a square array
        of the bytes from every task to every other. Integers.
    num_tasks
        By default one more than the largest task that occurs.

    Raises
    ------
    InputError
        With the argument at fault.
    """
    try:
        table = np.asarray(messages if isinstance(messages, np.ndarray) else list(messages))
    except (TypeError, ValueError):
        raise InputError(_MESSAGES, field="messages", found="others") from None
    if table.dtype.kind == "f" and ((np.rint(table) == table) & (abs(table) < 1 << 53)).all():
        table = table.astype(np.int64)
    if table.dtype.kind not in "biu":
        raise InputError("integers", field="messages", found=f"an array of {table.dtype}")
    if isinstance(messages, np.ndarray) and table.ndim == 2 and len(set(table.shape)) == 1:
        num_tasks = num_tasks or len(table)
        sources, targets = np.nonzero(table)
        table = np.column_stack([sources, targets, table[sources, targets]])
    if table.ndim != 2 or table.shape[1] != 3:
        found = f"an array of shape {table.shape}"
        raise InputError(_MESSAGES, field="messages", found=found)
    return _checked(
        GraphApplication,
        num_tasks=num_tasks or int(table[:, :2].max(initial=0)) + 1,
        sources=table[:, 0].tolist(),
        targets=table[:, 1].tolist(),
        bytes=table[:, 2].tolist(),
    )


COSTS = ("hops", "multicast", "reduction")
"""What the messages of a rule may cost: their hops, or the links of trees."""


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
        own = {"load": load} if isinstance(load, int) else {"loads": _listed(load)}
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
                "cost": (costs or {}).get(rule, "hops"),
            }
            for rule, size in sizes.items()
        ],
    )


def _checked(model: type[Kind], /, **fields: Any) -> Kind:
    """Return a document; its faults are told as those of a file."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise faults_of(error, model, fields) from None


def _listed(values: Any) -> Any:
    """Return numbers of any type and sequence as a list of ints; others as the model finds them."""
    if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
        return values
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    """Return a whole number of another type, such as numpy's, as an int; all else as it is."""
    is_whole = isinstance(value, Real) and not isinstance(value, bool) and value % 1 == 0
    return int(value) if is_whole else value


def _each(values: Any, number: int, kind: type) -> Any:
    """Return one value for each of a number of dimensions; those that are given as a list."""
    return [values] * number if isinstance(values, kind) else _listed(values)


def _items(given: Any, field: str, expected: str) -> Iterable[tuple[Any, Any]]:
    """Return the items of a dictionary; `InputError` if another type is given."""
    if not isinstance(given, Mapping):
        raise InputError(f"a dictionary of {expected}", field=field, value=given)
    return given.items()


def _pattern_uses(shares: Any) -> list[dict[str, Any]] | None:
    if shares is None:
        return None
    items = _items(shares, "patterns", "shares by pattern, such as {'ring': 100}")
    return [{"pattern": name, "share": share} for name, share in items]


def _node_text(nodes: Any, field: str = "nodes") -> str:
    if isinstance(nodes, str):
        return nodes
    listed: list[Any] = [_plain(node) for node in nodes] if isinstance(nodes, Iterable) else [None]
    if any(isinstance(node, str) for node in listed):
        return format_host_list(map(str, listed))
    if not all(isinstance(node, int) for node in listed):
        expected = "numbers of nodes, names, or a text such as 0-47,60"
        raise InputError(expected, field=field, value=nodes)
    return format_node_set(sorted(listed))
