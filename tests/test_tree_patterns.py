"""Steps of the communication patterns against slow definitions, written rank by rank."""

from __future__ import annotations

import pytest

from topoplace.certify.switches.costs import steps_of as checked_steps
from topoplace.errors import InputError
from topoplace.placement.switches.patterns import cubic_grid, pattern_steps
from topoplace.snapshot.schema import Pattern
from tree_brute_force import steps_of as slow_steps

Slow = list[tuple[set[frozenset[int]], int]]
SIZES = range(1, 41)


def steps_of(pattern: Pattern, ranks: int) -> Slow:
    found: Slow = []
    for step in pattern_steps(pattern, ranks):
        pairs = [frozenset(pair) for pair in step.pairs.tolist()]
        assert len(set(pairs)) == len(pairs)
        assert all(len(pair) == 2 for pair in pairs)
        found.append((set(pairs), step.weight))
    return found


@pytest.mark.parametrize("ranks", SIZES)
def test_steps_are_as_defined(ranks: int) -> None:
    for pattern in Pattern:
        slow = [({frozenset(p) for p in pairs}, w) for pairs, w in slow_steps(pattern, ranks)]
        assert steps_of(pattern, ranks) == slow
        checked = [({frozenset(p) for p in pairs}, w) for pairs, w in checked_steps(pattern, ranks)]
        assert checked == slow


@pytest.mark.parametrize("ranks", [3, 7, 100, 511, 512, 513])
def test_totals(ranks: int) -> None:
    binomial = steps_of(Pattern.BINOMIAL, ranks)
    told = {0}
    for pairs, _ in binomial:
        fresh = {max(pair) for pair in pairs}
        assert {min(pair) for pair in pairs} <= told
        assert not fresh & told
        told |= fresh
    assert told == set(range(ranks))
    ((ring, weight),) = steps_of(Pattern.RING, ranks)
    assert len(ring) * weight == ranks * (ranks - 1)
    for dims, pattern in ((2, Pattern.STENCIL_2D), (3, Pattern.STENCIL_3D)):
        shape = cubic_grid(ranks, dims)
        pairs_wanted = sum(ranks // extent * (extent - 1) for extent in shape)
        assert sum(len(pairs) for pairs, _ in steps_of(pattern, ranks)) == pairs_wanted


def test_ties_of_the_most_cubic_grid() -> None:
    assert sum((10, 6, 6)) == sum(cubic_grid(360, 3))
    assert cubic_grid(360, 3) == (9, 8, 5)


def test_steps_are_shared_and_cannot_be_changed() -> None:
    steps = pattern_steps(Pattern.RING, 9)
    assert steps is pattern_steps(Pattern.RING, 9)
    with pytest.raises(ValueError, match="read-only"):
        steps[0].pairs[0, 0] = 5


def test_no_rank_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one rank"):
        pattern_steps(Pattern.RING, 0)
