"""Small changes of JSON documents, named by where they are: what tables of mutations are made of.

A place is a path such as ``levels/0/bound``; ``*`` stands for any element of a list, drawn at
random. Every edit changes a document in place and raises `Inapplicable` where there is nothing of
the kind.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

Document = dict[str, Any]
Edit = Callable[[Document, random.Random], None]
T = TypeVar("T")


class InapplicableError(Exception):
    """A document has nothing that an edit could change."""


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """Draw one of some options, if there are any."""
    if not options:
        raise InapplicableError
    return rng.choice(options)


def need(truth: object) -> None:
    """Give up unless something is so."""
    if not truth:
        raise InapplicableError


def reach(document: Document, path: str, rng: random.Random) -> tuple[Any, Any]:
    """Return the dict or list that holds a place, and the place in it."""
    holder: Any = None
    at: Any = document
    key: Any = None
    for step in path.split("/"):
        holder = at
        need(holder)
        key = step
        if isinstance(holder, list):
            key = rng.randrange(len(holder)) if step == "*" else int(step)
        at = holder[key]
    return holder, key


def found(document: Document, path: str, rng: random.Random) -> Any:
    """Return what is at a place, if it is anything."""
    holder, key = reach(document, path, rng)
    need(holder[key])
    return holder[key]


def change(path: str, function: Callable[[Any], Any]) -> Edit:
    """Put what a function makes of what is there."""

    def edit(document: Document, rng: random.Random) -> None:
        holder, key = reach(document, path, rng)
        holder[key] = function(holder[key])

    return edit


def draw(path: str, function: Callable[[random.Random, Any], Any]) -> Edit:
    """Put what a function draws beside what is there."""

    def edit(document: Document, rng: random.Random) -> None:
        holder, key = reach(document, path, rng)
        holder[key] = function(rng, holder[key])

    return edit


def put(path: str, value: Any) -> Edit:
    """Put a value, whatever is there."""
    return change(path, lambda _: copy.deepcopy(value))


def add(path: str, *amounts: int | Fraction) -> Edit:
    """Add one of some amounts to a number or an exact rational."""

    def edit(document: Document, rng: random.Random) -> None:
        holder, key = reach(document, path, rng)
        need(holder[key] is not None)
        amount = rng.choice(amounts)
        holder[key] = plus(holder[key], amount)

    return edit


def plus(number: Any, amount: int | Fraction) -> Any:
    """Return a number or an exact rational of a document with more."""
    if not isinstance(number, dict):
        return number + amount
    value = Fraction(number["numerator"], number["denominator"]) + amount
    return {"numerator": value.numerator, "denominator": value.denominator}


def with_list(path: str, function: Callable[[list[Any]], object]) -> Edit:
    """Change a list that is not empty."""

    def edit(document: Document, rng: random.Random) -> None:
        function(found(document, path, rng))

    return edit


def cut(path: str) -> Edit:
    """Take the last element of a list away."""
    return with_list(path, list.pop)


def empty(path: str) -> Edit:
    """Take all of a list away."""
    return with_list(path, list.clear)


def append(path: str, value: Any) -> Edit:
    """Put a value at the end of a list, which may be empty."""
    return lambda document, rng: reach_list(document, path, rng).append(copy.deepcopy(value))


def reach_list(document: Document, path: str, rng: random.Random) -> list[Any]:
    holder, key = reach(document, path, rng)
    need(isinstance(holder[key], list))
    own: list[Any] = holder[key]
    return own


def again(path: str) -> Edit:
    """Put a copy of the first element at the end of a list."""
    return with_list(path, lambda own: own.append(copy.deepcopy(own[0])))


def swap(path: str, a: int, b: int) -> Edit:
    """Swap two elements of a list."""

    def edit(own: list[Any]) -> None:
        need(len(own) > 1)
        own[a], own[b] = own[b], own[a]

    return with_list(path, edit)


def copied(path: str, source: str) -> Edit:
    """Put what is at another place."""

    def edit(document: Document, rng: random.Random) -> None:
        holder, key = reach(document, source, rng)
        put(path, holder[key])(document, rng)

    return edit


def where(test: Callable[[Document], object]) -> Edit:
    """Change nothing, and give up unless a document is as wanted."""
    return lambda document, _: need(test(document))


def one_after_the_other(*edits: Edit) -> Edit:
    """Make several edits."""

    def edit(document: Document, rng: random.Random) -> None:
        for one in edits:
            one(document, rng)

    return edit
