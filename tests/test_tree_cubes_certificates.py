"""Certificates of requests on cubes: right ones hold, changed ones are rejected."""

from __future__ import annotations

import copy
import itertools
import json
import random
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from topoplace.certify import check_document
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.boxes import Boxes
from topoplace.certify.tree_machine.cubes import MOST_DEPTH, Cubes
from topoplace.certify.tree_machine.instance import read_instance
from topoplace.certify.tree_machine.line_states import Assumed
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.placement.tree.exact.bounding.certificate import boxes_of
from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.bounding.thresholds import ThresholdSearch
from topoplace.placement.tree.exact.cubes.refuter import CubeRefuter
from topoplace.placement.tree.exact.cubes.sides import sides_of
from topoplace.placement.tree.exact.lines.tables import box_tables, no_guess, standing
from topoplace.result import Proof
from topoplace.result.tree import BoxesCertificate, BoxProof, CubeNeeds
from topoplace.snapshot.schema import Pattern, PatternUse, Snapshot
from topoplace.snapshot.tree_state import prepare_tree
from tree_certificate_changes import Changes, Document
from tree_cube_cases import CUBE, cube_snapshot
from tree_exact_cases import solved

CHANGES = Changes("cube_nogoods")
change, change_of, parts = CHANGES.change, CHANGES.change_of, CHANGES.parts
FOREVER = 1e18


@cache
def cases() -> tuple[tuple[Snapshot, Document], ...]:
    """Return requests, and proofs of their bounds as documents; some have trees of branches."""
    found = []
    for seed in range(10):
        snapshot, job = cube_snapshot(seed)
        refuter = CubeRefuter(job, FOREVER)
        search = ThresholdSearch(job, FOREVER, plain=True, more=refuter.refutes)
        leaves = np.repeat(job.domain, job.free[job.domain])[: job.ranks]
        units = search.bound(job.cost(leaves) * job.scale // int(job.model.scale))
        proof = boxes_of(job, units, FOREVER, refuter)
        if proof is None:
            continue  # what CP-SAT shows is in no certificate
        bound = Fraction(units, 100 * job.scale)
        fraction = {"numerator": bound.numerator, "denominator": bound.denominator}
        document = BoxProof(request="q0", bound=fraction, moves=proof[0], cube_nogoods=proof[1])
        found.append((snapshot, json.loads(document.model_dump_json())))
    return tuple(found)


def holds(snapshot: Snapshot, document: Document) -> bool:
    proof = BoxProof.model_validate_json(json.dumps(document))
    instance = read_instance(snapshot)
    wish = instance.wishes["q0"]
    relaxed = Relaxed(instance, wish)
    try:
        Cubes(relaxed, wish).follow(proof.cube_nogoods)
        corners = [nogood.at for nogood in proof.cube_nogoods]
        Boxes(relaxed, Fraction(*document["bound"].values()), corners).follow(proof.moves)
    except RefusedError:
        return False
    return True


def test_right_certificates_hold() -> None:
    kinds = set()
    for snapshot, document in cases():
        assert holds(snapshot, document)
        kinds |= {part["kind"] for part in parts(document)}
    assert kinds >= {"needs", "branch"}
    assert len(cases()) > 5


@change_of("needs")
def no_sides(rng: random.Random, part: Document) -> bool:
    there = bool(part["sides"])
    part["sides"] = []
    return there


@change_of("needs")
def called_empty(rng: random.Random, part: Document) -> None:
    part.clear()
    part["kind"] = "empty"


@change_of("needs")
def a_multiplier_below_0(rng: random.Random, part: Document) -> None:
    part["sides"].append([2, part["sides"][0][1], -1])


@change_of("needs")
def a_huge_multiplier(rng: random.Random, part: Document) -> None:
    part["sides"][0][2] = 1 << 40


@change_of("needs")
def of_no_distance(rng: random.Random, part: Document) -> None:
    part["sides"][0][0] = rng.choice((0, -1, 40))


@change_of("branch")
def more_replaced(rng: random.Random, part: Document) -> bool:
    there = part["more"]["kind"] != "empty"
    part["more"] = {"kind": "empty"}
    return there


@change_of("branch")
def without_replaced(rng: random.Random, part: Document) -> bool:
    there = part["without"]["kind"] != "empty"
    part["without"] = {"kind": "empty"}
    return there


@change_of("branch")
def of_an_unknown_state(rng: random.Random, part: Document) -> None:
    part["state"] = rng.choice((-1, 10**6))


@change
def at_the_top(rng: random.Random, document: Document) -> bool:
    nogoods = document["cube_nogoods"]
    if nogoods:
        rng.choice(nogoods)["at"] = [max(max(own["at"]) for own in nogoods)] * len(nogoods[0]["at"])
    return bool(nogoods)


@change
def all_nogoods_gone(rng: random.Random, document: Document) -> bool:
    there = bool(document["cube_nogoods"])
    document["cube_nogoods"] = []
    return there


@change
def claims_more(rng: random.Random, document: Document) -> None:
    document["bound"]["numerator"] += document["bound"]["denominator"]


@change
def another_number_of_distances(rng: random.Random, document: Document) -> bool:
    for nogood in document["cube_nogoods"]:
        nogood["at"].append(0)
    return bool(document["cube_nogoods"])


@change
def an_unknown_value(rng: random.Random, document: Document) -> bool:
    for nogood in document["cube_nogoods"]:
        nogood["at"][0] = rng.choice((-1, 10**6))
    return bool(document["cube_nogoods"])


@change
def too_deep(rng: random.Random, document: Document) -> bool:
    for nogood in document["cube_nogoods"][:1]:
        for _ in range(MOST_DEPTH + 1):
            tree = {"kind": "branch", "state": 0, "without": nogood["proof"]}
            nogood["proof"] = tree | {"more": {"kind": "empty"}}
    return bool(document["cube_nogoods"])


@pytest.mark.parametrize("name", CHANGES.named)
def test_changed_certificates_are_rejected(name: str) -> None:
    applied = 0
    for number, (snapshot, document) in enumerate(cases()):
        changed = copy.deepcopy(document)
        if CHANGES.named[name](random.Random(f"{name}-{number}"), changed) is not False:
            applied += 1
            assert not holds(snapshot, changed), number
    assert applied


def test_needs_are_counted_alike() -> None:
    seen = 0
    for seed in range(8):
        snapshot, job = cube_snapshot(seed)
        instance = read_instance(snapshot)
        wish = instance.wishes["q0"]
        cubes = Cubes(Relaxed(instance, wish), wish)
        num_dims = job.families[0].num_dims
        tables, key = box_tables(job, [2] * num_dims), job.states.key
        values = Relaxation(job).values
        rng = np.random.default_rng(seed)
        for _ in range(40):
            at = np.sort(rng.integers(2 * len(values) // 3, len(values), num_dims))
            view = standing(tables, values[at], no_guess(tables))
            own = cubes._states.view(at.tolist(), Assumed((0,) * len(key)))
            assert (view is None) == (own is None)
            if view is None or own is None:
                continue
            assert own.states.tolist() == np.flatnonzero(view.alive).tolist()
            for side, row in sides_of(tables, key, view, values[at]):
                least = int(np.searchsorted(values, side.least))
                needs = cubes._needs(CubeNeeds(sides=[(side.dims, least, 3)]), own)
                assert needs.tolist() == (3 * row[own.states]).tolist()
                seen += 1
    assert seen > 100


def test_results_carry_what_the_checker_follows() -> None:
    snapshot, _ = cube_snapshot(1)
    both = [PatternUse(pattern=pattern, share=50) for pattern in (Pattern.VECTOR_DOUBLING, CUBE)]
    request = snapshot.queue[0].model_copy(update={"patterns": both})
    result = solved(prepare_tree(snapshot.model_copy(update={"queue": [request]})), 20.0)
    level = result.levels[1]
    assert level.proof is Proof.CERTIFICATE
    assert isinstance(level.certificate, BoxesCertificate)
    (proof,) = level.certificate.proofs
    assert isinstance(proof, BoxProof)
    assert proof.cube_nogoods
    assert check_document(result).holds
    proof.cube_nogoods.clear()
    assert not check_document(result).holds


def test_other_requests_are_refused() -> None:
    snapshot, _ = cube_snapshot(0)
    request = snapshot.queue[0]
    others = [
        request.model_copy(update={"nodes": nodes, "patterns": [PatternUse(pattern=pattern)]})
        for nodes, pattern in itertools.product((1, 12, 16), (Pattern.RING, CUBE))
        if (nodes, pattern) != (16, CUBE)
    ]
    for other in others:
        instance = read_instance(snapshot.model_copy(update={"queue": [other]}))
        wish = instance.wishes["q0"]
        with pytest.raises(RefusedError, match="full cube"):
            Cubes(Relaxed(instance, wish), wish)
