"""Prisms that a started request may not have, and requests started wrongly."""

from __future__ import annotations

import random
from collections.abc import Callable

from brute_force import Choice, Tiny, numbers
from mutations.registry import (
    Document,
    mutation,
    placements,
    request_of,
)
from solved_results import Case


def change_prism(
    rng: random.Random, case: Case, change: Callable[[list[int], list[int], int, int], bool]
) -> Document | None:
    """Change origin or extents in a dimension such that a node of the job is left outside."""
    document = case.spoilt()
    options = [(p, d) for p in placements(document) for d in range(len(case.tiny.shape))]
    rng.shuffle(options)
    for placement, d in options:
        origin, extents = list(placement["prism"]["origin"]), list(placement["prism"]["extents"])
        if not change(origin, extents, d, case.tiny.shape[d]):
            continue
        inside = case.tiny.inside((tuple(origin), tuple(extents)))
        if all(case.tiny.router_of(node) in inside for node in numbers(placement["nodes"])):
            continue
        placement["prism"] = {"origin": origin, "extents": extents}
        return document
    return None


@mutation("placements")
def moved_prism(rng: random.Random, case: Case) -> Document | None:
    def move(origin: list[int], extents: list[int], d: int, n: int) -> bool:
        origin[d] = (origin[d] + 1) % n
        fits = extents[d] < n and (case.tiny.wrap[d] or origin[d] + extents[d] <= n)
        return n > 1 and fits

    return change_prism(rng, case, move)


@mutation("placements")
def shrunk_prism(rng: random.Random, case: Case) -> Document | None:
    def shrink(origin: list[int], extents: list[int], d: int, _: int) -> bool:
        extents[d] -= 1
        return extents[d] > 0

    return change_prism(rng, case, shrink)


@mutation("placements")
def prism_outgrows_machine(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    d = rng.randrange(len(case.tiny.shape))
    rng.choice(placements(document))["prism"]["extents"][d] = case.tiny.shape[d] + 1
    return document


@mutation("placements")
def prism_of_other_dimensions(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    prism = rng.choice(placements(document))["prism"]
    prism["origin"].append(0)
    prism["extents"].append(1)
    return document


@mutation("placements")
def origin_not_canonical(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    for placement in placements(document):
        for d, n in enumerate(case.tiny.shape):
            if case.tiny.wrap[d] and placement["prism"]["extents"][d] == n > 1:
                placement["prism"]["origin"][d] = rng.randrange(1, n)
                return document
    return None


def replaced(
    rng: random.Random, case: Case, wrong: Callable[[str, Choice], bool], source: Tiny
) -> Document | None:
    """Start a request on another prism, one that is wrong though all figures are redone."""
    options = []
    for request in source.snapshot.queue:
        for choice in source.choices(request):
            if wrong(request.id, choice):
                options.append((request.id, choice))
    if not options:
        return None
    name, choice = rng.choice(options)
    document = case.document_of(case.chosen | {name: choice})
    # A better objective than the optimum is no reason to leave the bound below it.
    document["explanations"] = [e for e in document["explanations"] if e["request"] != name]
    return document


@mutation("exclusive")
def overlapping_prisms(rng: random.Random, case: Case) -> Document | None:
    def overlaps(name: str, choice: Choice) -> bool:
        return any(
            choice.routers & other.routers for key, other in case.chosen.items() if key != name
        )

    return replaced(rng, case, overlaps, case.tiny)


def strict_pair(case: Case, a: str, b: str) -> bool:
    kinds = {case.tiny.kind(request_of(case, x).communication.value) for x in (a, b)}
    return "strict" in kinds and "none" not in kinds


@mutation("links", "exclusive")
def shared_link(rng: random.Random, case: Case) -> Document | None:
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
def shared_link_denied(rng: random.Random, case: Case) -> Document | None:
    document = shared_link(rng, case)
    if document is not None:
        document["solution"]["num_shared_links"] = 0
        document["solution"]["conforming"] = True
    return document


def without_jobs(case: Case) -> Tiny:
    """Return the machine with the links of running jobs open."""
    tiny = Tiny(case.snapshot, case.mode)
    tiny.strict_links = set()
    tiny.tolerant_links = set()
    return tiny


@mutation("placements")
def closed_link(rng: random.Random, case: Case) -> Document | None:
    def closed(name: str, choice: Choice) -> bool:
        kind = case.tiny.kind(request_of(case, name).communication.value)
        links = set(case.tiny.strict_links)
        if kind == "strict":
            links |= case.tiny.tolerant_links
        return bool(choice.links & links) and kind != "none"

    return replaced(rng, case, closed, without_jobs(case))


@mutation("placements")
def router_of_running_job(rng: random.Random, case: Case) -> Document | None:
    tiny = without_jobs(case)
    tiny.held = set()
    return replaced(rng, case, lambda _, c: bool(c.routers & case.tiny.held), tiny)


@mutation("placements")
def outside_region(rng: random.Random, case: Case) -> Document | None:
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
def against_geometry(rng: random.Random, case: Case) -> Document | None:
    """Put a request with a geometry on a prism that holds it but has another shape."""
    document = case.spoilt()
    for placement in placements(document):
        request = request_of(case, placement["request"])
        if not request.shapes:
            continue
        free = request.model_copy(update={"shapes": None})
        fitting = {c.box for c in case.tiny.choices(request)}
        nodes = numbers(placement["nodes"])
        options = [
            c
            for c in case.tiny.choices(free)
            if c.box not in fitting and all(case.tiny.router_of(x) in c.routers for x in nodes)
        ]
        if options:
            origin, extents = rng.choice(options).box
            placement["prism"] = {"origin": list(origin), "extents": list(extents)}
            return document
    return None


@mutation("placements")
def request_twice(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    placements(document).append(rng.choice(placements(document)))
    return document


@mutation("placements")
def unknown_request(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    rng.choice(placements(document))["request"] = "stranger"
    return document


@mutation("figures", "explanations")
def dropped_placement(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    placements(document).pop(rng.randrange(len(placements(document))))
    return document


@mutation("links")
def prism_denied(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    rng.choice(placements(document))["prism"] = None
    return document
