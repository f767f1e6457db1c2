"""Nodes and prisms that a started request may not have, and requests started wrongly."""

from __future__ import annotations

import random
from collections.abc import Callable

from brute_force import Choice, Tiny, numbers
from edits import Document, again, draw, need, pick, put
from mutations.registry import enter, mutation, placements, request_of, table
from solved_results import Case
from topoplace.machine import format_node_set

ANY = "solution/placements/*"
Allowed = Callable[[Case, Document, int], bool]


def _without_one(rng: random.Random, nodes: str) -> str:
    left = numbers(nodes)
    return format_node_set(left - {rng.choice(sorted(left))})


def _one_twice(rng: random.Random, nodes: str) -> str:
    return f"{nodes},{rng.choice(sorted(numbers(nodes)))}"


def _prism_of_other_dimensions(document: Document, rng: random.Random) -> None:
    prism = pick(rng, placements(document))["prism"]
    prism["origin"].append(0)
    prism["extents"].append(1)


table(
    "placements",
    {
        "missing_node": draw(f"{ANY}/nodes", _without_one),
        "node_twice": draw(f"{ANY}/nodes", _one_twice),
        "prism_of_other_dimensions": _prism_of_other_dimensions,
        "request_twice": again("solution/placements"),
        "unknown_request": put(f"{ANY}/request", "stranger"),
    },
)
table("links", {"prism_denied": put(f"{ANY}/prism", None)})


@mutation("placements")
def node_outside_machine(rng: random.Random, case: Case, document: Document) -> None:
    beyond = len(case.tiny.all_routers) * case.tiny.per_router
    draw(f"{ANY}/nodes", lambda _, nodes: format_node_set([*sorted(numbers(nodes))[:-1], beyond]))(
        document, rng
    )


@mutation("placements")
def prism_outgrows_machine(rng: random.Random, case: Case, document: Document) -> None:
    d = rng.randrange(len(case.tiny.shape))
    put(f"{ANY}/prism/extents/{d}", case.tiny.shape[d] + 1)(document, rng)


@mutation("figures", "explanations")
def dropped_placement(rng: random.Random, case: Case, document: Document) -> None:
    placements(document).remove(pick(rng, placements(document)))


# Nodes


def class_of(tiny: Tiny, node: int) -> str:
    for name, text in tiny.snapshot.machine.classes.items():  # type: ignore[union-attr]
        if node in numbers(text):
            return name
    return tiny.default_class


def _wanted(case: Case, placement: Document) -> str:
    return request_of(case, placement["request"]).node_class or case.tiny.default_class


def _is_taken(case: Case, placement: Document, node: int) -> bool:
    others = [p for p in placements(case.document) if p["request"] != placement["request"]]
    return any(node in numbers(p["nodes"]) for p in others)


def _past_the_first_whole_routers(case: Case, placement: Document, node: int) -> bool:
    """Where one maxz alternative is all there is, tell of a node that it leaves out."""
    request = request_of(case, placement["request"])
    if not request.shapes or "/" in request.shapes or ":maxz=" not in request.shapes:
        return False
    wanted = _wanted(case, placement)
    depth = int(request.shapes.split(":")[0].split("x")[-1])
    box = case.chosen[request.id].box
    router = case.tiny.router_of(node)
    n = case.tiny.shape[-1]
    if node in numbers(case.snapshot.down):
        return False
    if router not in case.tiny.inside(box) or class_of(case.tiny, node) != wanted:
        return False
    pencil = [(*router[:-1], (box[0][-1] + i) % n) for i in range(box[1][-1])]
    full = [wanted] * case.tiny.per_router
    whole = [r for r in pencil if case.tiny.usable[r] == full]
    return wanted in case.tiny.usable[router] and router not in whole[:depth]


WRONG_NODES: dict[str, Allowed] = {
    "stolen_node": _is_taken,
    "node_of_wrong_class": lambda case, p, node: class_of(case.tiny, node) != _wanted(case, p),
    "service_node": lambda case, _, node: node in numbers(case.snapshot.machine.service),  # type: ignore[union-attr]
    "down_node": lambda case, _, node: node in numbers(case.snapshot.down),
    "node_of_running_job": lambda case, _, node: any(
        node in numbers(job.nodes) for job in case.snapshot.running
    ),
    "node_outside_prism": lambda case, p, node: (
        case.tiny.router_of(node) not in case.chosen[p["request"]].routers
    ),
    "node_past_the_first_whole_routers": _past_the_first_whole_routers,
}


def _swapping(allowed: Allowed) -> Callable[[random.Random, Case, Document], None]:
    """Give a started job another node instead of one of its own."""

    def swap(rng: random.Random, case: Case, document: Document) -> None:
        options = [
            (placement, node)
            for placement in placements(document)
            for node in range(len(case.tiny.all_routers) * case.tiny.per_router)
            if node not in numbers(placement["nodes"]) and allowed(case, placement, node)
        ]
        placement, node = pick(rng, options)
        left = numbers(_without_one(rng, placement["nodes"]))
        placement["nodes"] = format_node_set(left | {node})

    return swap


for _name, _allowed in WRONG_NODES.items():
    enter(_name, ("placements",), _swapping(_allowed))


@mutation("placements")
def extra_node(rng: random.Random, case: Case, document: Document) -> None:
    for placement in placements(document):
        nodes = numbers(placement["nodes"])
        for router in sorted(case.chosen[placement["request"]].routers):
            base = case.tiny.all_routers.index(router) * case.tiny.per_router
            more = set(range(base, base + case.tiny.per_router)) - nodes
            if more:
                placement["nodes"] = format_node_set(nodes | {rng.choice(sorted(more))})
                return
    need(False)


# Prisms


def _change_prism(
    rng: random.Random,
    case: Case,
    document: Document,
    change: Callable[[list[int], list[int], int, int], bool],
) -> None:
    """Change origin or extents in a dimension such that a node of the job is left outside."""
    options = [(p, d) for p in placements(document) for d in range(len(case.tiny.shape))]
    for placement, d in rng.sample(options, len(options)):
        origin, extents = list(placement["prism"]["origin"]), list(placement["prism"]["extents"])
        if not change(origin, extents, d, case.tiny.shape[d]):
            continue
        inside = case.tiny.inside((tuple(origin), tuple(extents)))
        if all(case.tiny.router_of(node) in inside for node in numbers(placement["nodes"])):
            continue
        placement["prism"] = {"origin": origin, "extents": extents}
        return
    need(False)


@mutation("placements")
def moved_prism(rng: random.Random, case: Case, document: Document) -> None:
    def move(origin: list[int], extents: list[int], d: int, n: int) -> bool:
        origin[d] = (origin[d] + 1) % n
        fits = extents[d] < n and (case.tiny.wrap[d] or origin[d] + extents[d] <= n)
        return n > 1 and fits

    _change_prism(rng, case, document, move)


@mutation("placements")
def shrunk_prism(rng: random.Random, case: Case, document: Document) -> None:
    def shrink(origin: list[int], extents: list[int], d: int, _: int) -> bool:
        extents[d] -= 1
        return extents[d] > 0

    _change_prism(rng, case, document, shrink)


@mutation("placements")
def origin_not_canonical(rng: random.Random, case: Case, document: Document) -> None:
    turned = [
        (placement, d, n)
        for placement in placements(document)
        for d, n in enumerate(case.tiny.shape)
        if case.tiny.wrap[d] and placement["prism"]["extents"][d] == n > 1
    ]
    placement, d, n = pick(rng, turned)
    placement["prism"]["origin"][d] = rng.randrange(1, n)


def replaced(
    rng: random.Random, case: Case, wrong: Callable[[str, Choice], bool], source: Tiny
) -> Document:
    """Start a request on another prism, one that is wrong though all figures are redone."""
    options = [
        (request.id, choice)
        for request in source.snapshot.queue
        for choice in source.choices(request)
        if wrong(request.id, choice)
    ]
    name, choice = pick(rng, options)
    document = case.document_of(case.chosen | {name: choice})
    # A better objective than the optimum is no reason to leave the bound below it.
    document["explanations"] = [e for e in document["explanations"] if e["request"] != name]
    return document


@mutation("exclusive")
def overlapping_prisms(rng: random.Random, case: Case, _: Document) -> Document:
    def overlaps(name: str, choice: Choice) -> bool:
        return any(
            choice.routers & other.routers for key, other in case.chosen.items() if key != name
        )

    return replaced(rng, case, overlaps, case.tiny)


def strict_pair(case: Case, a: str, b: str) -> bool:
    kinds = {case.tiny.kind(request_of(case, x).communication.value) for x in (a, b)}
    return "strict" in kinds and "none" not in kinds


@mutation("links", "exclusive")
def shared_link(rng: random.Random, case: Case, _: Document) -> Document:
    def shares(name: str, choice: Choice) -> bool:
        return any(
            choice.links & other.links
            and not choice.routers & other.routers
            and strict_pair(case, name, key)
            for key, other in case.chosen.items()
            if key != name
        )

    return replaced(rng, case, shares, case.tiny)


@mutation("links", "exclusive")
def shared_link_denied(rng: random.Random, case: Case, document: Document) -> Document:
    document = shared_link(rng, case, document) or document
    document["solution"] |= {"num_shared_links": 0, "conforming": True}
    return document


def without_jobs(case: Case) -> Tiny:
    """Return the machine with the links of running jobs open."""
    tiny = Tiny(case.snapshot, case.mode)
    tiny.strict_links = set()
    tiny.tolerant_links = set()
    return tiny


@mutation("placements")
def closed_link(rng: random.Random, case: Case, _: Document) -> Document:
    def closed(name: str, choice: Choice) -> bool:
        kind = case.tiny.kind(request_of(case, name).communication.value)
        links = set(case.tiny.strict_links)
        if kind == "strict":
            links |= case.tiny.tolerant_links
        return bool(choice.links & links) and kind != "none"

    return replaced(rng, case, closed, without_jobs(case))


@mutation("placements")
def router_of_running_job(rng: random.Random, case: Case, _: Document) -> Document:
    tiny = without_jobs(case)
    tiny.held = set()
    return replaced(rng, case, lambda _, c: bool(c.routers & case.tiny.held), tiny)


@mutation("placements")
def outside_region(rng: random.Random, case: Case, _: Document) -> Document:
    anywhere = case.snapshot.model_copy(
        update={"queue": [r.model_copy(update={"region": None}) for r in case.snapshot.queue]}
    )

    def leaves_region(name: str, choice: Choice) -> bool:
        region = request_of(case, name).region
        if region is None:
            return False
        boxes = [(tuple(p.origin), tuple(p.extents)) for p in case.snapshot.regions[region]]
        return not choice.routers <= set().union(*(case.tiny.inside(box) for box in boxes))

    return replaced(rng, case, leaves_region, Tiny(anywhere, case.mode))


@mutation("placements")
def against_geometry(rng: random.Random, case: Case, document: Document) -> None:
    """Put a request with a geometry on a prism that holds it but has another shape."""
    options = []
    for placement in placements(document):
        request = request_of(case, placement["request"])
        if request.shapes:
            fitting = {c.box for c in case.tiny.choices(request)}
            nodes = numbers(placement["nodes"])
            options += [
                (placement, c.box)
                for c in case.tiny.choices(request.model_copy(update={"shapes": None}))
                if c.box not in fitting and all(case.tiny.router_of(x) in c.routers for x in nodes)
            ]
    placement, (origin, extents) = pick(rng, options)
    placement["prism"] = {"origin": list(origin), "extents": list(extents)}
