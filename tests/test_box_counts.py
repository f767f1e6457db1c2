"""Sums over boxes, the level values of many candidates at once, and what builds on them."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from random_instances import random_prism, random_snapshot
from topoplace.machine import Prism, Torus
from topoplace.placement.exact.master import undominated
from topoplace.placement.torus import explain as explaining
from topoplace.placement.torus.box_counts import BoxCounts
from topoplace.placement.torus.heuristics import nearest
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot.state import prepare

MACHINES = [
    Torus((7,)),
    Torus((1, 5, 2)),
    Torus((4, 6, 5), wrap=(True, False, True)),
    Torus((3, 2, 4, 3)),
    Torus((1, 2, 1, 3, 1, 2, 1, 2), wrap=(True, False) * 4),
]


def _prisms(torus: Torus, seed: int, num: int) -> list[Prism]:
    rng = random.Random(seed)
    models = [random_prism(rng, list(torus.shape), list(torus.wrap)) for _ in range(num)]
    return [Prism(tuple(m.origin), tuple(m.extents)) for m in models]


@pytest.mark.parametrize("torus", MACHINES, ids=lambda torus: torus.text)
def test_sums_over_boxes(torus: Torus) -> None:
    per_router = np.random.default_rng(1).integers(-5, 9, torus.num_routers)
    prisms = _prisms(torus, 2, 60)
    found = BoxCounts(torus, per_router).inside(
        np.array([p.origin for p in prisms]), np.array([p.extents for p in prisms])
    )
    assert found.tolist() == [int(per_router[p.routers(torus)].sum()) for p in prisms]


def test_many_boxes_of_a_small_machine_of_eight_dimensions_take_little_memory() -> None:
    torus = MACHINES[-1]
    prisms = _prisms(torus, 3, 10_000)
    origins, extents = (
        np.array([getattr(p, name) for p in prisms]) for name in ("origin", "extents")
    )
    counts = BoxCounts(torus, np.ones(torus.num_routers, dtype=np.int64))
    tracemalloc.start()
    found = counts.inside(origins, extents)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.tolist() == extents.prod(axis=1).tolist()
    assert most < 1 << 27


def test_no_box_and_an_empty_box() -> None:
    torus = MACHINES[2]
    counts = BoxCounts(torus, np.ones(torus.num_routers, dtype=np.int64))
    nothing = np.zeros((0, 3), dtype=np.int64)
    assert counts.inside(nothing, nothing).shape == (0,)
    assert counts.inside(np.array([[3, 2, 4]]), np.array([[2, 0, 3]])).tolist() == [0]


@pytest.mark.parametrize("seed", range(20))
def test_values_of_candidates_are_their_definition(seed: int) -> None:
    problem = PlacementProblem(prepare(random_snapshot(random.Random(seed))))
    torus, requests = problem.torus, problem.requests
    if not requests:
        assert problem.values_of([]).shape == (0, 3)
        return
    prisms = _prisms(torus, seed, 30)
    candidates = [Candidate(k % len(requests), prism) for k, prism in enumerate(prisms)]
    for candidate, found in zip(candidates, problem.values_of(candidates).tolist(), strict=True):
        request = requests[candidate.request_idx]
        idle = problem.usable_inside(candidate) - request.nodes
        score = problem.shape_part(candidate.prism.extents)
        score -= problem.state.snapshot.weights.idle * idle
        assert found == [request.value, score, -_boundary(problem, candidate.prism)]
        assert problem.values(candidate) == tuple(found)


def _boundary(problem: PlacementProblem, prism: Prism) -> int:
    """Count the links to free routers outside a prism, step by step."""
    torus = problem.torus
    inside = set(prism.routers(torus).tolist())
    total = 0
    for router in inside:
        coords = torus.coords(router)
        for d, n in enumerate(torus.shape):
            for step in (-1, 1):
                at = coords[d] + step
                if n == 1 or not (torus.wrap[d] or 0 <= at < n):
                    continue
                beside = torus.router((*coords[:d], at % n, *coords[d + 1 :]))
                total += beside not in inside and bool(problem.free_routers[beside])
    return total


def test_undominated_rows_are_in_no_other() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        num_rows, num_columns = rng.integers(1, 25), rng.integers(1, 90)
        dense = rng.random((num_rows, num_columns)) < rng.choice([0.05, 0.3, 0.8])
        dense[np.arange(num_rows), rng.integers(0, num_columns, num_rows)] = True
        rows = [frozenset(np.flatnonzero(row)) for row in dense]
        expected = [
            i
            for i, row in enumerate(rows)
            if not any(row < other or (row == other and j < i) for j, other in enumerate(rows))
        ]
        assert undominated(sp.csr_matrix(dense.astype(np.float32))).tolist() == expected


@pytest.mark.parametrize("seed", range(8))
def test_threads_find_the_same_nearest_prisms(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PlacementProblem(prepare(random_snapshot(random.Random(seed), max_routers=60)))
    monkeypatch.setattr(nearest.os, "cpu_count", lambda: 3)
    found = []
    for worth_it in (1, 1 << 30):
        monkeypatch.setattr(nearest, "_WORTH_THREADS", worth_it)
        found.append(explaining.explain(problem, []))
    assert len(found[0]) == len(problem.requests)
    assert found[0] == found[1]
