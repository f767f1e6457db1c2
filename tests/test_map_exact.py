"""Exact mapping: brute force, MiniZinc, known optima, and graphs whose labels were lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from baseline_instances import (
    application_of,
    grid,
    matrix_problem,
    on_distances,
    optimum_of,
    problem_on,
    random_graph,
    random_problem,
    renumbered,
)
from few import few_of
from minizinc_cases import WITHOUT, needs_minizinc
from real_files import real_file
from reference_models import model_mapping
from topoplace.certify import check_document
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.mapping.tree import tree_value
from topoplace.machine import format_node_set
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.exact import branch
from topoplace.mapping.exact.branch import branch_and_bound, small_problem
from topoplace.mapping.exact.embedding import find_embedding
from topoplace.mapping.graph import TaskGraph
from topoplace.mapping.graphfiles import read_graph, read_qaplib
from topoplace.mapping.methods.best import auto, embedded, map_exact, solved_by_search
from topoplace.mapping.problem import require_mapping
from topoplace.result import Proof, Status
from topoplace.result.mapping import TotalCertificate, TreeCertificate
from topoplace.solving import Bound, Options, result_of


def with_graph(problem, num_tasks, sources, targets, sizes):
    """Return the problem with another graph."""
    graph = TaskGraph(num_tasks, sources, targets, sizes)
    loads, home = np.ones(num_tasks, dtype=np.int64), np.full(num_tasks, -1)
    return replace(problem, graph=graph, grid=None, loads=loads, home=home)


def matrix_of(sent, distances):
    """Return the problem of a matrix of bytes on a machine given by its distances."""
    return matrix_problem(application_of(sent), distances)


def require_proven(problem, expected):
    """Branch and bound finds a mapping of the expected cost and proves it."""
    outcome = solved_by_search(problem, Options())
    require_mapping(problem, outcome.solution.nodes)
    assert hop_bytes(problem, outcome.solution.nodes) == expected
    bound = outcome.bounds[0]
    assert bound.value == expected
    if bound.certificate is not None:
        assert tree_value(read_instance(problem.instance), bound.certificate) == expected
    assert (bound.certificate is None) == (not small_problem(problem).tasks.size)
    assert not outcome.time_limit_hit


@pytest.mark.parametrize("block", few_of(range(16), 3))
def test_branch_and_bound_equals_optimum_of(block):
    for seed in range(20 * block, 20 * block + 20):
        most, spare = (8, 1) if seed % 4 == 0 else (6, 2)
        problem = random_problem(seed, most, spare, skewed=True)
        least = optimum_of(problem)
        require_proven(problem, least)
        small = small_problem(problem)
        found = branch_and_bound(small)  # without the mapping that the local search finds first
        routers = np.zeros(problem.num_tasks, dtype=np.int64)
        routers[small.tasks] = small.routers[found.at]
        nodes = routers * problem.machine.nodes_per_router
        assert hop_bytes(problem, nodes) == found.bound == least


@pytest.mark.parametrize("seed", range(12))
def test_symmetric_graphs_on_symmetric_machines(seed):
    """Groups are large here, and what they leave out must not be the optimum."""
    rng = np.random.default_rng(seed)
    n = 6 + seed % 2
    step = np.abs(np.arange(n)[:, None] - np.arange(n))
    rings = [np.minimum(step, n - step), step > 0, step % 2, np.minimum(step, 2)]
    sent = rings[rng.integers(4)] * 3 + (np.minimum(step, n - step) == rng.integers(1, 4))
    machine = rings[rng.integers(4)].astype(np.int64)
    sent[rng.integers(n)] *= int(rng.integers(1, 3))
    problem = matrix_of(sent.astype(np.int64), machine)
    require_proven(problem, optimum_of(problem))


@needs_minizinc
@pytest.mark.parametrize(
    "seed", [*range(500, 512), *(pytest.param(s, marks=pytest.mark.slow) for s in range(512, 562))]
)
def test_minizinc_finds_the_same(seed):
    problem = random_problem(seed, 6, 2, skewed=True)
    routers, found = model_mapping(problem, checked=True)
    assert found == hop_bytes(problem, routers * problem.machine.nodes_per_router)
    require_proven(problem, found)


@needs_minizinc
@pytest.mark.parametrize("seed", [503, 507])
def test_optional_constraints_do_not_change_the_optimum(seed):
    problem = random_problem(seed, 5, 2, skewed=True)
    _, without = model_mapping(problem, "".join(WITHOUT.values()))
    assert without == model_mapping(problem)[1]


def test_out_of_time_the_bound_is_still_one():
    read = read_qaplib(real_file("qaplib/nug15.dat"), "first")
    problem = matrix_of(read.flows, read.distances)
    stopped = branch_and_bound(small_problem(problem), 1150, time_limit=0.02)
    assert not stopped.complete
    assert 900 <= stopped.bound < 1150
    outcome = solved_by_search(problem, Options(time_limit=0.01))
    assert outcome.time_limit_hit
    assert 0 <= outcome.bounds[0].value <= 1150 <= hop_bytes(problem, outcome.solution.nodes)
    require_proven(problem, 1150)


def require_embedded(problem):
    """An embedding is found, and the sum of all bytes is its certificate."""
    outcome = embedded(problem, Options())
    require_mapping(problem, outcome.solution.nodes)
    assert len(np.unique(outcome.solution.nodes)) == problem.num_tasks
    assert hop_bytes(problem, outcome.solution.nodes) == problem.graph.total_bytes
    assert outcome.bounds[0] == Bound(problem.graph.total_bytes, TotalCertificate())


@pytest.mark.parametrize(
    ("side", "seed"),
    [
        *((side, side) for side in (2, 3, 4, 5, 8)),
        *(
            pytest.param(side, seed, marks=pytest.mark.slow)
            for side in range(4, 17)
            for seed in range(3)
        ),
    ],
)
def test_relabelled_periodic_grids_are_recognised(side, seed):
    require_embedded(renumbered(problem_on(grid((side,) * 3, True), (side,) * 3), seed))


@pytest.mark.parametrize(
    ("tasks", "periodic", "machine", "wrap"),
    [
        ((64,), False, (4, 4, 4), False),
        ((64,), True, (4, 4, 4), False),
        ((5, 7, 6), False, (7, 6, 5), False),
        ((4, 4, 3), False, (5, 6, 5), False),
        ((6, 6), False, (6, 6, 2), True),
        ((8, 8), False, (4, 4, 4), True),
        ((4, 4, 4), True, (2, 2, 2, 2, 2, 2), True),
        ((2, 2, 2, 2), True, (4, 4), True),
        ((1,), False, (3,), True),
    ],
)
def test_grids_on_other_machines(tasks, periodic, machine, wrap):
    require_embedded(renumbered(problem_on(grid(tasks, periodic), machine, wrap=wrap)))


@pytest.mark.parametrize("seed", range(6))
def test_what_was_cut_out_of_a_holed_machine_fits_it(seed):
    """Trees that fill half of the usable routers, and grids beside holes."""
    rng = np.random.default_rng(seed)
    usable = np.sort(rng.permutation(216)[8:])
    nodes = format_node_set(usable.tolist())
    holed = problem_on(grid((3, 4, 4)), (6, 6, 6), nodes=nodes)
    require_embedded(renumbered(holed, seed))
    hops = holed.torus.hops(usable[:, None], usable)
    members, edges = [int(rng.integers(len(usable)))], []
    while len(members) < 100:
        parent = int(rng.choice(members))
        beside = np.setdiff1d(np.flatnonzero(hops[parent] == 1), members)
        if len(beside):
            edges.append((members.index(parent), len(members)))
            members.append(int(rng.choice(beside)))
    ends = np.array(edges)
    tree = with_graph(holed, 110, ends[:, 0], ends[:, 1], np.arange(1, 100))  # ten are silent
    require_embedded(renumbered(tree, seed))


def test_components_go_to_islands():
    """Routers without a way between them, and none for the seven tasks of a longer path."""
    sources = np.array([0, 1, 3, 4, 5, 7])
    problem = problem_on(grid((1,)), (13,), wrap=False, nodes="0-1,4-6,9-12")
    islands = with_graph(problem, 9, sources, sources + 1, np.ones(6, dtype=np.int64))
    require_embedded(renumbered(islands, 3))
    assert find_embedding(replace(problem, graph=problem_on(grid((7,)), (7,)).graph)) is None


@pytest.mark.parametrize(
    ("tasks", "machine", "wrap"),
    [((3, 3), (4, 4), True), ((5, 5), (5, 5), False), ((4, 4, 4), (8, 8), True)],
)
def test_what_does_not_fit_is_not_embedded(tasks, machine, wrap):
    problem = problem_on(grid(tasks, True), machine, wrap=wrap)
    assert find_embedding(problem, max_nodes=100_000) is None


@pytest.mark.parametrize("seed", range(60))
def test_small_embeddings_are_found_where_there_are_any(seed):
    problem = random_problem(seed, 7, 2, skewed=True)
    graph = problem.graph
    thinner = (part[::2] for part in (graph.sources, graph.targets, graph.bytes))
    problem = replace(with_graph(problem, graph.num_tasks, *thinner), tasks_per_node=1)
    if problem.num_tasks > len(np.flatnonzero(problem.capacity)):
        assert find_embedding(problem) is None
        return
    numbers = np.arange(problem.machine.num_routers)
    hops = problem.machine.hops(numbers[:, None], numbers[None, :])
    usable = np.unique(problem.nodes // problem.machine.nodes_per_router)
    single = replace(on_distances(problem, hops), nodes=usable)
    found = find_embedding(problem)
    if found is not None:
        assert hop_bytes(single, found) == problem.graph.total_bytes
    elif (hops == hops.T).all():  # one that is found goes both ways over every link
        assert optimum_of(single) > problem.graph.total_bytes


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_minimd_is_proven_from_any_labelling(seed):
    problem = problem_on(read_graph(real_file("mpip/minimd.64.bytes.csv")), (4, 4, 4))
    if seed is not None:
        problem = renumbered(problem, seed)
    require_embedded(problem)
    for method in (map_exact, auto):
        outcome = method(problem, Options())
        assert outcome.bounds[0] == Bound(39906485928, TotalCertificate())
        assert hop_bytes(problem, outcome.solution.nodes) == 39906485928


def test_the_checker_accepts_both_proofs():
    graph = renumbered(problem_on(grid((3, 3, 3), True), (3, 3, 3)), 3).graph
    matrix = np.zeros((27, 27), dtype=np.int64)
    np.add.at(matrix, (graph.sources, graph.targets), graph.bytes)
    for application, shape, proof in (
        (application_of(matrix), (3, 3, 3), Proof.CERTIFICATE),
        (random_graph(np.random.default_rng(8), 8, 40), (3, 3), Proof.CERTIFICATE),
    ):
        problem = problem_on(application, shape)
        result = result_of(problem, map_exact(problem, Options()), "exact", Options(), 0.1)
        assert (result.status, result.proof) == (Status.OPTIMAL, proof)
        report = check_document(result)
        assert report.verified, report.lines


def test_a_tree_too_large_leaves_the_proof_to_the_search(monkeypatch):
    monkeypatch.setattr(branch, "TREE_NODES", 3)
    problem = problem_on(random_graph(np.random.default_rng(8), 8, 40), (3, 3))
    result = result_of(problem, map_exact(problem, Options()), "exact", Options(), 0.1)
    assert (result.status, result.proof) == (Status.OPTIMAL, Proof.SEARCH)
    report = check_document(result)
    assert report.holds
    assert not report.verified


@pytest.mark.parametrize("method", [map_exact, auto])
def test_methods_fall_back_to_branch_and_bound_and_to_a_search(method):
    rng = np.random.default_rng(4)
    few = problem_on(random_graph(rng, 7, 30), (3, 3), tasks_per_node=2, wrap=False)
    outcome = method(few, Options())
    assert outcome.bounds[0].value == hop_bytes(few, outcome.solution.nodes)
    assert isinstance(outcome.bounds[0].certificate, TreeCertificate)
    many = problem_on(random_graph(rng, 60, 200), (4, 4, 4))
    outcome = method(many, Options(time_limit=0.3))
    assert hop_bytes(many, outcome.solution.nodes) >= many.graph.total_bytes


def test_problems_too_large_or_empty():
    assert small_problem(problem_on(grid((5, 5)), (5, 5))) is None
    one = problem_on(grid((1,)), (2, 2))
    assert len(small_problem(one).tasks) == 0
    require_proven(one, 0)
