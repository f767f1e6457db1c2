"""The mapping problem as solvers see it: a graph, and routers with places for tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine import MatrixMachine, Network, Torus, parse_node_set
from topoplace.machine.levels import levels_of_hierarchy, levels_of_tree
from topoplace.mapping.graph import TaskGraph, VirtualGrid, grid_of
from topoplace.mapping.parallelism import parallelism_graph
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import (
    MAX_TASKS,
    GraphApplication,
    GridApplication,
    HierarchyModel,
    MappingInstance,
    MatrixModel,
    ParallelismApplication,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.state import torus_of
from topoplace.snapshot.tree_state import tree_of
from topoplace.types import BoolArray, IntArray

if TYPE_CHECKING:
    from topoplace.mapping.recognition import Recognition
    from topoplace.solving import Bound

MachineToMap = TorusModel | MatrixModel | TreeModel | HierarchyModel

MAX_MESSAGES = 1 << 26
"""Most messages of a parallelism grid."""

MAX_HOP_BYTES = 1 << 62
"""Objectives must stay exact in 64-bit integers."""


@dataclass(frozen=True)
class MappingProblem:
    """A mapping instance, checked and turned into arrays.

    Attributes
    ----------
    machine
        The machine: a torus or mesh, a matrix of distances, or a tree or hierarchy as levels.
    nodes
        Nodes that tasks may go to, ascending.
    tasks_per_node
        Most tasks on one node.
    graph
        The messages.
    grid
        The virtual grid that they come from, if there is one.
    """

    instance: MappingInstance
    machine: Network
    nodes: IntArray
    tasks_per_node: int
    graph: TaskGraph
    grid: VirtualGrid | None
    kind: ClassVar[str] = "mapping"

    @property
    def torus(self) -> Torus:
        """The torus or mesh; `InputError` for other machines."""
        if self.machine.torus is None:
            raise InputError("a torus or mesh machine", field="machine", value=self.machine.text)
        return self.machine.torus

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return self.graph.num_tasks

    @cached_property
    def recognised(self) -> Recognition | None:
        """The pattern recognised in the graph; None if the application is given as a grid."""
        from topoplace.mapping.recognition import recognise  # noqa: PLC0415 - heavy

        return recognise(self.graph) if self.grid is None else None

    @cached_property
    def floor(self) -> int:
        """A quick lower bound on the hop-bytes of any mapping."""
        from topoplace.mapping.bounds.levels import levels_bound  # noqa: PLC0415 - a circle
        from topoplace.mapping.bounds.total import total_bound  # noqa: PLC0415 - a circle

        bound = total_bound(self) or levels_bound(self, 0.0)
        return 0 if bound is None else int(bound.value)

    @cached_property
    def link_floor(self) -> Bound | None:
        """A quick lower bound on the largest link load of any mapping."""
        from topoplace.mapping.link_bounds import quick_bound  # noqa: PLC0415 - a circle

        return quick_bound(self)

    @cached_property
    def capacity(self) -> IntArray:
        """Most tasks on every router, shape ``(num_routers,)``."""
        routers = self.nodes // self.machine.nodes_per_router
        return self.tasks_per_node * np.bincount(routers, minlength=self.machine.num_routers)

    @cached_property
    def whole_routers(self) -> BoolArray:
        """Routers whose nodes may all be used, shape ``(num_routers,)``."""
        return np.equal(self.capacity, self.tasks_per_node * self.machine.nodes_per_router)

    def routers_of(self, nodes: IntArray) -> IntArray:
        """Return the router of every node of an array."""
        return nodes // self.machine.nodes_per_router

    def sent(self, nodes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the routers at both ends of every message, and its bytes, given all nodes."""
        routers, graph = self.routers_of(nodes), self.graph
        return routers[graph.sources], routers[graph.targets], graph.bytes


def prepare_mapping(instance: MappingInstance) -> MappingProblem:
    """Check a mapping instance and return its arrays.

    Raises
    ------
    InputError
        With the field at fault: lists of different length, nodes outside the machine, more tasks
        than places, or bytes so large that hop-bytes would not be exact in 64 bits.
    """
    machine = machine_of(instance.machine, instance.level_costs)
    nodes = np.asarray(parse_node_set(instance.nodes, machine.num_nodes, "nodes"), dtype=np.int64)
    application = instance.application
    grid = None
    if isinstance(application, GridApplication):
        grid = grid_of(application)
        graph = grid.graph()
    elif isinstance(application, ParallelismApplication):
        graph = _ranks(application)
    else:
        graph = graph_of(application)
    places = len(nodes) * instance.tasks_per_node
    if graph.num_tasks > places:
        expected = (
            f"at most {number_of(places, 'task')}, the places on "
            f"{number_of(len(nodes), 'usable node')}"
        )
        raise InputError(expected, field="num_tasks", value=graph.num_tasks)
    if graph.total_bytes * max(1, machine.diameter) >= MAX_HOP_BYTES:
        expected = f"bytes x hops below {MAX_HOP_BYTES}, to be exact"
        raise InputError(expected, field="bytes", value=graph.total_bytes)
    return MappingProblem(instance, machine, nodes, instance.tasks_per_node, graph, grid)


def _ranks(application: ParallelismApplication) -> TaskGraph:
    """Return the messages of a parallelism grid that is not too large."""
    sizes = [axis.size for axis in application.axes]
    if math.prod(sizes) > MAX_TASKS:
        raise InputError(f"at most {MAX_TASKS} ranks", field="axes", value=sizes)
    messages = math.prod(sizes) * sum(a.size for a in application.axes if a.pattern == "all")
    if messages > MAX_MESSAGES:
        raise InputError(f"at most {MAX_MESSAGES} messages", field="axes", value=sizes)
    return parallelism_graph(application)


def machine_of(model: MachineToMap, level_costs: Sequence[int] | None = None) -> Network:
    """Return the machine of a model, with costs of levels if it has any."""
    if isinstance(model, TreeModel):
        return levels_of_tree(tree_of(model), level_costs)
    if isinstance(model, HierarchyModel):
        return levels_of_hierarchy(hierarchy_of(model), level_costs)
    if level_costs is not None:
        expected = "no costs of levels but on trees and hierarchies"
        raise InputError(expected, field="level_costs", value=list(level_costs))
    if isinstance(model, TorusModel):
        return torus_of(model)
    widths = {len(row) for row in model.distances}
    if widths != {len(model.distances)}:
        raise InputError(
            "a square matrix", field="machine.distances", value=f"rows of {sorted(widths)}"
        )
    return MatrixMachine(np.array(model.distances, dtype=np.int64))


def graph_of(application: GraphApplication) -> TaskGraph:
    """Return the messages of a graph application, except those without bytes or to the sender."""
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


# ---- The nodes of tasks: a node for every router, and the conditions of a mapping ----------------


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
        raise InputError(
            f"nodes for {number_of(problem.num_tasks, 'task')}", file=file, value=len(nodes)
        )
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
            f"at most {number_of(problem.tasks_per_node, 'task')} on a node",
            file=file,
            field=where(task),
            value=f"{count[node]} on node {node}",
        )
