"""Where tasks may go: the nodes of a machine, a snapshot or a placed job, or a matrix."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, number_of, unknown_name
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import expand_host_list
from topoplace.machine.topology import AnyMachine
from topoplace.mapping.graphfiles import read_matrix_machine
from topoplace.mapping.problem import MachineToMap, MappingProblem, machine_of, prepare_mapping
from topoplace.result import RESULT_SCHEMA, PlacementResult, Result
from topoplace.result.placement import HierarchyResult
from topoplace.result.reading import parse_result
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import file_meant, parse_object, read_bytes
from topoplace.snapshot.hierarchy_state import HierarchyState, hierarchy_of, prepare_hierarchy
from topoplace.snapshot.machines import (
    load_any,
    load_machine,
    regular_hierarchy,
    resolve_machine,
)
from topoplace.snapshot.reading import other_snapshot, parted
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    AnyApplication,
    CubesModel,
    HierarchyModel,
    MappingInstance,
    MatrixModel,
    ObjectsGraph,
    Snapshot,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.state import SnapshotState, prepare, torus_of
from topoplace.types import IntArray

MATRIX = "matrix:"
"""The prefix of the file of a matrix of distances that is a machine."""
SHAREDMAP = "sharedmap:"
"""The prefix of a hierarchy and distances in the form of SharedMap: ``4:8:6/1:10:100``."""
MOST_PER_NODE = 1 << 20
_NUMBERS = re.compile(r"[\d\s,-]*")

Placed = PlacementResult | AllocationResult | HierarchyResult
Document = Placed | Snapshot | TorusModel | TreeModel | HierarchyModel
Source = str | Document
"""A document, or its file, shipped name or shorthand."""


@dataclass(frozen=True)
class Places:
    """A machine, its nodes that tasks may go to (ascending), and where both come from."""

    machine: MachineToMap
    nodes: IntArray
    source: str
    level_costs: tuple[int, ...] | None = None
    units: tuple[int, ...] = (1,)
    """How many units a job has on its nodes, each number once, ascending."""

    @property
    def tasks_per_node(self) -> int:
        """Most tasks on a node if nobody says it: as many as units, one if there are none."""
        if len(self.units) > 1:
            shown = ", ".join(map(str, self.units))
            expected = f"the most tasks on a node, as the job's hosts differ in units ({shown})"
            raise InputError(expected, field="--tasks-per-node", found="nothing")
        return self.units[0]

    @property
    def node_set(self) -> str:
        """The nodes as ranges."""
        return format_node_set(self.nodes.tolist())

    def only(self, subset: str, field: str = "--subset") -> Places:
        """Return the part of the places on the nodes of a set: ``0-47,60``, or ``n[01-16]``.

        Nodes of trees and hierarchies have names; numbers are positions there.

        Raises `InputError` if the set is malformed, or names a node that is not one of these.
        """
        wanted = self._numbers(subset, field)
        strange = np.setdiff1d(wanted, self.nodes)
        if len(strange):
            raise InputError(
                f"some of the {number_of(len(self.nodes), 'usable node')}",
                field=field,
                value=int(strange[0]),
            )
        return replace(self, nodes=wanted, source=f"{self.source}, some nodes")

    def _numbers(self, subset: str, field: str) -> IntArray:
        if isinstance(self.machine, TreeModel | HierarchyModel):
            machine, listed = hierarchy_of(self.machine), expand_host_list(subset, field)
            if not _NUMBERS.fullmatch(subset) or {*listed} <= {*machine.host_names}:
                return np.unique(numbers_of(machine, listed, field))
        return parse_node_set(subset, machine_of(self.machine).num_nodes, field)

    def within(self, text: str, field: str = "--within") -> Places:
        """Return the part on a prism of routers such as ``12x8x12@0,4,0``; by default from 0 on.

        Raises `InputError` if the text is malformed or the prism does not lie on the machine.
        """
        match = re.fullmatch(r"(\d{1,7}(?:x\d{1,7})*)(?:@(\d{1,7}(?:,\d{1,7})*))?", text)
        if match is None:
            raise InputError("a prism such as 12x8x12@0,4,0", field=field, value=text)
        if not isinstance(self.machine, TorusModel):
            raise InputError("a torus or mesh beside it (or --subset)", field=field, value=text)
        torus = torus_of(self.machine)
        extents = tuple(map(int, match[1].split("x")))
        origin = tuple(map(int, match[2].split(","))) if match[2] else (0,) * len(extents)
        prism = Prism(origin, extents)
        prism.require_inside(torus, field)
        inside = np.isin(self.nodes // torus.nodes_per_router, prism.routers(torus))
        return Places(self.machine, self.nodes[inside], f"{self.source}, {prism.text}")


def load_places(
    on: Source | MatrixModel,
    *,
    level_costs: Sequence[int] | None = None,
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
) -> Places:
    """Return the nodes that a machine, a snapshot or a result offers.

    Parameters
    ----------
    on
        A machine (all its nodes but the service nodes; also a shipped name, a shorthand,
        ``matrix:FILE``, or ``sharedmap:4:8:6/1:10:100``), a snapshot (its usable nodes, or those of
        a running job), or a placement result (the nodes of a job it started); the document or its
        file.
    level_costs
        On trees and hierarchies, what a byte costs by the level at which its ends meet, the lowest
        first.
    job
        The job inside whose nodes to map.
    node_class
        Class of the nodes of a machine or snapshot; its default class if not given.
    within
        A prism such as ``12x8x12@0,0,0`` to stay inside.

    Raises
    ------
    InputError
        If there is no such thing, or no such job or class in it; or if a matrix is asked for a
        job, a class or a prism.
    """
    if isinstance(on, str) and on.startswith(SHAREDMAP):
        on, given = _sharedmap(on)
        level_costs = given if level_costs is None else level_costs
    document = _document(on, job) if isinstance(on, str) else on
    named = off_torus(document, job)
    if named is not None:
        if node_class is not None:
            raise InputError("a torus or mesh beside it", field="--class", value=node_class)
        label = on if isinstance(on, str) else named[0].name
        source = Path(label).name + (f", job {job}" if job else "")
        costs = tuple(level_costs) if level_costs else None
        found = Places(named[0], np.sort(named[2]), source, costs, _units_of(document, job))
        return found if within is None else found.within(within)
    if level_costs is not None:
        expected = "a tree or hierarchy beside it"
        raise InputError(expected, field="--level-costs", value=":".join(map(str, level_costs)))
    off = TreeModel | HierarchyModel | AllocationResult | HierarchyResult
    assert not isinstance(document, off)
    if isinstance(document, MatrixModel):
        for field, value in (("--job", job), ("--class", node_class), ("--within", within)):
            if value is not None:
                expected = "a machine that is no matrix (or --subset)"
                raise InputError(expected, field=field, value=value)
        nodes = np.arange(len(document.distances), dtype=np.int64)
        return Places(document, nodes, document.source or document.name)
    if isinstance(document, PlacementResult):
        label = on if isinstance(on, str) else document.instance.name
        machine = resolve_machine(document.instance).machine
        if not isinstance(machine, TorusModel):
            raise InputError("a torus or mesh machine", file=label, field="machine.kind")
        job, nodes = _started(document, job)
        places = Places(machine, nodes, f"{Path(label).name}, job {job}")
    else:
        label = on if isinstance(on, str) else document.name
        if not isinstance(document, Snapshot):
            document = Snapshot(
                schema_version="topoplace.snapshot/1", name=document.name, machine=document
            )
        places = _of_state(label, prepare(resolve_machine(document)), job, node_class)
    return places if within is None else places.within(within)


def _document(spec: str, job: str | None) -> Document | MatrixModel:
    problem = _field_of(spec, "problem")
    if _field_of(spec, "schema") == RESULT_SCHEMA and problem in ("mapping", "repack"):
        expected = "the result of a placement"
        raise InputError(expected, file=spec, field="problem", found=f"that of {problem}")
    found = document_of(spec)
    if job is not None and not isinstance(found, Result | Snapshot):
        raise InputError("a snapshot or a result that has jobs", field="--on", value=spec)
    if isinstance(found, Result) and not isinstance(found, Placed):
        expected = "the result of a placement"
        raise InputError(expected, file=spec, field="problem", value=found.problem)
    return found


def document_of(spec: str) -> Document | MatrixModel | Result[Any, Any, Any]:
    """Return the machine, the snapshot or the result that a file, name or shorthand stands for."""
    if spec.startswith(MATRIX):
        return read_matrix_machine(spec.removeprefix(MATRIX))
    if file_meant(parted(spec)[0]).exists():
        snapshot = other_snapshot(spec)
        if snapshot is not None:
            return snapshot
        schema = _field_of(spec, "schema")
        if schema == RESULT_SCHEMA:
            return parse_result(read_bytes(spec), spec)
        if schema == SNAPSHOT_SCHEMA:
            return load_any(spec).snapshot
    machine = load_machine(spec)
    if isinstance(machine, CubesModel):
        expected, found = "a torus, mesh, matrix, tree or hierarchy", f"a machine of {machine.kind}"
        raise InputError(expected, field="--on", value=spec, found=found)
    return machine


_SHAREDMAP = re.compile(r"(\d{1,7}(?::\d{1,7})*)/(\d{1,7}(?::\d{1,7})*)")


def _sharedmap(spec: str) -> tuple[HierarchyModel, tuple[int, ...]]:
    """Return the hierarchy and the costs of ``sharedmap:4:8:6/1:10:100``.

    SharedMap lists both from the bottom up: 4 processing elements on a processor at distance 1, 8
    processors on a node, whose elements are at distance 10, and 6 nodes (Schulz and Woydt 2025).
    """
    match = _SHAREDMAP.fullmatch(spec.removeprefix(SHAREDMAP))
    sizes, costs = (
        ([int(x) for x in part.split(":")] for part in match.groups()) if match else ([], [])
    )
    if not sizes or len(sizes) != len(costs) or len(sizes) > len(SHAREDMAP_LEVELS):
        expected = "a hierarchy and as many distances, such as sharedmap:4:8:6/1:10:100"
        raise InputError(expected, field="--on", value=spec)
    named = dict(zip(SHAREDMAP_LEVELS[-len(sizes) :], sizes[::-1], strict=True))
    name = spec.replace(":", "-").replace("/", "-")
    return regular_hierarchy(named, {"slots": 1}, name), tuple(costs)


SHAREDMAP_LEVELS = (*(f"level{k}" for k in range(15, 0, -1)), "element")
"""Names of the levels of such a hierarchy, from its last one up."""


def _field_of(spec: str, name: str) -> object:
    """Return a field of a JSON document, such as its schema; None for other files."""
    with contextlib.suppress(InputError):
        return parse_object(read_bytes(spec), spec).get(name)
    return None


def _of_state(spec: str, state: SnapshotState, job: str | None, node_class: str | None) -> Places:
    machine = state.snapshot.machine
    assert isinstance(machine, TorusModel)
    if job is not None:
        nodes_of = {running.id: running.nodes for running in state.running}
        if job not in nodes_of:
            raise _one_of(nodes_of, "running job", "--job", job)
        return Places(machine, np.sort(nodes_of[job]), f"{Path(spec).name}, job {job}")
    wanted = node_class or state.classes[0]
    if wanted not in state.classes:
        raise _one_of(state.classes, "class", "--class", wanted)
    usable = state.usable & (state.node_class == state.classes.index(wanted))
    return Places(machine, np.flatnonzero(usable), f"{Path(spec).name}, class {wanted}")


# ---- Trees and hierarchies, whose nodes have names -----------------------------------------------

OffTorus = tuple[TreeModel | HierarchyModel, Hierarchy, IntArray]
"""A tree or hierarchy, as a document and as a machine, and the nodes meant."""


def off_torus(document: object, job: str | None) -> OffTorus | None:
    """Return a tree or hierarchy and the nodes meant, in rank order; None for a torus or matrix.

    For a snapshot they are the free nodes, on a hierarchy the hosts that are not full, or the nodes
    of a running job; for a result those of a job that it started, on a hierarchy each host once and
    in their order.
    """
    if isinstance(document, AllocationResult | HierarchyResult):
        model = resolve_machine(document.instance).machine
        assert isinstance(model, TreeModel | HierarchyModel)
        return model, hierarchy_of(model), _started(document, job)[1]
    if isinstance(document, TreeModel | HierarchyModel):
        if job is not None:
            raise InputError("a snapshot or a result that has jobs", field="job", value=job)
        machine = hierarchy_of(document)
        return document, machine, np.arange(machine.num_nodes)
    if isinstance(document, Snapshot):
        resolved = resolve_machine(document)
        if isinstance(resolved.machine, TreeModel | HierarchyModel):
            return _of_named(prepare_hierarchy(resolved), job)
    return None


def _started(result: Placed, job: str | None) -> tuple[str, IntArray]:
    """Return a job that a result starts, and its nodes, each once, in the order of its ranks."""
    nodes_of = {start.request: start.nodes for start in result.placements}
    if job is None and len(nodes_of) == 1:
        (job,) = nodes_of
    if job is None or job not in nodes_of:
        raise _one_of(nodes_of, "started job", "--job", job)
    return job, np.array(list(dict.fromkeys(nodes_of[job])), dtype=np.int64)


def _units_of(document: object, job: str | None) -> tuple[int, ...]:
    """Return how many units the job of a result has on its hosts, each number once."""
    if not isinstance(document, HierarchyResult):
        return (1,)
    nodes_of = {start.request: start.nodes for start in document.placements}
    counts = np.unique(nodes_of[_started(document, job)[0]], return_counts=True)[1]
    return tuple(np.unique(counts).tolist())


def _of_named(state: HierarchyState, job: str | None) -> OffTorus:
    model, machine = state.snapshot.machine, state.machine
    assert isinstance(model, TreeModel | HierarchyModel)
    if job is not None:
        nodes_of = {running.id: running.nodes for running in state.snapshot.running}
        if job not in nodes_of:
            raise unknown_name(job, nodes_of, field="job")
        return model, machine, numbers_of(machine, expand_host_list(nodes_of[job] or ""))
    return model, machine, np.flatnonzero(state.free.any(axis=1))


def numbers_of(machine: AnyMachine, names: Iterable[str], field: str = "ranks") -> IntArray:
    """Return the numbers of nodes of a tree or hosts of a hierarchy."""
    assert isinstance(machine, Hierarchy)
    numbers = {name: number for number, name in enumerate(machine.host_names)}
    listed = list(names)
    strange = [name for name in listed if name not in numbers]
    if strange:
        raise InputError("nodes of the machine", field=field, value=strange[0], known=numbers)
    return np.array([numbers[name] for name in listed], dtype=np.int64)


def _one_of(known: Iterable[str], what: str, field: str, value: str | None) -> InputError:
    names = list(known)
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    expected = f"one {what} of: {shown}" if names else f"a {what}, of which there are none"
    found = "nothing" if value is None else None
    return InputError(expected, field=field, value=value, found=found, known=names)


def problem_on(
    places: Places,
    application: AnyApplication | ObjectsGraph,
    tasks_per_node: int | None = 1,
    *,
    name: str | None = None,
    file: str | None = None,
    **loaded: Any,
) -> MappingProblem:
    """Return the problem of mapping an application to places, with a limit of tasks on a node.

    For objects that is None, and `loaded` are the fields of the instance in its place. An instance
    is named as the kind of the application if not told otherwise; errors name the `file` that it
    was read from.

    Raises `InputError` if there are more tasks than places, or hop-bytes would not be exact in 64
    bits.
    """
    if tasks_per_node is not None and not 1 <= tasks_per_node <= MOST_PER_NODE:
        raise InputError(
            f"from 1 to {MOST_PER_NODE}", field="--tasks-per-node", value=tasks_per_node
        )
    instance = MappingInstance(
        schema_version="topoplace.mapping/1",
        name=name or application.kind,
        machine=places.machine,
        level_costs=list(places.level_costs) if places.level_costs else None,
        nodes=format_node_set(places.nodes.tolist()),
        tasks_per_node=tasks_per_node,
        application=application,
        source=places.source,
        **loaded,
    )
    try:
        return prepare_mapping(instance)
    except InputError as error:
        raise (error if file is None else error.located(file)) from None
