"""The list of mutations, and what those of several kinds share."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from edits import Document, Edit, InapplicableError
from solved_results import Case

Mutation = Callable[[random.Random, Case], Document | None]
Spoil = Callable[[random.Random, Case, Document], Document | None]

MUTATIONS: dict[str, Mutation] = {}
CAUGHT_AS: dict[str, tuple[str, ...]] = {}


def enter(name: str, caught_as: tuple[str, ...], spoil: Spoil) -> None:
    """Enter a mutation into the list.

    `caught_as` are the claims that may be the first to fail: by name, or `figures` and `bound`
    for those of any level. `spoil` changes a copy of the case's document, or returns another.
    """

    def mutate(rng: random.Random, case: Case) -> Document | None:
        document = case.spoilt()
        try:
            return spoil(rng, case, document) or document
        except InapplicableError:
            return None

    MUTATIONS[name], CAUGHT_AS[name] = mutate, caught_as


def mutation(*caught_as: str) -> Callable[[Spoil], Spoil]:
    """Return a decorator that enters a mutation into the list under its name."""

    def decorate(spoil: Spoil) -> Spoil:
        enter(spoil.__name__, caught_as, spoil)
        return spoil

    return decorate


def table(caught_as: str, rows: dict[str, Edit], *then: Edit) -> None:
    """Enter edits, each followed by some others, into the list."""
    for name, edit in rows.items():

        def spoil(rng: random.Random, case: Case, document: Document, edit: Edit = edit) -> None:
            for one in (edit, *then):
                one(document, rng)

        enter(name, tuple(caught_as.split()), spoil)


def placements(document: Document) -> list[Document]:
    found: list[Document] = document["solution"]["placements"]
    return found


def request_of(case: Case, name: str) -> Any:
    return next(r for r in case.snapshot.queue if r.id == name)
