"""Task graphs and machines for the bound by cuts."""

from __future__ import annotations

import numpy as np

from graph_bound_cases import random_problem
from topoplace.machine import Torus
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import GraphApplication


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
