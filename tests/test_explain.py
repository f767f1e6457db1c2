"""Explanations against their definition in docs/proofs.md, by enumeration on tiny machines."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from naive_placement import (
    all_prisms,
    ever_usable,
    free_prisms,
    holds,
    in_conflict,
    placed_job,
    running_jobs,
)
from random_instances import random_snapshot
from topoplace.machine import Prism
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.heuristics.best_fit import best_fit
from topoplace.placement.torus.heuristics.first_fit import first_fit
from topoplace.placement.torus.heuristics.footprints import footprints_of, quickest_footprints
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Explanation, Interference
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from topoplace.snapshot.state import prepare


def admissible(problem: PlacementProblem, idx: int) -> tuple[str, list[Prism]]:
    """Return why a request waits, and the prisms among which the nearest to free is."""
    beside = [c.prism for c in free_prisms(problem, idx, running_jobs(problem))]
    if beside:
        return "outbid", beside
    usable = ever_usable(problem)
    alone = [p for p in all_prisms(problem) if holds(problem, problem.requests[idx], p, usable)]
    return ("blocked" if alone else "no-shape"), alone


def check(problem: PlacementProblem, started: list[Candidate], found: Explanation) -> None:
    idx = [r.id for r in problem.requests].index(found.request)
    reason, prisms = admissible(problem, idx)
    assert found.reason == reason
    assert found.request not in found.text
    if reason == "no-shape":
        assert (found.prism, found.jobs, found.nodes_to_free) == (None, [], None)
        return
    per = problem.torus.nodes_per_router
    if reason == "outbid":
        others = [
            (problem.requests[c.request_idx].id, problem.choose_nodes(c), placed_job(problem, c))
            for c in sorted(started)
        ]
    else:
        others = [
            (state.id, state.nodes, job)
            for state, job in zip(problem.state.running, running_jobs(problem), strict=True)
        ]
    held = Counter(int(node) // per for _, nodes, _ in others for node in nodes)

    def nodes_inside(prism: Prism) -> int:
        return sum(held[int(r)] for r in prism.routers(problem.torus))

    assert found.prism is not None
    named = Prism(tuple(found.prism.origin), tuple(found.prism.extents))
    shaped = problem.requests[idx].geometries
    view = (footprints_of if shaped else quickest_footprints)(problem.torus)

    def rank(prism: Prism) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
        turned = view.coords(prism.extents), view.coords(prism.origin)
        return nodes_inside(prism), prism.volume, *turned

    assert named == min(prisms, key=rank)
    assert found.nodes_to_free == nodes_inside(named)
    mine = placed_job(problem, Candidate(idx, named))
    mode = problem.interference
    assert found.jobs == [name for name, _, job in others if in_conflict(mode, mine, job)]
    assert found.jobs


@pytest.mark.parametrize("mode", list(Interference))
def test_explanations_hold_by_enumeration(mode: Interference) -> None:
    reasons: Counter[str] = Counter()
    for seed in range(150):
        problem = PlacementProblem(prepare(random_snapshot(random.Random(seed), 18)), mode)
        for started in (first_fit(problem), best_fit(problem)):
            found = explain(problem, started)
            there = {c.request_idx for c in started}
            waiting = [r.id for i, r in enumerate(problem.requests) if i not in there]
            assert [e.request for e in found] == waiting
            for explanation in found:
                check(problem, started, explanation)
                reasons[explanation.reason] += 1
    assert min(reasons[r] for r in ("no-shape", "blocked", "outbid")) >= 5, reasons


def line(**more: object) -> PlacementProblem:
    """Return a line of eight routers with a queue of one job of six nodes."""
    document = {
        "schema": SNAPSHOT_SCHEMA,
        "name": "line",
        "machine": {"name": "line", "shape": [8], "wrap": [False]},
        "queue": [{"id": "six", "nodes": 6}],
    }
    return PlacementProblem(prepare(Snapshot.model_validate(document | more)))


def test_blocked_by_the_job_in_the_way() -> None:
    problem = line(running=[{"id": "r1", "nodes": "1"}, {"id": "r2", "nodes": "6-7"}])
    (found,) = explain(problem, [])
    assert found.reason == "blocked"
    assert found.text == (
        "on 6@0, the prism nearest to free for 6 compute nodes, "
        "1 node of running job r1 would have to be freed"
    )
    assert (found.jobs, found.nodes_to_free) == (["r1"], 1)


def test_blocked_by_links_alone() -> None:
    problem = line(
        running=[{"id": "far", "nodes": "0,7"}], queue=[{"id": "two", "nodes": 2}], down=""
    )
    (found,) = explain(problem, [])
    assert (found.reason, found.jobs, found.nodes_to_free) == ("blocked", ["far"], 0)
    assert "no nodes" in found.text


def test_no_shape_where_nodes_are_down() -> None:
    (found,) = explain(line(down="0-2"), [])
    assert found.reason == "no-shape"
    assert found.text == (
        "no prism of this machine holds 6 compute nodes, even with nothing running"
    )


def test_outbid_by_the_started_job() -> None:
    problem = line(queue=[{"id": "big", "nodes": 4}, {"id": "six", "nodes": 6}])
    started = [Candidate(0, Prism((0,), (4,)))]
    (found,) = explain(problem, started)
    assert (found.reason, found.jobs, found.nodes_to_free) == ("outbid", ["big"], 2)
    assert found.prism is not None
    assert (found.prism.origin, found.prism.extents) == ([2], [6])


def test_a_request_left_out_for_nothing_is_said_to_be() -> None:
    (found,) = explain(line(), [])
    assert (found.reason, found.jobs, found.nodes_to_free) == ("outbid", [], 0)
    assert "left the request out" in found.text
