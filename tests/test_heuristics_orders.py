"""Node orders: permutations, the slabs of Enos 2014 (Figs. 2 to 4), and first fit of nodes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from random_instances import random_snapshot
from topoplace.machine import Torus, parse_node_set
from topoplace.placement.torus.heuristics.alps_orders import FOUR_Y, O2, TWO_Y, Digit, block_order
from topoplace.placement.torus.heuristics.node_order import nodes_of_routers, place_in_order
from topoplace.placement.torus.outcome import Scattered
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, Outcome, methods, result_of, solve

NODE_METHODS = ("alps-o2", "alps-2y", "alps-4y", "random-nodes")
ORDERS = {"o2": O2, "2y": TWO_Y, "4y": FOUR_Y}
SHAPES = [
    (1,),
    (9,),
    (2, 3),
    (8, 12),
    (24, 24, 24),
    (11, 12, 16),
    (5, 7, 3),
    (3, 5, 4, 2),
    (2,) * 5,
]


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orders_are_permutations(order: tuple[Digit, ...], shape: tuple[int, ...]) -> None:
    torus = Torus(shape, nodes_per_router=2)
    routers = block_order(torus, order)
    assert np.array_equal(np.sort(routers), np.arange(torus.num_routers))
    nodes = nodes_of_routers(torus, routers)
    assert np.array_equal(np.sort(nodes), np.arange(torus.num_nodes))


@pytest.mark.parametrize(
    ("order", "dim", "thick", "block"),
    [(O2, 0, 4, (2, 4, 2)), (TWO_Y, 1, 2, (4, 2, 8)), (FOUR_Y, 1, 4, (4, 2, 8))],
    ids=ORDERS,
)
def test_orders_fill_the_slabs_of_the_paper(
    order: tuple[Digit, ...], dim: int, thick: int, block: tuple[int, ...]
) -> None:
    torus = Torus((24, 24, 24), nodes_per_router=2)
    coords = torus.coordinates[block_order(torus, order)]
    slabs = coords[:, dim].reshape(-1, thick * 24 * 24) // thick
    assert (slabs == np.arange(24 // thick)[:, None]).all()
    blocks = (coords // np.array(block)).reshape(-1, int(np.prod(block)), 3)
    assert (blocks == blocks[:, :1]).all()
    of_slab = blocks[:, 0].reshape(24 // thick, -1, 3)
    steps = np.abs(np.diff(of_slab, axis=1)).sum(axis=2)
    assert (steps == 1).all(), "in a slab, a serpentine moves on to a neighbouring block"


def test_2y_fills_z_then_x_then_y() -> None:
    torus = Torus((24, 24, 24))
    blocks = torus.coordinates[block_order(torus, TWO_Y)][::64] // np.array((4, 2, 8))
    assert blocks[:7].tolist() == [
        [0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 2], [1, 0, 1], [1, 0, 0], [2, 0, 0],
    ]  # fmt: skip
    assert blocks[17:19].tolist() == [[5, 0, 0], [5, 1, 0]]


@pytest.mark.parametrize("name", NODE_METHODS)
def test_jobs_take_their_nodes(name: str) -> None:
    num_started = 0
    for seed in range(40):
        problem = PlacementProblem(prepare(random_snapshot(random.Random(seed), 24)))
        state, per = problem.state, problem.torus.nodes_per_router
        outcome = methods("placement")[name].solver(problem, Options(seed=seed))
        left = state.usable.copy()
        started = {s.request_idx: s for s in outcome.solution}
        for idx, request in enumerate(problem.requests):
            fits = left & (state.node_class == request.class_idx)
            if request.region is not None:
                fits &= np.repeat(state.regions[request.region], per)
            assert (idx in started) == (fits.sum() >= request.nodes)
            if idx in started:
                job = started[idx]
                assert isinstance(job, Scattered)
                assert len(np.unique(job.nodes)) == request.nodes
                assert fits[job.nodes].all()
                left[job.nodes] = False
        num_started += len(started)
    assert num_started > 40


def test_first_fit_follows_the_order() -> None:
    for seed in range(30):
        problem = PlacementProblem(prepare(random_snapshot(random.Random(seed), 24)))
        order = np.random.default_rng(seed).permutation(problem.torus.num_nodes)
        left = problem.state.usable.tolist()
        for job in place_in_order(problem, order):
            request = problem.requests[job.request_idx]
            region = problem.state.regions.get(request.region or "")
            expected = []
            for node in order.tolist():
                inside = region is None or region[node // problem.torus.nodes_per_router]
                of_class = problem.state.node_class[node] == request.class_idx
                if left[node] and inside and of_class and len(expected) < request.nodes:
                    expected.append(node)
            assert sorted(expected) == job.nodes.tolist()
            for node in expected:
                left[node] = False


@pytest.mark.parametrize("name", NODE_METHODS)
def test_same_answer_for_the_same_seed(name: str) -> None:
    state = prepare(random_snapshot(random.Random(3), 24))
    once, again = (solve(state, name, Options(seed=5)) for _ in range(2))
    assert once.solution == again.solution


def test_another_seed_is_another_random_order() -> None:
    found = set()
    for seed in range(5):
        state = prepare(random_snapshot(random.Random(3), 24))
        solution = solve(state, "random-nodes", Options(seed=seed)).solution
        assert solution is not None
        found.add(tuple(p.nodes for p in solution.placements))
    assert len(found) > 1


def test_scattered_jobs_report_the_links_they_share() -> None:
    """Two jobs on every other node of a ring use the same links under strict interference."""
    document = {
        "schema": SNAPSHOT_SCHEMA,
        "name": "ring",
        "machine": {"name": "ring", "shape": [8]},
        "queue": [{"id": "a", "nodes": 4}, {"id": "b", "nodes": 4}],
    }
    state = prepare(Snapshot.model_validate(document))
    jobs = [Scattered(0, np.arange(0, 8, 2)), Scattered(1, np.arange(1, 8, 2))]
    for mode, shared in ((Interference.STRICT, 8), (Interference.OFF, 0)):
        problem = PlacementProblem(state, mode)
        solution = result_of(problem, Outcome(jobs), "alps-o2", Options(), 0.0).solution
        assert solution is not None
        assert solution.num_shared_links == shared
        assert not solution.conforming
        assert [len(parse_node_set(p.nodes, 8)) for p in solution.placements] == [4, 4]
