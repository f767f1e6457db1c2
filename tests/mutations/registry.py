"""The list of mutations, and what those of several kinds share."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from solved_results import Case

Document = dict[str, Any]
Mutation = Callable[[random.Random, Case], Document | None]
MUTATIONS: dict[str, Mutation] = {}
CAUGHT_AS: dict[str, tuple[str, ...]] = {}


def mutation(*caught_as: str) -> Callable[[Mutation], Mutation]:
    """Return a decorator that enters a mutation into the list under its name.

    `caught_as` are the claims that may be the first to fail: by name, or `figures` and `bound`
    for those of any level.
    """

    def enter(function: Mutation) -> Mutation:
        MUTATIONS[function.__name__] = function
        CAUGHT_AS[function.__name__] = caught_as
        return function

    return enter


def placements(document: Document) -> list[Document]:
    found: list[Document] = document["solution"]["placements"]
    return found


def refigure(document: Document) -> Document:
    """Make gap and status of all levels, and the top, fit objectives and bounds again."""
    for level in document["levels"]:
        objective, bound = level["objective"], level["bound"]
        known = objective is not None and bound is not None
        level["gap"] = abs(objective - bound) / max(1, abs(objective)) if known else None
        level["status"] = "unknown" if objective is None else "feasible"
        if known and objective == bound:
            level["status"] = "optimal"
    for field in ("status", "objective", "bound", "gap", "proof"):
        document[field] = document["levels"][0][field]
    return document


def request_of(case: Case, name: str) -> Any:
    return next(r for r in case.snapshot.queue if r.id == name)
