"""The list of mutations of allocation results, and what they share."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

Document = dict[str, Any]
Mutation = Callable[[random.Random, Document], Document | None]
MUTATIONS: dict[str, Mutation] = {}


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
