"""A problem without some of its placements: rows that only these overfill.

An answer starts requests, some of one kind, in places. Answers are distinguished by the requests
that start, or also by their places; an exchange of places between requests of a kind makes no
difference. Answers are excluded by *rows*, each with a capacity one less than an answer takes of it
(docs/proofs/placement.md, "All optima").
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from topoplace.packing.listed import ListedOracle
from topoplace.packing.problem import NO_VALUE, PackingProblem, Priced, Query, Subproblem
from topoplace.types import BoolArray, FloatArray, IntArray

FAMILY = "answers"
"""The rows that exclude answers, in certificates."""

MOST_ROWS = 4096
"""Beyond it answers are not excluded: one that starts some of each of many kinds has many rows."""

PlaceOf = Callable[[Any], Hashable]
"""Returns the place of a candidate, as far as it counts."""


@dataclass(frozen=True)
class Rows:
    """Rows that exclude answers.

    Attributes
    ----------
    capacities
        The capacity of each, shape ``(num_rows,)``.
    taken
        Returns the rows that a candidate uses, a unit of each.
    of_request
        By request the rows that it uses in any place; None if they depend on the place.
    """

    capacities: IntArray
    taken: Callable[[Any], Sequence[int]]
    of_request: Sequence[tuple[int, ...]] | None = None

    def left_by(self, fixed: Iterable[Any], kept: Sequence[int]) -> Rows:
        """Return what fixed jobs leave of them to some requests, renumbered in this order."""
        capacities = self.capacities.copy()
        for candidate in fixed:
            capacities[list(self.taken(candidate))] -= 1
        own = self.of_request
        return Rows(
            capacities,
            lambda c: self.taken(replace(c, request_idx=kept[c.request_idx])),
            None if own is None else [own[q] for q in kept],
        )


def rows_against(
    packing: PackingProblem, answers: Sequence[Sequence[Any]], place_of: PlaceOf | None
) -> Rows | None:
    """Return the rows that exclude answers, each with a start at least; None if they are too many.

    Parameters
    ----------
    place_of
        None if answers are distinguished only by the requests that start.
    """
    first = packing.first_of_kind
    started = [[c for c in own if c.request_idx not in packing.worthless] for own in answers]
    if place_of is None:
        counts = [Counter(first[c.request_idx] for c in own) for own in started]
        return _rows_of_starts(packing, counts)
    rows_of: dict[Hashable, list[int]] = {}
    for k, own in enumerate(started):
        for c in own:
            rows_of.setdefault((first[c.request_idx], place_of(c)), []).append(k)
    capacities = np.array([len(own) - 1 for own in started], dtype=np.int64)
    return Rows(capacities, lambda c: rows_of.get((first[c.request_idx], place_of(c)), ()))


def _rows_of_starts(packing: PackingProblem, counts: Sequence[Mapping[int, int]]) -> Rows | None:
    """Return rows that exclude starting a given number of each kind.

    If that many of a kind start, one of them has at least this position in the kind. There is a row
    for each way to name one such request of every kind.
    """
    members: dict[int, list[int]] = {}
    for q, kind in enumerate(packing.first_of_kind):
        members.setdefault(kind, []).append(q)
    late = [[members[kind][n - 1 :] for kind, n in sorted(own.items())] for own in counts]
    if sum(math.prod(map(len, own)) for own in late) > MOST_ROWS:
        return None
    named = [row for own in late for row in itertools.product(*own)]
    rows_of: list[list[int]] = [[] for _ in packing.names]
    for k, row in enumerate(named):
        for q in row:
            rows_of[q].append(k)
    of_request = [tuple(rows) for rows in rows_of]
    capacities = np.array([len(row) - 1 for row in named], dtype=np.int64)
    return Rows(capacities, lambda c: of_request[c.request_idx], of_request)


class Excluding(PackingProblem):
    """A problem with additional rows that exclude answers.

    If the rows depend on places, an oracle that has not listed all candidates ignores their prices:
    placements are found, but it is not proven that there are no others.
    """

    is_unit = False  # the only candidate of an answer uses a row that holds nothing

    def __init__(self, inner: PackingProblem, rows: Rows) -> None:
        self.inner, self.rows = inner, rows
        self.names, self.values, self.senses = inner.names, inner.values, inner.senses
        self.num_covers, self.most_at_once = inner.num_covers, inner.most_at_once
        self._num = inner.num_rows
        self.capacities = np.concatenate([inner.capacities, rows.capacities])
        self.families = {**inner.families, FAMILY: slice(self._num, len(self.capacities))}
        by_place = rows.of_request is None
        self._is_listed = by_place and inner.every_candidate is not None

    @property
    def deadline(self) -> float:
        """When calls of the oracle end."""
        return self.inner.deadline

    @deadline.setter
    def deadline(self, deadline: float) -> None:
        self.inner.deadline = deadline

    def _padded(self, inner: Any, value: float | bool) -> Any:
        """Return an array by row with a value for the rows behind."""
        return np.concatenate([inner, np.full(len(self.rows.capacities), value, inner.dtype)])

    @cached_property
    def takable(self) -> BoolArray:
        """Rows that some candidate may use, as far as the oracle knows."""
        priced = self._is_listed or self.rows.of_request is not None
        marked: BoolArray = self._padded(self.inner.takable, priced)
        return marked

    @cached_property
    def row_weights(self) -> FloatArray:
        """How the price of rows that no column tells apart is spread over them."""
        weights: FloatArray = self._padded(self.inner.row_weights, 1.0)
        return weights

    @property
    def start_prices(self) -> IntArray:
        """Prices of the problem's own rows."""
        prices: IntArray = self._padded(self.inner.start_prices, 0)
        return prices

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Return the prices at which a subproblem begins, those of the problem's own rows."""
        known = self.inner.first_prices(sub)
        return None if known is None else (self._padded(known[0], 0.0), known[1])

    @property
    def is_small(self) -> bool:
        """Whether every candidate can be looked at quickly."""
        return self._is_listed or self.inner.is_small

    def reported(self, level: int, value: int) -> int:
        """Return a value of a level as reported, or the other way round."""
        return self.inner.reported(level, value)

    # candidates

    def rows_of(self, candidate: Any) -> IntArray:
        """Return the rows that a candidate uses, those that exclude answers last."""
        rows = self._num + np.array(self.rows.taken(candidate), dtype=np.int64)
        return np.concatenate([self.inner.rows_of(candidate), rows])

    def breakable(self, candidate: Any, rows: IntArray) -> IntArray:
        """Return those of the rows beyond the first that others may need."""
        own = self.inner.breakable(candidate, rows[rows < self._num])
        return np.concatenate([own, rows[rows >= self._num]])

    def values_of(self, candidates: Sequence[Any]) -> IntArray:
        """Return the values of candidates."""
        return self.inner.values_of(candidates)

    def largest(self, level: int) -> int:
        """Return an upper bound on the absolute value of a candidate on a level."""
        return self.inner.largest(level)

    def most(self, level: int) -> int:
        """Return an upper bound on the value of a placement on a level after the first."""
        return self.inner.most(level)

    def covers(self, candidate: Any, row: int) -> bool:
        """Return whether a candidate takes some of a row."""
        return self.inner.covers(candidate, row)

    def near(self, candidates: Sequence[Any], first: Any) -> list[float]:
        """Return how far candidates are from one."""
        return self.inner.near(candidates, first)

    # the oracle

    @cached_property
    def _oracle(self) -> ListedOracle:
        return ListedOracle(self, lambda: self.inner.every_candidate or [])

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes."""
        return self.inner.work(level)

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates of every request, what excludes answers charged as well."""
        if self._is_listed:
            return self._oracle.price(row_prices, query)
        own, charged = row_prices[: self._num], row_prices[self._num :]
        priced = self.inner.price(own, query)
        if self.rows.of_request is None:
            return priced
        charges = [int(charged[list(rows)].sum()) for rows in self.rows.of_request]
        found = zip(priced.best.tolist(), charges, strict=True)
        best = [gain if gain == NO_VALUE else gain - charge for gain, charge in found]
        said = {q: frozenset((c.row, c.inside) for c in own) for q, own in query.covers_of.items()}
        first = self.inner.first_of_kind
        keys = [(first[q], said.get(q)) for q in range(len(best))]
        shared = {key: some for key, some in zip(keys, priced.columns, strict=True) if some}
        columns = [
            [(gain - charges[q], replace(c, request_idx=q)) for gain, c in shared.get(key, ())]
            for q, key in enumerate(keys)
        ]
        return Priced(np.array(best, dtype=np.int64), columns)

    def beside(self, fixed: Sequence[Any]) -> PackingProblem:
        """Return this problem, whose oracle may leave out what fixed jobs exclude."""
        if self._is_listed:
            return self
        narrowed = copy(self)
        narrowed.inner = self.inner.beside(fixed)
        return narrowed

    # what is known of requests

    @cached_property
    def kinds(self) -> Sequence[Hashable]:
        """Requests of a kind that use the same rows."""
        first, own = self.inner.first_of_kind, self.rows.of_request
        return first if own is None else list(zip(first, own, strict=True))

    # primal side

    def starts(self, deadline: float) -> Iterable[list[Any]]:
        """Yield placements of the problem's heuristics, which lack a job if they are excluded."""
        return self.inner.starts(deadline)

    def left_by(self, fixed: Sequence[Any], kept: Sequence[int]) -> PackingProblem:
        """Return the problem of some requests around fixed jobs."""
        return Excluding(self.inner.left_by(fixed, kept), self.rows.left_by(fixed, kept))

    def completed(self, placement: Iterable[Any]) -> list[Any]:
        """Return a placement with possible additions, and without a job of every answer in it."""
        started = self.inner.completed(placement)
        left = self.rows.capacities.copy()
        for candidate in started:
            left[list(self.rows.taken(candidate))] -= 1
        if (left >= 0).all():
            return started
        full = int(np.flatnonzero(left < 0)[0])
        among = (c for c in started if full in self.rows.taken(c))
        least = min(among, key=lambda c: (self.values[c.request_idx], c))
        return self.completed([c for c in started if c != least])
