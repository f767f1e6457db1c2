"""No certificate or claim of an allocation on a tree that the checker takes is false."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from soundness.attack import Tally, UnsoundError, attack
from soundness.tree_kinds import FAMILIES, KINDS, Problem

ACCEPTED = {"all-start": 0.2, "starts": 0.2, "starts apart": 0.2, "choices": 0.2, "claims": 0.08}
"""The share of tries that the checker has to take at least; `USUAL` of other kinds."""

USUAL = 0.35


def hold(name: str, *, seed: int, tries: int) -> Tally:
    """Attack the checker, print the tally, and return it."""
    tally = attack(name, KINDS[name](seed), seed=seed, tries=tries)
    print(f"{name}: {tally}")
    assert tally.accepted >= ACCEPTED.get(name, USUAL) * tally.tried
    assert tally.tight > 0
    return tally


@pytest.mark.parametrize("name", KINDS)
def test_nothing_false_is_accepted(name: str) -> None:
    hold(name, seed=3, tries=600 if name in FAMILIES and FAMILIES[name].single else 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_nothing_false_is_accepted_of_many(name: str) -> None:
    tally = hold(name, seed=1, tries=5000)
    assert tally.tight >= tally.tried / 20


@pytest.mark.parametrize("name", FAMILIES)
def test_some_of_what_is_drawn_is_tight(name: str) -> None:
    rng = random.Random(name)
    for target in islice(KINDS[name](3), 40):
        drawn = (target.proven(target.draw(rng)) for _ in range(6))
        if any(found == target.truth for found in drawn):
            return
    pytest.fail("no certificate proves the truth")


@pytest.mark.parametrize("name", KINDS)
def test_a_checker_that_takes_everything_is_found_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Problem, "accepts", lambda self, claims: True)
    with pytest.raises(UnsoundError):
        attack(name, KINDS[name](0), seed=0, tries=400)
