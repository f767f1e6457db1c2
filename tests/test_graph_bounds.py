"""Bounds for any graph: as strong as they should be; that they hold is in test_map_bounds."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from baseline_instances import grid, problem_on, random_graph
from graph_bound_cases import application_of, matrix_problem
from real_files import real_file
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.distance_classes import distance_classes_bound, scheme_of
from topoplace.mapping.bounds.star import star_bound
from topoplace.result.mapping import DistanceClassesCertificate, StarCertificate
from topoplace.types import IntArray


def naive_star(sizes: IntArray, distances: IntArray) -> int:
    """Return Gilmore's and Lawler's bound on twice the cost of symmetric matrices."""
    costs = [
        [
            sum(
                int(x) * int(y)
                for x, y in zip(
                    sorted(np.delete(row, i), reverse=True),
                    sorted(np.delete(ways, r)),
                    strict=True,
                )
            )
            for r, ways in enumerate(distances)
        ]
        for i, row in enumerate(sizes)
    ]
    table = np.array(costs)
    return int(table[linear_sum_assignment(table)].sum())


@pytest.mark.parametrize("seed", range(20))
def test_star_is_gilmore_and_lawler(seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    n = int(rng.integers(3, 12))
    sizes, distances = rng.integers(0, 30, size=(2, n, n)) * (1 - np.eye(n, dtype=np.int64))
    distances = distances + distances.T
    exchanged = sizes + sizes.T
    bound = star_bound(matrix_problem(application_of(sizes), distances))
    assert bound is not None
    unit = int(np.gcd.reduce(exchanged.ravel()))
    assert bound.value == unit * -(-naive_star(exchanged, distances) // (2 * unit))


@pytest.mark.parametrize("name", ["nug12", "nug15", "scr12", "tho30"])
def test_star_of_qaplib(name: str) -> None:
    """In the literature 493, 963, 27858 and 90578, of which the odd ones are rounded up."""
    numbers = list(map(int, real_file(f"qaplib/{name}.dat").read_text().split()))
    n = numbers[0]
    sizes, distances = np.array(numbers[1:]).reshape(2, n, n)
    bound = star_bound(matrix_problem(application_of(sizes), distances))
    assert bound is not None
    assert bound.value == 2 * -(-naive_star(2 * sizes, distances) // 4)


@pytest.mark.parametrize(("name", "best"), [("amg", 5783590656), ("lulesh", 20824833600)])
def test_measured_applications_are_bounded_tightly(name: str, best: int) -> None:
    """Figures of the published mappings (MapLib); the promise is a gap of 0.001 %."""
    file = real_file(f"maplib/{name}/bytes.csv")
    sizes = np.loadtxt(file, delimiter=",", dtype=np.int64)
    problem = problem_on(application_of(sizes), [4, 4, 4])
    bound = best_bound(problem, target=best)
    assert bound is not None
    assert VALUES[bound.certificate.kind](read_instance(problem.instance), bound.certificate) == (
        bound.value
    )
    assert 0 <= best - bound.value <= 1e-5 * best


def test_a_hypercube_by_its_matrix() -> None:
    """esc16a: hops of a hypercube minus one, of which the star sees little."""
    numbers = list(map(int, real_file("qaplib/esc16a.dat").read_text().split()))
    first, second = np.array(numbers[1:]).reshape(2, 16, 16)
    bounds = []
    for sizes, distances in ((first, second), (second, first)):
        np.fill_diagonal(distances, 0)
        found = distance_classes_bound(matrix_problem(application_of(sizes), distances))
        bounds += [found] if found is not None else []
    star = star_bound(matrix_problem(application_of(first), second))
    assert len(bounds) == 1
    assert star is not None
    assert star.value < bounds[0].value <= 68


@pytest.mark.parametrize(
    ("shape", "per_router"), [((4, 4, 4), 1), ((5, 3), 1), ((7,), 2), ((6, 4, 6), 1), ((2, 8), 3)]
)
def test_schemes_are_orthogonal(shape: tuple[int, ...], per_router: int) -> None:
    scheme = scheme_of(shape, per_router)
    eigenvalues, valencies = scheme.place_eigenvalues, scheme.place_valencies
    products = (eigenvalues * valencies[:, None]).T @ eigenvalues
    expected = scheme.num_places * np.diag(eigenvalues[0])
    assert np.allclose(products, expected)
    assert valencies.sum() == scheme.num_places


def test_the_time_limit_holds() -> None:
    problem = problem_on(random_graph(np.random.default_rng(0), 100, 300), [5, 5, 4])
    star = star_bound(problem)
    assert star is not None
    bound = best_bound(problem, time_limit=0.0)
    assert bound is not None
    assert bound.value == max(star.value, problem.graph.total_bytes)
    start = time.perf_counter()
    better = best_bound(problem, time_limit=2.0)
    assert time.perf_counter() - start < 30.0  # a loaded machine; without limit it takes longer
    assert better is not None
    assert better.value >= bound.value
    assert isinstance(better.certificate, DistanceClassesCertificate | StarCertificate)


def test_a_target_ends_the_search() -> None:
    problem = problem_on(random_graph(np.random.default_rng(1), 16, 40), [4, 4])
    total = best_bound(problem, target=1)
    best = best_bound(problem)
    assert total is not None
    assert best is not None
    assert total.value < best.value
    assert not isinstance(total.certificate, DistanceClassesCertificate)


def test_many_routers_have_one_list() -> None:
    """Beyond the limit of lists the star is that of a full torus, and still below a mapping."""
    nodes = "0-4200,4300-5831"
    problem = problem_on(grid((17, 17, 17)), [18, 18, 18], nodes=nodes)
    bound = star_bound(problem)
    assert bound is not None
    assert VALUES[bound.certificate.kind](read_instance(problem.instance), bound.certificate) == (
        bound.value
    )
    assert bound.value == problem.graph.total_bytes  # six neighbours each
