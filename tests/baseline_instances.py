"""Small mapping problems for the tests of baselines, local search and rank files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from topoplace.machine import MatrixMachine, format_node_set
from topoplace.mapping.graph import TaskGraph
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.snapshot.schema import MAPPING_SCHEMA, GraphApplication, MappingInstance, TorusModel
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
) -> MappingProblem:
    """Return the problem of an application on a machine, by default on all its nodes."""
    machine = TorusModel(
        name="machine",
        shape=list(shape),
        wrap=[wrap] * len(shape) if isinstance(wrap, bool) else list(wrap),
        bandwidth=[1] * len(shape),
        nodes_per_router=nodes_per_router,
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


def random_problem(
    seed: int, most_tasks: int = 1 << 10, spare: int = 1 << 10, *, skewed: bool = False
) -> MappingProblem:
    """Return a random graph on part of a random machine, with few nodes more than are needed.

    Some machines are given by their distances; if `skewed`, some of those differ by direction.
    """
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 5, size=rng.integers(1, 5)).tolist()
    per_router, per_node = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    num_nodes = int(np.prod(shape)) * per_router
    num_tasks = int(rng.integers(1, min(most_tasks, num_nodes * per_node) + 1))
    needed = -(-num_tasks // per_node)
    usable = int(rng.integers(needed, min(num_nodes, needed + spare) + 1))
    problem = problem_on(
        random_graph(rng, num_tasks, int(rng.integers(0, 4 * num_tasks))),
        shape,
        wrap=bool(rng.integers(2)),
        tasks_per_node=per_node,
        nodes_per_router=per_router,
        nodes=format_node_set(np.sort(rng.permutation(num_nodes)[:usable]).tolist()),
    )
    if per_router > 1 or rng.integers(3):
        return problem
    routers = np.arange(num_nodes)
    distances = problem.torus.hops(routers[:, None], routers)
    if skewed and rng.integers(2):
        distances = rng.integers(0, 9, distances.shape) * (routers[:, None] != routers)
    return on_distances(problem, distances)


def on_distances(problem: MappingProblem, distances: IntArray) -> MappingProblem:
    """Return the problem on a machine given by its distances."""
    return replace(problem, machine=MatrixMachine(distances))


def renumbered(problem: MappingProblem, seed: int = 1) -> MappingProblem:
    """Return the problem with its tasks numbered at random: their order gives nothing away."""
    label = np.random.default_rng(seed).permutation(problem.num_tasks)
    graph = problem.graph
    mixed = TaskGraph(graph.num_tasks, label[graph.sources], label[graph.targets], graph.bytes)
    return replace(problem, graph=mixed, grid=None)
