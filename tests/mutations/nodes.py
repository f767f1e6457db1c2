"""Nodes that a started request may not have."""

from __future__ import annotations

import random
from collections.abc import Callable

from brute_force import Tiny, numbers
from mutations.registry import (
    Document,
    mutation,
    placements,
    request_of,
)
from solved_results import Case
from topoplace.machine import format_node_set


def swap_node(
    rng: random.Random, case: Case, allowed: Callable[[Document, int], bool]
) -> Document | None:
    """Give a started job another node instead of one of its own."""
    document = case.spoilt()
    options = [
        (placement, node)
        for placement in placements(document)
        for node in range(len(case.tiny.all_routers) * case.tiny.per_router)
        if node not in numbers(placement["nodes"]) and allowed(placement, node)
    ]
    if not options:
        return None
    placement, node = rng.choice(options)
    nodes = numbers(placement["nodes"])
    nodes.remove(rng.choice(sorted(nodes)))
    placement["nodes"] = format_node_set(nodes | {node})
    return document


def class_of(tiny: Tiny, node: int) -> str:
    for name, text in tiny.snapshot.machine.classes.items():  # type: ignore[union-attr]
        if node in numbers(text):
            return name
    return tiny.default_class


@mutation("placements")
def stolen_node(rng: random.Random, case: Case) -> Document | None:
    taken = {p["request"]: numbers(p["nodes"]) for p in placements(case.document)}
    return swap_node(
        rng,
        case,
        lambda p, node: any(node in s for name, s in taken.items() if name != p["request"]),
    )


@mutation("placements")
def node_of_wrong_class(rng: random.Random, case: Case) -> Document | None:
    def other(placement: Document, node: int) -> bool:
        wanted = request_of(case, placement["request"]).node_class or case.tiny.default_class
        return class_of(case.tiny, node) != wanted

    return swap_node(rng, case, other)


@mutation("placements")
def service_node(rng: random.Random, case: Case) -> Document | None:
    service = numbers(case.snapshot.machine.service)  # type: ignore[union-attr]
    return swap_node(rng, case, lambda _, node: node in service)


@mutation("placements")
def down_node(rng: random.Random, case: Case) -> Document | None:
    down = numbers(case.snapshot.down)
    return swap_node(rng, case, lambda _, node: node in down)


@mutation("placements")
def node_of_running_job(rng: random.Random, case: Case) -> Document | None:
    held = set().union(*(numbers(job.nodes) for job in case.snapshot.running))
    return swap_node(rng, case, lambda _, node: node in held)


@mutation("placements")
def node_outside_prism(rng: random.Random, case: Case) -> Document | None:
    def outside(placement: Document, node: int) -> bool:
        return case.tiny.router_of(node) not in case.chosen[placement["request"]].routers

    return swap_node(rng, case, outside)


@mutation("placements")
def extra_node(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    for placement in placements(document):
        nodes = numbers(placement["nodes"])
        for router in sorted(case.chosen[placement["request"]].routers):
            base = case.tiny.all_routers.index(router) * case.tiny.per_router
            more = set(range(base, base + case.tiny.per_router)) - nodes
            if more:
                placement["nodes"] = format_node_set(nodes | {rng.choice(sorted(more))})
                return document
    return None


@mutation("placements")
def missing_node(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    placement = rng.choice(placements(document))
    nodes = numbers(placement["nodes"])
    nodes.remove(rng.choice(sorted(nodes)))
    placement["nodes"] = format_node_set(nodes)
    return document


@mutation("placements")
def node_twice(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    placement = rng.choice(placements(document))
    nodes = numbers(placement["nodes"])
    placement["nodes"] += f",{rng.choice(sorted(nodes))}"
    return document


@mutation("placements")
def node_outside_machine(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not placements(document):
        return None
    placement = rng.choice(placements(document))
    beyond = len(case.tiny.all_routers) * case.tiny.per_router
    nodes = sorted(numbers(placement["nodes"]))[:-1]
    placement["nodes"] = format_node_set([*nodes, beyond])
    return document


@mutation("placements")
def node_past_the_first_whole_routers(rng: random.Random, case: Case) -> Document | None:
    """Where one maxz alternative is all there is, take a node it leaves out."""

    def left_out(placement: Document, node: int) -> bool:
        request = request_of(case, placement["request"])
        if not request.shapes or "/" in request.shapes or ":maxz=" not in request.shapes:
            return False
        wanted = request.node_class or case.tiny.default_class
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

    return swap_node(rng, case, left_out)
