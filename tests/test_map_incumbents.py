"""Methods for any graph: valid mappings, exact books, never worse, seeds, limits, known values."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baseline_instances import grid, problem_on, random_graph
from real_files import real_file
from test_local_search import cost, random_problem
from topoplace.errors import InputError
from topoplace.machine import MatrixMachine
from topoplace.mapping import halving
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import TaskGraph
from topoplace.mapping.graphfiles import read_csv_graph, read_qaplib
from topoplace.mapping.keeper import least_possible
from topoplace.mapping.methods import best, constructions, orders, searches
from topoplace.mapping.methods.orders import hilbert_order
from topoplace.mapping.onto import places_of_qaplib
from topoplace.mapping.onto import problem_on as on_places
from topoplace.mapping.rankfiles.places import require_mapping
from topoplace.mapping.tabu_search import MAX_PLACES, Tabu, all_changes
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Incumbent, Options, solve

METHODS = {
    "greedy": constructions.map_greedy,
    "bisection": constructions.map_bisection,
    "hilbert": orders.map_hilbert,
    "tabu": searches.map_tabu,
    "search": searches.map_search,
    "scotch": best.map_scotch,
}
SEEDED = ("tabu", "search")

needs_scotch = pytest.mark.skipif(not best.is_installed(), reason="Scotch is not installed")
every_method = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs_scotch if n == "scotch" else ()) for n in METHODS]
)


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    """Compile all kernels outside of any time limit."""
    searches.map_search(problem_on(grid((3,)), (4,)), Options())


@pytest.fixture(autouse=True)
def _little_work(monkeypatch):
    monkeypatch.setattr(searches, "WORK", 200_000)
    monkeypatch.setattr(searches, "FEWEST_MOVES", 50)
    monkeypatch.setattr(searches, "MOVES_PER_TASK", 200)
    monkeypatch.setattr(searches, "FEWEST_MOVES", 5_000)
    monkeypatch.setattr(searches, "TABU_WORK", 100_000)


def skewed(problem, seed):
    """Return the problem with distances that differ by direction, on a matrix machine."""
    if not isinstance(problem.machine, MatrixMachine):
        return problem
    distances = np.random.default_rng(seed).integers(0, 9, problem.machine.distances.shape)
    np.fill_diagonal(distances, 0)
    return replace(problem, machine=MatrixMachine(distances))


def renumbered(problem, seed=1):
    """Return the problem with its tasks numbered at random: their order gives nothing away."""
    label = np.random.default_rng(seed).permutation(problem.num_tasks)
    graph = problem.graph
    mixed = TaskGraph(graph.num_tasks, label[graph.sources], label[graph.targets], graph.bytes)
    return replace(problem, graph=mixed, grid=None)


def relabelled(shape):
    """Return a periodic grid on a torus of the same shape, its tasks numbered at random."""
    return renumbered(problem_on(grid(shape, True), shape))


def graph_problem(num_tasks, messages, shape, **machine):
    """Return a problem of messages (source, target, bytes)."""
    sources, targets, sizes = zip(*messages, strict=True) if messages else ((), (), ())
    application = GraphApplication(
        num_tasks=num_tasks, sources=list(sources), targets=list(targets), bytes=list(sizes)
    )
    return problem_on(application, shape, **machine)


@every_method
def test_any_graph_on_any_machine_gets_a_valid_mapping(name):
    for seed in range(12 if name == "scotch" else 30):
        problem, _ = random_problem(seed)
        if seed % 3 == 0:
            problem = skewed(problem, seed)
        require_mapping(problem, METHODS[name](problem, Options()).solution.nodes)


@every_method
@pytest.mark.parametrize(
    ("num_tasks", "messages", "machine"),
    [
        (1, [], {"shape": (1,)}),
        (1, [], {"shape": (3, 3)}),
        (9, [], {"shape": (3, 3)}),
        (7, [(0, 1, 0), (2, 3, 0)], {"shape": (2, 2), "tasks_per_node": 2}),
        (8, [(0, 1, 5), (2, 3, 9), (6, 7, 1)], {"shape": (4, 4), "nodes": "0,2,5,7-9,12,15"}),
        (5, [(0, 4, 1 << 53)], {"shape": (2, 3), "wrap": False, "nodes_per_router": 4}),
        (4, [(0, 1, 3), (1, 2, 3), (2, 3, 3)], {"shape": (1, 2, 1, 2, 1, 2)}),
    ],
)
def test_graphs_with_little_or_nothing_in_them(name, num_tasks, messages, machine):
    problem = graph_problem(num_tasks, messages, **machine)
    require_mapping(problem, METHODS[name](problem, Options()).solution.nodes)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 40))
def test_the_changes_kept_by_tabu_search_are_those_computed_anew(seed, num_moves):
    problem, routers = random_problem(seed)
    problem = skewed(problem, seed)
    moving = Tabu(problem, routers, seed)
    moving.run(num_moves)
    flow, dist, router, num_tasks = moving._problem
    anew = np.zeros_like(moving._delta)
    all_changes(flow, dist, moving._place, num_tasks, anew)
    assert (anew == moving._delta).all()
    assert sorted(moving._place) == list(range(len(router)))
    assert moving.cost == cost(problem, router[moving._place[:num_tasks]])
    assert moving.least == cost(problem, moving.routers) <= cost(problem, routers)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_refinement_keeps_sizes_in_range_and_never_adds_cost(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    dense = np.triu(rng.integers(0, 9, (n, n)) * (rng.random((n, n)) < 0.2), 1)
    dense = dense + dense.T
    rows, other = np.nonzero(dense)
    first = np.searchsorted(rows, np.arange(n + 1))
    graph = (first, other, dense[rows, other], rng.integers(-20, 20, n), np.ones(n, dtype=int))
    side = rng.integers(0, 2, n).astype(np.int8)
    filled = int((side == 0).sum())
    before = halving.cost_of(graph, side)
    halving.refine(graph, side, filled, filled)
    assert (side == 0).sum() == filled
    assert halving.cost_of(graph, side) <= before
    low, high = sorted(rng.integers(0, n + 1, 2).tolist())
    halving.refine(graph, side, low, high)
    assert low <= (side == 0).sum() <= high


@pytest.mark.parametrize("shape", [(8, 8), (4, 4, 4), (2, 2, 2, 2), (16,), (2,) * 7])
def test_each_step_of_the_curve_through_a_cube_is_one_hop(shape):
    points = np.indices(shape).reshape(len(shape), -1).T
    order = hilbert_order(points)
    assert sorted(order) == list(range(len(points)))
    assert (np.abs(np.diff(points[order], axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("name", SEEDED)
def test_never_worse_than_the_start_and_what_is_reported_is_true(name):
    for seed in range(12):
        problem = skewed(random_problem(seed)[0], seed)
        best = Incumbent()
        start = METHODS["hilbert"](problem, Options()).solution.nodes
        options = Options(start=start, incumbent=best)
        nodes = METHODS[name](problem, options).solution.nodes
        require_mapping(problem, nodes)
        assert hop_bytes(problem, nodes) <= hop_bytes(problem, start)
        known = best.outcome.solution.nodes
        assert hop_bytes(problem, nodes) == best.progress().objective == hop_bytes(problem, known)


@pytest.mark.parametrize("name", [*SEEDED, "bisection"])
def test_the_seed_decides(name):
    rng = np.random.default_rng(0)
    problem = problem_on(random_graph(rng, 40, 200), (4, 3, 4))
    one, again, other = (
        METHODS[name](problem, Options(seed=seed)).solution.nodes.tolist() for seed in (3, 3, 4)
    )
    assert one == again
    assert one != other


@pytest.mark.parametrize("name", SEEDED)
def test_the_time_limit_is_kept(name):
    rng = np.random.default_rng(0)
    problem = problem_on(random_graph(rng, 200, 3000), (6, 6, 6))
    begun = time.perf_counter()
    outcome = METHODS[name](problem, Options(time_limit=0.5))
    assert time.perf_counter() - begun < 1.5
    assert outcome.time_limit_hit
    require_mapping(problem, outcome.solution.nodes)


def test_grids_numbered_at_random_are_found_again():
    for shape in ((4, 4, 4), (8, 4), (12,)):
        problem = relabelled(shape)
        assert hop_bytes(
            problem, constructions.map_bisection(problem, Options()).solution.nodes
        ) == (problem.graph.total_bytes)
    problem = relabelled((4, 4, 4))
    assert not searches.map_search(problem, Options(time_limit=20)).time_limit_hit


def test_bisection_beats_a_random_mapping_by_far():
    problem = relabelled((8, 8, 8))
    found = hop_bytes(problem, constructions.map_bisection(problem, Options()).solution.nodes)
    assert found <= 1.4 * problem.graph.total_bytes  # a random mapping has 6


def test_machines_with_routers_at_no_distance_are_searched_too():
    bits = np.arange(16)
    distances = np.bitwise_count(bits[:, None] ^ bits).astype(np.int64)
    machine = MatrixMachine(np.maximum(distances - 1, 0))
    problem = problem_on(random_graph(np.random.default_rng(1), 16, 60), (16,))
    problem = replace(problem, machine=machine)
    start = hop_bytes(problem, constructions.map_greedy(problem, Options()).solution.nodes)
    assert hop_bytes(problem, searches.map_search(problem, Options()).solution.nodes) < start
    assert least_possible(problem) == 0


def test_no_mapping_goes_below_the_least_possible():
    for seed in range(40):
        problem, routers = random_problem(seed)
        problem = skewed(problem, seed)
        assert least_possible(problem) <= cost(problem, routers)


def test_tabu_refuses_machines_of_many_places():
    problem = problem_on(grid((600,)), (30, 30))
    with pytest.raises(InputError, match=f"at most {MAX_PLACES} places"):
        searches.map_tabu(problem, Options())


def test_a_missing_scotch_is_bad_input(monkeypatch):
    monkeypatch.setattr(best.shutil, "which", lambda _: None)
    problem = problem_on(grid((4,)), (2, 2))
    wanted = "method: expected the programs gmap and amk_grf of Scotch"
    with pytest.raises(InputError, match=wanted):
        best.map_scotch(problem, Options())


def test_what_does_not_fit_goes_to_the_nearest_free_router():
    problem = problem_on(grid((4,)), (6,), nodes="0-4")
    moved = best.within_capacity(problem, np.array([1, 1, 4, 1]))
    assert moved[[0, 2]].tolist() == [1, 4]
    assert sorted(moved[[1, 3]].tolist()) == [0, 2]


class Reached(Exception):
    """The search has found what was asked for."""


def require_reached(problem, goal, seconds):
    """Fail if the search does not find a mapping of at most so many hop-bytes in time."""

    def watch(progress):
        if progress.objective is not None and progress.objective <= goal:
            raise Reached

    with pytest.raises(Reached):
        solve(problem, "search", Options(time_limit=seconds, watch=watch))


@pytest.mark.parametrize(
    ("name", "goal"),
    [("nug12", 578), ("nug15", 1150), ("scr12", 31410), ("esc16a", 68), ("tho30", 149936)],
)
def test_the_optimal_assignments_of_qaplib_are_found(name, goal, monkeypatch):
    monkeypatch.undo()
    read = read_qaplib(real_file(f"qaplib/{name}.dat"))
    require_reached(on_places(places_of_qaplib(read), read.graph), goal, 60)


@pytest.mark.parametrize(("name", "goal"), [("amg", 5783590656), ("lulesh", 20824833600)])
def test_mappings_of_maplib_are_no_worse_than_the_best_published(name, goal, monkeypatch):
    monkeypatch.undo()
    application = read_csv_graph(real_file(f"maplib/{name}/bytes.csv"))
    require_reached(renumbered(problem_on(application, (4, 4, 4))), goal, 60)


@needs_scotch
def test_scotch_keeps_to_its_time_limit():
    outcome = best.map_scotch(relabelled((12, 12, 12)), Options(time_limit=0.01))
    assert (outcome.solution.nodes, outcome.time_limit_hit) == (None, True)
