"""Lower bounds on hop-bytes: never above any mapping, and exact where they should be."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from baseline_instances import grid, problem_on, random_graph
from graph_bound_cases import (
    all_to_all,
    least_of_some,
    optimum_of,
    random_problem,
    random_torus_problem,
    tiny_problem,
)
from random_grids import random_grid
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.mapping.pencils import check_layout, window_value
from topoplace.machine import format_node_set
from topoplace.mapping.bounds import distance_classes
from topoplace.mapping.bounds.best import best_bound, total_bound
from topoplace.mapping.bounds.blocks import best_multipliers, blocks_bound
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import FlowCertificate, LayoutModel, MappingCertificate
from topoplace.snapshot.schema import GraphApplication, GridApplication
from topoplace.solving import Bound
from topoplace.types import IntArray

BOUNDS: dict[str, Callable[[MappingProblem], Bound | None]] = {
    "blocks": blocks_bound,
    "star": star_bound,
    "cuts": cuts_bound,
    "distance-classes": distance_classes.distance_classes_bound,
}


def random_grid_problem(rng: np.random.Generator, most_tasks: int) -> MappingProblem:
    """Return a grid on a mesh or a torus, with holes and some places to spare."""
    application = random_grid(rng, most_tasks)
    tasks = math.prod(application.shape)
    per_node, per_router = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    routers = -(-tasks // (per_node * per_router)) + int(rng.integers(0, 4))
    while True:
        shape = rng.integers(1, 6, size=int(rng.integers(1, 4))).tolist()
        if math.prod(shape) >= routers:
            break
    every = math.prod(shape) * per_router
    places = -(-tasks // per_node)
    usable = rng.permutation(every)[: int(rng.integers(places, every + 1))]
    return problem_on(
        application,
        shape,
        tasks_per_node=per_node,
        wrap=bool(rng.random() < 0.5),
        nodes_per_router=per_router,
        nodes=format_node_set(usable.tolist()),
    )


DRAWS = {"blocks": random_grid_problem, "cuts": random_torus_problem}


def checked(problem: MappingProblem, kind: str) -> int | None:
    """Return a bound, of which the checker proves as much; None if there is none."""
    bound = BOUNDS[kind](problem)
    if bound is None:
        return None
    instance = read_instance(problem.instance)
    assert VALUES[bound.certificate.kind](instance, bound.certificate) == bound.value >= 0
    return bound.value


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("seed", range(8))
def test_no_mapping_beats_a_bound(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the optimum where there are few mappings, else against local optima."""
    # what the semidefinite bound proves is valid at any step
    monkeypatch.setattr(distance_classes, "MAX_STEPS", 25)
    monkeypatch.setattr(distance_classes, "MAX_PLACES", 64)
    rng = np.random.default_rng(seed)
    draw, found = DRAWS.get(kind, random_problem), 0
    for _ in range(12):
        problem = tiny_problem(rng, draw)
        value = checked(problem, kind)
        if value is not None:
            assert value <= optimum_of(problem)
            found += value > 0
    for _ in range(5):
        problem = draw(rng, 14)
        value = checked(problem, kind)
        assert value is None or value <= least_of_some(rng, problem, 2)
    assert found > 0


@pytest.mark.parametrize("seed", range(40))
def test_the_checker_proves_the_same_of_larger_grids(seed: int) -> None:
    problem = random_grid_problem(np.random.default_rng(2000 + seed), 60)
    value, best = checked(problem, "blocks"), best_bound(problem)
    assert value is not None
    assert best is not None
    assert best.value >= value


def block_nodes(problem: MappingProblem, routers: tuple[int, ...]) -> IntArray:
    """Map equal boxes of tasks to the routers of a machine, in order."""
    assert problem.grid is not None
    blocks = np.asarray(problem.grid.shape) // np.asarray(routers)
    router = np.ravel_multi_index(tuple((problem.grid.coordinates() // blocks).T), routers)
    order = np.argsort(router, kind="stable")
    size = problem.num_tasks // math.prod(routers)
    nodes = np.empty(problem.num_tasks, dtype=np.int64)
    nodes[order] = np.arange(problem.num_tasks) // (size // problem.torus.nodes_per_router)
    return nodes


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
    problem = problem_on(
        grid(tasks, periodic),
        machine,
        tasks_per_node=per_node,
        wrap=wrap,
        nodes_per_router=per_router,
    )
    bound = best_bound(problem)
    assert bound is not None
    assert bound.value == hop_bytes(problem, block_nodes(problem, machine))


def test_known_optimum_of_three_cubed() -> None:
    """54 with bytes one way; blocks alone find it too."""
    one_way = GridApplication(shape=[3] * 3, periodic=[False] * 3, bytes=[[1, 0]] * 3)
    problem = problem_on(one_way, [3, 3, 3], wrap=False)
    assert problem.grid is not None
    for bound in (best_bound(problem), blocks_bound(problem)):
        assert bound is not None
        assert bound.value == 54


def test_the_bound_is_a_multiple_of_the_bytes() -> None:
    application = grid((7, 5), size=1000)
    problem = problem_on(application, [3, 3], tasks_per_node=4, wrap=False)
    bound = best_bound(problem)
    assert bound is not None
    assert bound.value > 0
    assert bound.value % 2000 == 0


def test_holes_and_spare_places_take_a_moment() -> None:
    rng = np.random.default_rng(5)
    usable = np.sort(rng.permutation(24**3)[400:])
    problem = problem_on(
        grid((32, 32, 32)), [24] * 3, tasks_per_node=64, nodes=format_node_set(usable.tolist())
    )
    best_bound(problem_on(grid((4, 4)), [2, 2], tasks_per_node=4))  # compiled code is loaded once
    start = time.process_time()
    bound = best_bound(problem)
    assert bound is not None
    assert time.process_time() - start < 3.0  # a second on an idle machine
    assert bound.value == 43008  # 512 cubes of 64: the holes leave room for them


def test_graphs_take_a_hop_per_message_where_no_router_takes_two() -> None:
    application = random_graph(np.random.default_rng(0), 6, 20)
    alone = problem_on(application, [3, 3])
    bound = total_bound(alone)
    assert bound is not None
    assert bound.value == alone.graph.total_bytes
    assert total_bound(problem_on(application, [3, 3], tasks_per_node=2)) is None


def test_multipliers_are_a_best_packing() -> None:
    """Against all bases of random programs."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        values = [Fraction(int(v)) for v in rng.integers(-3, 20, size=5)]
        rates = [
            tuple(Fraction(int(a), int(b)) for a, b in rng.integers(1, 6, size=(2, 2)))
            for _ in values
        ]
        found = best_multipliers(values, rates)
        assert all(m >= 0 for m in found)
        assert all(sum(m * r[d] for m, r in zip(found, rates, strict=True)) <= 1 for d in (0, 1))
        best = Fraction(0)
        for f, g in itertools.combinations(range(len(values)), 2):
            (a, b), (c, d) = rates[f], rates[g]
            best = max(best, values[f] / max(a, b), values[g] / max(c, d))
            if (det := a * d - b * c) and (d - c) / det >= 0 and (a - b) / det >= 0:
                best = max(best, values[f] * (d - c) / det + values[g] * (a - b) / det)
        assert sum(m * v for m, v in zip(found, values, strict=True)) == best


LINE = {
    "slope": {"numerator": 1, "denominator": 1},
    "multiplier": {"numerator": 1, "denominator": 1},
}
RING = GraphApplication(num_tasks=4, sources=[0, 1, 2, 3], targets=[1, 2, 3, 0], bytes=[1] * 4)
EXAMPLES: dict[str, tuple[MappingProblem, dict[str, Any], int]] = {
    "total": (problem_on(RING, [4]), {}, 4),
    "blocks": (
        problem_on(grid([4]), [2], tasks_per_node=2, wrap=False),
        {"families": [{"extents": [1], **LINE}]},
        2,
    ),
    "star": (problem_on(all_to_all(3), [3], wrap=False), {"prices": [0, 1, 0]}, 4),
    "distance-classes": (
        problem_on(all_to_all(4), [4]),
        {"shape": [4], "routers": [0, 1, 2, 3], "classes": [0, 1, 2, 1], "scale": 2}
        | {"filters": [], "factors": [], "rows": [[0] * 4, [0] * 4, [1] * 4]},
        8,
    ),
    "cuts": (
        problem_on(all_to_all(4), [4]),
        {"wrap": [True], "scale": 1000, "lines": [{"prices": [-3900] * 4, "balance": 1000}]}
        | {"factors": [], "gains": []},
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
