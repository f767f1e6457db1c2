"""Certificates of the least cost: right ones hold, changed ones are rejected, of every pattern."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from topoplace.certify import check_document
from topoplace.certify.hierarchy.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.nogoods import MOST_DEPTH
from topoplace.certify.switches.relaxed import Relaxed
from topoplace.certify.switches.rules import LARGEST_WORTH
from topoplace.result import Proof
from topoplace.result.tree import ThresholdProof, ThresholdsCertificate
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.schema import Pattern, PatternUse, Snapshot
from tree_cases import model_of, snapshot_on, uses
from tree_exact_cases import solved
from tree_threshold_cases import KINDS, follow, proof_of, threshold_snapshot

Document = dict[str, Any]
SEEDS = range(14)


@cache
def cases(kind: str) -> tuple[tuple[Snapshot, Document], ...]:
    """Return requests, and proofs of their bounds as documents; some have trees of branches."""
    snapshots = [threshold_snapshot(kind, seed) for seed in SEEDS]
    found = [(own, json.loads(proof_of(own).model_dump_json())) for own in snapshots]
    return tuple((own, document) for own, document in found if document["nogoods"])


def holds(snapshot: Snapshot, document: Document) -> bool:
    proof = ThresholdProof.model_validate_json(json.dumps(document))
    try:
        follow(snapshot, proof.nogoods, Fraction(*document["bound"].values()))
    except RefusedError:
        return False
    return True


def parts(document: Document) -> Iterator[Document]:
    """Yield every part of every tree."""
    stack = [nogood["proof"] for nogood in document["nogoods"]]
    while stack:
        part = stack.pop()
        yield part
        if part["kind"] == "branch":
            stack += [part["without"], part["more"]]


@pytest.mark.parametrize("kind", KINDS)
def test_right_certificates_hold(kind: str) -> None:
    kinds = set()
    for snapshot, document in cases(kind):
        assert holds(snapshot, document)
        kinds |= {part["kind"] for part in parts(document)}
    leaf = {"cube": "needs", "ring": "needs", "grid": "prices", "binomial": "shares"}.get(kind)
    assert kinds >= ({leaf, "branch"} if leaf else {"empty"})


# ---- Changes of any proof, and of one part of some kind ------------------------------------------


def _deeper(document: Document) -> None:
    nogood, empty = document["nogoods"][0], {"kind": "empty"}
    for _ in range(MOST_DEPTH + 1):
        nogood["proof"] = {"kind": "branch", "state": 0, "without": nogood["proof"], "more": empty}


def _more(document: Document) -> None:
    document["bound"]["numerator"] += document["bound"]["denominator"]


def _of(kind: str, change: Callable[[Document], object]) -> Callable[[Document], object]:
    """Return what changes all parts of a kind; False where there are none, or nothing changes."""

    def on_all(document: Document) -> bool:
        before = json.dumps(document)
        for part in [part for part in parts(document) if part["kind"] == kind]:
            change(part)
        return json.dumps(document) != before

    return on_all


def _put(document: Document, value: Document) -> None:
    document.clear()
    document.update(value)


CHANGES: dict[str, Callable[[Document], object]] = {
    "all raised": lambda d: [n.update(at=[at + 9 for at in n["at"]]) for n in d["nogoods"]],
    "no nogoods": lambda d: d["nogoods"].clear(),
    "claims more": _more,
    "another number of steps": lambda d: d["nogoods"][0]["at"].append(0),
    "below all values": lambda d: d["nogoods"][0].update(at=[-1, *d["nogoods"][0]["at"][1:]]),
    "above all values": lambda d: d["nogoods"][0].update(at=[1 << 99, *d["nogoods"][0]["at"][1:]]),
    "too deep": _deeper,
    "unknown state": _of("branch", lambda part: part.update(state=10**30)),
    "state below 0": _of("branch", lambda part: part.update(state=-1)),
    "needs called shares": _of(
        "needs", lambda part: _put(part, {"kind": "shares", "shares": [1], "cuts": []})
    ),
    "prices called empty": _of("prices", lambda part: _put(part, {"kind": "empty"})),
    "shares called needs": _of("shares", lambda part: _put(part, {"kind": "needs", "sides": []})),
    "no sides": _of("needs", lambda part: part["sides"].clear()),
    "a side below 0": _of("needs", lambda part: part["sides"].append([1, 0, -1])),
    "a huge side": _of("needs", lambda part: part["sides"].append([1, 0, 1 << 40])),
    "of no distance": _of("needs", lambda part: part["sides"].append([0, 0, 1])),
    "of an unknown distance": _of("needs", lambda part: part["sides"].append([40, 0, 1])),
    "segments that earn": _of("prices", lambda part: part["segments"][0].__setitem__(0, 1)),
    "too few states": _of("prices", lambda part: part["cells"][0].pop()),
    "too many dimensions": _of("prices", lambda part: part["cells"].append(part["cells"][0])),
    "a huge price": _of("prices", lambda part: part["cells"][0].__setitem__(0, 1 << 62)),
    "a cut below 0": _of("shares", lambda part: part["cuts"].append([0, 0, 0, -1])),
    "an unknown step": _of("shares", lambda part: part["cuts"].append([99, 0, 0, 0])),
    "an unknown key": _of("shares", lambda part: part["cuts"].append([0, 10**6, 0, 0])),
    "too few shares": _of("shares", lambda part: part["shares"].pop()),
    "huge shares": _of("shares", lambda part: part["shares"].__setitem__(0, LARGEST_WORTH + 1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_certificates_are_rejected(name: str) -> None:
    applied = 0
    for kind in KINDS:
        for number, (snapshot, document) in enumerate(cases(kind)):
            changed = copy.deepcopy(document)
            if CHANGES[name](changed) is not False:
                applied += 1
                assert not holds(snapshot, changed), (kind, number)
    assert applied > 3


@pytest.mark.parametrize("kind", ["ring", "grid"])
def test_nogoods_may_only_be_left_out_if_others_say_the_same(kind: str) -> None:
    answers = set()
    for snapshot, document in cases(kind):
        instance = read_instance(snapshot)
        relaxed = Relaxed(instance, instance.queue[0])
        bound = Fraction(*document["bound"].values()) * relaxed.scale / relaxed.prices[0]
        corners = [nogood["at"] for nogood in document["nogoods"]]
        every = np.indices([len(relaxed.values)] * len(corners[0])).reshape(len(corners[0]), -1)
        cheap = every[:, np.array(relaxed.values)[every].sum(axis=0) < bound]
        for chain in relaxed.chains:
            cheap = cheap[:, (np.diff(cheap[chain], axis=0) >= 0).all(axis=0)]
        under = [(cheap <= np.array(corner)[:, None]).all(axis=0) for corner in corners]
        number_over = np.sum(under, axis=0)
        for number, own in enumerate(under):
            expected = bool((number_over > own).all())
            changed = copy.deepcopy(document)
            del changed["nogoods"][number]
            assert holds(snapshot, changed) is expected, number
            answers.add(expected)
    assert False in answers


# ---- The whole way ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_results_carry_what_the_checker_follows(kind: str) -> None:
    snapshot = threshold_snapshot(kind, 5)
    result = solved(prepare_contention(snapshot), 4.0)
    level = result.levels[1]
    assert level.proof is Proof.CERTIFICATE
    assert isinstance(level.certificate, ThresholdsCertificate)
    (proof,) = level.certificate.proofs
    assert proof.nogoods
    assert check_document(result).holds
    proof.nogoods.clear()
    assert not check_document(result).holds


def test_both_exchanges_are_one_cube() -> None:
    snapshot = threshold_snapshot("cube", 1)
    both = [PatternUse(pattern=pattern, share=50) for pattern in KINDS["cube"][0]]
    request = snapshot.queue[0].model_copy(update={"patterns": both})
    result = solved(prepare_contention(snapshot.model_copy(update={"queue": [request]})), 10.0)
    assert result.levels[1].proof is Proof.CERTIFICATE
    assert check_document(result).holds


@pytest.mark.parametrize("ranks", [8, 13, 32])
@pytest.mark.parametrize("pattern", [Pattern.BINOMIAL, Pattern.STENCIL_2D, Pattern.RING])
@pytest.mark.parametrize("seconds", [0.0001, 0.05])
def test_a_search_cut_off_at_once_still_proves_its_bound(
    ranks: int, pattern: Pattern, seconds: float
) -> None:
    state = prepare_contention(
        snapshot_on(model_of([9, 8, 7, 10, 9]), (), [(ranks, uses(pattern))])
    )
    result = solved(state, time_limit=seconds)
    assert result.levels[1].bound is not None
    assert check_document(result).holds


def test_a_leaf_with_all_of_a_ring_needs_no_others() -> None:
    """Three ranks of a ring on a leaf of four cost 7; on three leaves, or two, at least 18."""
    snapshot = snapshot_on(model_of([2, 2, 4]), [], [(3, uses(Pattern.RING))])
    assert proof_of(snapshot).bound.numerator == 7
    forged = {"at": [6], "proof": {"kind": "needs", "sides": [[1, 7, 32768]]}}
    bound = {"numerator": 18, "denominator": 1}
    assert not holds(snapshot, {"request": "q0", "bound": bound, "nogoods": [forged]})


def test_other_requests_are_refused() -> None:
    for kind, pattern in itertools.product(("cube", "grid", "binomial"), Pattern):
        snapshot, document = cases(kind)[0]
        with_leaf = [n for n in document["nogoods"] if n["proof"]["kind"] != "empty"]
        request = snapshot.queue[0]
        patterns = [PatternUse(pattern=pattern), PatternUse(pattern=Pattern.RING)]
        if pattern is not Pattern.RING and with_leaf:
            patterns = [use.model_copy(update={"share": 50}) for use in patterns]
            other = request.model_copy(update={"patterns": patterns})
            changed = snapshot.model_copy(update={"queue": [other]})
            assert not holds(changed, {**document, "nogoods": with_leaf})
