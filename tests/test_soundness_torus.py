"""The checker of placements on tori against certificates that try to prove too much."""

from __future__ import annotations

import pytest

from soundness.attack import Tally, attack
from soundness.torus_kinds import KINDS, targets

TRIES = 200
MANY = 5_000


def held(kind: str, seed: int, tries: int) -> Tally:
    """Attack with one kind of certificate, and require that many got through and proved much."""
    tally = attack(kind, targets(kind, seed), seed=seed, tries=tries)
    print(f"{kind}: {tally.tried} tried, {tally.accepted} accepted, {tally.tight} tight")
    assert tally.accepted > 0.4 * tally.tried
    assert tally.tight > 0.15 * tally.tried
    return tally


@pytest.mark.parametrize("kind", KINDS)
def test_no_certificate_proves_more_than_the_truth(kind: str) -> None:
    held(kind, 0, TRIES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_certificate_of_very_many_proves_more_than_the_truth(kind: str) -> None:
    held(kind, 1, MANY)
