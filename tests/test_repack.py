"""Which running jobs move: plans equal brute force, are certified, and can be carried out."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any

import pytest

import topoplace as tp
from soundness.results import hold_bent
from tiny_repacks import TinyRepack, fewest_suspended, replayed, tiny_repack
from topoplace.placement.repack.order import Changes, ordered
from topoplace.placement.repack.problem import repack_problem
from topoplace.report.summary import summary
from topoplace.result import Interference
from topoplace.result.placement import RepackResult
from topoplace.snapshot.schema import RepackInstance, Snapshot
from topoplace.solving import Options, solve

Document = dict[str, Any]


@cache
def solved(seed: int) -> RepackResult:
    instance, rule = tiny_repack(seed)
    return solve(repack_problem(instance, rule), "exact", Options(time_limit=60))


@pytest.mark.parametrize(
    "seeds", [range(24), pytest.param(range(24, 340), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_plans_equal_brute_force_and_are_certified(seeds: range) -> None:
    kinds: Counter[str] = Counter()
    for seed in seeds:
        result = solved(seed)
        best = TinyRepack(*tiny_repack(seed)).best()
        assert tuple(level.objective for level in result.levels) == best, seed
        assert tuple(level.bound for level in result.levels) == best, seed
        assert result.check().verified, (seed, result.check())
        document = result.model_dump(mode="json", by_alias=True)
        assert replayed(document) == best, seed
        assert result.solution is not None
        assert len(result.solution.suspended) == fewest_suspended(document), seed
        assert result.solution.fewest_suspended
        kinds["all" if best[0] == len(result.instance.start) else "not all"] += 1
        kinds["moves" if best[1] else "no moves"] += 1
        kinds["suspended"] += bool(result.solution.suspended)
    assert min(kinds[k] for k in ("all", "not all", "moves", "no moves")) >= len(seeds) // 10, kinds
    assert kinds["suspended"], kinds


def moved(rng: random.Random, mutant: Document) -> None:
    """Put a job a step on, or do the steps in another order or way."""
    solution = mutant["solution"]
    way = rng.randrange(3)
    if way == 0:
        prism = rng.choice([*solution["moves"], *solution["placements"]])["prism"]
        at = rng.randrange(len(prism["origin"]))
        prism[rng.choice(("origin", "extents"))][at] += rng.choice((-1, 1))
    elif way == 1:
        rng.shuffle(solution["steps"])
    else:
        actions = ("suspend", "move", "resume", "start")
        rng.choice(solution["steps"])["action"] = rng.choice(actions)


def is_right(document: Document) -> bool:
    """Return whether a plan can be carried out and all its figures are true, by brute force."""
    instance = RepackInstance.model_validate(document["instance"])
    best = TinyRepack(instance, Interference(document["limits"]["interference"])).best()
    start, cost = document["levels"][:2]
    return (
        replayed(document) == tuple(level["objective"] for level in document["levels"])
        and (start["bound"] is None or start["bound"] >= best[0])
        and (start["objective"] != best[0] or cost["bound"] is None or cost["bound"] <= best[1])
    )


@pytest.mark.parametrize("tries", [250, pytest.param(2_000, marks=pytest.mark.slow)])
def test_bent_plans_are_refused_or_right(tries: int) -> None:
    hold_bent([solved(seed) for seed in range(24)], moved, is_right, tries)


def changes(after: dict[int, set[int]]) -> Changes:
    """Return moves of jobs that wait for others: each needs a piece of what these have."""
    old = {job: {(job, other): 1 for other in after} for job in after}
    new = {job: {(other, job): 1 for other in after[job]} for job in after}
    return Changes(old, new, {of: 1 for own in (*old.values(), *new.values()) for of in own})


def test_jobs_that_change_places_are_suspended_and_no_more_than_have_to_be() -> None:
    order, suspended, fewest = ordered(changes({0: {1}, 1: {2}, 2: {0}, 3: {0}}))
    assert (suspended, fewest) == ((0,), True)
    assert order.index(2) < order.index(1)
    # A job whose places overlap waits for itself; two rings that share a job need that one alone.
    assert ordered(changes({5: {5}})) == ([], (5,), True)
    assert ordered(changes({0: {1, 2}, 1: {0}, 2: {0}}))[1:] == ((0,), True)


def test_jobs_that_share_hosts_move_in_the_one_order_that_leaves_room() -> None:
    # on h two of three fit: a and b come, x leaves for where b was; a first would block all
    old = {0: {"a": 1}, 1: {"b": 1}, 2: {"h": 1}}
    new = {0: {"h": 1}, 1: {"h": 1}, 2: {"b": 1}}
    order, suspended, fewest = ordered(Changes(old, new, {"a": 1, "b": 1, "h": 2}))
    assert (order, suspended, fewest) == ([1, 2, 0], (), True)


ROW: Document = {
    "schema": "topoplace.snapshot/1",
    "name": "row",
    "machine": "mesh:8",
    "running": [
        {"id": "a", "nodes": "2", "prism": {"origin": [2], "extents": [1]}},
        {"id": "b", "nodes": "5", "prism": {"origin": [5], "extents": [1]}},
    ],
    "queue": [{"id": "wide", "nodes": 4}, {"id": "all", "nodes": 7}],
}


def test_costs_fixed_jobs_and_what_cannot_start() -> None:
    def figures(**options: Any) -> list[int | None]:
        result = tp.repack(Snapshot.model_validate(ROW), ["wide"], **options)
        assert result.check().verified
        return [level.objective for level in result.levels]

    assert figures() == [1, 1, 1]
    assert figures(costs={"a": 5, "b": 2}) == [1, 2, 1]
    assert figures(fixed=["b"]) == [1, 1, 1]
    assert figures(fixed=["a", "b"]) == [0, 0, 0]
    never = tp.repack(Snapshot.model_validate(ROW), ["all"])
    assert never.status == "optimal"
    assert (never.objective, never.bound) == (0, 0)
    assert "1 of 1 request cannot start, however the others move: all" in summary(never)


def test_no_time_limit_is_too_short_for_an_answer() -> None:
    result = tp.repack(Snapshot.model_validate(ROW), ["wide"], time_limit=0)
    assert (result.objective, result.levels[1].objective) == (0, 0)
    assert result.check().holds


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"start": []}, "start: expected requests to start"),
        (
            {"start": ["x"]},
            "start[0]: expected requests that wait and are not held, each once, found 'x'",
        ),
        ({"start": ["wide"], "fixed": ["c"]}, "fixed[0]: expected running jobs, each once"),
        ({"start": ["wide"], "costs": {"a": 0}}, "costs.a: expected from 1 to"),
        ({"start": ["wide"], "keep_shape": "best"}, "keep_shape: expected"),
    ],
)
def test_wrong_input_is_told_in_a_line(options: dict[str, Any], told: str) -> None:
    with pytest.raises(tp.InputError) as error:
        tp.repack(Snapshot.model_validate(ROW), **options)
    assert told in str(error.value)


@pytest.mark.slow
def test_a_blocked_request_of_blue_waters_60_starts_by_the_fewest_moves() -> None:
    result = tp.repack("blue_waters_60", ["milc-xe-1372"], time_limit=60)
    assert [(level.objective, level.bound) for level in result.levels] == [(1, 1), (1, 1), (64, 64)]
    assert result.check().verified
    assert result.solution is not None
    assert [(step.action, step.job) for step in result.solution.steps] == [
        ("move", "r015-namd-xe-64"),
        ("start", "milc-xe-1372"),
    ]
