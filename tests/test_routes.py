"""Bounds by routes: never above any mapping, and never 0 where a connected graph needs room."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from baseline_instances import optimum_of
from level_cases import random_levels
from tiny_instances import random_problem
from tiny_objects import brute_force, tiny_objects
from topoplace.certify.mapping.check import LOADED, VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.errors import InputError
from topoplace.mapping.bounds import spreading
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.levels import levels_bound
from topoplace.mapping.bounds.routes import routes_bound
from topoplace.mapping.objects.applications import application_names, problem_of, read_application
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Bound

CASES = [30, pytest.param(300, marks=pytest.mark.slow)]


def proven(problem: MappingProblem, bound: Bound | None) -> int | None:
    """Return a bound that the checker agrees with."""
    if bound is None:
        return None
    table = VALUES if problem.of_tasks else LOADED
    found = table[bound.certificate.kind](read_instance(problem.instance), bound.certificate)
    assert found == bound.value
    return found


@pytest.mark.parametrize("cases", CASES)
def test_no_mapping_is_below(cases: int) -> None:
    """Brute force on tori, meshes, matrices, trees and hierarchies."""
    for seed in range(cases):
        rng = Random(seed)
        problem, on_levels = random_problem(rng, "star"), random_levels(rng)
        for one, bound in (
            (problem, routes_bound(problem)),
            (on_levels, levels_bound(on_levels, 0.0)),
        ):
            found = proven(one, bound)
            assert found is None or found <= optimum_of(one)


@pytest.mark.parametrize("cases", CASES)
def test_no_mapping_of_objects_is_below(cases: int) -> None:
    for seed in range(cases):
        try:
            problem = tiny_objects(seed, trees=seed % 2 > 0)
        except InputError:
            continue
        found, best = proven(problem, routes_bound(problem)), brute_force(problem)
        assert found is None or best is None or found <= best[0]


def connected(rng: Random) -> GraphApplication:
    """Return a random connected graph, from a path to one with many pairs."""
    num = rng.randint(2, 120)
    ends = [(rng.randrange(one), one) for one in range(1, num)]
    ends += [(rng.randrange(num), rng.randrange(num)) for _ in range(rng.choice((0, 0, 5, 200)))]
    sizes = [rng.choice((1, 1, 7, 1000)) for _ in ends]
    sources, targets = ([pair[k] for pair in ends] for k in (0, 1))
    return GraphApplication(num_tasks=num, sources=sources, targets=targets, bytes=sizes)


MACHINES = ("torus:4x4x2", "mesh:3x5:2", "sharedmap:4:3:2/1:10:100", "torus:8")


@pytest.mark.parametrize("cases", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_connected_graphs_that_need_two_nodes_have_no_bound_of_0(cases: int) -> None:
    for seed in range(cases):
        rng = Random(seed)
        graph, places = connected(rng), load_places(rng.choice(MACHINES))
        most = rng.randint(-(-graph.num_tasks // len(places.nodes)), graph.num_tasks)
        if rng.random() < 0.3:  # an irregular allocation
            kept = rng.sample(places.nodes.tolist(), -(-graph.num_tasks // most))
            places = places.only(",".join(map(str, kept)))
        problem = problem_on(places, graph, most)
        bound = best_bound(problem, 0.0)
        assert bound is not None
        assert (bound.value > 0) == (graph.num_tasks > problem.capacity.max())
        assert proven(problem, bound) == bound.value


@pytest.mark.parametrize("name", application_names())
def test_shipped_applications_have_no_bound_of_0(name: str) -> None:
    problem = problem_of(read_application(name), load_places("torus:4x4x4"), "1.1")
    found = proven(problem, routes_bound(problem))
    assert found is not None
    assert found > 0


def test_a_grid_is_bounded_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squares of 64 tasks on 16 leaves cut 192 bytes."""
    monkeypatch.setattr(spreading, "QUICK_WORK", 1 << 17)
    at = np.arange(32 * 32).reshape(32, 32)
    sources = np.concatenate([at[:-1].ravel(), at[:, :-1].ravel()]).tolist()
    targets = np.concatenate([at[1:].ravel(), at[:, 1:].ravel()]).tolist()
    graph = GraphApplication(
        num_tasks=at.size, sources=sources, targets=targets, bytes=[1] * len(sources)
    )
    problem = problem_on(load_places("sharedmap:16/1"), graph, 64)
    found = proven(problem, levels_bound(problem, 0.0, target=192))
    assert found is not None
    assert 120 <= found <= 192
