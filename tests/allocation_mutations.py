"""Ways to make a right allocation result wrong, by name."""

from __future__ import annotations

import random
from fractions import Fraction

from edits import (
    Document,
    Edit,
    add,
    again,
    append,
    change,
    copied,
    cut,
    need,
    pick,
    put,
    where,
    with_list,
)
from edits import one_after_the_other as both

FIRST, SWITCHES = "solution/allocations/0", "instance/machine/switches"
NODES, COST = "levels/0", "levels/1"
PROOFS, DOMAINS = f"{COST}/certificate/proofs", f"{NODES}/certificate"


def refigure(document: Document) -> Document:
    """Make gap and status of the levels, and the top, fit objectives and bounds again."""
    for level in document["levels"]:
        if level["objective"] is not None and level["bound"] is not None:
            values = [
                Fraction(level[name]["numerator"], level[name]["denominator"])
                for name in ("objective", "bound")
            ]
            level["gap"] = float(abs(values[0] - values[1]) / max(Fraction(1), abs(values[0])))
            level["status"] = "optimal" if values[0] == values[1] else "feasible"
    first = document["levels"][0]
    for name in ("status", "gap", "proof"):
        document[name] = first[name]
    for name in ("objective", "bound"):
        document[name] = None if first[name] is None else first[name]["numerator"]
    return document


def allocations(document: Document) -> list[Document]:
    found: list[Document] = document["solution"]["allocations"]
    return found


def proofs(document: Document) -> list[Document]:
    certificate = document["levels"][1]["certificate"]
    return certificate["proofs"] if certificate else []


def with_proofs(*edits: Edit) -> Edit:
    return both(where(proofs), *edits)


def with_domains(*edits: Edit) -> Edit:
    def kind(document: Document) -> bool:
        certificate = document["levels"][0]["certificate"]
        return bool(certificate) and certificate["kind"] == "domains"

    return both(where(kind), *edits)


def bound(level: str, amount: Fraction) -> Edit:
    """Put a bound beside the objective, and make the other figures fit."""
    known = where(lambda document: document["levels"][int(level[-1])]["bound"])
    return both(
        known, copied(f"{level}/bound", f"{level}/objective"), add(f"{level}/bound", amount), refit
    )


def refit(document: Document, _: random.Random) -> None:
    refigure(document)


def other_status(status: str) -> str:
    return "feasible" if status == "optimal" else "optimal"


def node_of_another_request(document: Document, _: random.Random) -> None:
    need(len(allocations(document)) > 1)
    one, other = allocations(document)[:2]
    one["nodes"][0] = other["nodes"][0]


def node_too_many(document: Document, rng: random.Random) -> None:
    taken = {node for own in allocations(document) for node in own["nodes"]}
    free = [f"n{k}" for k in range(15) if k not in (0, 5, 9) and f"n{k}" not in taken]
    allocations(document)[0]["nodes"].append(pick(rng, free))


def of_its_request(field: str) -> Edit:
    """Add one to what the first request that starts says of itself."""

    def edit(document: Document, _: random.Random) -> None:
        name = allocations(document)[0]["request"]
        next(r for r in document["instance"]["queue"] if r["id"] == name)[field] += 1

    return edit


def message_grows(document: Document, _: random.Random) -> None:
    for request in document["instance"]["queue"]:
        for use in request["patterns"] or []:
            use["message_bytes"] += 1


def starts_cost_too_much(document: Document, _: random.Random) -> None:
    own = document["levels"][0]["certificate"]
    own["prices"] = [price + 3 * own["scale"] for price in own["prices"]]


def all_said_to_start(document: Document, _: random.Random) -> None:
    level = document["levels"][0]
    need(level["certificate"] is not None and level["certificate"]["kind"] != "all-start")
    level["certificate"] = {"kind": "all-start"}


def raised(nogoods: list[Document]) -> None:
    for nogood in nogoods:
        nogood["at"] = [at + 5 for at in nogood["at"]]


MUTATIONS: dict[str, Edit] = {
    # nodes
    "node_is_held": put(f"{FIRST}/nodes/0", "n0"),
    "node_is_down": put(f"{FIRST}/nodes/0", "n15"),
    "node_is_unknown": put(f"{FIRST}/nodes/0", "n16"),
    "node_twice": copied(f"{FIRST}/nodes/0", f"{FIRST}/nodes/1"),
    "node_of_another_request": node_of_another_request,
    "node_missing": cut(f"{FIRST}/nodes"),
    "node_too_many": node_too_many,
    "ranks_in_another_order": lambda document, rng: rng.shuffle(allocations(document)[0]["nodes"]),
    # requests
    "request_twice": again("solution/allocations"),
    "request_unknown": put(f"{FIRST}/request", "nobody"),
    "request_left_out": cut("solution/allocations"),
    "request_wants_more": of_its_request("nodes"),
    "priority_raised": of_its_request("priority"),
    # costs
    "cost_of_a_request": add("solution/allocations/*/cost", Fraction(1, 7)),
    "total_cost": add("solution/cost", Fraction(-1, 1000)),
    "message_grows": message_grows,
    "running_job_turns_silent": put("instance/running/0/communication", "none"),
    "running_job_is_gone": with_list("instance/running", lambda jobs: jobs.pop(0)),
    # instance
    "running_nodes_overlap": put("instance/running/1/nodes", "n0"),
    "job_id_twice": again("instance/queue"),
    "leaf_is_empty": put(f"{SWITCHES}/0/nodes", ""),
    # levels
    "objective_of_cost": both(add(f"{COST}/objective", -1), refit),
    "objective_of_nodes": both(add(f"{NODES}/objective", 1), refit),
    "bound_of_cost_too_high": bound(COST, Fraction(1, 3)),
    "bound_of_nodes_too_low": bound(NODES, Fraction(-1)),
    "bound_of_nodes_below_its_certificate": both(
        where(lambda document: document["levels"][0]["certificate"]),
        append("instance/queue", {"id": "more", "nodes": 1}),
    ),
    "gap_of_cost": change(f"{COST}/gap", lambda gap: 0.25 if gap is None else gap + 0.01),
    "status_of_cost": change(f"{COST}/status", other_status),
    "top_status": change("status", other_status),
    "levels_exchanged": with_list("levels", list.reverse),
    "proof_without_bound": both(
        where(lambda document: document["levels"][1]["bound"] is None),
        put(f"{COST}/proof", "search"),
    ),
    "proof_says_certificate": both(
        where(lambda document: document["levels"][1]["proof"] == "search"),
        put(f"{COST}/proof", "certificate"),
    ),
    # certificates of the cost
    "certificate_dropped": with_proofs(put(f"{COST}/certificate", None)),
    "certificate_of_another_level": with_proofs(
        copied(f"{COST}/certificate", f"{NODES}/certificate")
    ),
    "no_nogoods": with_proofs(put(f"{PROOFS}/0/nogoods", [])),
    "everything_ruled_out": with_proofs(with_list(f"{PROOFS}/0/nogoods", raised)),
    "step_unknown": with_proofs(append(f"{PROOFS}/0/nogoods/0/at", 0)),
    "proof_counted_twice": with_proofs(again(PROOFS)),
    "proof_claims_more": with_proofs(add(f"{PROOFS}/0/bound", Fraction(1, 100))),
    "proof_of_nobody": with_proofs(put(f"{PROOFS}/0/request", "nobody")),
    "bound_above_the_proofs": with_proofs(cut(PROOFS)),
    # certificates of the nodes
    "all_said_to_start": all_said_to_start,
    "counted_in_place_of_domains": with_domains(put(DOMAINS, {"kind": "counting"})),
    "proof_of_the_cost_for_the_nodes": put(DOMAINS, {"kind": "thresholds", "proofs": []}),
    "price_missing": with_domains(cut(f"{DOMAINS}/prices")),
    "nodes_cost_too_much": with_domains(copied(f"{DOMAINS}/node_price", f"{DOMAINS}/scale")),
    "starts_cost_too_much": with_domains(starts_cost_too_much),
}
