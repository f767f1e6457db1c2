"""The checker of allocations accepts what is right and rejects results changed in every way."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from topoplace.certify.file import check_file
from topoplace.certify.tree_machine import check_allocation
from topoplace.certify.tree_machine.steps import steps_of
from topoplace.placement.tree.solve import allocate
from topoplace.result.tree import TreeResult
from topoplace.snapshot.schema import Communication, Pattern
from topoplace.snapshot.tree_state import prepare_tree
from tree_brute_force import steps_of as slow_steps
from tree_cases import HEURISTICS, model_of, snapshot_on, uses
from tree_exact_cases import solved, tiny_state

Document = dict[str, Any]
Mutation = Callable[[random.Random, Document], Document | None]
MUTATIONS: dict[str, Mutation] = {}
STRICT, NONE = Communication.STRICT, Communication.NONE


@cache
def results() -> tuple[Document, ...]:
    """Return right results with and without certificates, of one request and of several."""
    rd, ring = uses(Pattern.RECURSIVE_DOUBLING), uses(Pattern.RING)
    halo = uses(Pattern.STENCIL_2D, Pattern.VECTOR_DOUBLING)
    running = [("n0,n5", STRICT), ("n9", NONE)]
    states = [
        prepare_tree(snapshot_on(model_of([5, 5, 6]), running, queue, down="n15"))
        for queue in ([(8, rd)], [(4, rd), (3, ring)], [(4, halo), (2, ())], [(9, rd), (9, ring)])
    ]
    found = [solved(state) for state in states] + [allocate(states[1], "balanced")]
    return tuple(result.model_dump(mode="json", by_alias=True) for result in found)


def holds(document: Document) -> bool:
    return check_allocation(TreeResult.model_validate_json(json.dumps(document))).holds


def plus(number: Document, change: Fraction) -> Document:
    value = Fraction(number["numerator"], number["denominator"]) + change
    return {"numerator": value.numerator, "denominator": value.denominator}


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


def mutation(function: Mutation) -> Mutation:
    MUTATIONS[function.__name__] = function
    return function


def allocations(document: Document) -> list[Document]:
    found: list[Document] = document["solution"]["allocations"]
    return found


def proofs(document: Document) -> list[Document]:
    certificate = document["levels"][1]["certificate"]
    return certificate["proofs"] if certificate else []


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


# ---- Levels -----------------------------------------------------------------------------------


@mutation
def objective_of_cost(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][1]
    level["objective"] = plus(level["objective"], Fraction(-1))
    return refigure(document)


@mutation
def objective_of_nodes(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][0]
    level["objective"] = plus(level["objective"], Fraction(1))
    return refigure(document)


@mutation
def bound_of_cost_too_high(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][1]
    if level["bound"] is None:
        return None
    level["bound"] = plus(level["objective"], Fraction(1, 3))
    return refigure(document)


@mutation
def bound_of_nodes_too_low(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][0]
    if level["bound"] is None:
        return None
    level["bound"] = plus(level["objective"], Fraction(-1))
    return refigure(document)


@mutation
def bound_of_nodes_below_its_certificate(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][0]
    if not level["certificate"]:
        return None
    document["instance"]["queue"].append({"id": "more", "nodes": 1})
    return document


@mutation
def gap_of_cost(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][1]
    level["gap"] = 0.25 if level["gap"] is None else level["gap"] + 0.01
    return document


@mutation
def status_of_cost(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][1]
    level["status"] = "feasible" if level["status"] == "optimal" else "optimal"
    return document


@mutation
def top_status(rng: random.Random, document: Document) -> Document | None:
    document["status"] = "feasible" if document["status"] == "optimal" else "optimal"
    return document


@mutation
def levels_exchanged(rng: random.Random, document: Document) -> Document | None:
    document["levels"].reverse()
    return document


@mutation
def proof_without_bound(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][1]
    if level["bound"] is not None:
        return None
    level["proof"] = "search"
    return document


@mutation
def proof_says_certificate(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][1]
    if level["proof"] != "search":
        return None
    level["proof"] = "certificate"
    return document


# ---- Certificates -----------------------------------------------------------------------------


@mutation
def certificate_dropped(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][1]
    if not proofs(document):
        return None
    level["certificate"] = None
    return document


@mutation
def certificate_of_another_level(rng: random.Random, document: Document) -> Document | None:
    nodes, cost = document["levels"]
    if not proofs(document):
        return None
    cost["certificate"] = nodes["certificate"]
    return document


@mutation
def moves_cut_off(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    proofs(document)[0]["moves"].pop()
    return document


@mutation
def moves_after_the_end(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    proofs(document)[0]["moves"].append(["close", 0, 0])
    return document


@mutation
def closed_at_once(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    proofs(document)[0]["moves"] = [["close", 0, 0]]
    return document


@mutation
def everything_ruled_out(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    proofs(document)[0]["moves"] = [["low", 0, 9], ["high", 0, 0], ["close", 0, 0]]
    return document


@mutation
def step_unknown(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    proofs(document)[0]["moves"].insert(0, ["split", 99, 0])
    return document


@mutation
def proof_counted_twice(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    proofs(document).append(copy.deepcopy(proofs(document)[0]))
    return document


@mutation
def proof_claims_more(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    own = proofs(document)[0]
    own["bound"] = plus(own["bound"], Fraction(1, 100))
    return document


@mutation
def proof_of_nobody(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    proofs(document)[0]["request"] = "nobody"
    return document


@mutation
def bound_above_the_proofs(rng: random.Random, document: Document) -> Document | None:
    if not proofs(document):
        return None
    proofs(document).pop()
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


# ---- The tests --------------------------------------------------------------------------------


def test_right_results_hold() -> None:
    assert all(holds(document) for document in results())
    assert any(proofs(document) for document in results())
    for seed in range(30):
        state = tiny_state(seed, most_ranks=5, num_requests=2)
        for name in HEURISTICS:
            report = check_allocation(allocate(state, name))
            assert report.holds, (seed, name, report.failures)


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutants_are_rejected(name: str) -> None:
    applied = 0
    for number, document in enumerate(results()):
        mutant = MUTATIONS[name](random.Random(f"{name}-{number}"), copy.deepcopy(document))
        if mutant is None or mutant == document:
            continue
        if name == "ranks_in_another_order" and same_cost(document, mutant):
            continue
        applied += 1
        assert not holds(mutant), number
    assert applied


def same_cost(document: Document, mutant: Document) -> bool:
    """Tell whether the first request's ranks happen to cost the same in another order."""
    mutant = copy.deepcopy(mutant)
    name = allocations(mutant)[0]["request"]
    wish = next(r for r in document["instance"]["queue"] if r["id"] == name)
    leaf = [0 if int(n[1:]) < 5 else 1 if int(n[1:]) < 10 else 2 for n in _nodes(mutant)]
    before = [0 if int(n[1:]) < 5 else 1 if int(n[1:]) < 10 else 2 for n in _nodes(document)]
    for use in wish["patterns"] or []:
        for pairs, _ in slow_steps(Pattern(use["pattern"]), len(leaf)):
            met = [{frozenset((on[a], on[b])) for a, b in pairs} for on in (leaf, before)]
            if met[0] != met[1]:
                return False
    return True


def _nodes(document: Document) -> list[str]:
    found: list[str] = allocations(document)[0]["nodes"]
    return found


@pytest.mark.parametrize("pattern", list(Pattern))
def test_steps_of_the_checker(pattern: Pattern) -> None:
    for ranks in range(1, 41):
        found = [(sorted(pairs), weight) for pairs, weight in steps_of(pattern, ranks)]
        assert found == [(sorted(p), weight) for p, weight in slow_steps(pattern, ranks)]


def test_file_of_an_allocation_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    result = solved(tiny_state(1, most_ranks=4))
    file.write_text(result.model_dump_json(by_alias=True), encoding="utf-8")
    assert check_file(file).holds
