"""Small mapping problems for the tests of methods and bounds, and their least hop-bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from level_hops import level_hops
from topoplace.machine import LevelMachine, MatrixMachine, Torus, format_node_set
from topoplace.mapping.graph import TaskGraph
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.snapshot.schema import (
    MAPPING_SCHEMA,
    GraphApplication,
    MappingInstance,
    MatrixModel,
    TorusModel,
)
from topoplace.snapshot.schema import GridApplication as Grid
from topoplace.types import IntArray


def problem_on(
    application: Grid | GraphApplication,
    shape: Sequence[int],
    *,
    tasks_per_node: int = 1,
    wrap: bool | Sequence[bool] = True,
    nodes_per_router: int = 1,
    nodes: str | None = None,
    names: str | None = None,
) -> MappingProblem:
    """Return the problem of an application on a machine, by default on all its nodes."""
    machine = TorusModel(
        name="machine",
        shape=list(shape),
        wrap=[wrap] * len(shape) if isinstance(wrap, bool) else list(wrap),
        bandwidth=[1] * len(shape),
        nodes_per_router=nodes_per_router,
        names=names,
    )
    every = f"0-{int(np.prod(shape)) * nodes_per_router - 1}"
    return prepare_mapping(
        MappingInstance(
            schema_version=MAPPING_SCHEMA,
            name="case",
            machine=machine,
            nodes=every if nodes is None else nodes,
            tasks_per_node=tasks_per_node,
            application=application,
        )
    )


def grid(shape: Sequence[int], periodic: bool = False, size: int = 1) -> Grid:
    """Return a grid with the same bytes in all directions."""
    dims = len(shape)
    return Grid(shape=list(shape), periodic=[periodic] * dims, bytes=[[size, size]] * dims)


def random_graph(rng: np.random.Generator, num_tasks: int, num_messages: int) -> GraphApplication:
    """Return random directed messages, some of them doubled, to oneself or without bytes."""
    return GraphApplication(
        num_tasks=num_tasks,
        sources=rng.integers(num_tasks, size=num_messages).tolist(),
        targets=rng.integers(num_tasks, size=num_messages).tolist(),
        bytes=rng.integers(0, 50, size=num_messages).tolist(),
    )


def application_of(matrix: IntArray) -> GraphApplication:
    """Return the messages of a square byte matrix, its diagonal left out."""
    sources, targets = np.nonzero(matrix - np.diag(np.diag(matrix)))
    sizes = matrix[sources, targets].tolist()
    ends = {"sources": sources.tolist(), "targets": targets.tolist()}
    return GraphApplication(num_tasks=len(matrix), bytes=sizes, **ends)


def matrix_problem(
    application: GraphApplication, distances: IntArray, tasks_per_node: int = 1
) -> MappingProblem:
    """Return the problem of a graph on all routers of a machine given by its distances."""
    line = problem_on(application, [len(distances)], tasks_per_node=tasks_per_node)
    return on_distances(line, distances)


def regular_graph(rng: np.random.Generator, num_tasks: int, rings: int) -> GraphApplication:
    """Return that many random rings through all tasks: nearly regular, without any locality."""
    orders = [rng.permutation(num_tasks) for _ in range(rings)]
    return GraphApplication(
        num_tasks=num_tasks,
        sources=np.concatenate(orders).tolist(),
        targets=np.concatenate([np.roll(order, 1) for order in orders]).tolist(),
        bytes=[1] * (rings * num_tasks),
    )


def random_problem(
    seed: int,
    most_tasks: int = 1 << 10,
    spare: int = 1 << 10,
    *,
    skewed: bool = False,
    application: Grid | None = None,
) -> MappingProblem:
    """Return a random graph, or a grid, on part of a random machine, few nodes being to spare.

    Some machines are given by their distances; if `skewed`, some of those differ by direction.
    """
    rng = np.random.default_rng(seed)
    num_tasks, num_nodes, per_node = (
        0 if application is None else math.prod(application.shape),
        -1,
        1,
    )
    while num_nodes * per_node < num_tasks:
        shape = rng.integers(1, 5, size=rng.integers(1, 5)).tolist()
        per_router, per_node = int(rng.integers(1, 3)), int(rng.integers(1, 4))
        num_nodes = math.prod(shape) * per_router
    if application is None:
        num_tasks = int(rng.integers(1, min(most_tasks, num_nodes * per_node) + 1))
    needed = -(-num_tasks // per_node)
    usable = int(rng.integers(needed, min(num_nodes, needed + spare) + 1))
    problem = problem_on(
        application or random_graph(rng, num_tasks, int(rng.integers(0, 4 * num_tasks))),
        shape,
        wrap=bool(rng.integers(2)),
        tasks_per_node=per_node,
        nodes_per_router=per_router,
        nodes=format_node_set(np.sort(rng.permutation(num_nodes)[:usable]).tolist()),
    )
    if application is not None or per_router > 1 or rng.integers(3):
        return problem
    routers = np.arange(num_nodes)
    distances = problem.torus.hops(routers[:, None], routers)
    if skewed and rng.integers(2):
        distances = rng.integers(0, 9, distances.shape) * (routers[:, None] != routers)
    return on_distances(problem, distances)


def on_distances(problem: MappingProblem, distances: IntArray) -> MappingProblem:
    """Return the problem on a machine given by its distances."""
    model = MatrixModel(kind="matrix", name="matrix", distances=distances.tolist())
    instance = problem.instance.model_copy(update={"machine": model})
    return replace(problem, instance=instance, machine=MatrixMachine(distances))


def renumbered(problem: MappingProblem, seed: int = 1) -> MappingProblem:
    """Return the problem with its tasks numbered at random: their order gives nothing away."""
    label = np.random.default_rng(seed).permutation(problem.num_tasks)
    graph = problem.graph
    mixed = TaskGraph(graph.num_tasks, label[graph.sources], label[graph.targets], graph.bytes)
    return replace(problem, graph=mixed, grid=None)


def hops_between(problem: MappingProblem, routers: IntArray) -> IntArray:
    """Return the hops between routers, from the definition."""
    machine = problem.machine
    if isinstance(machine, MatrixMachine):
        table: IntArray = machine.distances[np.ix_(routers, routers)]
        return table
    if isinstance(machine, LevelMachine):
        table = level_hops(problem.instance)[np.ix_(routers, routers)]
        return table
    assert isinstance(machine, Torus)
    found = np.zeros((len(routers), len(routers)), dtype=np.int64)
    at = np.stack(np.unravel_index(routers, machine.shape), axis=1)
    for d, (n, wraps) in enumerate(zip(machine.shape, machine.wrap, strict=True)):
        apart = np.abs(at[:, None, d] - at[None, :, d])
        found += np.minimum(apart, n - apart) if wraps else apart
    return found


def optimum_of(problem: MappingProblem) -> int:
    """Return the least hop-bytes of all ways to give routers to tasks, all tried task by task."""
    routers = np.flatnonzero(problem.capacity)
    num, graph = len(routers), problem.graph
    at = np.zeros((1, 0), dtype=np.int64)
    for _ in range(problem.num_tasks):
        at = np.column_stack([np.repeat(at, num, axis=0), np.tile(np.arange(num), len(at))])
        load = (at == at[:, -1:]).sum(axis=1)
        at = at[load <= problem.capacity[routers][at[:, -1]]]
    hops = hops_between(problem, routers)
    cost = np.zeros(len(at), dtype=np.int64)
    for source, target, size in zip(graph.sources, graph.targets, graph.bytes, strict=True):
        cost += size * hops[at[:, source], at[:, target]]
    return int(cost.min())
