"""Nodes, requests, costs and the instance that do not belong together."""

from __future__ import annotations

import copy
import random
from fractions import Fraction

from allocation_mutations.registry import Document, allocations, mutation, plus

# ---- Nodes ------------------------------------------------------------------------------------


@mutation
def node_is_held(rng: random.Random, document: Document) -> Document | None:
    allocations(document)[0]["nodes"][0] = "n0"
    return document


@mutation
def node_is_down(rng: random.Random, document: Document) -> Document | None:
    allocations(document)[0]["nodes"][0] = "n15"
    return document


@mutation
def node_is_unknown(rng: random.Random, document: Document) -> Document | None:
    allocations(document)[0]["nodes"][0] = "n16"
    return document


@mutation
def node_twice(rng: random.Random, document: Document) -> Document | None:
    nodes = allocations(document)[0]["nodes"]
    nodes[0] = nodes[1]
    return document


@mutation
def node_of_another_request(rng: random.Random, document: Document) -> Document | None:
    if len(allocations(document)) < 2:
        return None
    one, other = allocations(document)[:2]
    one["nodes"][0] = other["nodes"][0]
    return document


@mutation
def node_missing(rng: random.Random, document: Document) -> Document | None:
    allocations(document)[0]["nodes"].pop()
    return document


@mutation
def node_too_many(rng: random.Random, document: Document) -> Document | None:
    taken = {node for own in allocations(document) for node in own["nodes"]}
    free = [f"n{k}" for k in range(15) if k not in (0, 5, 9) and f"n{k}" not in taken]
    if not free:
        return None
    allocations(document)[0]["nodes"].append(rng.choice(free))
    return document


@mutation
def ranks_in_another_order(rng: random.Random, document: Document) -> Document | None:
    rng.shuffle(allocations(document)[0]["nodes"])
    return document


# ---- Requests ---------------------------------------------------------------------------------


@mutation
def request_twice(rng: random.Random, document: Document) -> Document | None:
    allocations(document).append(copy.deepcopy(allocations(document)[0]))
    return document


@mutation
def request_unknown(rng: random.Random, document: Document) -> Document | None:
    allocations(document)[0]["request"] = "nobody"
    return document


@mutation
def request_left_out(rng: random.Random, document: Document) -> Document | None:
    allocations(document).pop()
    return document


@mutation
def request_wants_more(rng: random.Random, document: Document) -> Document | None:
    name = allocations(document)[0]["request"]
    next(r for r in document["instance"]["queue"] if r["id"] == name)["nodes"] += 1
    return document


@mutation
def priority_raised(rng: random.Random, document: Document) -> Document | None:
    name = allocations(document)[0]["request"]
    next(r for r in document["instance"]["queue"] if r["id"] == name)["priority"] += 1
    return document


# ---- Costs ------------------------------------------------------------------------------------


@mutation
def cost_of_a_request(rng: random.Random, document: Document) -> Document | None:
    own = rng.choice(allocations(document))
    own["cost"] = plus(own["cost"], Fraction(1, 7))
    return document


@mutation
def total_cost(rng: random.Random, document: Document) -> Document | None:
    document["solution"]["cost"] = plus(document["solution"]["cost"], Fraction(-1, 1000))
    return document


@mutation
def message_grows(rng: random.Random, document: Document) -> Document | None:
    for request in document["instance"]["queue"]:
        for use in request["patterns"] or []:
            use["message_bytes"] += 1
    return document


@mutation
def running_job_turns_silent(rng: random.Random, document: Document) -> Document | None:
    document["instance"]["running"][0]["communication"] = "none"
    return document


@mutation
def running_job_is_gone(rng: random.Random, document: Document) -> Document | None:
    document["instance"]["running"].pop(0)
    return document


# ---- Instance ---------------------------------------------------------------------------------


@mutation
def running_nodes_overlap(rng: random.Random, document: Document) -> Document | None:
    document["instance"]["running"][1]["nodes"] = "n0"
    return document


@mutation
def job_id_twice(rng: random.Random, document: Document) -> Document | None:
    document["instance"]["queue"].append(copy.deepcopy(document["instance"]["queue"][0]))
    return document


@mutation
def leaf_is_empty(rng: random.Random, document: Document) -> Document | None:
    document["instance"]["machine"]["switches"][0]["nodes"] = ""
    return document
