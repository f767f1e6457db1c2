"""Draws certificates, searches for those that prove most, and holds each against the truth."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Json = Any
Number = int | Fraction

EXTREMES = tuple(
    sorted(
        {0, 1, -1, 2, -2}
        | {
            sign * ((1 << bits) + more)
            for bits in (10, 20, 26, 31, 35, 49, 52, 53, 58, 60, 61, 62, 63, 64)
            for more in (-1, 0, 1)
            for sign in (1, -1)
        }
    )
)
"""Limits of the schemas, of the checker and of 64-bit integers and floats, with neighbours."""


@dataclass(frozen=True)
class Target:
    """One tiny problem, and one kind of certificate for it.

    Attributes
    ----------
    truth
        The best that any solution reaches.
    largest
        Whether that is the largest figure (certificates bound from above) or the least.
    draw
        Returns a certificate as a JSON value that is legal by the schema.
    proven
        Returns what the checker says that a JSON value proves; None if the schema or the checker
        refuses it.
    """

    truth: Number
    largest: bool
    draw: Callable[[random.Random], Json]
    proven: Callable[[Json], Number | None]


@dataclass
class Tally:
    """What an attack has tried.

    Attributes
    ----------
    tried, accepted
        Certificates held against the checker, and those that it took.
    tight
        Accepted ones that prove just the truth.
    """

    tried: int = 0
    accepted: int = 0
    tight: int = 0


class UnsoundError(AssertionError):
    """The checker accepts what is false."""


def attack(name: str, targets: Iterator[Target], *, seed: int, tries: int) -> Tally:
    """Hold `tries` certificates against the checker, half of them drawn and half searched for.

    Raises
    ------
    UnsoundError
        With the certificate that proves more than the truth, the seed and the number of the try.
    """
    tally = Tally()
    while tally.tried < tries:
        target = next(targets)
        rng = random.Random(f"{name}-{seed}-{tally.tried}")
        attempt = _Attempt(f"{name}, seed {seed}", target, tally)
        best: tuple[Number, Json] | None = None
        for _ in range(6):
            drawn = target.draw(rng)
            found = attempt.hold(drawn)
            if found is not None and (best is None or _is_more(target, found, best[0])):
                best = found, drawn
        if best is not None:
            _climb(rng, attempt, best)
    return tally


class _Attempt:
    """Holds certificates of one target against the checker and the truth."""

    def __init__(self, name: str, target: Target, tally: Tally) -> None:
        self.target = target
        self._name, self._tally = name, tally

    def hold(self, document: Json) -> Number | None:
        self._tally.tried += 1
        proven = self.target.proven(document)
        if proven is None:
            return None
        self._tally.accepted += 1
        self._tally.tight += proven == self.target.truth
        if _is_more(self.target, proven, self.target.truth):
            raise UnsoundError(
                f"{self._name}, try {self._tally.tried}: proves {proven} where the truth is "
                f"{self.target.truth}: {document}"
            )
        return proven


def _is_more(target: Target, one: Number, other: Number) -> bool:
    """Tell whether a figure proves strictly more than another: an upper bound that is lower."""
    return one < other if target.largest else one > other


def _climb(rng: random.Random, attempt: _Attempt, best: tuple[Number, Json]) -> None:
    """Change a certificate number by number, and keep what proves more."""
    proven, document = best
    for _ in range(6):
        places = list(integers(document))
        if not places:
            return
        place = rng.choice(places)
        changed = replaced(document, place, _other(rng, value_at(document, place)))
        found = attempt.hold(changed)
        if found is not None and not _is_more(attempt.target, proven, found):
            proven, document = found, changed


def _other(rng: random.Random, value: int) -> int:
    """Return another integer, near or far."""
    ways: list[int] = [value + 1, value - 1, 2 * value, value // 2, -value, 0]
    ways += [value + rng.randint(-20, 20), rng.choice(EXTREMES)]
    return rng.choice(ways)


Place = tuple[str | int, ...]


def integers(document: Json, place: Place = ()) -> Iterator[Place]:
    """Yield where a JSON value has integers."""
    if isinstance(document, bool):
        return
    if isinstance(document, int):
        yield place
    elif isinstance(document, dict):
        for key, below in document.items():
            yield from integers(below, (*place, key))
    elif isinstance(document, list):
        for at, below in enumerate(document):
            yield from integers(below, (*place, at))


def value_at(document: Json, place: Place) -> Json:
    """Return what a JSON value has at a place."""
    for key in place:
        document = document[key]
    return document


def replaced(document: Json, place: Place, value: Json) -> Json:
    """Return a copy of a JSON value with another value at a place."""
    if not place:
        return value
    changed = copy.deepcopy(document)
    value_at(changed, place[:-1])[place[-1]] = value
    return changed


def number(rng: random.Random, *usual: int, extremes: float = 0.15) -> int:
    """Return one of some usual integers or, now and then, an extreme one."""
    return rng.choice(EXTREMES) if rng.random() < extremes else rng.choice(usual)


def faulty(rng: random.Random, document: Json, faults: int = 1) -> Json:
    """Return a certificate with some faults, each in a number or in a list of it.

    All numbers of a list may be changed alike: what is true of their sums then stays so, or
    just ceases to be.
    """
    for _ in range(faults):
        places = list(_places(document))
        if not places:
            return document
        lists = [place for place in places if isinstance(value_at(document, place), list)]
        place = rng.choice(lists if lists and rng.random() < 0.4 else places)
        document = replaced(document, place, _spoilt(rng, value_at(document, place)))
    return document


def _places(document: Json, place: Place = ()) -> Iterator[Place]:
    """Yield where a JSON value has numbers, truth values and lists that are not empty."""
    if isinstance(document, int) or (isinstance(document, list) and document):
        yield place
    if isinstance(document, dict | list):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from _places(document[key], (*place, key))


def _spoilt(rng: random.Random, value: Json) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        usual = (value + 1, value - 1, -value, 2 * value, value // 2, value * 99 // 100)
        return number(rng, *usual, extremes=0.25)
    size = rng.choice((1, 2, *map(abs, _numbers(value)))) * rng.choice((1, -1))
    ways: list[Callable[[int], int]] = [
        lambda x: x + size,
        lambda x: x + size // 2,
        lambda x: x * 2,
        lambda x: x * 101 // 100,
        lambda x: x * 99 // 100,
        lambda x: x // 2,
        lambda x: -x,
        lambda x: x + rng.randint(-1, 1),
        lambda x: 0,
        lambda x: rng.choice((0, abs(size))),
    ]
    lists = [value[:-1], [*value, value[0]], value[::-1], [*value[1:], value[0]]]
    return _mapped(rng.choice(ways), value) if rng.random() < 0.7 else rng.choice(lists)


def _numbers(value: Json) -> list[int]:
    return [value_at(value, place) for place in integers(value)]


def _mapped(change: Callable[[int], int], value: Json) -> Json:
    """Return a JSON value with all integers in it changed."""
    if isinstance(value, dict):
        return {key: _mapped(change, below) for key, below in value.items()}
    if isinstance(value, list):
        return [_mapped(change, below) for below in value]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return change(value) if is_number else value
