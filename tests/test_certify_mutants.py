"""The checker accepts correct results and rejects every spoilt one.

The mutation classes are the functions of `mutations`, by name.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from mutations import CAUGHT_AS, MUTATIONS
from solved_results import Case, rare_cases, result_from, solved_case
from topoplace.certify import check_document

NUM_CASES = 60
LEVELS = ("nodes", "shape", "fragmentation")
MUTANTS_PER_CLASS = 30


@cache
def cases() -> list[Case]:
    return [*map(solved_case, range(NUM_CASES)), *rare_cases()]


def _kind(claim: str) -> str:
    """Return what a claim is about, levels put together."""
    if claim.endswith(".bound"):
        return "bound"
    return "figures" if claim in LEVELS else claim


@cache
def mutants(name: str) -> int:
    """Spoil results in one way until there are enough; every one must be rejected."""
    count = 0
    for number, case in enumerate(cases()):
        document = MUTATIONS[name](random.Random(f"{name} {number}"), case)
        if document is None:
            continue
        report = check_document(result_from(document))
        assert not report.holds, f"{name} of case {number} was accepted"
        first = report.failures[0]
        assert first.detail
        assert _kind(first.name) in CAUGHT_AS[name], (name, number, first)
        count += 1
        if count == MUTANTS_PER_CLASS:
            break
    return count


def test_correct_results_hold() -> None:
    for number, case in enumerate(cases()):
        report = check_document(result_from(case.document))
        assert report.holds, (number, report.failures)
        names = [claim.name for claim in report.claims]
        assert names[-1] == "fragmentation.bound"


def test_the_list_is_long_enough() -> None:
    assert len(MUTATIONS) >= 20


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutants_are_rejected(name: str) -> None:
    assert mutants(name) > 0, "a mutation that never applies tests nothing"


def test_there_are_a_thousand_mutants() -> None:
    assert sum(mutants(name) for name in MUTATIONS) >= 1000
