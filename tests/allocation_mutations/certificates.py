"""Certificates that do not prove what they should."""

from __future__ import annotations

import copy
import random
from fractions import Fraction

from allocation_mutations.registry import Document, mutation, plus, proofs

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


# ---- Certificates of the nodes ----------------------------------------------------------------


def domains(document: Document) -> Document | None:
    certificate: Document | None = document["levels"][0]["certificate"]
    return certificate if certificate and certificate["kind"] == "domains" else None


@mutation
def all_said_to_start(rng: random.Random, document: Document) -> Document | None:
    level = document["levels"][0]
    if level["certificate"] is None or level["certificate"]["kind"] == "all-start":
        return None
    level["certificate"] = {"kind": "all-start"}
    return document


@mutation
def counted_in_place_of_domains(rng: random.Random, document: Document) -> Document | None:
    if domains(document) is None:
        return None
    document["levels"][0]["certificate"] = {"kind": "counting"}
    return document


@mutation
def proof_of_the_cost_for_the_nodes(rng: random.Random, document: Document) -> Document | None:
    document["levels"][0]["certificate"] = {"kind": "boxes", "proofs": []}
    return document


@mutation
def price_missing(rng: random.Random, document: Document) -> Document | None:
    own = domains(document)
    if own is None:
        return None
    own["prices"].pop()
    return document


@mutation
def nodes_cost_too_much(rng: random.Random, document: Document) -> Document | None:
    own = domains(document)
    if own is None:
        return None
    own["node_price"] = own["scale"]
    return document


@mutation
def starts_cost_too_much(rng: random.Random, document: Document) -> Document | None:
    own = domains(document)
    if own is None:
        return None
    own["prices"] = [price + 3 * own["scale"] for price in own["prices"]]
    return document
