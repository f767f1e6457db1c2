"""Logical axes over parts of physical ones, and partitions level by level."""

from __future__ import annotations

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest

import topoplace as tp
from topoplace.errors import InputError
from topoplace.mapping import _partitioner, multilevel
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.objects.applications import problem_of as objects_of
from topoplace.mapping.objects.applications import read_application
from topoplace.mapping.objects.settled import settled
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.parallelism import parallelism
from topoplace.mapping.problem import MappingProblem, spread_over_nodes
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Options, method_of, solve

GRIDS = {
    "torus:16x16": [(64, 4), (32, 8), (128, 2), (256,), (8, 8, 4), (16, 4, 4), (2, 8, 16)],
    "torus:4x4x4": [
        (8, 8),
        (16, 4),
        (32, 2),
        (64,),
        (2, 4, 8),
        (2, 2, 16),
        (4, 4, 4),
        (2, 2, 2, 8),
    ],
    "torus:8x8x16": [(64, 16), (32, 32), (128, 8), (16, 16, 4), (2, 8, 64)],
    "torus:8x4": [(2, 16), (16, 2), (4, 8), (32,), (2, 4, 4)],
    "mesh:8x4": [(2, 16), (4, 8), (2, 2, 8)],
    "torus:6x4": [(12, 2), (3, 8)],
    "torus:16x16x16": [(64, 64)],
}
CASES = [(on, shape) for on, shapes in GRIDS.items() for shape in shapes]
HEAVY = {"torus:8x8x16", "torus:16x16x16"}


def mapped(problem: MappingProblem, method: str) -> int:
    """Return the hop-bytes of a method, whose mapping the checker confirms."""
    result = solve(problem, method, Options(time_limit=5))
    assert result.check().holds
    assert result.objective is not None
    return int(result.objective)


def best_whole_axes(problem: MappingProblem) -> int:
    """Return the least hop-bytes of tasks in row-major order over any order of whole axes."""
    torus, found = problem.torus, []
    for order in itertools.permutations(range(torus.num_dims)):
        routers = np.arange(torus.num_routers).reshape(torus.shape).transpose(order).ravel()
        each = problem.num_tasks // len(routers)
        found.append(hop_bytes(problem, spread_over_nodes(problem, np.repeat(routers, each))))
    return min(found)


@pytest.mark.parametrize(
    ("on", "shape"),
    [pytest.param(*c, marks=pytest.mark.slow if c[0] in HEAVY else ()) for c in CASES],
)
def test_no_order_of_whole_axes_is_better(on: str, shape: tuple[int, ...]) -> None:
    problem = problem_on(load_places(on), tp.grid(*shape, periodic=True))
    outcome = method_of("mapping", "split-axes").solver(problem, Options())
    assert hop_bytes(problem, outcome.solution.nodes) <= best_whole_axes(problem)


def test_a_long_ring_takes_part_of_the_other_axis() -> None:
    """64x4 on 16x16: rings of 64 over 16 positions and 4 slow ones, rings of 4 over the rest."""
    problem = problem_on(load_places("torus:16x16"), tp.grid(64, 4, periodic=True))
    assert mapped(problem, "split-axes") == 1376
    assert mapped(problem, "auto") <= 1376


@pytest.mark.parametrize(("on", "per_node"), [("torus:4x4", 4), ("mesh:4x2:2", 4)])
def test_places_of_a_router_are_an_axis(on: str, per_node: int) -> None:
    places = load_places(on)
    num = len(places.nodes) * per_node
    problem = problem_on(places, tp.grid(num // 8, 8), per_node)
    assert mapped(problem, "split-axes") <= mapped(problem, "default")


def test_training_jobs_and_boxes() -> None:
    job = parallelism("tensor=8,data=4,pipeline=4")
    problem = problem_on(load_places("torus:8x8x8", within="4x4x8"), job)
    assert mapped(problem, "split-axes") <= mapped(problem, "default")


REFUSED = {
    "hierarchy:2x4": tp.grid(8),
    "torus:8": tp.graph([(0, 1, 1)]),
    "torus:4x4": tp.grid(5, 3),
    "torus:6": tp.grid(2, 2),
}


@pytest.mark.parametrize("on", REFUSED)
def test_what_it_refuses(on: str) -> None:
    problem = problem_on(load_places(on), REFUSED[on])
    with pytest.raises(InputError):
        method_of("mapping", "split-axes").solver(problem, Options())


# ---- Partitions level by level -------------------------------------------------------------------


def random_geometric(num: int, seed: int, on: str = "sharedmap:4:3:5/1:10:100") -> MappingProblem:
    """Return points in a square that talk if they are near, on a machine with little to spare."""
    points = np.random.default_rng(seed).random((num, 2))
    near = 0.55 * math.sqrt(math.log(num) / num)
    apart = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    pairs = np.argwhere(np.triu(apart < near, 1)).tolist()
    graph = tp.graph([(a, b, 1) for a, b in pairs], num_tasks=num)
    places = load_places(on)
    return problem_on(places, graph, math.ceil(1.03 * num / len(places.nodes)))


@pytest.mark.parametrize("on", ["sharedmap:4:3:5/1:10:100", "torus:4x4x2"])
def test_partitions_are_better_than_bisection(on: str) -> None:
    pytest.importorskip("mtkahypar", reason="the library mtkahypar is not installed")
    problem = random_geometric(1000, 5, on)
    assert multilevel.is_available(problem)
    found = [multilevel.multilevel(problem, 1, math.inf) for _ in range(2)]
    assert found[0] is not None
    assert found[1] is not None
    assert (found[0] == found[1]).all()
    nodes = spread_over_nodes(problem, found[0])  # no leaf is too full
    assert hop_bytes(problem, nodes) < mapped(problem, "bisection")


def test_tasks_under_a_cap_have_partitions() -> None:
    pytest.importorskip("mtkahypar", reason="the library mtkahypar is not installed")
    graph = random_geometric(500, 3).instance.application
    assert isinstance(graph, GraphApplication)
    problem = objects_of(graph, load_places("torus:4x2"), "1.1")
    found = multilevel.multilevel(problem, 1, math.inf)
    assert found is not None
    assert int(np.bincount(found).max()) <= problem.cap


def test_objects_have_partitions() -> None:
    """Messages once per node, trees and other loads than 1 are followed as messages."""
    pytest.importorskip("mtkahypar", reason="the library mtkahypar is not installed")
    problem = objects_of(read_application("namd_apoa1"), load_places("torus:4x2"), "1.1")
    found = multilevel.multilevel(problem, 1, math.inf)
    assert found is not None
    cells = settled(problem, found)
    assert cells is not None
    cost = hop_bytes(problem, problem.nodes_of(cells))
    assert cost < mapped(problem, "in-order")


def test_routers_are_improved_while_there_is_time() -> None:
    """Each time with fewer hop-bytes, on a part of the machine too, with room of its own each."""
    pytest.importorskip("mtkahypar", reason="the library mtkahypar is not installed")
    problem = random_geometric(1000, 5, "torus:4x4x2")
    routers, rooms, graph = np.arange(2, 32), np.arange(31, 61), problem.graph
    hops = problem.machine.hops(routers[:, None], routers[None, :])
    given = {"ends": np.stack([graph.sources, graph.targets]), "weight": graph.bytes}
    tasks = _partitioner.whole(given | {"size": problem.loads}, 1)
    start = np.repeat(np.arange(30), rooms)[:1000]
    partitioner = _partitioner.Partitioner("DEFAULT", 1, math.inf)
    every = [start, *partitioner.improved(tasks, start, hops, rooms)]
    costs = [int(hops[one[graph.sources], one[graph.targets]] @ graph.bytes) for one in every]
    assert len(costs) > 2
    assert all(before > after for before, after in pairwise(costs))
    assert all((np.bincount(one, minlength=30) <= rooms).all() for one in every)


@pytest.mark.parametrize("on", ["sharedmap:4:3:5/1:10:100", "torus:4x4x2"])
def test_large_messages_have_partitions_as_good_as_small_ones(on: str) -> None:
    """The library counts bytes in 32 bits."""
    pytest.importorskip("mtkahypar", reason="the library mtkahypar is not installed")
    problem = random_geometric(1000, 5, on)
    graph = problem.instance.application
    assert isinstance(graph, GraphApplication)
    costs = []
    for size in (1, 1 << 40):
        own = graph.model_copy(update={"bytes": [size * one for one in graph.bytes]})
        large = problem_on(load_places(on), own, problem.tasks_per_node)
        found = multilevel.multilevel(large, 1, math.inf)
        assert found is not None
        costs.append(hop_bytes(large, spread_over_nodes(large, found)) / size)
    assert costs[1] < 1.05 * costs[0]


def test_routers_without_a_hop_between_them_are_improved() -> None:
    """Nodes of a router of a dragonfly; the library knows no links of length 0."""
    pytest.importorskip("mtkahypar", reason="the library mtkahypar is not installed")
    problem = random_geometric(1000, 5, "dragonfly:4x4x2")
    found = multilevel.multilevel(problem, 1, math.inf)
    put = multilevel._put(problem, 1, math.inf, 1)
    assert found is not None
    assert put is not None
    costs = [hop_bytes(problem, spread_over_nodes(problem, one)) for one in (found, put)]
    assert costs[0] < costs[1]


def test_late_partitions_keep_neighbours_together() -> None:
    pytest.importorskip("mtkahypar", reason="the library mtkahypar is not installed")
    problem = random_geometric(1000, 5)
    machine, graph = problem.machine.levels, problem.graph
    assert machine is not None
    given = {"domains": machine.domain_of, "room": problem.capacity, "size": problem.loads}
    given |= {"ends": np.stack([graph.sources, graph.targets]), "weight": graph.bytes}
    leaves = _partitioner.leaves_of(given, _partitioner.Partitioner("DEFAULT", 1, -1.0))
    nodes = spread_over_nodes(problem, leaves)  # no leaf is too full
    assert 3 * hop_bytes(problem, nodes) < mapped(problem, "default")


def test_without_time_there_is_no_partition() -> None:
    problem = random_geometric(300, 1)
    assert multilevel.multilevel(problem, 1, 0.0) is None
