"""Where tasks may go: the nodes of a machine, a snapshot or a placed job, or a matrix."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.mapping.graph import IntArray
from topoplace.mapping.graphfiles import Qaplib, read_matrix_machine
from topoplace.mapping.problem import MappingProblem, machine_of, prepare_mapping
from topoplace.result import RESULT_SCHEMA, PlacementResult
from topoplace.snapshot.files import file_meant, parse_object, read_bytes, read_document
from topoplace.snapshot.load import load_snapshot
from topoplace.snapshot.machines import load_machine, resolve_machine
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    GraphApplication,
    GridApplication,
    MappingInstance,
    MatrixModel,
    Snapshot,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.state import SnapshotState, prepare, torus_of

# ---- Where tasks may go: the nodes of a machine, of a snapshot, or of a job placed in a result ---

Document = PlacementResult | Snapshot | TorusModel | TreeModel
Source = str | Document
"""A document, or its file, shipped name or shorthand."""


@dataclass(frozen=True)
class Allocation:
    """A machine and the nodes on it that tasks may go to, ascending."""

    machine: TorusModel
    nodes: IntArray
    source: str

    @property
    def node_set(self) -> str:
        """The nodes as ranges."""
        return format_node_set(self.nodes.tolist())

    def within(self, prism: Prism) -> Allocation:
        """Return the part of the allocation inside a prism of routers."""
        torus = torus_of(self.machine)
        prism.require_inside(torus, "--within")
        inside = np.isin(self.nodes // torus.nodes_per_router, prism.routers(torus))
        return Allocation(self.machine, self.nodes[inside], f"{self.source}, {prism.text}")


def load_allocation(
    source: Source, job: str | None = None, node_class: str | None = None
) -> Allocation:
    """Return the nodes that a machine, a snapshot or a result offers.

    Parameters
    ----------
    source
        A machine (all its nodes but the service nodes; also a shipped name or a shorthand), a
        snapshot (its usable nodes, or those of a running job), or a placement result (the nodes
        of a job it started); the document or its file.
    job
        The job inside whose nodes to map.
    node_class
        Class of the nodes of a machine or snapshot; its default class if not given.

    Raises
    ------
    InputError
        If there is no such thing, or no such job or class in it.
    """
    if not isinstance(source, str):
        name = source.instance.name if isinstance(source, PlacementResult) else source.name
        return _of_document(name, source, job, node_class)
    schema = _schema_of(source)
    document: Document
    if schema == RESULT_SCHEMA:
        document = read_document(source, PlacementResult, RESULT_SCHEMA)
    elif schema == SNAPSHOT_SCHEMA:
        document = load_snapshot(source).snapshot
    elif job is not None:
        raise InputError("a snapshot or a result that has jobs", field="--on", value=source)
    else:
        document = load_machine(source)
    return _of_document(source, document, job, node_class)


def _of_document(
    label: str, document: Document, job: str | None, node_class: str | None
) -> Allocation:
    if isinstance(document, PlacementResult):
        return _of_result(label, document, job)
    if not isinstance(document, Snapshot):
        document = Snapshot(
            schema_version="topoplace.snapshot/1", name=document.name, machine=document
        )
    return _of_state(label, prepare(resolve_machine(document)), job, node_class)


def parse_prism(text: str, machine: TorusModel, field: str) -> Prism:
    """Return the prism of a text such as ``12x8x12@0,4,0``; without origin it lies at 0.

    Raises
    ------
    InputError
        If the text is malformed or the prism does not lie on the machine.
    """
    match = re.fullmatch(r"(\d{1,7}(?:x\d{1,7})*)(?:@(\d{1,7}(?:,\d{1,7})*))?", text)
    if match is None:
        raise InputError("a prism such as 12x8x12@0,4,0", field=field, value=text)
    extents = tuple(map(int, match[1].split("x")))
    origin = tuple(map(int, match[2].split(","))) if match[2] else (0,) * len(extents)
    prism = Prism(origin, extents)
    prism.require_inside(torus_of(machine), field)
    return prism


def _schema_of(spec: str) -> str | None:
    """Return the schema a file says it has; None for what is no such file."""
    if not file_meant(spec).is_file():
        return None
    try:
        schema = parse_object(read_bytes(spec), spec).get("schema")
    except InputError:
        return None
    return schema if isinstance(schema, str) else None


def _of_state(
    spec: str, state: SnapshotState, job: str | None, node_class: str | None
) -> Allocation:
    machine = state.snapshot.machine
    assert isinstance(machine, TorusModel)
    if job is not None:
        for running in state.running:
            if running.id == job:
                return Allocation(machine, np.sort(running.nodes), f"{Path(spec).name}, job {job}")
        names = [running.id for running in state.running]
        raise InputError(_one_of(names, "running job"), field="--job", value=job, known=names)
    wanted = node_class or state.classes[0]
    if wanted not in state.classes:
        known = state.classes
        raise InputError(_one_of(list(known), "class"), field="--class", value=wanted, known=known)
    usable = state.usable & (state.node_class == state.classes.index(wanted))
    return Allocation(machine, np.flatnonzero(usable), f"{Path(spec).name}, class {wanted}")


def _of_result(spec: str, result: PlacementResult, job: str | None) -> Allocation:
    placements = result.solution.placements if result.solution else []
    names = [placement.request for placement in placements]
    if job is None and len(placements) == 1:
        job = names[0]
    if job not in names:
        raise InputError(
            _one_of(names, "started job"),
            field="--job",
            value=job,
            found="nothing" if job is None else None,
            known=names,
        )
    machine = resolve_machine(result.instance).machine
    if not isinstance(machine, TorusModel):
        raise InputError("a torus or mesh machine", file=spec, field="machine.kind")
    text = placements[names.index(job)].nodes
    nodes = parse_node_set(text, torus_of(machine).num_nodes, f"nodes of {job}")
    return Allocation(machine, nodes, f"{Path(spec).name}, job {job}")


def _one_of(names: list[str], what: str) -> str:
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"one {what} of: {shown}" if names else f"a {what}, of which there are none"


# ---- Where a graph may be mapped to: an allocation, or a machine given as a matrix of distances --

MATRIX = "matrix:"
"""What comes before the file of a matrix of distances that stands for a machine."""
MOST_PER_NODE = 1 << 20


@dataclass(frozen=True)
class Places:
    """A machine, the nodes of it that tasks may go to (ascending), and where both come from."""

    machine: TorusModel | MatrixModel
    nodes: IntArray
    source: str

    def only(self, subset: str, field: str = "--subset") -> Places:
        """Return the part of the places on the nodes of a set such as ``0-47,60``.

        Raises
        ------
        InputError
            If the set is malformed, or names a node that is none of these.
        """
        wanted = parse_node_set(subset, machine_of(self.machine).num_nodes, field)
        strange = np.setdiff1d(wanted, self.nodes)
        if len(strange):
            raise InputError(
                f"some of the {len(self.nodes)} usable nodes", field=field, value=int(strange[0])
            )
        return Places(self.machine, wanted, f"{self.source}, some nodes")


def load_places(
    on: Source | MatrixModel,
    *,
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
) -> Places:
    """Return the places of ``matrix:FILE``, or of all that `load_allocation` takes.

    Parameters
    ----------
    on
        What to map onto.
    job, node_class
        See `load_allocation`.
    within
        A prism such as ``12x8x12@0,0,0`` to stay inside.

    Raises
    ------
    InputError
        If there is no such thing, or a matrix is asked for a job, a class or a prism.
    """
    if isinstance(on, MatrixModel):
        _refuse_parts(job, node_class, within)
        return _all_of(on, on.name)
    if isinstance(on, str) and on.startswith(MATRIX):
        path = on.removeprefix(MATRIX)
        _refuse_parts(job, node_class, within)
        return _all_of(read_matrix_machine(path), Path(path).name)
    allocation = load_allocation(on, job, node_class)
    if within is not None:
        allocation = allocation.within(parse_prism(within, allocation.machine, "--within"))
    return Places(allocation.machine, allocation.nodes, allocation.source)


def places_of_qaplib(
    instance: Qaplib,
    *,
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
) -> Places:
    """Return the places that the distances of a QAPLIB file make; other arguments are refused."""
    _refuse_parts(job, node_class, within)
    return _all_of(instance.machine, Path(instance.file).name)


def problem_on(
    places: Places,
    application: GridApplication | GraphApplication,
    tasks_per_node: int = 1,
    *,
    name: str | None = None,
    file: str | None = None,
) -> MappingProblem:
    """Return the problem of mapping an application to places.

    Parameters
    ----------
    places
        Where tasks may go.
    application
        What to map.
    tasks_per_node
        Most tasks on a node.
    name
        Name of the instance; by default the kind of the application.
    file
        For messages: the file the application was read from.

    Raises
    ------
    InputError
        If there are more tasks than places, or hop-bytes would not be exact in 64 bits.
    """
    if not 1 <= tasks_per_node <= MOST_PER_NODE:
        raise InputError(
            f"from 1 to {MOST_PER_NODE}", field="--tasks-per-node", value=tasks_per_node
        )
    instance = MappingInstance(
        schema_version="topoplace.mapping/1",
        name=name or application.kind,
        machine=places.machine,
        nodes=format_node_set(places.nodes.tolist()),
        tasks_per_node=tasks_per_node,
        application=application,
        source=places.source,
    )
    try:
        return prepare_mapping(instance)
    except InputError as error:
        raise (error if file is None else error.located(file)) from None


def _all_of(machine: MatrixModel, source: str) -> Places:
    return Places(machine, np.arange(len(machine.distances), dtype=np.int64), source)


def _refuse_parts(job: str | None, node_class: str | None, within: str | None) -> None:
    for field, value in (("--job", job), ("--class", node_class), ("--within", within)):
        if value is not None:
            raise InputError("a machine that is no matrix (or --subset)", field=field, value=value)
