"""Trees of binomial requests in certificates: changed ones are rejected."""

from __future__ import annotations

import copy
import json
import random
from functools import cache

import numpy as np
import pytest

from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.doubling import LARGEST_WORTH, MOST_DEPTH
from topoplace.placement.tree.exact.doubling.certificate import tree_document
from topoplace.placement.tree.exact.doubling.kernels.standing import standing
from topoplace.result.tree import DoublingProof, DoublingTreeNogood
from topoplace.snapshot.schema import Pattern
from tree_cases import model_of, snapshot_on, uses
from tree_certificate_changes import Changes, Document
from tree_doubling_cases import branched, follow

CHANGES = Changes("nogoods")
change, change_of, parts = CHANGES.change, CHANGES.change_of, CHANGES.parts


@cache
def documents() -> tuple[Document, ...]:
    """Return proofs of a nogood each; that it holds is all they say."""
    found = []
    for case in branched():
        tree = tree_document(case.proof, case.values)
        nogood = DoublingTreeNogood(at=case.at.tolist(), proof=tree)
        bound = {"numerator": 0, "denominator": 1}
        proof = DoublingProof(request="q0", bound=bound, nogoods=[nogood])
        found.append(json.loads(proof.model_dump_json()))
    return tuple(found)


def holds(number: int, document: Document) -> bool:
    proof = DoublingProof.model_validate_json(json.dumps(document))
    try:
        follow(branched()[number].snapshot, proof.nogoods)
    except RefusedError:
        return False
    return True


def is_last(branch: Document) -> bool:
    return {branch[side]["kind"] for side in ("without", "more")} == {"shares"}


# ---- The wrong trees: no multipliers refute at a branch what needs it --------------------------


@change_of("branch")
def without_more(rng: random.Random, part: Document) -> bool:
    side = part["without"]
    part.clear()
    part.update(side)
    return side["kind"] == "shares"


@change_of("branch")
def more_alone(rng: random.Random, part: Document) -> bool:
    side = part["more"]
    part.clear()
    part.update(side)
    return side["kind"] == "shares"


@change_of("branch")
def without_leaves(rng: random.Random, part: Document) -> None:
    nothing = [0] * len(shares_of(part)["shares"])
    part.clear()
    part.update({"kind": "shares", "shares": nothing, "cuts": []})


def shares_of(part: Document) -> Document:
    """Return the first multipliers of a tree."""
    while part["kind"] == "branch":
        part = part["without"]
    return part


@change_of("branch")
def sides_exchanged(rng: random.Random, part: Document) -> bool:
    part["without"], part["more"] = part["more"], part["without"]
    return is_last(part)


# ---- The wrong numbers -------------------------------------------------------------------------


@change
def all_turned(rng: random.Random, document: Document) -> None:
    for part in parts(document):
        if part["kind"] == "shares":
            part["shares"] = [-share for share in part["shares"]]


@change
def all_zero(rng: random.Random, document: Document) -> None:
    for part in parts(document):
        if part["kind"] == "shares":
            part["shares"] = [0] * len(part["shares"])


@change_of("shares")
def without_cuts(rng: random.Random, part: Document) -> bool:
    there = bool(part["cuts"])
    part["cuts"] = []
    return there


@change_of("shares")
def below_zero(rng: random.Random, part: Document) -> None:
    part["cuts"].append([0, 0, *rng.choice(((-1, 0), (0, -1)))])


# ---- What is no certificate --------------------------------------------------------------------


@change_of("branch")
def of_an_unknown_state(rng: random.Random, part: Document) -> None:
    part["state"] = rng.choice((-1, 10**6, 10**30))


@change_of("shares")
def of_an_unknown_step(rng: random.Random, part: Document) -> None:
    part["cuts"].append([rng.choice((-1, 99)), 0, 0, 0])


@change_of("shares")
def of_an_unknown_value(rng: random.Random, part: Document) -> None:
    part["cuts"].append([0, rng.choice((-1, 10**6)), 0, 0])


@change_of("shares")
def too_few_shares(rng: random.Random, part: Document) -> None:
    part["shares"].pop()


@change_of("shares")
def too_large(rng: random.Random, part: Document) -> None:
    part["shares"][0] = rng.choice((LARGEST_WORTH + 1, -(10**40)))


@change
def another_number_of_steps(rng: random.Random, document: Document) -> None:
    document["nogoods"][0]["at"].append(0)


@change
def too_deep(rng: random.Random, document: Document) -> None:
    nogood = document["nogoods"][0]
    side = copy.deepcopy(shares_of(nogood["proof"]))
    for _ in range(MOST_DEPTH + 1):
        nogood["proof"] = {"kind": "branch", "state": 0, "without": nogood["proof"], "more": side}


@pytest.mark.parametrize("name", CHANGES.named)
def test_changed_trees_are_rejected(name: str) -> None:
    applied = 0
    for number, document in enumerate(documents()):
        changed = copy.deepcopy(document)
        if CHANGES.named[name](random.Random(f"{name}-{number}"), changed) is not False:
            applied += 1
            assert not holds(number, changed), number
    assert applied


def test_a_branch_on_a_state_that_is_not_left_says_nothing() -> None:
    tried = 0
    for number, (case, document) in enumerate(zip(branched(), documents(), strict=True)):
        left = standing(case.best.tables, case.values[case.at]).alive
        changed = copy.deepcopy(document)
        root = changed["nogoods"][0]["proof"]
        if root["without"]["kind"] == "shares" and not left.all():
            root["state"] = int(np.flatnonzero(~left)[0])
            tried += 1
            assert not holds(number, changed), number
    assert tried > 3


def test_a_single_rank_is_refused() -> None:
    alone = snapshot_on(model_of([3, 4]), [], [(1, uses(Pattern.BINOMIAL))])
    with pytest.raises(RefusedError, match="single rank"):
        follow(alone, [])
