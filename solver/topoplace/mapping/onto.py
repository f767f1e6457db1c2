"""Where tasks may go: the nodes of a machine, a snapshot or a placed job, or a matrix."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.mapping.graphfiles import read_matrix_machine
from topoplace.mapping.problem import MappingProblem, machine_of, prepare_mapping
from topoplace.result import RESULT_SCHEMA, PlacementResult
from topoplace.snapshot.files import file_meant, parse_object, read_bytes, read_document
from topoplace.snapshot.machines import load_machine, load_snapshot, resolve_machine
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
from topoplace.types import IntArray

MATRIX = "matrix:"
"""What comes before the file of a matrix of distances that stands for a machine."""
MOST_PER_NODE = 1 << 20

Document = PlacementResult | Snapshot | TorusModel | TreeModel
Source = str | Document
"""A document, or its file, shipped name or shorthand."""


@dataclass(frozen=True)
class Places:
    """A machine, the nodes of it that tasks may go to (ascending), and where both come from."""

    machine: TorusModel | MatrixModel
    nodes: IntArray
    source: str

    @property
    def node_set(self) -> str:
        """The nodes as ranges."""
        return format_node_set(self.nodes.tolist())

    def only(self, subset: str, field: str = "--subset") -> Places:
        """Return the part of the places on the nodes of a set such as ``0-47,60``.

        Raises `InputError` if the set is malformed, or names a node that is none of these.
        """
        wanted = parse_node_set(subset, machine_of(self.machine).num_nodes, field)
        strange = np.setdiff1d(wanted, self.nodes)
        if len(strange):
            raise InputError(
                f"some of the {len(self.nodes)} usable nodes", field=field, value=int(strange[0])
            )
        return Places(self.machine, wanted, f"{self.source}, some nodes")

    def within(self, text: str, field: str = "--within") -> Places:
        """Return the part on a prism of routers such as ``12x8x12@0,4,0``; by default from 0 on.

        Raises `InputError` if the text is malformed or the prism does not lie on the machine.
        """
        match = re.fullmatch(r"(\d{1,7}(?:x\d{1,7})*)(?:@(\d{1,7}(?:,\d{1,7})*))?", text)
        if match is None:
            raise InputError("a prism such as 12x8x12@0,4,0", field=field, value=text)
        assert isinstance(self.machine, TorusModel)
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
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
) -> Places:
    """Return the nodes that a machine, a snapshot or a result offers.

    Parameters
    ----------
    on
        A machine (all its nodes but the service nodes; also a shipped name, a shorthand, or
        ``matrix:FILE``), a snapshot (its usable nodes, or those of a running job), or a placement
        result (the nodes of a job it started); the document or its file.
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
    document = _document(on, job) if isinstance(on, str) else on
    if isinstance(document, MatrixModel):
        for field, value in (("--job", job), ("--class", node_class), ("--within", within)):
            if value is not None:
                expected = "a machine that is no matrix (or --subset)"
                raise InputError(expected, field=field, value=value)
        nodes = np.arange(len(document.distances), dtype=np.int64)
        return Places(document, nodes, document.source or document.name)
    if isinstance(document, PlacementResult):
        label = on if isinstance(on, str) else document.instance.name
        places = _of_result(label, document, job)
    else:
        label = on if isinstance(on, str) else document.name
        if not isinstance(document, Snapshot):
            document = Snapshot(
                schema_version="topoplace.snapshot/1", name=document.name, machine=document
            )
        places = _of_state(label, prepare(resolve_machine(document)), job, node_class)
    return places if within is None else places.within(within)


def _document(spec: str, job: str | None) -> Document | MatrixModel:
    if spec.startswith(MATRIX):
        return read_matrix_machine(spec.removeprefix(MATRIX))
    schema = _schema_of(spec)
    if schema == RESULT_SCHEMA:
        return read_document(spec, PlacementResult, RESULT_SCHEMA)
    if schema == SNAPSHOT_SCHEMA:
        return load_snapshot(spec).snapshot
    if job is not None:
        raise InputError("a snapshot or a result that has jobs", field="--on", value=spec)
    machine = load_machine(spec)
    if not isinstance(machine, TorusModel | TreeModel):
        expected, found = "a torus, mesh or matrix", f"a machine of kind {machine.kind}"
        raise InputError(expected, field="--on", value=spec, found=found)
    return machine


def _schema_of(spec: str) -> str | None:
    """Return the schema a file says it has; None for what is no such file."""
    if not file_meant(spec).is_file():
        return None
    try:
        schema = parse_object(read_bytes(spec), spec).get("schema")
    except InputError:
        return None
    return schema if isinstance(schema, str) else None


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


def _of_result(spec: str, result: PlacementResult, job: str | None) -> Places:
    placements = result.solution.placements if result.solution else []
    nodes_of = {placement.request: placement.nodes for placement in placements}
    if job is None and len(nodes_of) == 1:
        (job,) = nodes_of
    if job is None or job not in nodes_of:
        raise _one_of(nodes_of, "started job", "--job", job)
    machine = resolve_machine(result.instance).machine
    if not isinstance(machine, TorusModel):
        raise InputError("a torus or mesh machine", file=spec, field="machine.kind")
    nodes = parse_node_set(nodes_of[job], torus_of(machine).num_nodes, f"nodes of {job}")
    return Places(machine, nodes, f"{Path(spec).name}, job {job}")


def _one_of(known: Iterable[str], what: str, field: str, value: str | None) -> InputError:
    names = list(known)
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    expected = f"one {what} of: {shown}" if names else f"a {what}, of which there are none"
    found = "nothing" if value is None else None
    return InputError(expected, field=field, value=value, found=found, known=names)


def problem_on(
    places: Places,
    application: GridApplication | GraphApplication,
    tasks_per_node: int = 1,
    *,
    name: str | None = None,
    file: str | None = None,
) -> MappingProblem:
    """Return the problem of mapping an application to places, at most so many tasks on a node.

    The instance is named as the kind of the application if not told otherwise; errors name the
    `file` that it was read from.

    Raises `InputError` if there are more tasks than places, or hop-bytes would not be exact in 64
    bits.
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
