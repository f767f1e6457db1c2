"""Certificates of binomial requests: right ones hold, changed ones are rejected."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from allocation_mutations import refigure
from edits import plus
from topoplace.certify import check_document
from topoplace.certify.tree_machine.transversal import has_cheap_one
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.schema import Communication, Pattern
from topoplace.snapshot.tree_state import prepare_tree
from tree_cases import model_of, snapshot_on, uses
from tree_doubling_cases import nearly_full
from tree_exact_cases import solved

Document = dict[str, Any]


@cache
def documents() -> tuple[Document, ...]:
    """Return results with nogoods: 2^k ranks or not, one or more kinds of leaves, little room."""
    running = [("n0,n7", Communication.STRICT)]
    found = []
    for sizes, held, ranks in (
        ([6] * 8, [], 16),
        ([6] * 8, running, 12),
        ([5, 6, 7] * 3, [], 8),
        ([6] * 6, [], 32),
    ):
        request = (ranks, uses(Pattern.BINOMIAL))
        state = prepare_tree(snapshot_on(model_of(sizes), held, [request]))
        found.append(solved(state, time_limit=20).model_dump(mode="json"))
    return tuple(found)


def holds(document: Document) -> bool:
    report = check_document(AllocationResult.model_validate_json(json.dumps(document)))
    return report.holds


def proof(document: Document) -> Document:
    found: Document = document["levels"][1]["certificate"]["proofs"][0]
    return found


def test_right_certificates_hold() -> None:
    for document in documents():
        assert len(proof(document)["nogoods"]) > 1
        assert holds(document)


def test_certificates_with_trees_hold() -> None:
    trees = 0
    for seed in (16, 28, 31):
        result = solved(prepare_tree(nearly_full(seed)), time_limit=4)
        document = result.model_dump(mode="json")
        assert holds(document)
        trees += sum("proof" in nogood for nogood in proof(document)["nogoods"])
    assert trees


@pytest.mark.parametrize("ranks", [8, 13, 32])
@pytest.mark.parametrize("seconds", [0.0001, 0.05])
def test_a_search_cut_off_at_once_still_proves_its_bound(ranks: int, seconds: float) -> None:
    state = prepare_tree(
        snapshot_on(model_of([9, 8, 7, 10, 9]), (), [(ranks, uses(Pattern.BINOMIAL))])
    )
    result = solved(state, time_limit=seconds)
    assert result.levels[1].bound is not None
    assert check_document(result).holds


# ---- Changed certificates ---------------------------------------------------------------------

Change = Callable[[random.Random, Document], None]


def without_most(rng: random.Random, document: Document) -> None:
    del proof(document)["nogoods"][1:]


def raised(rng: random.Random, document: Document) -> None:
    for nogood in proof(document)["nogoods"]:
        nogood["at"] = [at + 20 for at in nogood["at"]]


def covers_all(rng: random.Random, document: Document) -> None:
    top = max(at for nogood in proof(document)["nogoods"] for at in nogood["at"])
    for nogood in proof(document)["nogoods"]:
        nogood["at"] = [top] * len(nogood["at"])


def without_shares(rng: random.Random, document: Document) -> None:
    nogood = rng.choice(proof(document)["nogoods"])
    nogood["shares"] = [0] * len(nogood["shares"])


def without_cuts(rng: random.Random, document: Document) -> None:
    for nogood in proof(document)["nogoods"]:
        nogood["cuts"] = []


def turned(rng: random.Random, document: Document) -> None:
    nogood = rng.choice(proof(document)["nogoods"])
    nogood["shares"] = [-share for share in nogood["shares"]]


def below_zero(rng: random.Random, document: Document) -> None:
    nogood = next(n for n in proof(document)["nogoods"] if n["cuts"])
    step, key, senders, receivers = nogood["cuts"][0]
    nogood["cuts"][0] = [step, key, -senders - 1, receivers]


def unknown_value(rng: random.Random, document: Document) -> None:
    proof(document)["nogoods"][0]["at"][0] = 10**6


def unknown_step(rng: random.Random, document: Document) -> None:
    proof(document)["nogoods"][0]["cuts"].append([99, 0, 1, 1])


def too_short(rng: random.Random, document: Document) -> None:
    proof(document)["nogoods"][0]["shares"].pop()


def claims_more(rng: random.Random, document: Document) -> None:
    level, own = document["levels"][1], proof(document)
    own["bound"] = plus(own["bound"], Fraction(1, 100))
    level["bound"] = own["bound"]
    level["objective"] = plus(level["objective"], Fraction(1, 50))
    refigure(document)


def of_another_pattern(rng: random.Random, document: Document) -> None:
    for use in document["instance"]["queue"][0]["patterns"]:
        use["pattern"] = "ring"


CHANGES = (
    without_most,
    raised,
    covers_all,
    without_shares,
    without_cuts,
    turned,
    below_zero,
    unknown_value,
    unknown_step,
    too_short,
    claims_more,
    of_another_pattern,
)


@pytest.mark.parametrize("change", CHANGES)
def test_changed_certificates_are_rejected(change: Change) -> None:
    for number, document in enumerate(documents()):
        changed = copy.deepcopy(document)
        change(random.Random(number), changed)
        assert changed != document
        assert not holds(changed), number


def test_cheap_vectors_are_found() -> None:
    answers = set()
    for seed in range(200):
        rng = random.Random(f"vectors-{seed}")
        costs = [sorted(rng.sample(range(30), 4)) for _ in range(3)]
        nogoods = [[rng.randrange(4) for _ in range(3)] for _ in range(rng.randint(0, 8))]
        least = min(
            (
                sum(own[at] for own, at in zip(costs, vector, strict=True))
                for vector in itertools.product(range(4), repeat=3)
                if not any(all(a <= g for a, g in zip(vector, n, strict=True)) for n in nogoods)
            ),
            default=None,
        )
        bound = rng.choice([90, least or 90, (least or 90) + 1, rng.randrange(90)])
        expected = least is not None and least < bound
        assert has_cheap_one(costs, nogoods, bound) is expected, seed
        halves = [([0, 0, 0], [1, 3, 3]), ([2, 0, 0], [3, 3, 3])]
        assert any(has_cheap_one(costs, nogoods, bound, [half]) for half in halves) is expected
        answers.add(expected)
    assert answers == {True, False}


def test_only_vectors_of_the_boxes_count() -> None:
    costs = [[0, 1, 2]] * 2
    assert has_cheap_one(costs, [], 1)
    assert not has_cheap_one(costs, [], 1, [([1, 0], [2, 2]), ([0, 1], [0, 2])])
    assert has_cheap_one(costs, [], 2, [([1, 0], [2, 2])])
    assert not has_cheap_one(costs, [[1, 0]], 2, [([1, 0], [2, 2])])
