"""Certificates that are malformed, or prove less than they are said to."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from edits import Document, Edit, add, append, draw, need, pick, put
from mutations.registry import enter, mutation, request_of, table
from naive_bound import Naive, sum_of_parts, unpacked
from solved_results import Case
from topoplace.result import Interference, Leaf, Parts, PlacementResult


def nodes(document: Document, kind: str) -> list[tuple[int, Document]]:
    """Return all nodes of a kind, of all certificates, with their level."""
    found = []
    todo = [(k, level["certificate"]) for k, level in enumerate(document["levels"])]
    while todo:
        k, node = todo.pop()
        if node["kind"] == kind:
            found.append((k, node))
        sides = ("out", "into", "inside", "outside", "tree")
        todo += [(k, node[side]) for side in sides if side in node]
        todo += [(k, leaf) for leaf in node.get("leaves", ())]
    return found


def word(leaf: Document, at: int, price: int) -> None:
    """Put another price at a run of router prices."""
    words = leaf["prices"]["routers"].split()
    words[at] = str(price) + "".join(words[at].partition("*")[1:])
    leaf["prices"]["routers"] = " ".join(words)


def negative_price(leaf: Document, rng: random.Random) -> None:
    word(leaf, rng.randrange(len(leaf["prices"]["routers"].split())), -rng.randint(1, 9))


def malformed_prices(leaf: Document, rng: random.Random) -> None:
    leaf["prices"][rng.choice(sorted(leaf["prices"]))] += rng.choice((" x", " 0.5", " 1*", " 1 *2"))


def wrong_number_of_prices(leaf: Document, rng: random.Random) -> None:
    family = rng.choice(sorted(leaf["prices"]))
    leaf["prices"][family] += rng.choice((" 0", " 5*2", " 0*99999999"))


def of_a_leaf(edit: Edit, *, later: bool = False) -> Edit:
    """Edit a leaf, or one of a later level."""

    def spoil(document: Document, rng: random.Random) -> None:
        edit(pick(rng, [leaf for k, leaf in nodes(document, "leaf") if k or not later]), rng)

    return spoil


def of_a_reference(edit: Edit) -> Edit:
    """Edit a reference to a shared leaf."""
    return lambda document, rng: edit(pick(rng, nodes(document, "ref"))[1], rng)


REFERENCE = {"kind": "ref", "leaf": 0}
table(
    "bound",
    {
        "negative_price": of_a_leaf(negative_price),
        "negative_multiplier": of_a_leaf(put("multipliers/*", -1), later=True),
        "wrong_number_of_multipliers": of_a_leaf(append("multipliers", 0)),
        "wrong_number_of_prices": of_a_leaf(wrong_number_of_prices),
        "malformed_prices": of_a_leaf(malformed_prices),
        "huge_price": of_a_leaf(lambda leaf, _: word(leaf, 0, 2**64)),
        "reference_to_no_leaf": of_a_reference(add("leaf", 9)),
        "reference_without_shared_leaves": put(
            "levels/*/certificate", {"kind": "shared", "leaves": [], "tree": REFERENCE}
        ),
    },
)


@mutation("bound")
def link_row_not_allowed(rng: random.Random, case: Case, document: Document) -> None:
    wrong = ["stranger", "links of stranger", "links of ", "", "Routers"]
    if case.mode is Interference.OFF:
        wrong.append("links")
    queue = case.snapshot.queue
    wrong += [
        f"links of {r.id}" for r in queue if case.tiny.kind(r.communication.value) != "tolerant"
    ]
    num = len(case.tiny.shape) * len(case.tiny.all_routers)
    row = {rng.choice(wrong): f"0*{num}"}
    of_a_leaf(lambda leaf, _: leaf["prices"].update(row))(document, rng)


@mutation("bound")
def shared_leaf_on_a_later_level(rng: random.Random, case: Case, document: Document) -> None:
    level = document["levels"][rng.choice((1, 2))]
    leaf = level["certificate"]
    need(leaf["kind"] == "leaf")
    level["certificate"] = {"kind": "shared", "leaves": [leaf], "tree": REFERENCE}


# Branches


def wrap(level: Document, branch: Document) -> None:
    """Put a branch above a certificate, the old one on both sides."""
    certificate = level["certificate"]
    sides = ("inside", "outside") if branch["kind"] == "cover" else ("out", "into")
    at, key = (certificate, "tree") if certificate["kind"] == "shared" else (level, "certificate")
    at[key] = branch | dict.fromkeys(sides, at[key])


def some_request(rng: random.Random, case: Case) -> str:
    return str(pick(rng, case.snapshot.queue).id)


@mutation("bound")
def cover_branch_not_under_into(rng: random.Random, case: Case, document: Document) -> None:
    branch = {"kind": "cover", "request": some_request(rng, case), "row": 0}
    wrap(rng.choice(document["levels"]), branch)


@mutation("bound")
def branch_on_unknown_request(rng: random.Random, case: Case, document: Document) -> None:
    wrap(rng.choice(document["levels"]), {"kind": "start", "request": "stranger"})


@mutation("bound")
def second_branch_on_a_start(rng: random.Random, case: Case, document: Document) -> None:
    branch = {"kind": "start", "request": some_request(rng, case)}
    level = rng.choice(document["levels"])
    wrap(level, branch)
    wrap(level, branch)


@mutation("bound")
def cover_branch_on_no_router(rng: random.Random, case: Case, document: Document) -> None:
    name, num = some_request(rng, case), len(case.tiny.all_routers)
    below = Leaf(scale=1).model_dump()
    inner = {"kind": "cover", "request": name, "row": num, "inside": below, "outside": below}
    start = {"kind": "start", "request": name, "out": below, "into": inner}
    document["levels"][0]["certificate"] = start


# Alike requests, and parts of the queue


def say_alike(document: Document, groups: list[list[str]], level_idx: int = 0) -> None:
    """Say of the requests of some groups that they are alike."""
    level = document["levels"][level_idx]
    if level["certificate"]["kind"] != "shared":
        level["certificate"] = {"kind": "shared", "leaves": [], "tree": level["certificate"]}
    level["certificate"]["alike"] = groups


def plain_requests(case: Case) -> list[str]:
    return [r.id for r in case.snapshot.queue if not r.shapes]


@mutation("bound")
def alike_with_a_stranger(rng: random.Random, case: Case, document: Document) -> None:
    say_alike(document, [[*(r.id for r in case.snapshot.queue[:1]), "stranger"]])


@mutation("bound")
def alike_twice(rng: random.Random, case: Case, document: Document) -> None:
    name = pick(rng, plain_requests(case))
    say_alike(document, rng.choice(([[name, name]], [[name], [name]])))


@mutation("bound")
def alike_of_another_kind(rng: random.Random, case: Case, document: Document) -> None:
    def kind(name: str) -> object:
        r = request_of(case, name)
        wanted = r.node_class or case.tiny.default_class
        return wanted, r.region, case.tiny.kind(r.communication.value), bool(r.shapes)

    names = [r.id for r in case.snapshot.queue]
    say_alike(document, [pick(rng, [[a, b] for a in names for b in names if kind(a) != kind(b)])])


@mutation("bound")
def alike_on_a_later_level(rng: random.Random, case: Case, document: Document) -> None:
    need(plain_requests(case))
    say_alike(document, [plain_requests(case)[:1]], rng.choice((1, 2)))


def put_parts(
    case: Case, document: Document, parts: list[list[str]], level_idx: int = 0
) -> list[Document]:
    """Say that the queue comes in parts, each bounded by what its requests are worth."""
    most = 1000 * max((r.priority * r.nodes for r in case.snapshot.queue), default=1)
    leaf = Leaf(scale=1, prices={"routers": f"{most}*{len(case.tiny.all_routers)}"}).model_dump()
    made: list[Document] = [{"requests": requests, "certificate": leaf} for requests in parts]
    document["levels"][level_idx]["certificate"] = {"kind": "parts", "parts": made}
    return made


WRONG_PARTS: dict[str, Callable[[random.Random, list[str]], list[list[str]]]] = {
    "parts_without_a_request": lambda _, names: [names[1:]],
    "parts_with_a_request_twice": lambda rng, names: rng.choice(
        ([names, names[:1]], [[*names, names[-1]]])
    ),
    "parts_with_a_stranger": lambda _, names: [names, ["stranger"]],
}
for _name, _parts in WRONG_PARTS.items():

    def _put(rng: random.Random, case: Case, document: Document, parts: Any = _parts) -> None:
        names = [r.id for r in case.snapshot.queue]
        need(names)
        put_parts(case, document, parts(rng, names))

    enter(_name, ("bound",), _put)


@mutation("bound")
def parts_on_a_later_level(rng: random.Random, case: Case, document: Document) -> None:
    put_parts(case, document, [[r.id for r in case.snapshot.queue]], rng.choice((1, 2)))


@mutation("bound")
def parts_that_prove_less(rng: random.Random, case: Case, document: Document) -> None:
    """Bound each request by its value, which proves less than the bound that stays."""
    put_parts(case, document, [[r.id] for r in case.snapshot.queue])
    certificate = Parts.model_validate(document["levels"][0]["certificate"])
    proven = sum_of_parts(case.tiny, certificate)
    assert proven is not None
    need(proven > case.bounds[0].value)


@mutation("bound")
def part_with_the_whole_tree(rng: random.Random, case: Case, document: Document) -> None:
    """Let a part's certificate branch on a request of another part."""
    names = [r.id for r in case.snapshot.queue]
    need(len(names) > 1)
    part = put_parts(case, document, [names[:1], names[1:]])[0]
    leaf = part["certificate"]
    part["certificate"] = {"kind": "start", "request": names[1], "out": leaf, "into": leaf}


# Other numbers, where the certificate then proves less than the bound that stays


def need_less_proven(case: Case, document: Document, level_idx: int) -> None:
    """Give up unless a level's certificate does not prove the bound that stayed."""
    level = PlacementResult.model_validate(document).levels[level_idx]
    assert level.certificate is not None
    assert not isinstance(level.certificate, Parts)
    naive = Naive(case.tiny, level_idx, case.best[:level_idx])
    proven = naive.bound(level.certificate, naive.choices, {})
    assert proven is not None
    need(proven > case.proven(level_idx))


def lower(leaf: Document, rng: random.Random) -> None:
    share = rng.choice((0, 0, 1, 2))
    leaf["prices"]["routers"] = " ".join(
        str(price * share // 3) for price in unpacked(leaf["prices"]["routers"])
    )


def change_links(leaf: Document, rng: random.Random) -> None:
    for family in set(leaf["prices"]) - {"routers"}:
        changed = [price * rng.choice((0, 1, 5)) for price in unpacked(leaf["prices"][family])]
        leaf["prices"][family] = " ".join(map(str, changed))


def without_a_family(leaf: Document, rng: random.Random) -> None:
    del leaf["prices"][rng.choice(sorted(leaf["prices"]))]


def change_multipliers(leaf: Document, rng: random.Random) -> None:
    leaf["multipliers"] = [rng.choice((0, m + leaf["scale"])) for m in leaf["multipliers"]]


OTHER_NUMBERS: dict[str, tuple[str, Edit]] = {
    "lowered_router_prices": ("leaf", lower),
    "raised_router_prices": ("leaf", lambda leaf, _: word(leaf, -1, 10**9)),
    "changed_link_prices": ("leaf", change_links),
    "left_out_prices": ("leaf", without_a_family),
    "changed_multipliers": ("leaf", change_multipliers),
    "changed_scale": (
        "leaf",
        draw("scale", lambda rng, d: rng.choice((1, d % 10**9 + 1, d * 7 % 10**9 + 1))),
    ),
    "another_multiple_of_a_shared_leaf": (
        "ref",
        lambda node, rng: add(rng.choice(("times", "over")), 1, 10)(node, rng),
    ),
}
for _name, (_kind, _edit) in OTHER_NUMBERS.items():

    def _spoil(
        rng: random.Random, case: Case, document: Document, kind: str = _kind, edit: Edit = _edit
    ) -> None:
        level_idx, node = pick(rng, nodes(document, kind))
        edit(node, rng)
        need_less_proven(case, document, level_idx)

    enter(_name, ("bound",), _spoil)
