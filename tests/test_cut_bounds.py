"""The bound by cuts: as strong as it should be, and checkable; the rest is in test_map_bounds."""

from __future__ import annotations

import math
import time
from collections import Counter

import numpy as np
import pytest

from baseline_instances import problem_on, random_graph
from graph_bound_cases import (
    application_of,
    places_of,
    random_torus_problem,
    regular_graph,
    uneven_graph,
)
from real_files import real_file
from topoplace.certify.mapping.graphs import cuts_value, sides_of
from topoplace.certify.mapping.instance import read_instance
from topoplace.machine import Torus
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.cuts import cuts_bound, least_apart, machine_cuts
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import CutsCertificate
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Incumbent, Options, solve


def bound_and_proof(problem: MappingProblem) -> tuple[int, CutsCertificate]:
    """Return the bound and its certificate, which the checker agrees with."""
    bound = cuts_bound(problem)
    assert bound is not None
    assert isinstance(bound.certificate, CutsCertificate)
    assert cuts_value(read_instance(problem.instance), bound.certificate) == bound.value
    return bound.value, bound.certificate


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (4,), (5,), (8,), (9,), (4, 3), (2, 5, 6)])
def test_cuts_add_up_to_the_distance(shape: tuple[int, ...], wrap: bool) -> None:
    """With all routers used, the kernels are the weight less four times the distance."""
    machine = Torus(shape, (wrap,) * len(shape))
    cuts = machine_cuts(machine, np.ones(machine.num_routers, dtype=np.int64), 1)
    at = machine.coordinates.T
    together = sum(kernel[x[:, None], x] for kernel, x in zip(cuts.kernels, at, strict=True))
    routers = np.arange(machine.num_routers)
    distances = machine.hops(routers[:, None], routers)
    assert np.array_equal(cuts.weight - together, 4 * distances)


@pytest.mark.parametrize("seed", range(30))
def test_both_programs_have_the_same_cuts(seed: int) -> None:
    """They number them differently: a ring's windows once with weight 2, or twice with 1."""
    rng = np.random.default_rng(300 + seed)
    problem = random_torus_problem(rng, 12)
    ours = machine_cuts(problem.torus, problem.capacity, problem.num_tasks)
    theirs = sides_of(read_instance(problem.instance), problem.torus.wrap)
    assert ours.spread == theirs.spread
    assert all(map(np.array_equal, ours.kernels, theirs.kernels))
    weights: list[Counter[tuple[int, int]]] = []
    for cuts in (ours.cuts, theirs.cuts):
        weights.append(Counter())
        for cut, times in cuts.items():
            weights[-1][cut.least, cut.most] += times * cut.weight
    assert weights[0] == weights[1]


@pytest.mark.parametrize("seed", range(20))
def test_tasks_are_as_far_apart_as_said(seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    problem = random_torus_problem(rng, 10)
    least = least_apart(problem.torus, problem.capacity, problem.num_tasks)
    places = problem.routers_of(places_of(problem))
    for _ in range(20):
        at = rng.permutation(places)[: problem.num_tasks]
        assert least <= problem.torus.hops(at[:, None], at).sum()


def test_a_graph_without_locality() -> None:
    """On 8x8x8 the star sees one hop per byte, the cuts 1.7."""
    problem = problem_on(regular_graph(np.random.default_rng(1), 512, 3), [8, 8, 8])
    star, found = star_bound(problem), bound_and_proof(problem)
    assert star is not None
    assert star.value <= 1.05 * problem.graph.total_bytes
    assert found[0] >= 1.7 * problem.graph.total_bytes
    best = best_bound(problem)
    assert best is not None
    assert best.value == found[0]


def test_prices_of_tasks_count_where_degrees_differ() -> None:
    """Boppana's bound is above the second eigenvalue, which quiet tasks keep low."""
    application = uneven_graph(np.random.default_rng(2), 64, 400)
    problem = problem_on(application, [64])
    found = bound_and_proof(problem)
    bytes_between = np.zeros((64, 64))
    np.add.at(bytes_between, (problem.graph.sources, problem.graph.targets), problem.graph.bytes)
    bytes_between += bytes_between.T
    laplacian = np.diag(bytes_between.sum(axis=0)) - bytes_between
    second = float(np.linalg.eigvalsh(laplacian)[1])
    assert found[0] >= 1.2 * 32 * second * 64 / 4
    assert len(set(found[1].lines[0].prices)) > 1


@pytest.mark.parametrize("name", ["maplib/amg/bytes.csv", "mpip/minimd.64.bytes.csv"])
def test_factors_see_that_cuts_differ(name: str) -> None:
    """Several cuts cannot all be the least one: without factors amg has 0.52 of its bytes."""
    sizes = np.loadtxt(real_file(name), delimiter=",", dtype=np.int64)
    problem = problem_on(application_of(sizes), [4, 4, 4])
    found = bound_and_proof(problem)
    assert found[1].factors
    assert found[0] >= 0.8 * problem.graph.total_bytes


def test_places_to_spare_pull_tasks_apart() -> None:
    """No cut has to have a task on either side, but together they cannot all be empty."""
    problem = problem_on(regular_graph(np.random.default_rng(3), 40, 3), [8, 8], wrap=False)
    found = bound_and_proof(problem)
    assert found[0] > 1.05 * problem.graph.total_bytes


@pytest.mark.parametrize(
    "application",
    [
        GraphApplication(num_tasks=1, sources=[], targets=[], bytes=[]),
        GraphApplication(num_tasks=4, sources=[], targets=[], bytes=[]),
        GraphApplication(num_tasks=2, sources=[0], targets=[1], bytes=[1 << 50]),
        GraphApplication(num_tasks=4097, sources=[0], targets=[1], bytes=[1]),
    ],
)
def test_where_there_is_no_bound_by_cuts(application: GraphApplication) -> None:
    """Nothing is sent, or too much to be exact, or there are too many tasks."""
    side = math.ceil(application.num_tasks ** (1 / 3))
    assert cuts_bound(problem_on(application, [side + 1] * 3)) is None


def test_the_time_limit_holds() -> None:
    problem = problem_on(random_graph(np.random.default_rng(0), 500, 3000), [8, 8, 8])
    assert cuts_bound(problem, time_limit=0.0) is None
    start = time.perf_counter()
    early = cuts_bound(problem, time_limit=0.5)
    assert time.perf_counter() - start < 20.0  # a loaded machine
    if early is not None:
        assert isinstance(early.certificate, CutsCertificate)
        assert cuts_value(read_instance(problem.instance), early.certificate) == early.value


def test_a_bound_of_the_first_stage_is_reported() -> None:
    """A run that is ended early has the bound that was raised before."""
    problem = problem_on(regular_graph(np.random.default_rng(4), 48, 3), [8, 6])
    best = Incumbent()
    result = solve(problem, "search", Options(time_limit=4, incumbent=best))
    assert best.outcome.bounds[0].value == result.bound
