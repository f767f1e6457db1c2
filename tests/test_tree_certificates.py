"""Certificates of the least cost: right ones hold, changed ones are rejected, of every pattern."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topoplace.certify import check_document
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.binomial import LARGEST_WORTH
from topoplace.certify.tree_machine.instance import read_instance
from topoplace.certify.tree_machine.nogoods import MOST_DEPTH
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.cli import run
from topoplace.result import Proof
from topoplace.result.tree import AllocationResult, ThresholdProof, ThresholdsCertificate
from topoplace.snapshot.schema import Pattern, PatternUse, Snapshot
from topoplace.snapshot.tree_state import prepare_tree
from tree_cases import model_of, snapshot_on, uses
from tree_exact_cases import solved
from tree_threshold_cases import KINDS, follow, proof_of, threshold_snapshot

Document = dict[str, Any]
Change = Callable[[random.Random, Document], bool | None]
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


# ---- Changes: each returns False where it does not apply ----------------------------------------

CHANGES: dict[str, Change] = {}


def change(function: Change) -> Change:
    CHANGES[function.__name__] = function
    return function


def change_of(*kinds: str) -> Callable[[Change], Change]:
    """Register what changes a part of some kind."""

    def register(function: Change) -> Change:
        def on_any(rng: random.Random, document: Document) -> bool | None:
            found = [part for part in parts(document) if part["kind"] in kinds]
            return bool(found) and function(rng, rng.choice(found))

        CHANGES[function.__name__] = on_any
        return function

    return register


@change
def at_the_top(rng: random.Random, document: Document) -> None:
    nogoods = document["nogoods"]
    top = max(at for own in nogoods for at in own["at"]) + 20
    rng.choice(nogoods)["at"] = [top] * len(nogoods[0]["at"])


@change
def all_raised(rng: random.Random, document: Document) -> None:
    for nogood in document["nogoods"]:
        nogood["at"] = [at + 3 for at in nogood["at"]]


@change
def without_nogoods(rng: random.Random, document: Document) -> None:
    document["nogoods"] = []


@change
def claims_more(rng: random.Random, document: Document) -> None:
    document["bound"]["numerator"] += document["bound"]["denominator"]


@change
def another_number_of_steps(rng: random.Random, document: Document) -> None:
    document["nogoods"][0]["at"].append(0)


@change
def an_unknown_value(rng: random.Random, document: Document) -> None:
    rng.choice(document["nogoods"])["at"][0] = rng.choice((-1, 10**6, 10**30))


@change
def too_deep(rng: random.Random, document: Document) -> None:
    nogood = document["nogoods"][0]
    for _ in range(MOST_DEPTH + 1):
        empty = {"kind": "empty"}
        nogood["proof"] = {"kind": "branch", "state": 0, "without": nogood["proof"], "more": empty}


@change_of("needs", "prices")
def called_empty(rng: random.Random, part: Document) -> None:
    part.clear()
    part["kind"] = "empty"


@change_of("needs", "prices", "shares")
def of_another_pattern(rng: random.Random, part: Document) -> None:
    other = {"kind": "shares", "shares": [1], "cuts": []}
    if part["kind"] == "shares":
        other = {"kind": "needs", "sides": []}
    part.clear()
    part.update(other)


@change_of("branch")
def without_replaced(rng: random.Random, part: Document) -> bool:
    there = part["without"]["kind"] in ("needs", "prices")
    part["without"] = {"kind": "empty"}
    return there


@change_of("branch")
def more_replaced(rng: random.Random, part: Document) -> bool:
    there = part["more"]["kind"] in ("needs", "prices")
    part["more"] = {"kind": "empty"}
    return there


@change_of("branch")
def of_an_unknown_state(rng: random.Random, part: Document) -> None:
    part["state"] = rng.choice((-1, 10**6, 10**30))


@change_of("needs")
def no_sides(rng: random.Random, part: Document) -> bool:
    there = bool(part["sides"])
    part["sides"] = []
    return there


@change_of("needs")
def a_multiplier_below_0(rng: random.Random, part: Document) -> None:
    part["sides"].append([1, part["sides"][0][1], -1])


@change_of("needs")
def a_huge_multiplier(rng: random.Random, part: Document) -> None:
    part["sides"][0][2] = 1 << 40


@change_of("needs")
def of_no_distance(rng: random.Random, part: Document) -> None:
    part["sides"][0][0] = rng.choice((0, -1, 40))


@change_of("prices")
def prices_of_nothing(rng: random.Random, part: Document) -> None:
    for name in ("cells", "segments"):
        part[name] = [[0] * len(own) for own in part[name]]
    part["wholes"] = None


@change_of("prices")
def segments_that_earn(rng: random.Random, part: Document) -> None:
    own = rng.choice(part["segments"])
    own[rng.randrange(len(own))] = 1


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
def all_shares_turned(rng: random.Random, document: Document) -> bool:
    found = [part for part in parts(document) if part["kind"] == "shares"]
    for part in found:
        part["shares"] = [-share for share in part["shares"]]
    return bool(found)


@change_of("shares")
def a_cut_below_zero(rng: random.Random, part: Document) -> None:
    part["cuts"].append([0, 0, *rng.choice(((-1, 0), (0, -1)))])


@change_of("shares")
def of_an_unknown_step(rng: random.Random, part: Document) -> None:
    part["cuts"].append([rng.choice((-1, 99)), 0, 0, 0])


@change_of("shares")
def of_an_unknown_key(rng: random.Random, part: Document) -> None:
    part["cuts"].append([0, rng.choice((-1, 10**6)), 0, 0])


@change_of("shares")
def too_few_shares(rng: random.Random, part: Document) -> None:
    part["shares"].pop()


@change_of("shares")
def too_large_shares(rng: random.Random, part: Document) -> None:
    part["shares"][0] = rng.choice((LARGEST_WORTH + 1, -(10**40)))


@pytest.mark.parametrize("name", CHANGES)
def test_changed_certificates_are_rejected(name: str) -> None:
    applied = 0
    for kind in KINDS:
        for number, (snapshot, document) in enumerate(cases(kind)):
            changed = copy.deepcopy(document)
            if CHANGES[name](random.Random(f"{name}-{number}"), changed) is not False:
                applied += 1
                assert not holds(snapshot, changed), (kind, number)
    assert applied > 3


@pytest.mark.parametrize("kind", ["ring", "grid"])
def test_nogoods_may_only_be_left_out_if_others_say_the_same(kind: str) -> None:
    answers = set()
    for snapshot, document in cases(kind):
        instance = read_instance(snapshot)
        relaxed = Relaxed(instance, instance.wishes["q0"])
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
    result = solved(prepare_tree(snapshot), 4.0)
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
    result = solved(prepare_tree(snapshot.model_copy(update={"queue": [request]})), 10.0)
    assert result.levels[1].proof is Proof.CERTIFICATE
    assert check_document(result).holds


@pytest.mark.parametrize("ranks", [8, 13, 32])
@pytest.mark.parametrize("pattern", [Pattern.BINOMIAL, Pattern.STENCIL_2D, Pattern.RING])
@pytest.mark.parametrize("seconds", [0.0001, 0.05])
def test_a_search_cut_off_at_once_still_proves_its_bound(
    ranks: int, pattern: Pattern, seconds: float
) -> None:
    state = prepare_tree(snapshot_on(model_of([9, 8, 7, 10, 9]), (), [(ranks, uses(pattern))]))
    result = solved(state, time_limit=seconds)
    assert result.levels[1].bound is not None
    assert check_document(result).holds


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


def test_place_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    use = PatternUse(pattern=Pattern.STENCIL_2D)
    snapshot = snapshot_on(model_of([6, 6, 7, 5]), [("n0", "strict")], [(12, [use])])
    source, result = tmp_path / "snapshot.json", tmp_path / "result.json"
    source.write_text(snapshot.model_dump_json(exclude_none=True), encoding="utf-8")
    assert run(["place", str(source), "--method", "exact", "-o", str(result)]) == 0
    found = AllocationResult.model_validate_json(result.read_text(encoding="utf-8"))
    assert isinstance(found.levels[1].certificate, ThresholdsCertificate)
    assert run(["check", str(result)]) == 0
    assert "certificate" in capsys.readouterr().out
