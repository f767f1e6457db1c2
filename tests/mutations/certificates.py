"""Certificates that are malformed, or prove less than they are said to."""

from __future__ import annotations

import random
from collections.abc import Callable

from mutations.registry import (
    Document,
    mutation,
)
from naive_bound import Naive, sum_of_parts
from random_certificates import real_links
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


def leaves(document: Document) -> list[tuple[int, Document]]:
    """Return all leaves of all certificates with their level."""
    return nodes(document, "leaf")


@mutation("bound")
def negative_router_price(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    _, leaf = rng.choice(leaves(document))
    words = leaf["router_prices"].split()
    at = rng.randrange(len(words))
    words[at] = f"-{rng.randint(1, 9)}" + "".join(words[at].partition("*")[1:])
    leaf["router_prices"] = " ".join(words)
    return document


@mutation("bound")
def negative_link_price(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    found = [e for _, leaf in leaves(document) for e in leaf["link_prices"]]
    if not found:
        return None
    entry = rng.choice(found)
    entry["prices"][rng.randrange(len(entry["prices"]))] = -1
    return document


@mutation("bound")
def negative_multiplier(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    _, leaf = rng.choice([(k, leaf) for k, leaf in leaves(document) if k])
    leaf["multipliers"][rng.randrange(len(leaf["multipliers"]))] = -1
    return document


@mutation("bound")
def wrong_number_of_multipliers(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    _, leaf = rng.choice(leaves(document))
    leaf["multipliers"].append(0)
    return document


@mutation("bound")
def wrong_number_of_prices(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    _, leaf = rng.choice(leaves(document))
    leaf["router_prices"] += rng.choice((" 0", " 5*2", " 0*99999999"))
    return document


@mutation("bound")
def malformed_prices(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    _, leaf = rng.choice(leaves(document))
    leaf["router_prices"] = leaf["router_prices"].replace("0", "0.5", 1) + " x"
    return document


@mutation("bound")
def huge_price(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    _, leaf = rng.choice(leaves(document))
    words = leaf["router_prices"].split()
    words[0] = str(2**64) + "".join(words[0].partition("*")[1:])
    leaf["router_prices"] = " ".join(words)
    return document


@mutation("bound")
def link_row_not_allowed(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    _, leaf = rng.choice(leaves(document))
    links = real_links(case.tiny)
    rows: list[str | None] = ["stranger"]
    if case.mode is Interference.OFF:
        rows.append(None)
    rows += [
        r.id for r in case.snapshot.queue if case.tiny.kind(r.communication.value) != "tolerant"
    ]
    leaf["link_prices"].append(
        {"request": rng.choice(rows), "links": links[:1], "prices": [1] * len(links[:1])}
    )
    return document


@mutation("bound")
def priced_link_not_there(rng: random.Random, case: Case) -> Document | None:
    if case.mode is Interference.OFF:
        return None
    document = case.spoilt()
    _, leaf = rng.choice(leaves(document))
    numbered = len(case.tiny.shape) * len(case.tiny.all_routers)
    missing = sorted(set(range(-1, numbered + 1)) - set(real_links(case.tiny)))
    leaf["link_prices"].append({"request": None, "links": [rng.choice(missing)], "prices": [1]})
    return document


@mutation("bound")
def link_prices_of_other_length(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    found = [e for _, leaf in leaves(document) for e in leaf["link_prices"]]
    if not found:
        return None
    rng.choice(found)["prices"].append(0)
    return document


def wrapped_in(rng: random.Random, document: Document, branch: Document) -> Document:
    """Put a branch above a certificate, the old one on both sides."""
    level = rng.choice(document["levels"])
    sides = ("inside", "outside") if branch["kind"] == "cover" else ("out", "into")
    _wrap(level, branch, sides)
    return document


def _wrap(level: Document, branch: Document, sides: tuple[str, str]) -> None:
    certificate = level["certificate"]
    at, key = (certificate, "tree") if certificate["kind"] == "shared" else (level, "certificate")
    at[key] = branch | dict.fromkeys(sides, at[key])


@mutation("bound")
def cover_branch_not_under_into(rng: random.Random, case: Case) -> Document | None:
    if not case.snapshot.queue:
        return None
    name = rng.choice(case.snapshot.queue).id
    branch = {"kind": "cover", "request": name, "router": 0}
    return wrapped_in(rng, case.spoilt(), branch)


@mutation("bound")
def branch_on_unknown_request(rng: random.Random, case: Case) -> Document | None:
    return wrapped_in(rng, case.spoilt(), {"kind": "start", "request": "stranger"})


@mutation("bound")
def second_branch_on_a_start(rng: random.Random, case: Case) -> Document | None:
    if not case.snapshot.queue:
        return None
    branch = {"kind": "start", "request": rng.choice(case.snapshot.queue).id}
    document = case.spoilt()
    level = rng.choice(document["levels"])
    for _ in range(2):
        _wrap(level, branch, ("out", "into"))
    return document


@mutation("bound")
def cover_branch_on_no_router(rng: random.Random, case: Case) -> Document | None:
    if not case.snapshot.queue:
        return None
    name = rng.choice(case.snapshot.queue).id
    document = case.spoilt()
    level = document["levels"][0]
    below = Leaf(scale=1, router_prices=f"0*{len(case.tiny.all_routers)}").model_dump()
    cover = {"kind": "cover", "request": name, "router": len(case.tiny.all_routers)}
    inner = cover | dict.fromkeys(("inside", "outside"), below)
    level["certificate"] = {"kind": "start", "request": name, "out": below, "into": inner}
    return document


def with_alike(case: Case, groups: list[list[str]]) -> Document:
    """Say of the requests of some groups that they are alike."""
    document = case.spoilt()
    level = document["levels"][0]
    if level["certificate"]["kind"] != "shared":
        level["certificate"] = {"kind": "shared", "leaves": [], "tree": level["certificate"]}
    level["certificate"]["alike"] = groups
    return document


@mutation("bound")
def alike_with_a_stranger(rng: random.Random, case: Case) -> Document | None:
    return with_alike(case, [[*(r.id for r in case.snapshot.queue[:1]), "stranger"]])


@mutation("bound")
def alike_twice(rng: random.Random, case: Case) -> Document | None:
    plain = [r.id for r in case.snapshot.queue if not r.shapes]
    if not plain:
        return None
    name = rng.choice(plain)
    return with_alike(case, rng.choice(([[name, name]], [[name], [name]])))


@mutation("bound")
def alike_of_another_kind(rng: random.Random, case: Case) -> Document | None:
    def kind(name: str) -> object:
        r = next(r for r in case.snapshot.queue if r.id == name)
        wanted = r.node_class or case.tiny.default_class
        return wanted, r.region, case.tiny.kind(r.communication.value), bool(r.shapes)

    names = [r.id for r in case.snapshot.queue]
    pairs = [[a, b] for a in names for b in names if kind(a) != kind(b)]
    return with_alike(case, [rng.choice(pairs)]) if pairs else None


@mutation("bound")
def alike_on_a_later_level(rng: random.Random, case: Case) -> Document | None:
    plain = [r.id for r in case.snapshot.queue if not r.shapes]
    if not plain:
        return None
    document = case.spoilt()
    level = rng.choice(document["levels"][1:])
    tree = level["certificate"]
    level["certificate"] = {"kind": "shared", "alike": [plain[:1]], "leaves": [], "tree": tree}
    return document


def in_parts(case: Case, parts: list[list[str]], level_idx: int = 0) -> Document:
    """Say that the queue comes in parts, each bounded by what its requests are worth."""
    document = case.spoilt()
    routers = len(case.tiny.all_routers)
    most = 1000 * max((r.priority * r.nodes for r in case.snapshot.queue), default=1)
    leaf = Leaf(scale=1, router_prices=f"{most}*{routers}").model_dump()
    document["levels"][level_idx]["certificate"] = {
        "kind": "parts",
        "parts": [{"requests": requests, "certificate": leaf} for requests in parts],
    }
    return document


@mutation("bound")
def parts_without_a_request(rng: random.Random, case: Case) -> Document | None:
    names = [r.id for r in case.snapshot.queue]
    return in_parts(case, [names[1:]]) if names else None


@mutation("bound")
def parts_with_a_request_twice(rng: random.Random, case: Case) -> Document | None:
    names = [r.id for r in case.snapshot.queue]
    if not names:
        return None
    again = rng.choice(names)
    return in_parts(case, rng.choice(([names, [again]], [[*names, again]])))


@mutation("bound")
def parts_with_a_stranger(rng: random.Random, case: Case) -> Document | None:
    return in_parts(case, [[r.id for r in case.snapshot.queue], ["stranger"]])


@mutation("bound")
def parts_on_a_later_level(rng: random.Random, case: Case) -> Document | None:
    return in_parts(case, [[r.id for r in case.snapshot.queue]], rng.choice((1, 2)))


@mutation("bound")
def parts_that_prove_less(rng: random.Random, case: Case) -> Document | None:
    """Bound each request by its value, which proves less than the bound that stays."""
    document = in_parts(case, [[r.id] for r in case.snapshot.queue])
    certificate = Parts.model_validate(document["levels"][0]["certificate"])
    proven = sum_of_parts(case.tiny, certificate)
    assert proven is not None
    return document if proven > case.bounds[0].value else None


@mutation("bound")
def part_with_the_whole_tree(rng: random.Random, case: Case) -> Document | None:
    """Let a part's certificate branch on a request of another part."""
    names = [r.id for r in case.snapshot.queue]
    if len(names) < 2:
        return None
    document = in_parts(case, [names[:1], names[1:]])
    part = document["levels"][0]["certificate"]["parts"][0]
    leaf = part["certificate"]
    part["certificate"] = {"kind": "start", "request": names[1], "out": leaf, "into": leaf}
    return document


def if_it_proves_less(case: Case, document: Document, level_idx: int) -> Document | None:
    """Return a document if a level's certificate does not prove the bound that stayed."""
    level = PlacementResult.model_validate(document).levels[level_idx]
    assert level.certificate is not None
    naive = Naive(case.tiny, level_idx, case.best[:level_idx])
    assert not isinstance(level.certificate, Parts)
    proven = naive.bound(level.certificate, naive.choices, {})
    assert proven is not None
    return document if proven > case.proven(level_idx) else None


def broken_tree(
    rng: random.Random, case: Case, spoil: Callable[[Document], None]
) -> Document | None:
    """Spoil a leaf such that the certificate proves less than the bound that stays."""
    document = case.spoilt()
    level_idx, leaf = rng.choice(leaves(document))
    spoil(leaf)
    return if_it_proves_less(case, document, level_idx)


@mutation("bound")
def lowered_router_prices(rng: random.Random, case: Case) -> Document | None:
    def lower(leaf: Document) -> None:
        words = [word.partition("*") for word in leaf["router_prices"].split()]
        share = rng.choice((0, 0, 1, 2))
        leaf["router_prices"] = " ".join(
            "".join((str(int(price) * share // 3), *more)) for price, *more in words
        )

    return broken_tree(rng, case, lower)


@mutation("bound")
def raised_router_prices(rng: random.Random, case: Case) -> Document | None:
    def raise_(leaf: Document) -> None:
        words = leaf["router_prices"].split()
        words[-1] = f"{10**9}" + "".join(words[-1].partition("*")[1:])
        leaf["router_prices"] = " ".join(words)

    return broken_tree(rng, case, raise_)


@mutation("bound")
def changed_link_prices(rng: random.Random, case: Case) -> Document | None:
    def change(leaf: Document) -> None:
        for entry in leaf["link_prices"]:
            entry["prices"] = [price * rng.choice((0, 1, 5)) for price in entry["prices"]]

    return broken_tree(rng, case, change)


@mutation("bound")
def changed_multipliers(rng: random.Random, case: Case) -> Document | None:
    def change(leaf: Document) -> None:
        leaf["multipliers"] = [rng.choice((0, m + leaf["scale"])) for m in leaf["multipliers"]]

    return broken_tree(rng, case, change)


@mutation("bound")
def changed_scale(rng: random.Random, case: Case) -> Document | None:
    def change(leaf: Document) -> None:
        leaf["scale"] = rng.choice((1, leaf["scale"] + 1, leaf["scale"] * 7))

    return broken_tree(rng, case, change)


@mutation("bound")
def reference_to_no_leaf(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    found = nodes(document, "ref")
    if not found:
        return None
    rng.choice(found)[1]["leaf"] += 3
    return document


@mutation("bound")
def reference_without_shared_leaves(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    rng.choice(document["levels"])["certificate"] = {
        "kind": "shared",
        "leaves": [],
        "tree": {"kind": "ref", "leaf": 0},
    }
    return document


@mutation("bound")
def shared_leaf_on_a_later_level(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    level = document["levels"][rng.choice((1, 2))]
    found = [leaf for leaf in (level["certificate"],) if leaf["kind"] == "leaf"]
    if not found:
        return None
    level["certificate"] = {"kind": "shared", "leaves": found, "tree": {"kind": "ref", "leaf": 0}}
    return document


@mutation("bound")
def another_multiple_of_a_shared_leaf(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    found = nodes(document, "ref")
    if not found:
        return None
    level_idx, node = rng.choice(found)
    node[rng.choice(("times", "over"))] += rng.choice((1, 10))
    return if_it_proves_less(case, document, level_idx)
