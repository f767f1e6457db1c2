"""Certificates of packings on a topology that nobody ships: a ring of slots with capacities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from soundness.attack import Json, UnsoundError, attack
from soundness.packing_kinds import targets
from topoplace.certify import packing as walker
from topoplace.certify.packing import certified_bound
from topoplace.certify.report import RefusedError
from topoplace.result import Leaf, StartBranch
from topoplace.result.certificate import Certificate
from toy_ring import Job, Ring, RingOracle

CERTIFICATE: TypeAdapter[Any] = TypeAdapter(Certificate)


def leaf(slots: str, scale: int = 1, *multipliers: int) -> Leaf:
    return Leaf(scale=scale, prices={"slots": slots}, multipliers=list(multipliers))


TWO_SLOTS = RingOracle(
    Ring((2, 1)),
    (Job("a", 3, ((1, 1),)), Job("b", 1, ((1, 1),)), Job("d", 2, ((2,),))),
)
TREE = StartBranch(request="d", out=leaf("0 3"), into=leaf("2 0"))


def test_rows_that_hold_nothing_have_prices_within_64_bits() -> None:
    down = RingOracle(Ring((2, 0)), (Job("d", 2, ((2,),)), Job("e", 1, ((1, 1),))))
    assert certified_bound(down, leaf("1 7"), []) == certified_bound(down, leaf("1 0"), [])
    with pytest.raises(RefusedError, match="the prices and multipliers of a leaf"):
        certified_bound(down, leaf(f"1 {1 << 70}"), [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"prices": {"slots": "0 3 0"}},
        {"prices": {"slots": "0"}},
        {"prices": {"slots": "0 -3"}},
        {"prices": {"slots": "0 x"}},
        {"prices": {"slots": "0*2*1"}},
        {"prices": {"links": "0 3"}},
        {"prices": {"slots": f"0 {1 << 58}"}},
        {"multipliers": [0]},
    ],
)
def test_leaves_that_are_none(wrong: dict[str, object]) -> None:
    tree = TREE.model_copy(update={"out": leaf("0 3").model_copy(update=wrong)})
    with pytest.raises(RefusedError, match=r"at the leaf d out$"):
        certified_bound(TWO_SLOTS, tree, [])


def start(name: str, out: Any = None, into: Any = None) -> Json:
    return {"kind": "start", "request": name, "out": out or LEAF, "into": into or LEAF}


def cover(row: int) -> Json:
    return {"kind": "cover", "request": "d", "row": row, "inside": LEAF, "outside": LEAF}


def shared(tree: Json, *alike: list[str]) -> Json:
    return {"kind": "shared", "leaves": [LEAF], "tree": tree, "alike": list(alike)}


def parts(*names: str, tree: Json = None) -> Json:
    own = [{"requests": some.split(), "certificate": tree or LEAF} for some in names]
    return {"kind": "parts", "parts": own}


LEAF: Json = {"kind": "leaf", "scale": 1, "prices": {"slots": "9*2"}}
REF: Json = {"kind": "ref", "leaf": 0}


@pytest.mark.parametrize(
    ("document", "earlier"),
    [
        (start("stranger"), []),
        (start("d", start("d")), []),
        (cover(0), []),
        (start("d", cover(0)), []),
        (start("d", LEAF, cover(2)), []),
        (shared(REF | {"leaf": 1}), []),
        (shared(REF, ["a", "stranger"]), []),
        (shared(REF, ["a", "a"]), []),
        (shared(REF, ["a"], ["a", "b"]), []),
        (shared(REF, ["b", "d"]), []),
        (shared(LEAF | {"multipliers": [0]}), [3]),
        (parts("a b"), []),
        (parts("a b", "b d"), []),
        (parts("a b d", "stranger"), []),
        (parts("a", "b d", tree=start("a")), []),
        (parts("a b d"), [3]),
    ],
)
def test_trees_that_are_none(document: Json, earlier: list[int]) -> None:
    with pytest.raises(RefusedError):
        certified_bound(TWO_SLOTS, CERTIFICATE.validate_python(document), earlier)


def test_trees_of_such_leaves_are_some() -> None:
    trees = [start("d", start("a")), start("d", LEAF, cover(1)), shared(REF, ["a", "b"])]
    for document in (*trees, parts("a", "b d"), parts("a b d", tree=start("a"))):
        assert certified_bound(TWO_SLOTS, CERTIFICATE.validate_python(document), []) is not None


def test_a_later_level_shares_leaves_as_they_are() -> None:
    leaf = LEAF | {"multipliers": [2]}
    alone, tree = start("d", leaf, leaf), shared(start("d", REF, REF)) | {"leaves": [leaf]}
    found = [
        certified_bound(TWO_SLOTS, CERTIFICATE.validate_python(document), [3])
        for document in (alone, tree)
    ]
    assert found[0] == found[1] is not None
    for multiple in ({"times": 2}, {"times": 2, "over": 2}):
        twice = CERTIFICATE.validate_python(tree | {"tree": start("d", REF, REF | multiple)})
        with pytest.raises(RefusedError, match="a multiple of a shared leaf on a later level"):
            certified_bound(TWO_SLOTS, twice, [3])


def free_second_units(oracle: RingOracle, leaf: Leaf, level_idx: int) -> walker.Prices:
    prices = read_prices(oracle, leaf, level_idx)
    return replace(prices, total=sum(int(row.sum()) for row in prices.rows.values()))


read_prices, preferred, largest_sum, split = (
    walker.read_prices,
    walker._Walk._preferred,
    walker._Walk._largest_sum,
    walker.Covers.split,
)
FAULTS: dict[str, tuple[str, object, str, object]] = {
    "rows have room for one": ("leaf", walker, "read_prices", free_second_units),
    "a bound is rounded down too far": (
        "start",
        walker._Walk,
        "_largest_sum",
        lambda self, scope, limit: largest_sum(self, scope, limit - 1),
    ),
    "the worse is preferred": (
        "start",
        walker._Walk,
        "_preferred",
        lambda self, one, other: preferred(self, other, one),
    ),
    "one side is forgotten": (
        "cover",
        walker.Covers,
        "split",
        lambda self, row, inside: split(self, row, inside=True),
    ),
    "all are alike": ("alike", RingOracle, "may_replace", lambda *_: True),
}
"""What goes wrong, and the kind of certificate that shows it."""


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, holder, attribute, wrong = FAULTS[name]
    monkeypatch.setattr(holder, attribute, wrong)
    with pytest.raises(UnsoundError):
        attack(kind, targets(f"ring {kind}", 0), seed=0, tries=2_000)
