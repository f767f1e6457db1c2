"""Local search: never worse, exact bookkeeping, capacities, and what it can reach."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baseline_instances import grid, problem_on, random_graph
from topoplace.errors import InputError
from topoplace.machine import MatrixMachine
from topoplace.mapping import local_search
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.local_search import guest_arrays, improve, machine_arrays, state_arrays
from topoplace.mapping.methods.orders import map_default
from topoplace.mapping.methods.searches import map_local_search
from topoplace.solving import Options


def random_problem(seed):
    """Return a random graph on part of a random machine, and a random mapping (by routers)."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 5, size=rng.integers(1, 5)).tolist()
    per_router, per_node = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    num_nodes = int(np.prod(shape)) * per_router
    chosen = rng.choice(num_nodes, size=rng.integers(1, num_nodes + 1), replace=False)
    num_tasks = int(rng.integers(1, len(chosen) * per_node + 1))
    problem = problem_on(
        random_graph(rng, num_tasks, int(rng.integers(0, 4 * num_tasks))),
        shape,
        wrap=bool(rng.integers(2)),
        tasks_per_node=per_node,
        nodes_per_router=per_router,
        nodes=",".join(map(str, chosen)),
    )
    if rng.integers(4) == 0:
        problem = as_matrix(problem)
    nodes = rng.permutation(np.repeat(problem.nodes, per_node))[:num_tasks]
    return problem, problem.routers_of(nodes)


def as_matrix(problem):
    """Return the same problem with the machine given by its distances, where that is possible."""
    torus = problem.torus
    if torus.nodes_per_router > 1:
        return problem
    all_routers = np.arange(torus.num_routers)
    return replace(
        problem, machine=MatrixMachine(torus.hops(all_routers[:, None], all_routers[None, :]))
    )


def cost(problem, routers):
    """Return the hop-bytes of tasks on routers."""
    return hop_bytes(problem, routers * problem.machine.nodes_per_router)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32), st.floats(0, 100), st.integers(1, 400), st.sampled_from([0, 0.5]))
def test_the_books_agree_with_a_full_evaluation_after_any_moves(seed, heat, num_moves, wander):
    problem, routers = random_problem(seed)
    machine = machine_arrays(problem.machine, problem.capacity)
    guest, state = guest_arrays(problem.graph), state_arrays(problem, routers)
    before = int(local_search.total_cost(machine, guest, state.router))
    assert before == cost(problem, routers)
    random = np.array([seed + 1], dtype=np.uint64)
    change = int(local_search.anneal(machine, guest, state, random, heat, num_moves, wander))
    after = state.router.astype(np.int64)
    assert before + change == cost(problem, after)
    load = np.bincount(after, minlength=problem.machine.num_routers)
    assert (load <= problem.capacity).all()
    assert state.load.tolist() == load.tolist()
    assert state.occupant[state.place].tolist() == list(range(problem.num_tasks))
    assert (state.place >= state.base[after]).all()
    assert (state.place < state.base[after] + load[after]).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32))
def test_never_worse_than_the_start_and_the_cost_is_true(seed):
    problem, routers = random_problem(seed)
    found = improve(problem, routers, seed=seed % 7, num_moves=3000)
    assert found.hop_bytes == cost(problem, found.routers)
    assert found.hop_bytes <= cost(problem, routers)
    count = np.bincount(found.routers, minlength=problem.machine.num_routers)
    assert (count <= problem.capacity).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32))
def test_the_method_returns_a_mapping_no_worse_than_the_one_given(seed):
    problem, _ = random_problem(seed)
    start = map_default(problem, Options()).solution.nodes
    nodes = map_local_search(problem, Options(start=start, time_limit=0.02)).solution.nodes
    assert np.isin(nodes, problem.nodes).all()
    assert np.bincount(nodes).max() <= problem.tasks_per_node
    assert hop_bytes(problem, nodes) <= hop_bytes(problem, start)


def test_a_shuffled_grid_is_found_again():
    problem = problem_on(grid((4, 4, 4), True), (4, 4, 4))
    routers = np.random.default_rng(5).permutation(64)
    found = improve(problem, routers, num_moves=600_000)
    assert found.hop_bytes == problem.graph.total_bytes


def test_tasks_gather_on_one_router_that_holds_them_all():
    rng = np.random.default_rng(1)
    problem = problem_on(random_graph(rng, 8, 40), (3, 3), tasks_per_node=8)
    assert improve(problem, np.arange(8), num_moves=100_000).hop_bytes == 0
    found = improve(problem, np.arange(8), time_limit=60)
    assert (found.hop_bytes, found.hit) == (0, False)


def test_small_cases_reach_the_least_of_all_assignments():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        problem = problem_on(random_graph(rng, 5, 14), (7,), wrap=False, nodes="0,1,3,4,6")
        least = min(cost(problem, np.asarray(order)) for order in permutations([0, 1, 3, 4, 6]))
        assert improve(problem, problem.nodes, num_moves=100_000).hop_bytes == least


def test_the_seed_decides():
    problem = problem_on(grid((6, 5, 4)), (5, 5, 5))
    start = np.random.default_rng(2).permutation(125)[:120]
    one, again, other = (
        improve(problem, start, seed=seed, num_moves=50_000).routers for seed in (3, 3, 4)
    )
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()


def test_a_good_start_is_kept_and_the_time_limit_too():
    problem = problem_on(grid((16, 16, 16)), (8, 8, 8), tasks_per_node=8)
    outcome = map_local_search(problem, Options(time_limit=0.5))
    assert outcome.time_limit_hit
    assert hop_bytes(problem, outcome.solution.nodes) <= 3 * 7 * 256 * 2


def test_bad_starts_and_distances_are_refused():
    problem = problem_on(grid((4,)), (2, 2))
    with pytest.raises(InputError, match="task 1: expected at most 1 tasks on a node"):
        map_local_search(problem, Options(start=np.array([0, 0, 1, 2])))
    with pytest.raises(InputError, match="nodes for 4 tasks"):
        map_local_search(problem, Options(start=np.array([0, 1])))
    skewed = MatrixMachine(np.array([[0, 1], [2, 0]]))
    with pytest.raises(InputError, match="symmetric distances"):
        machine_arrays(skewed, np.ones(2, dtype=np.int64))
