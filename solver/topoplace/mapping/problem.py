"""The mapping problem as solvers see it: a graph, and routers with room for tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import MatrixMachine, Torus, parse_node_set
from topoplace.mapping.graph import TaskGraph, VirtualGrid, grid_of
from topoplace.snapshot.schema import (
    GraphApplication,
    GridApplication,
    MappingInstance,
    MatrixModel,
    TorusModel,
)
from topoplace.snapshot.state import torus_of
from topoplace.types import BoolArray, IntArray

if TYPE_CHECKING:
    from topoplace.mapping.recognition import Recognition

MAX_HOP_BYTES = 1 << 62
"""Objectives must stay exact in 64-bit integers."""


@dataclass(frozen=True)
class MappingProblem:
    """A mapping instance, checked and turned into arrays.

    Attributes
    ----------
    machine
        The machine: a torus or mesh, or a matrix of distances.
    nodes
        Nodes that tasks may go to, ascending.
    tasks_per_node
        Most tasks on one node.
    graph
        The messages.
    grid
        The virtual grid they come from, if they do.
    """

    instance: MappingInstance
    machine: Torus | MatrixMachine
    nodes: IntArray
    tasks_per_node: int
    graph: TaskGraph
    grid: VirtualGrid | None
    kind: ClassVar[str] = "mapping"

    @property
    def torus(self) -> Torus:
        """The torus or mesh; `InputError` if the machine is none."""
        if not isinstance(self.machine, Torus):
            raise InputError("a torus or mesh machine", field="machine", value=self.machine.text)
        return self.machine

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return self.graph.num_tasks

    @cached_property
    def recognised(self) -> Recognition | None:
        """What the graph was found to be; None where the application is a grid by itself."""
        from topoplace.mapping.recognition import recognise  # noqa: PLC0415 - heavy

        return recognise(self.graph) if self.grid is None else None

    @cached_property
    def capacity(self) -> IntArray:
        """Most tasks on every router, shape ``(num_routers,)``."""
        routers = self.nodes // self.machine.nodes_per_router
        return self.tasks_per_node * np.bincount(routers, minlength=self.machine.num_routers)

    @cached_property
    def whole_routers(self) -> BoolArray:
        """Routers all of whose nodes may be used, shape ``(num_routers,)``."""
        return np.equal(self.capacity, self.tasks_per_node * self.machine.nodes_per_router)

    def routers_of(self, nodes: IntArray) -> IntArray:
        """Return the router of every node of an array."""
        return nodes // self.machine.nodes_per_router


def prepare_mapping(instance: MappingInstance) -> MappingProblem:
    """Check a mapping instance and return its arrays.

    Raises
    ------
    InputError
        With the field at fault: lists of different length, nodes outside the machine, more tasks
        than places, or bytes so large that hop-bytes would not be exact in 64 bits.
    """
    machine = machine_of(instance.machine)
    nodes = np.asarray(parse_node_set(instance.nodes, machine.num_nodes, "nodes"), dtype=np.int64)
    application = instance.application
    grid = None
    if isinstance(application, GridApplication):
        grid = grid_of(application)
        graph = grid.graph()
    else:
        graph = graph_of(application)
    places = len(nodes) * instance.tasks_per_node
    if graph.num_tasks > places:
        expected = f"at most {places} tasks, the places on {len(nodes)} usable nodes"
        raise InputError(expected, field="num_tasks", value=graph.num_tasks)
    if graph.total_bytes * max(1, machine.diameter) >= MAX_HOP_BYTES:
        expected = f"bytes x hops below {MAX_HOP_BYTES}, to be exact"
        raise InputError(expected, field="bytes", value=graph.total_bytes)
    return MappingProblem(instance, machine, nodes, instance.tasks_per_node, graph, grid)


def machine_of(model: TorusModel | MatrixModel) -> Torus | MatrixMachine:
    """Return the machine a model describes."""
    if isinstance(model, TorusModel):
        return torus_of(model)
    widths = {len(row) for row in model.distances}
    if widths != {len(model.distances)}:
        raise InputError(
            "a square matrix", field="machine.distances", value=f"rows of {sorted(widths)}"
        )
    return MatrixMachine(np.array(model.distances, dtype=np.int64))


def graph_of(application: GraphApplication) -> TaskGraph:
    """Return the messages of a graph application, those without bytes or to oneself left out."""
    lists = (application.sources, application.targets, application.bytes)
    sources, targets, sizes = (np.asarray(values, dtype=np.int64) for values in lists)
    if not len(sources) == len(targets) == len(sizes):
        raise InputError(
            "as many targets and bytes as sources", field="application", value=len(targets)
        )
    for name, ends in (("sources", sources), ("targets", targets)):
        if len(ends) and int(ends.max()) >= application.num_tasks:
            raise InputError(
                f"tasks below {application.num_tasks}", field=name, value=int(ends.max())
            )
    kept = (sizes > 0) & (sources != targets)
    return TaskGraph(application.num_tasks, sources[kept], targets[kept], sizes[kept])


# ---- Which nodes tasks may have: a node for every router, and what makes a mapping ---------------


def spread_over_nodes(problem: MappingProblem, routers: IntArray) -> IntArray:
    """Return a node for every task, given its router: each router's tasks evenly on its nodes.

    No router may get more tasks than its capacity.
    """
    num_routers = problem.machine.num_routers
    count = np.bincount(routers, minlength=num_routers)
    assert (count <= problem.capacity).all()
    usable = np.bincount(problem.routers_of(problem.nodes), minlength=num_routers)
    order = np.argsort(routers, kind="stable")
    at = routers[order]
    rank = np.arange(len(at)) - (np.cumsum(count) - count)[at]
    nodes = np.empty(len(at), dtype=np.int64)
    nodes[order] = problem.nodes[(np.cumsum(usable) - usable)[at] + rank * usable[at] // count[at]]
    return nodes


def require_mapping(
    problem: MappingProblem,
    nodes: IntArray,
    *,
    file: str | None = None,
    where: Callable[[int], str] = "task {}".format,
) -> None:
    """Raise `InputError` unless every task has a usable node and no node too many tasks.

    Messages name the file the mapping was read from, and the place in it of a task.
    """
    if len(nodes) != problem.num_tasks:
        raise InputError(f"nodes for {problem.num_tasks} tasks", file=file, value=len(nodes))
    strange = np.flatnonzero(~np.isin(nodes, problem.nodes))
    if len(strange):
        task = int(strange[0])
        raise InputError(
            "a node that tasks may go to", file=file, field=where(task), value=int(nodes[task])
        )
    count = np.bincount(nodes)
    if count.max() > problem.tasks_per_node:
        node = int(count.argmax())
        task = int(np.flatnonzero(nodes == node)[problem.tasks_per_node])
        raise InputError(
            f"at most {problem.tasks_per_node} tasks on a node",
            file=file,
            field=where(task),
            value=f"{count[node]} on node {node}",
        )
