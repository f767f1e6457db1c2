"""Where a graph may be mapped to: an allocation, or a machine given as a matrix of distances."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set
from topoplace.mapping.allocation import Source, load_allocation, parse_prism
from topoplace.mapping.graph import IntArray
from topoplace.mapping.graphfiles import Qaplib, read_matrix_machine
from topoplace.mapping.problem import MappingProblem, machine_of, prepare_mapping
from topoplace.snapshot.application import (
    GraphApplication,
    GridApplication,
    MappingInstance,
    MatrixModel,
)
from topoplace.snapshot.schema import TorusModel

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
