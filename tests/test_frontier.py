"""Levels that are set, trade-offs between levels, and all placements as good."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from brute_force import Tiny
from exact_cases import MODES
from random_instances import random_snapshot
from topoplace.placement.trade_off import traded_off
from topoplace.result import Interference
from topoplace.result.frontier import Frontier
from topoplace.snapshot import Snapshot, prepare
from topoplace.solving import Options

MOST_PLACEMENTS = 20_000
LEVELS = {"placement": ("nodes", "shape", "fragmentation"), "cubes": ("nodes", "free_cubes")}


def totals_of(snapshot: Snapshot, mode: Interference) -> set[tuple[int, ...]] | None:
    """Return what all placements on a torus are worth, maximised; None if they are too many."""
    tiny = Tiny(snapshot, mode)
    found: list[tuple[tuple[int, ...], list[Any]]] = [((0, 0, 0), [])]
    for request in snapshot.queue:
        for total, chosen in list(found):
            found += [
                (tuple(map(sum, zip(total, choice.values, strict=True))), [*chosen, choice])
                for choice in tiny.choices(request)
                if not any(choice.meets(other) for other in chosen)
            ]
            if len(found) > MOST_PLACEMENTS:
                return None
    return {total for total, _ in found}


def best_of(totals: Iterable[Sequence[int]], traded: Sequence[int]) -> set[tuple[int, ...]]:
    """Return the values on some levels that no others are as good as."""
    own = {tuple(total[k] for k in traded) for total in totals}
    return {
        v
        for v in own
        if not any(o != v and all(a >= b for a, b in zip(o, v, strict=True)) for o in own)
    }


def points_of(frontier: Frontier) -> set[tuple[int, ...]]:
    """Return the points on the levels traded, maximised."""
    levels = [(k, v) for k, v in enumerate(frontier.levels) if v.name in frontier.traded]
    signs = [(k, 1 if level.sense == "max" else -1) for k, level in levels]
    return {tuple(sign * point.values[k] for k, sign in signs) for point in frontier.points}


TRADED = [(0, 1), (0, 2), (1, 2), (0, 1, 2)]


def torus_equals_brute_force(seed: int) -> bool:
    """Tell whether an instance was small enough; then its frontier is that of brute force."""
    rng = random.Random(f"frontier-{seed}")
    snapshot, mode = random_snapshot(rng, 10), MODES[seed % 3]
    totals = totals_of(snapshot, mode)
    if totals is None:
        return False
    traded = TRADED[seed % len(TRADED)]
    names = [LEVELS["placement"][k] for k in traded]
    frontier = traded_off(prepare(snapshot), names, Options(interference=mode))
    assert points_of(frontier) == best_of(totals, traded), (seed, names)
    assert frontier.complete, seed
    report = frontier.check()
    assert report.verified, (seed, report)
    return True


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 330), marks=pytest.mark.slow)], ids=str
)
def test_frontiers_of_tori_equal_brute_force(seeds: range) -> None:
    small = [torus_equals_brute_force(seed) for seed in seeds]
    assert sum(small) > 0.9 * len(small)
