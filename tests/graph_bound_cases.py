"""Small mapping problems of every kind for the bounds of graphs, and their least hop-bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from baseline_instances import problem_on, random_graph
from topoplace.machine import Torus, format_node_set
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.snapshot.schema import MAPPING_SCHEMA, GraphApplication, MappingInstance, MatrixModel
from topoplace.types import IntArray

Draw = Callable[[np.random.Generator, int], MappingProblem]


def application_of(matrix: IntArray) -> GraphApplication:
    """Return the messages of a square byte matrix, its diagonal left out."""
    sources, targets = np.nonzero(matrix - np.diag(np.diag(matrix)))
    return GraphApplication(
        num_tasks=len(matrix),
        sources=sources.tolist(),
        targets=targets.tolist(),
        bytes=matrix[sources, targets].tolist(),
    )


def all_to_all(num_tasks: int) -> GraphApplication:
    """Return a byte from every task to every one with a higher number."""
    return application_of(np.triu(np.ones((num_tasks, num_tasks), dtype=np.int64), 1))


def matrix_problem(
    application: GraphApplication,
    distances: IntArray,
    *,
    tasks_per_node: int = 1,
    nodes: str | None = None,
) -> MappingProblem:
    return prepare_mapping(
        MappingInstance(
            schema_version=MAPPING_SCHEMA,
            name="case",
            machine=MatrixModel(kind="matrix", name="matrix", distances=distances.tolist()),
            nodes=nodes or f"0-{len(distances) - 1}",
            tasks_per_node=tasks_per_node,
            application=application,
        )
    )


def random_problem(rng: np.random.Generator, most_tasks: int) -> MappingProblem:
    """Return a graph on a torus, a mesh or a matrix, with holes, spare places and capacities."""
    tasks = int(rng.integers(2, most_tasks + 1))
    application = random_graph(rng, tasks, int(rng.integers(0, 4 * tasks)))
    per_node, per_router = (int(k) for k in rng.integers(1, 4, size=2))
    least = -(-tasks // (per_node * per_router))
    kind = rng.choice(["torus", "mesh", "matrix", "asymmetric"])
    if kind in ("matrix", "asymmetric"):
        least = -(-tasks // per_node)
        size = least + int(rng.integers(0, 4))
        distances = rng.integers(0, 6, size=(size, size))
        if kind == "matrix":
            distances += distances.T
        np.fill_diagonal(distances, 0)
        return matrix_problem(
            application,
            distances,
            tasks_per_node=per_node,
            nodes=_some(rng, size, least),
        )
    while True:
        shape = rng.integers(1, 6, size=int(rng.integers(1, 4))).tolist()
        if least <= math.prod(shape) <= 2 * least + 8:
            break
    every = math.prod(shape) * per_router
    return problem_on(
        application,
        shape,
        tasks_per_node=per_node,
        wrap=kind == "torus",
        nodes_per_router=per_router,
        nodes=_some(rng, every, -(-tasks // per_node)),
    )


def _some(rng: np.random.Generator, every: int, least: int) -> str:
    """Return a random set of nodes, every third time all of them."""
    kept = every if rng.random() < 1 / 3 else int(rng.integers(least, every + 1))
    return format_node_set(rng.permutation(every)[:kept].tolist())


def places_of(problem: MappingProblem) -> IntArray:
    """Return the node of every place."""
    return np.repeat(problem.nodes, problem.tasks_per_node)


def least_of_some(rng: np.random.Generator, problem: MappingProblem, times: int) -> int:
    """Return the least hop-bytes of random mappings, each improved by the best exchanges."""
    places, n = places_of(problem), problem.num_tasks
    return min(_descended(problem, rng.permutation(places), n) for _ in range(times))


def _descended(problem: MappingProblem, places: IntArray, num_tasks: int) -> int:
    """Exchange the contents of two places while that helps, first come first served."""
    best = hop_bytes(problem, places[:num_tasks])
    for a, b in itertools.product(range(num_tasks), range(len(places))):
        places[[a, b]] = places[[b, a]]
        cost = hop_bytes(problem, places[:num_tasks])
        if cost < best:
            best = cost
        else:
            places[[a, b]] = places[[b, a]]
    return best


def optimum_of(problem: MappingProblem) -> int:
    """Return the least hop-bytes of all mappings."""
    places = problem.routers_of(places_of(problem))
    routers = places[np.array(list(itertools.permutations(range(len(places)), problem.num_tasks)))]
    graph = problem.graph
    hops = problem.machine.hops(routers[:, graph.sources], routers[:, graph.targets])
    return int((hops @ graph.bytes).min())


def tiny_problem(rng: np.random.Generator, draw: Draw = random_problem) -> MappingProblem:
    """Return a problem with few enough mappings to try all."""
    while True:
        problem = draw(rng, 5)
        if math.perm(len(places_of(problem)), problem.num_tasks) <= 2520:
            return problem


def regular_graph(rng: np.random.Generator, num_tasks: int, rings: int) -> GraphApplication:
    """Return that many random rings through all tasks: nearly regular, without any locality."""
    orders = [rng.permutation(num_tasks) for _ in range(rings)]
    return GraphApplication(
        num_tasks=num_tasks,
        sources=np.concatenate(orders).tolist(),
        targets=np.concatenate([np.roll(order, 1) for order in orders]).tolist(),
        bytes=[1] * (rings * num_tasks),
    )


def uneven_graph(rng: np.random.Generator, num_tasks: int, messages: int) -> GraphApplication:
    """Return random messages between tasks of which some are far more popular."""
    popular = 1 / (1 + np.arange(num_tasks)) ** 0.6
    ends = rng.choice(num_tasks, size=(2, messages), p=popular / popular.sum())
    return GraphApplication(
        num_tasks=num_tasks,
        sources=ends[0].tolist(),
        targets=ends[1].tolist(),
        bytes=rng.integers(1, 100, size=messages).tolist(),
    )


def random_torus_problem(rng: np.random.Generator, most_tasks: int) -> MappingProblem:
    """Return a problem with messages on a torus or mesh, with holes and places to spare."""
    while True:
        problem = random_problem(rng, most_tasks)
        if isinstance(problem.machine, Torus) and problem.graph.num_messages:
            return problem
