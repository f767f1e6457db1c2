"""Small mapping problems for the tests of baselines, local search and rank files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.snapshot.schema import MAPPING_SCHEMA, GraphApplication, MappingInstance, TorusModel
from topoplace.snapshot.schema import GridApplication as Grid


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
