"""Rows that excluded answers overfill (docs/proofs/placement.md, "All optima")."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from topoplace.certify.packing import CheckingOracle, Covers, PackedRequest, Prices
from topoplace.certify.report import RefusedError
from topoplace.types import IntArray

FAMILY = "answers"
MOST_ROWS = 4096

Answer = Sequence[tuple[int, Hashable]]
"""Who starts, by number, and in which place; None where places do not count."""


class ChargingOracle(CheckingOracle, Protocol):
    """An oracle that can charge more for some places."""

    def best_charged(
        self, prices: Prices, q: int, covers: Covers, charges: Mapping[Hashable, int]
    ) -> int | None:
        """Return the most that a candidate of a request gains, those in some places charged."""


@dataclass(frozen=True)
class Excluding:
    """An oracle with rows that exclude answers (`certify.packing.CheckingOracle`).

    Attributes
    ----------
    groups
        By request, the number of those that it may exchange places with.
    capacities
        The capacities of the rows.
    of_request, of_place
        The rows that a request takes of wherever it starts, and those of a group in a place.
    """

    inner: CheckingOracle
    groups: tuple[int, ...]
    capacities: IntArray
    of_request: tuple[tuple[int, ...], ...]
    of_place: Mapping[int, Mapping[Hashable, tuple[int, ...]]]

    @property
    def requests(self) -> Sequence[PackedRequest]:
        """The queue."""
        return self.inner.requests

    @property
    def rows(self) -> Mapping[str, IntArray]:
        """Those of the instance, and one or several for each answer."""
        return {**self.inner.rows, FAMILY: self.capacities}

    @property
    def coverable(self) -> int:
        """How many rows branches may name."""
        return self.inner.coverable

    @property
    def largest(self) -> Sequence[int]:
        """By level, a limit of the absolute value of a candidate."""
        return self.inner.largest

    def may_replace(self, one: int, other: int) -> bool:
        """Tell whether two requests are equal: others have answers of their own."""
        return self.groups[one] == self.groups[other]

    def among(self, chosen: Sequence[tuple[int, int]]) -> Excluding:
        """Return an oracle of all requests, each with the places of its equals."""
        if [q for q, _ in chosen] != [*range(len(self.groups))]:
            raise RefusedError("the queue in parts, where answers are excluded")
        return replace(self, inner=self.inner.among(chosen))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return the most that requests gain, the rows of answers paid as well."""
        nothing = np.zeros(len(self.capacities), dtype=np.int64)
        own = prices.rows.get(FAMILY, nothing)
        others = {family: row for family, row in prices.rows.items() if family != FAMILY}
        prices = replace(prices, rows=others)
        charges = {q: self._charges(self.groups[q], own) for q in wanted}
        free = {q: covers for q, covers in wanted.items() if not charges[q]}
        found = dict(self.inner.best(prices, free))
        for q in wanted.keys() - free.keys():
            charging = cast(ChargingOracle, self.inner)
            found[q] = charging.best_charged(prices, q, wanted[q], charges[q])
        paid = {q: int(own[list(self.of_request[q])].sum()) for q in wanted}
        return {q: None if gain is None else gain - paid[q] for q, gain in found.items()}

    def _charges(self, group: int, own: IntArray) -> dict[Hashable, int]:
        """Return what the places of a group are charged, if anything."""
        known = self.of_place.get(group, {})
        charges = {place: int(own[list(rows)].sum()) for place, rows in known.items()}
        return {place: charge for place, charge in charges.items() if charge}


def excluding(
    oracle: CheckingOracle, groups: Sequence[int], answers: Sequence[Answer]
) -> Excluding:
    """Return the oracle of placements that contain none of some answers.

    Answers in places have a row each. One that says only who starts has a row for each way to
    name a request of every group that starts: the last one of as many as start, or a later one.

    Raises
    ------
    RefusedError
        If an answer starts nothing, as there is no other placement then, or rows are too many.
    """
    if not all(answers):
        raise RefusedError("what starts nothing is part of every placement")
    of_request: list[list[int]] = [[] for _ in groups]
    of_place: dict[int, dict[Hashable, tuple[int, ...]]] = {}
    capacities: list[int] = []
    for answer in answers:
        if all(place is not None for _, place in answer):
            for q, place in answer:
                known = of_place.setdefault(groups[q], {})
                known[place] = (*known.get(place, ()), len(capacities))
            capacities.append(len(answer) - 1)
            continue
        for row in _rows_of_starts(groups, Counter(groups[q] for q, _ in answer)):
            for q in row:
                of_request[q].append(len(capacities))
            capacities.append(len(row) - 1)
            if len(capacities) > MOST_ROWS:
                raise RefusedError("too many rows exclude answers")
    return Excluding(
        oracle,
        tuple(groups),
        np.array(capacities, dtype=np.int64),
        tuple(map(tuple, of_request)),
        of_place,
    )


def _rows_of_starts(groups: Sequence[int], counts: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    members: dict[int, list[int]] = {}
    for q, group in enumerate(groups):
        members.setdefault(group, []).append(q)
    late = [own[counts[group] - 1 :] for group, own in members.items() if counts.get(group)]
    if math.prod(map(len, late)) > MOST_ROWS:
        raise RefusedError("too many rows exclude an answer")
    return itertools.product(*late)
