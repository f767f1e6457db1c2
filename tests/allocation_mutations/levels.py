"""Objectives, bounds, gaps, statuses and proofs that do not fit."""

from __future__ import annotations

import random
from fractions import Fraction

from allocation_mutations.registry import Document, mutation, plus, refigure

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
