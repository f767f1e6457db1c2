"""Methods for any graph: valid mappings, exact books, never worse, seeds, limits, known values."""

from __future__ import annotations

import importlib
import itertools
import pkgutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baseline_instances import (
    grid,
    on_distances,
    optimum_of,
    problem_on,
    random_graph,
    random_problem,
    renumbered,
)
from real_files import real_file
from topoplace.errors import InputError
from topoplace.kinds import kind_named
from topoplace.mapping import local_search
from topoplace.mapping import methods as package
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graphfiles import read_graph, read_qaplib
from topoplace.mapping.local_search import arrays_of, branches_of, state_arrays
from topoplace.mapping.mapped import Keeper
from topoplace.mapping.methods import best, searches
from topoplace.mapping.methods.orders import hilbert_order
from topoplace.mapping.onto import load_places
from topoplace.mapping.onto import problem_on as on_places
from topoplace.mapping.problem import require_mapping, spread_over_nodes
from topoplace.mapping.tabu_search import MAX_PLACES, all_changes, tabu_arrays, tabu_moves
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Incumbent, Options, method_of, methods, solve

ANY_GRAPH = ("greedy", "bisection", "hilbert", "tabu", "search", "scotch")
SEEDED = ("tabu", "search", "local-search")

needs_scotch = pytest.mark.skipif(not best.is_installed(), reason="Scotch is not installed")
every_method = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs_scotch if n == "scotch" else ()) for n in ANY_GRAPH]
)


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    """Compile all kernels outside of any time limit."""
    found("search", problem_on(grid((3,)), (4,)))


@pytest.fixture(autouse=True)
def _little_work(monkeypatch):
    monkeypatch.setattr(searches, "WORK", 200_000)
    monkeypatch.setattr(searches, "FEWEST_MOVES", 50)
    monkeypatch.setattr(searches, "MOVES_PER_TASK", 200)
    monkeypatch.setattr(searches, "FEWEST_ANNEALING_MOVES", 5_000)
    monkeypatch.setattr(searches, "TABU_WORK", 100_000)
    monkeypatch.setattr(local_search, "MOVES_PER_TASK", 200)
    monkeypatch.setattr(local_search, "FEWEST_MOVES", 5_000)


def found(name, problem, **options):
    """Return the node of every task by a method, which must be a mapping."""
    nodes = method_of("mapping", name).solver(problem, Options(**options)).solution.nodes
    require_mapping(problem, nodes)
    return nodes


def cost(problem, routers):
    """Return the hop-bytes of tasks on routers."""
    return hop_bytes(problem, routers * problem.machine.nodes_per_router)


def random_mapping(problem, seed):
    """Return the router of every task in a random mapping."""
    places = np.repeat(problem.nodes, problem.tasks_per_node)
    return problem.routers_of(np.random.default_rng(seed).permutation(places)[: problem.num_tasks])


def improved(problem, routers, num_moves=None, **options):
    """Return what keeps the best mapping that the local search makes of one."""
    keeper = Keeper(problem, Options(**options), spread_over_nodes(problem, routers))
    local_search.improve(keeper, num_moves)
    return keeper


def test_the_table_of_methods_names_the_modules_that_register_them():
    modules = {f"{package.__name__}.{m.name}" for m in pkgutil.iter_modules(package.__path__)}
    for module in modules:
        importlib.import_module(module)
    assert set(methods("mapping")) == set(kind_named("mapping").methods)
    others = {"topoplace.explicit.method", "topoplace.explicit.reference"}  # of all kinds
    named = {ref.partition(":")[0] for ref, _ in kind_named("mapping").methods.values()}
    assert named == modules | others
    for name in kind_named("mapping").methods:
        assert method_of("mapping", name).name == name
    with pytest.raises(InputError, match="pencils"):
        method_of("mapping", "no-such-method")


@every_method
@pytest.mark.parametrize(
    ("num_tasks", "messages", "machine"),
    [
        (1, [], {"shape": (1,)}),
        (9, [], {"shape": (3, 3)}),
        (7, [(0, 1, 0), (2, 3, 0)], {"shape": (2, 2), "tasks_per_node": 2}),
        (8, [(0, 1, 5), (2, 3, 9), (6, 7, 1)], {"shape": (4, 4), "nodes": "0,2,5,7-9,12,15"}),
        (5, [(0, 4, 1 << 53)], {"shape": (2, 3), "wrap": False, "nodes_per_router": 4}),
    ],
)
def test_graphs_with_little_or_nothing_in_them(name, num_tasks, messages, machine):
    columns = [list(column) for column in zip(*messages, strict=True)] or [[], [], []]
    lists = dict(zip(("sources", "targets", "bytes"), columns, strict=True))
    found(name, problem_on(GraphApplication(num_tasks=num_tasks, **lists), **machine))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32), st.floats(0, 100), st.integers(1, 400), st.sampled_from([0.0, 0.5]))
def test_the_books_agree_with_a_full_evaluation_after_any_moves(seed, heat, num_moves, wander):
    problem = random_problem(seed)
    routers = random_mapping(problem, seed)
    machine, pools = arrays_of(problem), problem.pools
    guest, state = problem.graph.exchanged, state_arrays(problem, pools.first[routers])
    before = int(local_search.total_cost(machine, guest, state.router))
    assert before == cost(problem, routers)
    random = np.array([seed + 1], dtype=np.uint64)
    own = pools, problem.loads, problem.home, np.arange(problem.num_tasks), state, random
    sent = machine, guest, guest, branches_of(problem)
    change = int(local_search.anneal(*sent, *own, (heat, num_moves), wander))
    after = state.router.astype(np.int64)
    assert before + change == cost(problem, after)
    require_mapping(problem, spread_over_nodes(problem, after))
    assert (state.router == pools.router[state.cell]).all()
    assert (state.filled == np.bincount(state.cell, minlength=len(state.filled))).all()
    assert state.occupant[state.slot].tolist() == list(range(problem.num_tasks))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 40))
def test_the_changes_kept_by_tabu_search_are_those_computed_anew(seed, num_moves):
    problem = random_problem(seed, most_tasks=60, spare=20, skewed=True)
    routers = random_mapping(problem, seed)
    tables, state = tabu_arrays(problem, routers)
    flow, dist, router, num_tasks = tables
    place, best, delta, *_ = state
    random = np.array([seed + 1], dtype=np.uint64)
    start = cost(problem, routers)
    now, least = tabu_moves(tables, state, start, start, num_moves, random)
    anew = np.zeros_like(delta)
    all_changes(flow, dist, place, num_tasks, anew)
    assert (anew == delta).all()
    assert sorted(place) == list(range(len(router)))
    assert now == cost(problem, router[place[:num_tasks]])
    assert least == cost(problem, router[best[:num_tasks]]) <= start


@pytest.mark.parametrize("shape", [(8, 8), (4, 4, 4), (2, 2, 2, 2), (16,), (2,) * 7])
def test_each_step_of_the_curve_through_a_cube_is_one_hop(shape):
    points = np.indices(shape).reshape(len(shape), -1).T
    order = hilbert_order(points)
    assert sorted(order) == list(range(len(points)))
    assert (np.abs(np.diff(points[order], axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("name", SEEDED)
def test_never_worse_than_the_start_and_what_is_reported_is_true(name):
    for seed in range(12):
        problem = random_problem(seed, most_tasks=60, skewed=name != "local-search")
        told = Incumbent()
        start = found("hilbert", problem)
        nodes = found(name, problem, start=start, incumbent=told)
        assert hop_bytes(problem, nodes) <= hop_bytes(problem, start)
        known = told.outcome.solution.nodes
        assert hop_bytes(problem, nodes) == told.progress().objective == hop_bytes(problem, known)


@pytest.mark.parametrize("name", [*SEEDED, "bisection"])
def test_the_seed_decides(name):
    rng = np.random.default_rng(0)
    problem = problem_on(random_graph(rng, 40, 200), (4, 3, 4))
    one, again, other = (found(name, problem, seed=seed).tolist() for seed in (3, 3, 4))
    assert one == again
    assert one != other


@pytest.mark.parametrize("name", SEEDED)
def test_a_time_limit_is_said_to_be_hit(name):
    rng = np.random.default_rng(0)
    problem = problem_on(random_graph(rng, 200, 3000), (6, 6, 6))
    outcome = method_of("mapping", name).solver(problem, Options(time_limit=0.5))
    assert outcome.time_limit_hit
    require_mapping(problem, outcome.solution.nodes)


def test_grids_numbered_at_random_are_found_again():
    for shape in ((4, 4, 4), (8, 4), (12,)):
        problem = renumbered(problem_on(grid(shape, True), shape))
        assert hop_bytes(problem, found("bisection", problem)) == problem.graph.total_bytes
    assert improved(problem_on(grid((4,) * 3, True), (4,) * 3), np.arange(64)[::-1]).perfect
    problem = renumbered(problem_on(grid((8, 8, 8), True), (8, 8, 8)))
    least = problem.graph.total_bytes
    assert hop_bytes(problem, found("bisection", problem)) <= 1.4 * least  # at random: 6


def test_small_cases_reach_the_least_of_all_assignments():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        problem = problem_on(random_graph(rng, 5, 14), (7,), wrap=False, nodes="0,1,3,4,6")
        assert improved(problem, problem.nodes, num_moves=100_000).least == optimum_of(problem)
    problem = problem_on(random_graph(rng, 8, 40), (3, 3), tasks_per_node=8)
    kept = improved(problem, np.arange(8), time_limit=60)
    assert (kept.least, kept.outcome.time_limit_hit) == (0, False)


def test_machines_with_routers_at_no_distance_are_searched_too():
    bits = np.arange(16)
    distances = np.bitwise_count(bits[:, None] ^ bits).astype(np.int64)
    problem = problem_on(random_graph(np.random.default_rng(1), 16, 60), (16,))
    problem = on_distances(problem, np.maximum(distances - 1, 0))
    start = hop_bytes(problem, found("greedy", problem))
    assert hop_bytes(problem, found("search", problem)) < start


def test_what_cannot_be_searched_is_bad_input(monkeypatch):
    with pytest.raises(InputError, match=f"at most {MAX_PLACES} places"):
        found("tabu", problem_on(grid((600,)), (30, 30)))
    problem = problem_on(grid((4,)), (2, 2))
    for name in SEEDED:
        with pytest.raises(InputError, match="task 1: expected at most 1 task on a node"):
            found(name, problem, start=np.array([0, 0, 1, 2]))
        with pytest.raises(InputError, match="nodes for 4 tasks"):
            found(name, problem, start=np.array([0, 1]))
    skewed = on_distances(problem_on(grid((2,)), (2,)), np.array([[0, 1], [2, 0]]))
    with pytest.raises(InputError, match="symmetric distances"):
        found("local-search", skewed)
    monkeypatch.setattr(best.shutil, "which", lambda _: None)
    with pytest.raises(InputError, match="method: expected the programs gmap and amk_grf of"):
        found("scotch", problem)


def test_what_does_not_fit_goes_to_the_nearest_free_router():
    problem = problem_on(grid((4,)), (6,), nodes="0-4")
    moved = best.within_capacity(problem, np.array([1, 1, 4, 1]))
    assert moved[[0, 2]].tolist() == [1, 4]
    assert sorted(moved[[1, 3]].tolist()) == [0, 2]


class Reached(Exception):
    """The search has found what was asked for."""


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        *(("nug12", 578), ("nug15", 1150), ("scr12", 31410), ("esc16a", 68), ("tho30", 149936)),
        *(("amg", 5783590656), ("lulesh", 20824833600)),
    ],
)
def test_optima_of_qaplib_and_the_best_mappings_of_maplib_are_reached(name, goal, monkeypatch):
    monkeypatch.undo()
    if name in ("amg", "lulesh"):
        application = read_graph(real_file(f"maplib/{name}/bytes.csv"))
        problem = renumbered(problem_on(application, (4, 4, 4)))
    else:
        read = read_qaplib(real_file(f"qaplib/{name}.dat"))
        problem = on_places(load_places(read.machine), read.graph)

    def watch(progress):
        if progress.objective is not None and progress.objective <= goal:
            raise Reached

    with pytest.raises(Reached):
        solve(problem, "search", Options(time_limit=60, watch=watch))


@needs_scotch
def test_scotch_keeps_to_its_time_limit():
    problem = renumbered(problem_on(grid((12, 12, 12), True), (12, 12, 12)))
    outcome = best.map_scotch(problem, Options(time_limit=0.01))
    assert (outcome.solution, outcome.time_limit_hit) == (None, True)


@pytest.mark.parametrize("method", ["auto", "exact", "search"])
def test_there_is_a_mapping_before_any_bound_is_looked_for(method, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("topoplace.mapping.outcome.best_bound", interrupted)
    problem, incumbent = (
        on_places(load_places("tree:2x4"), random_graph(np.random.default_rng(1), 8, 20)),
        Incumbent(),
    )
    with pytest.raises(KeyboardInterrupt):
        solve(problem, method, Options(incumbent=incumbent))
    require_mapping(problem, incumbent.outcome.solution.nodes)


def test_bisection_ends_by_the_clock(monkeypatch):
    """What is left is halved in the order of tasks, and no other trial is begun."""
    ticks = itertools.count()
    monkeypatch.setattr("topoplace.clock.now", lambda: next(ticks))
    monkeypatch.setattr("topoplace.clock.deadline", lambda limit: 6)
    monkeypatch.setattr("topoplace.mapping.halving.HALVING_WORK", 1)
    problem = on_places(load_places("torus:4x4"), random_graph(np.random.default_rng(1), 16, 60))
    outcome = method_of("mapping", "bisection").solver(problem, Options(time_limit=6))
    assert outcome.time_limit_hit
    require_mapping(problem, outcome.solution.nodes)
    assert next(ticks) < 50
