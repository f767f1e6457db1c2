"""Bounds for any graph: as strong as they should be; that they hold is in test_map_bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from baseline_instances import (
    application_of,
    grid,
    matrix_problem,
    problem_on,
    random_graph,
    regular_graph,
)
from real_files import real_file
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.pairs import pairs_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.graphfiles import read_graph, read_qaplib
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import CutsCertificate, DistanceClassesCertificate, StarCertificate
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Bound, Incumbent, Options, solve
from topoplace.types import IntArray


def valued(problem: MappingProblem, bound: Bound | None) -> int:
    """Return a bound's value, which the checker agrees with."""
    assert bound is not None
    found = VALUES[bound.certificate.kind](read_instance(problem.instance), bound.certificate)
    assert found == bound.value
    return int(found)


def naive_star(sizes: IntArray, distances: IntArray) -> int:
    """Return Gilmore's and Lawler's bound on twice the cost of symmetric matrices."""
    costs = np.zeros_like(sizes)
    for (i, r), _ in np.ndenumerate(costs):
        partners, ways = np.sort(np.delete(sizes[i], i)), np.sort(np.delete(distances[r], r))
        costs[i, r] = partners[::-1] @ ways
    return int(costs[linear_sum_assignment(costs)].sum())


@pytest.mark.parametrize("seed", range(20))
def test_star_is_gilmore_and_lawler(seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    n = int(rng.integers(3, 12))
    sizes, distances = rng.integers(0, 30, size=(2, n, n)) * (1 - np.eye(n, dtype=np.int64))
    distances = distances + distances.T
    exchanged = sizes + sizes.T
    problem = matrix_problem(application_of(sizes), distances)
    unit = int(np.gcd.reduce(exchanged.ravel()))
    least = unit * -(-naive_star(exchanged, distances) // (2 * unit))
    assert valued(problem, star_bound(problem)) == least


@pytest.mark.parametrize(
    ("name", "value"), [("nug12", 494), ("nug15", 964), ("scr12", 27858), ("tho30", 90578)]
)
def test_star_of_qaplib(name: str, value: int) -> None:
    """In the literature, of which the odd ones are rounded up to even values."""
    read = read_qaplib(real_file(f"qaplib/{name}.dat"))
    problem = matrix_problem(read.graph, read.distances)
    assert valued(problem, star_bound(problem)) == value


@pytest.mark.parametrize(
    ("name", "best"),
    [("lulesh", 20824833600), pytest.param("amg", 5783590656, marks=pytest.mark.slow)],
)
def test_measured_applications_are_bounded_tightly(name: str, best: int) -> None:
    """Figures of the published mappings (MapLib); the promise is a gap of 0.001 %."""
    problem = problem_on(read_graph(real_file(f"maplib/{name}/bytes.csv")), [4, 4, 4])
    assert 0 <= best - valued(problem, best_bound(problem, target=best)) <= 1e-5 * best


def test_a_hypercube_by_its_matrix() -> None:
    """esc16a: hops of a hypercube minus one, of which the star sees little."""
    read = read_qaplib(real_file("qaplib/esc16a.dat"))
    problem = matrix_problem(read.graph, read.distances)
    star = valued(problem, star_bound(problem))
    assert star < valued(problem, pairs_bound(problem)) <= 68


def uneven_graph(num_tasks: int, messages: int) -> GraphApplication:
    """Return random messages between tasks of which some are far more popular."""
    rng = np.random.default_rng(2)
    popular = 1 / (1 + np.arange(num_tasks)) ** 0.6
    ends = rng.choice(num_tasks, size=(2, messages), p=popular / popular.sum())
    sizes = rng.integers(1, 100, size=messages).tolist()
    sources, targets = ends.tolist()
    return GraphApplication(num_tasks=num_tasks, sources=sources, targets=targets, bytes=sizes)


def test_a_graph_without_locality() -> None:
    """On 8x8x8 the star sees one hop per byte, cuts 1.9."""
    problem = problem_on(regular_graph(np.random.default_rng(1), 512, 3), [8, 8, 8])
    found = valued(problem, cuts_bound(problem))
    assert valued(problem, star_bound(problem)) <= 1.05 * problem.graph.total_bytes
    assert found >= 1.9 * problem.graph.total_bytes
    assert valued(problem, best_bound(problem)) == found


def test_prices_of_tasks_count_where_degrees_differ() -> None:
    """Boppana's bound is above the second eigenvalue, which quiet tasks keep low."""
    problem = problem_on(uneven_graph(64, 400), [64])
    rows = problem.graph.exchanged.matrix(64)
    second = float(np.linalg.eigvalsh(np.diag(rows.sum(axis=0)) - rows)[1])
    assert valued(problem, cuts_bound(problem)) >= 1.2 * 32 * second * 64 / 4


def test_places_to_spare_pull_tasks_apart() -> None:
    """No cut has to have a task on either side, but together they cannot all be empty."""
    problem = problem_on(regular_graph(np.random.default_rng(3), 40, 3), [8, 8], wrap=False)
    assert valued(problem, cuts_bound(problem)) > 1.2 * problem.graph.total_bytes


@pytest.mark.parametrize(("num_tasks", "size"), [(1, None), (4, None), (2, 1 << 50), (4097, 1)])
def test_where_there_is_no_bound_by_cuts(num_tasks: int, size: int | None) -> None:
    """Nothing is sent, or too much to be exact, or there are too many tasks."""
    some = {} if size is None else {"sources": [0], "targets": [1], "bytes": [size]}
    none: dict[str, list[int]] = {"sources": [], "targets": [], "bytes": []}
    application = GraphApplication(num_tasks=num_tasks, **(none | some))
    side = math.ceil(num_tasks ** (1 / 3))
    assert cuts_bound(problem_on(application, [side + 1] * 3)) is None


def test_little_time_leaves_bounds_that_hold() -> None:
    problem = problem_on(random_graph(np.random.default_rng(0), 100, 300), [5, 5, 4])
    first = valued(problem, best_bound(problem, time_limit=0.0))
    assert first == max(valued(problem, star_bound(problem)), problem.graph.total_bytes)
    better = best_bound(problem, time_limit=2.0)
    assert valued(problem, better) >= first
    assert isinstance(better, Bound)
    kinds = DistanceClassesCertificate | StarCertificate | CutsCertificate
    assert isinstance(better.certificate, kinds)
    problem = problem_on(random_graph(np.random.default_rng(0), 500, 3000), [8, 8, 8])
    assert cuts_bound(problem, time_limit=0.0) is None
    early = cuts_bound(problem, time_limit=0.5)
    assert early is None or valued(problem, early) > 0


def test_a_target_ends_the_search() -> None:
    problem = problem_on(random_graph(np.random.default_rng(1), 16, 40), [4, 4])
    total, best = best_bound(problem, target=1), best_bound(problem)
    assert valued(problem, total) < valued(problem, best)
    assert total is not None
    assert not isinstance(total.certificate, DistanceClassesCertificate | CutsCertificate)


def test_a_bound_of_the_first_stage_is_reported() -> None:
    """A run that is ended early has the bound that was raised before."""
    problem = problem_on(regular_graph(np.random.default_rng(4), 48, 3), [8, 6])
    best = Incumbent()
    result = solve(problem, "search", Options(time_limit=4, incumbent=best))
    assert best.outcome.bounds[0].value == result.bound


def test_many_routers_have_one_list() -> None:
    """Beyond the limit of lists the star is that of a full torus, and still below a mapping."""
    problem = problem_on(grid((17, 17, 17)), [18, 18, 18], nodes="0-4200,4300-5831")
    assert valued(problem, star_bound(problem)) == problem.graph.total_bytes  # six neighbours each
