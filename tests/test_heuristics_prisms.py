"""First fit and best fit against plain-Python readings of their documentation."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from naive_placement import (
    Job,
    free_prisms,
    holds,
    in_conflict,
    placed_job,
    running_jobs,
)
from random_instances import random_snapshot
from topoplace.errors import InputError
from topoplace.machine import Torus, all_origins
from topoplace.placement.torus.heuristics.best_fit import best_fit, fill
from topoplace.placement.torus.heuristics.first_fit import first_fit
from topoplace.placement.torus.heuristics.footprints import Footprints
from topoplace.placement.torus.heuristics.shape_parts import shape_parts
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Interference, Proof, Status
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from topoplace.snapshot.state import SnapshotState, prepare
from topoplace.solving import Options, methods, solve

MODES = list(Interference)
PRISM_METHODS = ("first-fit", "best-fit")
Key = Callable[[PlacementProblem, Candidate], object]


def tiny(seed: int, mode: Interference) -> PlacementProblem:
    return PlacementProblem(prepare(random_snapshot(random.Random(seed), 20)), mode)


def machine_state(shape: list[int], nodes: list[int], per_router: int = 1) -> SnapshotState:
    return prepare(
        Snapshot.model_validate(
            {
                "schema": SNAPSHOT_SCHEMA,
                "name": "plain",
                "machine": {"name": "plain", "shape": shape, "nodes_per_router": per_router},
                "queue": [{"id": f"job{i}", "nodes": n} for i, n in enumerate(nodes)],
            }
        )
    )


def by_score(problem: PlacementProblem, c: Candidate) -> object:
    return (-problem.shape_score(c), c.prism.extents, c.prism.origin)


def by_origin(problem: PlacementProblem, c: Candidate) -> object:
    part = problem.shape_part(c.prism.extents)
    return (c.prism.origin, c.prism.volume, -part, c.prism.extents)


def greedy(
    problem: PlacementProblem, key: Key, order: list[int], jobs: list[Job]
) -> list[Candidate]:
    jobs = list(jobs)
    placed = []
    for idx in order:
        found = min(free_prisms(problem, idx, jobs), key=lambda c: key(problem, c), default=None)
        if found is not None:
            placed.append(found)
            jobs.append(placed_job(problem, found))
    return placed


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("method", "key"), [(first_fit, by_origin), (best_fit, by_score)])
def test_fit_is_the_naive_one(
    mode: Interference, method: Callable[..., list[Candidate]], key: Key
) -> None:
    num_placed = 0
    for seed in range(60):
        problem = tiny(seed, mode)
        order = list(range(len(problem.requests)))
        assert method(problem) == greedy(problem, key, order, running_jobs(problem)), seed
        order.reverse()
        found = method(problem, order)
        assert found == greedy(problem, key, order, running_jobs(problem)), seed
        num_placed += len(found)
    assert num_placed > 60


@pytest.mark.parametrize("mode", MODES)
def test_fill_adds_by_best_fit(mode: Interference) -> None:
    num_added = 0
    for seed in range(100, 150):
        problem = tiny(seed, mode)
        order = list(range(len(problem.requests)))
        started = first_fit(problem, order[:1])
        jobs = running_jobs(problem) + [placed_job(problem, c) for c in started]
        rest = [idx for idx in order if idx not in {c.request_idx for c in started}]
        found = fill(problem, started, order)
        assert found == started + greedy(problem, by_score, rest, jobs), seed
        assert fill(problem, found) == found
        num_added += len(found) - len(started)
    assert num_added > 20


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PRISM_METHODS)
def test_results_conform(mode: Interference, name: str) -> None:
    for seed in range(200, 240):
        problem = tiny(seed, mode)
        state, torus = problem.state, problem.torus
        result = solve(state, name, Options(interference=mode))
        assert result.solution is not None
        assert result.solution.conforming
        assert result.solution.num_shared_links == 0
        assert (result.status, result.bound, result.proof) == (Status.FEASIBLE, None, Proof.NONE)
        outcome = methods("placement")[name].solver(problem, Options(interference=mode))
        jobs = running_jobs(problem)
        taken: set[int] = set()
        for candidate in outcome.solution:
            assert isinstance(candidate, Candidate)
            candidate.prism.require_inside(torus)
            request = problem.requests[candidate.request_idx]
            assert holds(problem, request, candidate.prism, state.usable.tolist())
            job = placed_job(problem, candidate)
            assert not any(in_conflict(mode, job, other) for other in jobs), seed
            jobs.append(job)
            nodes = problem.choose_nodes(candidate).tolist()
            assert len(nodes) == request.nodes
            assert not taken & set(nodes)
            taken |= set(nodes)
        waiting = {r.id for r in problem.requests} - {p.request for p in result.solution.placements}
        assert {e.request for e in result.explanations} == waiting


@pytest.mark.parametrize("name", PRISM_METHODS)
def test_same_answer_every_time(name: str) -> None:
    for seed in range(20):
        state = prepare(random_snapshot(random.Random(seed), 24))
        once, again = (solve(state, name, Options(seed=1)) for _ in range(2))
        assert once.solution == again.solution
        assert once.explanations == again.explanations


def test_shape_parts_equal_the_problems() -> None:
    for seed in range(80):
        problem = tiny(seed, Interference.STRICT)
        table = shape_parts(problem.torus, problem.state.snapshot.weights)
        assert table.shape == problem.torus.shape
        for at, part in np.ndenumerate(table):
            assert part == problem.shape_part(tuple(i + 1 for i in at))


def test_best_fit_finds_the_best_shape_of_a_large_machine() -> None:
    for nodes in (13, 700, 6912):
        problem = PlacementProblem(machine_state([24, 24, 24], [nodes], per_router=2))
        table = shape_parts(problem.torus, problem.state.snapshot.weights)
        volume = np.prod(np.indices(table.shape) + 1, axis=0)
        idle = 2 * volume - nodes
        score = np.where(idle >= 0, table - problem.state.snapshot.weights.idle * idle, -(10**9))
        (found,) = best_fit(problem)
        assert problem.shape_score(found) == score.max()
        first = np.argwhere(score == score.max())[0] + 1
        assert found.prism.extents == tuple(first.tolist())
        assert found.prism.origin == (0, 0, 0)


def test_whole_machine_is_one_prism_at_origin_zero() -> None:
    for shape in ([7], [2, 2], [3, 1, 4], [2, 3, 2, 2]):
        problem = PlacementProblem(machine_state(shape, [int(np.prod(shape)), 1]))
        for found in (first_fit(problem), best_fit(problem)):
            (candidate,) = found
            assert candidate.prism.extents == tuple(shape)
            assert candidate.prism.origin == (0,) * len(shape)
            assert all_origins(problem.torus, tuple(shape)) == [candidate.prism.origin]


def test_a_machine_too_large_for_the_tables_is_refused() -> None:
    with pytest.raises(InputError, match=r"machine\.shape"):
        Footprints(Torus((128, 128, 128)))
