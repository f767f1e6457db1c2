"""Lower bounds on hop-bytes: never above any mapping, checkable, and exact where they should be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from baseline_instances import application_of, grid, optimum_of, problem_on
from topoplace.certify.mapping.blocks import inside_bound
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.mapping.pencils import check_layout, window_value
from topoplace.machine import format_node_set
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.blocks import blocks_bound
from topoplace.mapping.bounds.losses import directions_of, inside_units
from topoplace.mapping.problem import MappingProblem
from topoplace.result.certificate import packed
from topoplace.result.mapping import FlowCertificate, LayoutModel, MappingCertificate
from topoplace.snapshot.schema import GraphApplication, GridApplication
from topoplace.solving import solve


def psi_of(application: GridApplication) -> tuple[MappingProblem, list[int]]:
    """Return the inside bound of a grid, on which solver and checker agree."""
    problem = problem_on(application, [math.prod(application.shape)])
    assert problem.grid is not None
    directions = directions_of(problem.grid)
    psi = (directions.unit * inside_units(directions, problem.num_tasks)).tolist()
    checked_grid = read_instance(problem.instance).grid
    assert checked_grid is not None
    assert psi == inside_bound(checked_grid, problem.num_tasks).tolist()
    return problem, psi


@pytest.mark.parametrize(
    ("shape", "periodic", "box"),
    [
        ((9, 9), False, (5, 4)),
        ((9, 5), False, (8, 5)),
        ((6, 6), True, (3, 6)),
        ((6, 4), True, (4, 4)),
        ((5, 6, 7), False, (4, 4, 4)),
        ((6, 6, 6), False, (3, 3, 4)),
        ((8, 8, 8), True, (3, 3, 3)),
        ((8, 8, 8), True, (4, 8, 8)),
        ((4, 4, 4, 4), False, (3, 3, 3, 3)),
        ((6, 6, 6, 6), True, (2, 2, 2, 2)),
    ],
)
def test_the_inside_bound_is_met_by_boxes(
    shape: tuple[int, ...], periodic: bool, box: tuple[int, ...]
) -> None:
    problem, psi = psi_of(grid(shape, periodic))
    assert problem.grid is not None
    members = (problem.grid.coordinates() < np.asarray(box)).all(axis=1)
    within = members[problem.graph.sources] & members[problem.graph.targets]
    assert psi[members.sum()] == problem.graph.bytes[within].sum()


@pytest.mark.parametrize(
    ("tasks", "machine", "per_node", "wrap", "periodic", "per_router"),
    [
        ((3, 3, 3), (3, 3, 3), 1, False, False, 1),
        ((4, 4, 4), (4, 4, 4), 1, True, True, 1),
        ((12, 12), (4, 4), 9, False, False, 1),
        ((8, 8, 8, 8), (4, 4, 4, 4), 16, True, False, 1),
        ((32, 32, 32), (8, 8, 8), 32, True, False, 2),
        ((32, 32, 32), (8, 8, 8), 32, True, True, 2),
        ((32, 32, 32), (2, 1, 1), 8192, False, True, 2),
    ],
)
def test_blocks_of_cubes_are_optimal(
    tasks: tuple[int, ...],
    machine: tuple[int, ...],
    per_node: int,
    wrap: bool,
    periodic: bool,
    per_router: int,
) -> None:
    application = grid(tasks, periodic, size=1000)
    options = {"tasks_per_node": per_node, "nodes_per_router": per_router}
    result = solve(problem_on(application, machine, wrap=wrap, **options), "blocks")
    assert result.bound == result.objective


def test_the_bound_is_a_multiple_of_the_bytes() -> None:
    problem = problem_on(grid((7, 5), size=1000), [3, 3], tasks_per_node=4, wrap=False)
    bound = blocks_bound(problem)
    assert bound is not None
    assert bound.value % 2000 == 0 < bound.value


def test_holes_and_spare_places_leave_room_for_cubes() -> None:
    usable = np.sort(np.random.default_rng(5).permutation(24**3)[400:])
    problem = problem_on(
        grid((32, 32, 32)), [24] * 3, tasks_per_node=64, nodes=format_node_set(usable.tolist())
    )
    bound = best_bound(problem)
    assert bound is not None
    assert bound.value == 43008  # 512 cubes of 64


LINE = {
    "slope": {"numerator": 1, "denominator": 1},
    "multiplier": {"numerator": 1, "denominator": 1},
}
RING = GraphApplication(num_tasks=4, sources=[0, 1, 2, 3], targets=[1, 2, 3, 0], bytes=[1] * 4)
ROW = GraphApplication(num_tasks=3, sources=[0, 1], targets=[1, 2], bytes=[1, 1])
TREES = {"lengths": [1, 1], "sizes": [3, 0, 3], "times": [1, 0, 1]}
ALL_TO_ALL = [application_of(np.triu(np.ones((n, n), dtype=np.int64), 1)) for n in (3, 4)]
EXAMPLES: dict[str, tuple[MappingProblem, dict[str, Any], int]] = {
    "total": (problem_on(RING, [4]), {}, 4),
    "blocks": (
        problem_on(grid([4]), [2], tasks_per_node=2, wrap=False),
        {"families": [{"extents": [1], **LINE}]},
        2,
    ),
    "star": (problem_on(ALL_TO_ALL[0], [3], wrap=False), {"prices": [0, 1, 0]}, 4),
    "distance-classes": (
        problem_on(ALL_TO_ALL[1], [4]),
        {"shape": [4], "routers": [0, 1, 2, 3], "classes": [0, 1, 2, 1], "scale": 2}
        | {"filters": [], "factors": [], "rows": [[0] * 4, [0] * 4, [1] * 4]},
        8,
    ),
    "routes": (
        problem_on(ROW, [2], tasks_per_node=2, wrap=False),
        {"rounds": [{name: packed(np.array(own)) for name, own in TREES.items()}]},
        1,
    ),
    "cuts": (
        problem_on(ALL_TO_ALL[1], [4]),
        {"scale": 1000, "balance": 1000, "prices": packed(np.full(4, -3900))},
        8,
    ),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_examples_of_the_documentation(kind: str) -> None:
    """Small enough for pencil and paper, and each proves the optimum."""
    problem, content, value = EXAMPLES[kind]
    read = TypeAdapter[Any](MappingCertificate).validate_python({"kind": kind} | content)
    assert VALUES[kind](read_instance(problem.instance), read) == value == optimum_of(problem)


def test_the_flow_of_the_documentation() -> None:
    line = GridApplication(shape=[2], periodic=[False], bytes=[[5, 0]])
    problem = problem_on(line, [2, 2], wrap=False, nodes="0,3")
    layout = LayoutModel(
        axes=[0, -1], logical=[2, 1], partitions=[1, 1], pencil=1, origin=[0, 0], depth=2
    )
    instance = read_instance(problem.instance)
    window = check_layout(instance, np.array([0, 3]), layout)
    flow = FlowCertificate(tails=[-1, 1, 0], heads=[1, 0, -2], flows=[5, 5, 5])
    assert window_value(instance, window, flow) == 10 == optimum_of(problem)
