"""Placements on hierarchies: brute force, real decisions with known optima, commands."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tiny_hierarchies import best_of, places_of, prepared, random_hierarchy
from topoplace.result.hierarchy import HierarchyResult
from topoplace.solving import Options, solve

MOST_PLACEMENTS = 30_000


def solved(document: dict[str, Any], seconds: float | None = 20) -> HierarchyResult:
    """Return the exact method's result."""
    result = solve(prepared(document), "exact", Options(time_limit=seconds))
    assert isinstance(result, HierarchyResult)
    return result


def in_maximising_sense(result: HierarchyResult) -> tuple[list[int | None], list[int | None]]:
    """Return objectives and bounds of all levels."""
    signs = [1 if level.sense == "max" else -1 for level in result.levels]
    values = [s * v.objective for s, v in zip(signs, result.levels, strict=True)]
    bounds = [
        None if v.bound is None else s * v.bound for s, v in zip(signs, result.levels, strict=True)
    ]
    return values, bounds


def equals_brute_force(seed: int) -> None:
    document = random_hierarchy(random.Random(seed))
    state, placements = prepared(document), 1
    for request in state.requests:
        placements *= 1 + sum(1 for _ in places_of(state, request))
    if placements > MOST_PLACEMENTS:
        return
    result, best = solved(document), best_of(state)
    assert in_maximising_sense(result) == (best, best), seed
    report = result.check()
    assert report.verified, f"{seed}: {report}"


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_equals_brute_force(first: int) -> None:
    for seed in range(first, first + 25):
        equals_brute_force(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 700, 50))
def test_equals_brute_force_widely(first: int) -> None:
    for seed in range(first, first + 50):
        equals_brute_force(seed)
