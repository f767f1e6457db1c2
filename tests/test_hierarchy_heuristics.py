"""Every heuristic keeps all hard rules; the textbook's start whatever can start alone."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tiny_hierarchies import (
    named,
    places_of,
    prepared,
    problem_of,
    racks,
    random_hierarchy,
    random_single,
)
from topoplace.kinds import kind_named
from topoplace.placement.hierarchy.contract import keeps_contract
from topoplace.placement.hierarchy.problem import HierarchyProblem, Started
from topoplace.solving import Options
from topoplace.solving.registry import method_of

HEURISTICS = [name for name in kind_named("hierarchy").methods if name not in ("exact", "minizinc")]
TEXTBOOK = ["tree-best-fit", "first-fit", "random"]


def started_by(name: str, problem: HierarchyProblem, seed: int = 0) -> Started:
    outcome = method_of("hierarchy", name).solver(problem, Options(seed=seed))
    assert not any(outcome.bounds)
    assert outcome.solution is not None
    return outcome.solution


FOUR = racks([4, 2], [3, 3], [2, 2, 1], [4, 4])


@pytest.mark.parametrize("name", TEXTBOOK)
def test_starts_what_can_start_alone(name: str) -> None:
    rng = random.Random(72)
    found: Counter[bool] = Counter()
    for seed in range(150):
        problem = random_single(rng)
        starts = bool(started_by(name, problem, seed))
        assert starts == any(places_of(problem.state, problem.requests[0]))
        found[starts] += 1
    assert min(found[True], found[False]) > 20


def kueue_has_words_for(problem: HierarchyProblem) -> bool:
    """Whether Kueue knows all that the only part asks: see "Kueue" in docs/reference/methods.md."""
    part = problem.requests[0].parts[0]
    asked = part.required if part.required is not None else part.preferred
    above = part.segments and asked is not None and asked > part.segments[-1][0]
    rules = (part.spread, part.exclusive, part.at_most, part.balance, part.apart or None)
    return all(rule is None for rule in rules) and not above


@pytest.mark.parametrize("name", ["kueue", "kueue-balanced", "kueue-least-free"])
def test_kueue_starts_what_can_start_alone(name: str) -> None:
    rng = random.Random(10574)
    found: Counter[bool] = Counter()
    for seed in range(200):
        problem = random_single(rng)
        if kueue_has_words_for(problem):
            starts = bool(started_by(name, problem, seed))
            assert starts == any(places_of(problem.state, problem.requests[0]))
            found[starts] += 1
    assert min(found[True], found[False]) > 20


def test_slurm_keeps_its_contract() -> None:
    rng = random.Random(9)
    seen = 0
    for _ in range(300):
        problem = HierarchyProblem(prepared(random_hierarchy(rng)))
        for number, placed in started_by("slurm-block", problem).items():
            assert keeps_contract(problem.machine, problem.requests[number], placed)
            seen += 1
    assert seen > 30


TWO_RACKS = {"r0h0": 4, "r0h1": 2, "r1h0": 3, "r1h1": 1}
HALVES = {"nodes": 6, "segments": [{"size": 3, "level": "host"}]}
TWO_EACH = {"nodes": 4, "spread": {"size": 2, "level": "rack"}}


@pytest.mark.parametrize(
    ("asked", "best", "first"),
    [
        ({"nodes": 2}, {"r0h1": 2}, {"r0h0": 2}),
        ({"nodes": 5}, {"r2h0": 2, "r2h1": 2, "r2h2": 1}, {"r0h0": 4, "r0h1": 1}),
        ({"nodes": 10}, TWO_RACKS, TWO_RACKS),
        ({"nodes": 8, "required": "rack"}, {"r3h0": 4, "r3h1": 4}, {"r3h0": 4, "r3h1": 4}),
        (HALVES, {"r1h0": 3, "r1h1": 3}, {"r0h0": 3, "r1h0": 3}),
        (TWO_EACH, {"r0h1": 2, "r1h0": 2}, {"r0h0": 2, "r1h0": 2}),
    ],
)
def test_best_and_first_fit_by_hand(
    asked: dict[str, Any], best: dict[str, int], first: dict[str, int]
) -> None:
    problem = problem_of(FOUR, {"id": "job", **asked})
    assert named(problem, started_by("tree-best-fit", problem)[0][0]) == best
    assert named(problem, started_by("first-fit", problem)[0][0]) == first


def test_nobody_follows_into_an_exclusive_domain() -> None:
    queue = [
        {"id": "alone", "nodes": 2, "exclusive": "rack"},
        {"id": "next", "nodes": 2},
        {"id": "row", "nodes": 1, "exclusive": "row"},
    ]
    problem = problem_of(FOUR, queue[0], queue=queue)
    started = started_by("first-fit", problem)
    found = {number: named(problem, own[0]) for number, own in started.items()}
    assert found == {0: {"r0h0": 2}, 1: {"r1h0": 2}, 2: {"r2h0": 1}}


def test_random_depends_on_the_seed() -> None:
    problem = problem_of(FOUR, {"id": "job", "nodes": 9})
    ways = {tuple(started_by("random", problem, seed)[0][0].items()) for seed in range(8)}
    assert len(ways) > 4
    assert started_by("random", problem, 3) == started_by("random", problem, 3)
