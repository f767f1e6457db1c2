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
from topoplace.placement.torus import explain as explaining
from topoplace.placement.torus.explain import explain
from topoplace.placement.torus.footprints import footprints_of, quickest_footprints
from topoplace.placement.torus.heuristics.fits import best_fit, first_fit
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


@pytest.mark.parametrize("seed", range(8))
def test_threads_find_the_same_nearest_prisms(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PlacementProblem(prepare(random_snapshot(random.Random(seed), max_routers=60)))
    monkeypatch.setattr(explaining.os, "cpu_count", lambda: 3)
    found = []
    for worth_it in (1, 1 << 30):
        monkeypatch.setattr(explaining, "_WORTH_THREADS", worth_it)
        found.append(explain(problem, []))
    assert len(found[0]) == len(problem.requests)
    assert found[0] == found[1]


SIX = "the prism nearest to free for 6 compute nodes, "
BIG = [{"id": "big", "nodes": 4}, {"id": "six", "nodes": 6}]
CASES = {
    "a job in the way": (
        {"running": [{"id": "r1", "nodes": "1"}, {"id": "r2", "nodes": "6-7"}]},
        ("blocked", ["r1"], 1),
        f"on 6@0, {SIX}1 node of running job r1 would have to be freed",
    ),
    "links alone": (
        {"running": [{"id": "far", "nodes": "0,7"}]},
        ("blocked", ["far"], 0),
        f"on 6@1, {SIX}routers or links of running job far would have to be freed, but no nodes",
    ),
    "nodes are down": (
        {"down": "0-2"},
        ("no-shape", [], None),
        "no prism of this machine holds 6 compute nodes, even with nothing running",
    ),
    "a started job": (
        {"queue": BIG},
        ("outbid", ["big"], 2),
        f"it would fit beside the running jobs, but 6@2, {SIX}holds 2 nodes of started job big",
    ),
    "left out for nothing": (
        {},
        ("outbid", [], 0),
        f"it would fit beside the running jobs, but 6@0, {SIX}is still free: "
        "the method left the request out",
    ),
}


@pytest.mark.parametrize(("more", "expected", "text"), CASES.values(), ids=CASES)
def test_texts_on_a_line_of_eight_routers(
    more: dict[str, object], expected: tuple[str, list[str], int | None], text: str
) -> None:
    document = {
        "schema": SNAPSHOT_SCHEMA,
        "name": "line",
        "machine": {"name": "line", "shape": [8], "wrap": [False]},
        "queue": [{"id": "six", "nodes": 6}],
    }
    problem = PlacementProblem(prepare(Snapshot.model_validate(document | more)))
    started = [Candidate(0, Prism((0,), (4,)))] if "queue" in more else []
    (found,) = explain(problem, started)
    assert (found.reason, found.jobs, found.nodes_to_free) == expected
    assert found.text == text
