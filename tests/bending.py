"""Small changes of JSON documents, written as text: what tables of faults are made of."""

from __future__ import annotations

import copy
import functools
import json
import re
from fractions import Fraction
from typing import Any, TypeVar

Document = TypeVar("Document")


def bent(document: Document, changes: str) -> Document:
    """Return a document with changes such as ``queue[0].nodes = 0 & del machine.name``.

    What is put is JSON or, after ``@``, what stands at another place. ``+=`` adds to a number or
    to an exact rational; ``[+]`` is the place after the last of a list.
    """
    document = copy.deepcopy(document)
    for change in changes.split(" & "):
        where, sign, text = re.split(r" (\+?=) |$", change.removeprefix("del "), maxsplit=1)[:3]
        at, last = _place(document, where)
        value = _value(document, text)
        if change.startswith("del "):
            del at[last]
        elif sign == "+=":
            at[last] = plus(at[last], value)
        elif isinstance(at, list) and last in ("+", len(at)):
            at.append(value)
        else:
            at[last] = value
    return document


def _place(document: Any, where: str) -> tuple[Any, Any]:
    """Return what holds a place, and its key there."""
    steps = re.findall(r"[^.\[\]]+", where)
    *path, last = [int(x) if re.fullmatch(r"-?\d+", x) else x for x in steps]
    return functools.reduce(lambda found, key: found[key], path, document), last


def _value(document: Any, text: str | None) -> Any:
    if text is None or not text.startswith("@"):
        return text and json.loads(text)
    at, last = _place(document, text[1:])
    return copy.deepcopy(at[last])


def plus(number: Any, amount: int | Fraction) -> Any:
    """Return a number or an exact rational of a document with more."""
    if not isinstance(number, dict):
        return number + amount
    value = Fraction(number["numerator"], number["denominator"]) + amount
    return {"numerator": value.numerator, "denominator": value.denominator}
