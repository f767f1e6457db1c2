"""Certificates of requests on grids: right ones hold, changed ones are rejected."""

from __future__ import annotations

import copy
import itertools
import json
import random
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.lines import MOST_DEPTH
from topoplace.result.tree import LineNogood, LineProof
from topoplace.snapshot.schema import Pattern, PatternUse, Snapshot
from tree_certificate_changes import Changes, Document
from tree_line_cases import follow, grid_snapshot, job_on, proven, relaxed_of

CHANGES = Changes("line_nogoods")
change, change_of, parts = CHANGES.change, CHANGES.change_of, CHANGES.parts
SEEDS = (3, 8, 11, 16, 37, 53)


@cache
def cases() -> tuple[tuple[Snapshot, Document], ...]:
    """Return requests, and proofs of their bounds as documents; some have trees of branches."""
    found = []
    for seed in SEEDS:
        snapshot = grid_snapshot(seed, (8, 11, 12, 13, 16, 18, 24, 27, 30), (3, 5, 6), (5, 9))
        bound, nogoods = proven(job_on(snapshot))
        fraction = {"numerator": bound.numerator, "denominator": bound.denominator}
        proof = LineProof(request="q0", bound=fraction, line_nogoods=nogoods)
        found.append((snapshot, json.loads(proof.model_dump_json())))
    return tuple(found)


def holds(snapshot: Snapshot, document: Document) -> bool:
    proof = LineProof.model_validate_json(json.dumps(document))
    try:
        follow(snapshot, proof.line_nogoods, Fraction(*document["bound"].values()))
    except RefusedError:
        return False
    return True


def test_right_certificates_hold() -> None:
    kinds = set()
    for snapshot, document in cases():
        assert document["line_nogoods"]
        assert holds(snapshot, document)
        kinds |= {part["kind"] for part in parts(document)}
    assert kinds == {"prices", "empty", "branch"}


# ---- The wrong numbers --------------------------------------------------------------------------


@change_of("prices")
def prices_of_nothing(rng: random.Random, part: Document) -> None:
    part["cells"] = [[0] * len(own) for own in part["cells"]]
    part["segments"] = [[0] * len(own) for own in part["segments"]]


@change_of("prices")
def cells_turned(rng: random.Random, part: Document) -> None:
    part["cells"] = [[-price for price in own] for own in part["cells"]]


@change_of("prices")
def segments_that_earn(rng: random.Random, part: Document) -> None:
    own = rng.choice(part["segments"])
    own[rng.randrange(len(own))] = 1


@change
def at_the_top(rng: random.Random, document: Document) -> None:
    nogood = rng.choice(document["line_nogoods"])
    top = max(at for own in document["line_nogoods"] for at in own["at"])
    nogood["at"] = [top] * len(nogood["at"])


@change
def all_raised(rng: random.Random, document: Document) -> None:
    for nogood in document["line_nogoods"]:
        nogood["at"] = [at + 3 for at in nogood["at"]]


@change
def without_nogoods(rng: random.Random, document: Document) -> None:
    document["line_nogoods"] = []


@change
def claims_more(rng: random.Random, document: Document) -> None:
    document["bound"]["numerator"] += document["bound"]["denominator"]


# ---- The wrong trees ----------------------------------------------------------------------------


@change_of("prices")
def called_empty(rng: random.Random, part: Document) -> None:
    part.clear()
    part["kind"] = "empty"


@change_of("branch")
def without_replaced(rng: random.Random, part: Document) -> bool:
    there = part["without"]["kind"] != "empty"
    part["without"] = {"kind": "empty"}
    return there


@change_of("branch")
def more_replaced(rng: random.Random, part: Document) -> bool:
    there = part["more"]["kind"] != "empty"
    part["more"] = {"kind": "empty"}
    return there


@change
def arms_exchanged(rng: random.Random, document: Document) -> bool:
    for part in parts(document):
        arms = [part[arm] for arm in ("without", "more") if arm in part]
        if {arm["kind"] for arm in arms} == {"prices", "empty"}:
            part["more"], part["without"] = arms
            return True
    return False


# ---- What is no certificate ---------------------------------------------------------------------


@change_of("branch")
def of_an_unknown_state(rng: random.Random, part: Document) -> None:
    part["state"] = rng.choice((-1, 10**6, 10**30))


@change_of("prices")
def too_few_states(rng: random.Random, part: Document) -> None:
    part[rng.choice(("cells", "segments"))][0].pop()


@change_of("prices")
def too_many_dimensions(rng: random.Random, part: Document) -> None:
    part["cells"].append(part["cells"][0])


@change_of("prices")
def huge_prices(rng: random.Random, part: Document) -> None:
    part["cells"][0][0] = rng.choice((1 << 62, -(10**40)))


@change
def another_number_of_steps(rng: random.Random, document: Document) -> None:
    document["line_nogoods"][0]["at"].append(0)


@change
def an_unknown_value(rng: random.Random, document: Document) -> None:
    rng.choice(document["line_nogoods"])["at"][0] = rng.choice((-1, 10**6, 10**30))


@change
def too_deep(rng: random.Random, document: Document) -> None:
    nogood = document["line_nogoods"][0]
    for _ in range(MOST_DEPTH + 1):
        empty = {"kind": "empty"}
        nogood["proof"] = {"kind": "branch", "state": 0, "without": nogood["proof"], "more": empty}


@pytest.mark.parametrize("name", CHANGES.named)
def test_changed_certificates_are_rejected(name: str) -> None:
    applied = 0
    for number, (snapshot, document) in enumerate(cases()):
        changed = copy.deepcopy(document)
        if CHANGES.named[name](random.Random(f"{name}-{number}"), changed) is not False:
            applied += 1
            assert not holds(snapshot, changed), number
    assert applied


def test_nogoods_may_only_be_left_out_if_others_say_the_same() -> None:
    answers = set()
    for snapshot, document in cases():
        relaxed = relaxed_of(snapshot)
        assert len(set(relaxed.prices)) == 1
        bound = Fraction(*document["bound"].values()) * relaxed.scale / relaxed.prices[0]
        corners = [nogood["at"] for nogood in document["line_nogoods"]]
        every = np.indices([len(relaxed.values)] * len(corners[0])).reshape(len(corners[0]), -1)
        cheap = every[:, np.array(relaxed.values)[every].sum(axis=0) < bound]
        under = [(cheap <= np.array(corner)[:, None]).all(axis=0) for corner in corners]
        number_over = np.sum(under, axis=0)
        for number, own in enumerate(under):
            expected = bool((number_over > own).all())
            changed = copy.deepcopy(document)
            del changed["line_nogoods"][number]
            assert holds(snapshot, changed) is expected, number
            answers.add(expected)
    assert False in answers


def test_another_request_is_refused() -> None:
    for snapshot, document in cases():
        nogoods = [LineNogood.model_validate(own) for own in document["line_nogoods"]]
        for uses in itertools.permutations((Pattern.RING, Pattern.STENCIL_2D, Pattern.STENCIL_3D)):
            patterns = [PatternUse(pattern=pattern, share=30) for pattern in uses[:2]]
            request = snapshot.queue[0].model_copy(update={"patterns": patterns})
            other = snapshot.model_copy(update={"queue": [request]})
            with pytest.raises(RefusedError, match="beside one grid"):
                follow(other, nogoods, Fraction(1))
        request = snapshot.queue[0].model_copy(update={"nodes": 1})
        with pytest.raises(RefusedError, match="single rank"):
            follow(snapshot.model_copy(update={"queue": [request]}), [], Fraction(0))
