"""Exact mapping: brute force, MiniZinc, known optima, and graphs whose labels were lost."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from baseline_instances import grid, problem_on, random_graph
from minizinc_cases import WITHOUT, needs_minizinc
from real_files import real_file
from reference_models import model_mapping
from topoplace.certify import check_document
from topoplace.machine import MatrixMachine, format_node_set
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.exact import embedded, find_embedding, solved_by_search
from topoplace.mapping.exact.branch import SmallProblem, branch_and_bound, small_problem, symmetries
from topoplace.mapping.graph import IntArray, TaskGraph
from topoplace.mapping.methods.best import auto, map_exact
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Proof, Status
from topoplace.result.mapping import TotalCertificate
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Bound, Options, result_of


def relabelled(problem: MappingProblem, seed: int) -> MappingProblem:
    """Return the problem with its tasks renumbered at random."""
    new = np.random.default_rng(seed).permutation(problem.num_tasks)
    graph = problem.graph
    shuffled = TaskGraph(
        graph.num_tasks, new[graph.sources], new[graph.targets], graph.bytes.copy()
    )
    return replace(problem, graph=shuffled, grid=None)


def matrix_problem(sent: IntArray, distances: IntArray) -> MappingProblem:
    """Return the problem of a matrix of bytes on a machine given by its distances."""
    sources, targets = np.nonzero(sent * ~np.eye(len(sent), dtype=bool))
    graph = TaskGraph(len(sent), sources, targets, sent[sources, targets])
    some = problem_on(grid((1,)), [len(distances)])
    return replace(some, machine=MatrixMachine(distances), graph=graph, grid=None)


def random_small(seed: int, most_tasks: int = 8) -> MappingProblem:
    """Return a random graph on a machine with holes, spare places and capacities."""
    rng = np.random.default_rng(seed)
    tasks = int(rng.integers(1, most_tasks + 1))
    per_node, per_router = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    needed = -(-tasks // per_node)
    while True:
        shape = rng.integers(1, 6, size=int(rng.integers(1, 4))).tolist()
        nodes = int(np.prod(shape)) * per_router
        if needed <= nodes <= 40:
            break
    usable = min(nodes, needed + int(rng.integers(0, 3 if needed < 7 else 2)))
    chosen = np.sort(rng.permutation(nodes)[:usable]).tolist()
    problem = problem_on(
        random_graph(rng, tasks, int(rng.integers(0, 3 * tasks))),
        shape,
        wrap=bool(rng.random() < 0.5),
        tasks_per_node=per_node,
        nodes_per_router=per_router,
        nodes=format_node_set(chosen),
    )
    if seed % 5 == 0 and per_router == 1:  # distances that differ by direction
        skewed = rng.integers(0, 5, size=(nodes, nodes)) * ~np.eye(nodes, dtype=bool)
        problem = replace(problem, machine=MatrixMachine(skewed.astype(np.int64)))
    return problem


def brute_force(problem: MappingProblem) -> int:
    """Return the least hop-bytes over all ways to give routers to tasks."""
    routers = np.flatnonzero(problem.capacity)
    n, m = problem.num_tasks, len(routers)
    hops = problem.machine.hops(routers[:, None], routers[None, :])
    sent = np.zeros((n, n), dtype=np.int64)
    np.add.at(sent, (problem.graph.sources, problem.graph.targets), problem.graph.bytes)
    at = np.zeros((1, 0), dtype=np.int64)
    cost = np.zeros(1, dtype=np.int64)
    for task in range(n):  # all partial mappings at once
        at = np.column_stack([np.repeat(at, m, axis=0), np.tile(np.arange(m), len(at))])
        cost = np.repeat(cost, m)
        last = at[:, -1]
        for other in range(task):
            there = at[:, other]
            cost += sent[task, other] * hops[last, there] + sent[other, task] * hops[there, last]
        load = (at == last[:, None]).sum(axis=1)
        kept = load <= problem.capacity[routers][last]
        at, cost = at[kept], cost[kept]
    return int(cost.min())


def require_proven(problem: MappingProblem, expected: int) -> None:
    """Branch and bound finds a mapping of the expected cost and proves it."""
    outcome = solved_by_search(problem, Options())
    assert outcome is not None
    assert outcome.solution.nodes is not None
    assert np.isin(outcome.solution.nodes, problem.nodes).all()
    assert np.bincount(outcome.solution.nodes).max() <= problem.tasks_per_node
    assert hop_bytes(problem, outcome.solution.nodes) == expected
    assert outcome.bounds[0] == Bound(expected, None)
    assert not outcome.time_limit_hit


@pytest.mark.parametrize("block", range(16))
def test_branch_and_bound_equals_brute_force(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        problem = random_small(seed, 8 if seed % 4 == 0 else 6)
        least = brute_force(problem)
        require_proven(problem, least)
        small = small_problem(problem)
        assert small is not None
        found = branch_and_bound(small)  # without the mapping that the local search finds first
        assert found.at is not None
        assert small.cost(found.at) * small.unit == found.bound * small.unit == least


@pytest.mark.parametrize("seed", range(12))
def test_symmetric_graphs_on_symmetric_machines(seed: int) -> None:
    """Groups are large here, and what they leave out must not be the optimum."""
    rng = np.random.default_rng(seed)
    n = 6 + seed % 2
    step = np.abs(np.arange(n)[:, None] - np.arange(n))
    rings = [np.minimum(step, n - step), step > 0, step % 2, np.minimum(step, 2)]
    sent = rings[rng.integers(4)] * 3 + (np.minimum(step, n - step) == rng.integers(1, 4))
    machine = rings[rng.integers(4)].astype(np.int64)
    sent[rng.integers(n)] *= int(rng.integers(1, 3))
    problem = matrix_problem(sent.astype(np.int64), machine)
    require_proven(problem, brute_force(problem))


def minizinc_equal(seed: int) -> None:
    problem = random_small(seed, 6)
    routers, found = model_mapping(problem, checked=True)
    assert found == hop_bytes(problem, routers * problem.machine.nodes_per_router)
    require_proven(problem, found)


@needs_minizinc
@pytest.mark.parametrize("seed", range(500, 512))
def test_minizinc_finds_the_same(seed: int) -> None:
    minizinc_equal(seed)


@needs_minizinc
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(512, 562))
def test_minizinc_finds_the_same_on_more(seed: int) -> None:
    minizinc_equal(seed)


@needs_minizinc
@pytest.mark.parametrize("seed", [503, 507])
def test_optional_constraints_do_not_change_the_optimum(seed: int) -> None:
    problem = random_small(seed, 5)
    _, without = model_mapping(problem, "".join(WITHOUT.values()))
    assert without == model_mapping(problem)[1]


def qaplib(name: str, *, swapped: bool = False) -> MappingProblem:
    numbers = [int(word) for word in real_file(f"qaplib/{name}.dat").read_text().split()]
    n = numbers[0]
    first, second = np.array(numbers[1:], dtype=np.int64).reshape(2, n, n)
    return matrix_problem(first, second) if not swapped else matrix_problem(second, first)


@pytest.mark.parametrize(
    ("name", "swapped", "optimum"),
    [
        ("nug12", False, 578),
        ("nug12", True, 578),
        ("nug15", False, 1150),
        ("scr12", False, 31410),
        ("scr12", True, 31410),
        ("esc16a", False, 68),
        ("esc16a", True, 68),
    ],
)
def test_known_optima_of_qaplib(name: str, swapped: bool, optimum: int) -> None:
    require_proven(qaplib(name, swapped=swapped), optimum)


def test_out_of_time_the_bound_is_still_one() -> None:
    problem = qaplib("nug15")
    small = small_problem(problem)
    assert small is not None
    stopped = branch_and_bound(small, 1150 // small.unit, time_limit=0.02)
    assert not stopped.complete
    assert 900 <= stopped.bound * small.unit < 1150
    outcome = solved_by_search(problem, Options(time_limit=0.01))
    assert outcome is not None
    assert outcome.time_limit_hit
    assert outcome.bounds[0] is not None
    assert outcome.solution.nodes is not None
    assert 0 <= outcome.bounds[0].value <= 1150 <= hop_bytes(problem, outcome.solution.nodes)


def require_embedded(problem: MappingProblem) -> None:
    """An embedding is found, and the sum of all bytes is its certificate."""
    outcome = embedded(problem, Options())
    assert outcome is not None
    assert outcome.solution.nodes is not None
    assert len(np.unique(outcome.solution.nodes)) == problem.num_tasks
    assert np.isin(outcome.solution.nodes, problem.nodes).all()
    assert hop_bytes(problem, outcome.solution.nodes) == problem.graph.total_bytes
    assert outcome.bounds[0] == Bound(problem.graph.total_bytes, TotalCertificate())


@pytest.mark.parametrize("side", [2, 3, 4, 5, 8])
def test_relabelled_periodic_grids_are_recognised(side: int) -> None:
    require_embedded(relabelled(problem_on(grid((side,) * 3, True), (side,) * 3), side))


@pytest.mark.slow
@pytest.mark.parametrize("side", range(4, 17))
def test_relabelled_periodic_grids_up_to_4096_tasks(side: int) -> None:
    for seed in range(3):
        require_embedded(relabelled(problem_on(grid((side,) * 3, True), (side,) * 3), seed))


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
def test_grids_on_other_machines(
    tasks: tuple[int, ...], periodic: bool, machine: tuple[int, ...], wrap: bool
) -> None:
    require_embedded(relabelled(problem_on(grid(tasks, periodic), machine, wrap=wrap), 1))


@pytest.mark.parametrize("seed", range(6))
def test_what_was_cut_out_of_a_holed_machine_fits_it(seed: int) -> None:
    """Trees that fill half of the usable routers, and grids beside holes."""
    rng = np.random.default_rng(seed)
    usable = np.sort(rng.permutation(216)[8:])
    nodes = format_node_set(usable.tolist())
    require_embedded(relabelled(problem_on(grid((3, 4, 4)), (6, 6, 6), nodes=nodes), seed))
    hops = problem_on(grid((1,)), (6, 6, 6)).torus.hops(usable[:, None], usable)
    members, edges = [int(rng.integers(len(usable)))], []
    while len(members) < 100:
        parent = int(rng.choice(members))
        beside = np.setdiff1d(np.flatnonzero(hops[parent] == 1), members)
        if len(beside):
            child = int(rng.choice(beside))
            edges.append((members.index(parent), len(members)))
            members.append(child)
    ends = np.array(edges)
    graph = TaskGraph(110, ends[:, 0], ends[:, 1], np.arange(1, 100))  # ten are silent
    tree = replace(problem_on(grid((1,)), (6, 6, 6), nodes=nodes), graph=graph, grid=None)
    require_embedded(relabelled(tree, seed))


def test_components_go_to_islands() -> None:
    """Routers without a way between them, and none for the seven tasks of a longer path."""
    lengths = (3, 4, 2)
    first = np.cumsum((0, *lengths))[:-1]
    sources = np.concatenate([f + np.arange(n - 1) for f, n in zip(first, lengths, strict=True)])
    graph = TaskGraph(9, sources, sources + 1, np.ones(6, dtype=np.int64))
    problem = problem_on(grid((1,)), (13,), wrap=False, nodes="0-1,4-6,9-12")
    require_embedded(relabelled(replace(problem, graph=graph, grid=None), 3))
    assert find_embedding(replace(problem, graph=problem_on(grid((7,)), (7,)).graph)) is None


@pytest.mark.parametrize(
    ("tasks", "machine", "wrap"),
    [((3, 3), (4, 4), True), ((5, 5), (5, 5), False), ((4, 4, 4), (8, 8), True)],
)
def test_what_does_not_fit_is_not_embedded(
    tasks: tuple[int, ...], machine: tuple[int, ...], wrap: bool
) -> None:
    problem = problem_on(grid(tasks, True), machine, wrap=wrap)
    assert find_embedding(problem, max_nodes=100_000) is None


@pytest.mark.parametrize("seed", range(60))
def test_small_embeddings_are_found_where_there_are_any(seed: int) -> None:
    problem = random_small(seed, 7)
    graph = problem.graph
    thin = TaskGraph(graph.num_tasks, graph.sources[::2], graph.targets[::2], graph.bytes[::2])
    problem = replace(problem, graph=thin, tasks_per_node=1)
    if problem.num_tasks > len(np.flatnonzero(problem.capacity)):
        assert find_embedding(problem) is None
        return
    single = replace(problem, nodes=np.unique(problem.nodes // problem.machine.nodes_per_router))
    single = replace(single, machine=one_node_each(problem))
    exists = brute_force(single) == thin.total_bytes
    found = find_embedding(problem)
    if isinstance(problem.machine, MatrixMachine):  # links are symmetric in an embedding
        assert found is None or hop_bytes(problem, found) == thin.total_bytes
    else:
        assert (found is not None) == exists


def one_node_each(problem: MappingProblem) -> MatrixMachine:
    """Return the machine with one node on every router."""
    numbers = np.arange(problem.machine.num_routers)
    return MatrixMachine(problem.machine.hops(numbers[:, None], numbers[None, :]))


@functools.cache
def minimd() -> IntArray:
    path = real_file("mpip/minimd.64.bytes.csv")
    matrix: IntArray = np.loadtxt(path, delimiter=",", dtype=np.int64)
    return matrix


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_minimd_is_proven_from_any_labelling(seed: int | None) -> None:
    sent = minimd() * ~np.eye(64, dtype=bool)
    sources, targets = np.nonzero(sent)
    graph = TaskGraph(64, sources, targets, sent[sources, targets])
    problem = replace(problem_on(grid((1,)), (4, 4, 4)), graph=graph, grid=None)
    if seed is not None:
        problem = relabelled(problem, seed)
    require_embedded(problem)
    for method in (map_exact, auto):
        outcome = method(problem, Options())
        assert outcome.bounds[0] == Bound(39906485928, TotalCertificate())
        assert outcome.solution.nodes is not None
        assert hop_bytes(problem, outcome.solution.nodes) == 39906485928


def test_listed_symmetries_are_ones_and_complete() -> None:
    step = np.abs(np.arange(7)[:, None] - np.arange(7))
    ring = np.minimum(step, 7 - step)
    torus = problem_on(grid((1,)), (4, 4)).torus
    numbers = np.arange(16)
    hops = torus.hops(numbers[:, None], numbers)
    for matrix, order in ((ring, 14), (step, 2), (hops, 384)):
        listed = symmetries(matrix.astype(np.int64), np.zeros(len(matrix), dtype=np.int64))
        assert all((matrix[np.ix_(p, p)] == matrix).all() for p in listed.astype(np.int64))
        assert len(np.unique(listed, axis=0)) == order
    coloured = symmetries(ring, np.arange(7) % 7 // 6)
    assert len(np.unique(coloured, axis=0)) == 2


def test_the_checker_accepts_both_proofs() -> None:
    rng = np.random.default_rng(8)
    graph = relabelled(problem_on(grid((3, 3, 3), True), (3, 3, 3)), 3).graph
    closed = GraphApplication(
        num_tasks=27,
        sources=graph.sources.tolist(),
        targets=graph.targets.tolist(),
        bytes=graph.bytes.tolist(),
    )
    for application, shape, proof in (
        (closed, (3, 3, 3), Proof.CERTIFICATE),
        (random_graph(rng, 8, 40), (3, 3), Proof.SEARCH),
    ):
        problem = problem_on(application, shape)
        outcome = map_exact(problem, Options())
        result = result_of(problem, outcome, "exact", Options(), 0.1)
        assert result.status is Status.OPTIMAL
        assert result.proof is proof
        report = check_document(result)
        assert report.holds, report.failures


def test_methods_fall_back_to_branch_and_bound_and_to_a_search() -> None:
    rng = np.random.default_rng(4)
    few = problem_on(random_graph(rng, 7, 30), (3, 3), tasks_per_node=2, wrap=False)
    for method in (map_exact, auto):
        outcome = method(few, Options())
        assert outcome.solution.nodes is not None
        assert outcome.bounds[0] == Bound(hop_bytes(few, outcome.solution.nodes), None)
    many = problem_on(random_graph(rng, 60, 200), (4, 4, 4))
    for method in (map_exact, auto):
        outcome = method(many, Options(time_limit=0.3))
        assert outcome.solution.nodes is not None
        assert hop_bytes(many, outcome.solution.nodes) >= many.graph.total_bytes


def test_problems_too_large_are_left_to_others() -> None:
    assert small_problem(problem_on(grid((5, 5)), (5, 5))) is None
    one = small_problem(problem_on(grid((1,)), (2, 2)))
    assert isinstance(one, SmallProblem)
    assert len(one.tasks) == 0
    require_proven(problem_on(grid((1,)), (2, 2)), 0)
