"""A packing now and at a later time, as one: what has the rows of both times, for reservations."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from topoplace.packing.problem import NO_VALUE, Cover, PackingProblem, Priced, Query
from topoplace.types import FloatArray, IntArray


class Times(NamedTuple):
    """Whether a request uses rows now, and then."""

    now: bool
    then: bool


class Twice(PackingProblem):
    """Requests that use rows now, then, or at both times (docs/proofs/order.md).

    The packings of one time have the same requests and rows. What is free now is free then, too.

    Parameters
    ----------
    now, both, then
        The candidates of those that are there now alone, at both times, and then alone.
    times
        When each request is there.

    Attributes
    ----------
    then
        The packing of the later time.
    """

    most_at_once = 1

    def __init__(
        self,
        now: PackingProblem,
        both: PackingProblem,
        then: PackingProblem,
        times: Sequence[Times],
    ) -> None:
        self.times = tuple(times)
        self._of = {Times(True, False): now, Times(True, True): both, Times(False, True): then}
        self._now, self.then = now, then
        self.names, self.values, self.senses = now.names, now.values, now.senses
        each, self._each = now.num_covers, now.num_covers
        further = np.arange(each, now.num_rows)
        self._rows_now = np.concatenate([np.arange(each), each + further])
        self._rows_then = np.concatenate([each + np.arange(each), now.num_rows + further])
        self.num_covers = 2 * each
        self.capacities = self._joined(now.capacities, then.capacities)
        families = {}
        for name, rows in now.families.items():
            size = rows.stop - rows.start
            for text, numbers in ((name, self._rows_now), (f"{name} then", self._rows_then)):
                start = int(numbers[rows.start]) if size else 0
                families[text] = slice(start, start + size)
        self.families = dict(sorted(families.items(), key=lambda item: item[1].start))

    def _joined(self, now: Any, then: Any) -> Any:
        found = np.zeros(2 * len(now), dtype=now.dtype)
        found[self._rows_now], found[self._rows_then] = now, then
        return found

    def _own(self, candidate: Any) -> PackingProblem:
        return self._of[self.times[candidate.request_idx]]

    @property
    def deadline(self) -> float:
        """When calls of the oracle end."""
        return self._deadline

    @deadline.setter
    def deadline(self, value: float) -> None:
        self._deadline = value
        for packing in self._of.values():
            packing.deadline = value

    _deadline: float = math.inf

    @property
    def row_weights(self) -> FloatArray:
        """Those of each time."""
        found: FloatArray = self._joined(self._now.row_weights, self.then.row_weights)
        return found

    @property
    def start_prices(self) -> IntArray:
        """Those of each time."""
        found: IntArray = self._joined(self._now.start_prices, self.then.start_prices)
        return found

    @property
    def kinds(self) -> Sequence[Hashable]:
        """Requests of a kind are there at the same times."""
        return list(zip(self.times, self._now.kinds, strict=True))

    # candidates

    def rows_of(self, candidate: Any) -> IntArray:
        """Return the rows of a candidate at its times."""
        times, rows = self.times[candidate.request_idx], self._own(candidate).rows_of(candidate)
        parts = [self._rows_now[rows]] * times.now + [self._rows_then[rows]] * times.then
        return np.concatenate(parts)

    def values_of(self, candidates: Sequence[Any]) -> IntArray:
        """Return the values of candidates; they do not depend on the time."""
        return self._now.values_of(candidates)

    def largest(self, level: int) -> int:
        """Return an upper bound on the absolute value of a candidate on a level."""
        return self._now.largest(level)

    def near(self, candidates: Sequence[Any], first: Any) -> list[float]:
        """Return how far candidates are from one."""
        return self._now.near(candidates, first)

    # the oracle

    def work(self, level: int) -> float:
        """Return what a call for each time takes."""
        return sum(self._of[times].work(level) for times in {*self.times})

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates of every request, at the prices of its times."""
        best = np.full(len(self.names), NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Any]]] = [[] for _ in self.names]
        by_time = row_prices[self._rows_now], row_prices[self._rows_then]
        for times in {*self.times}:
            packing, covers, barred = self._of[times], list[Cover](), set[int]()
            mine = [q for q, own in enumerate(self.times) if own == times]
            for q in mine:
                for cover in query.covers_of.get(q, ()):
                    late, row = divmod(cover.row, self._each)
                    if times[late]:
                        covers.append(replace(cover, row=row))
                    elif cover.inside:
                        barred.add(q)
            first = packing.first_of_kind
            exact, wanted = (
                None if some is None else packing.kin(some.intersection(mine))
                for some in (query.exact_for, query.wanted)
            )
            own = replace(
                query, covers=tuple(dict.fromkeys(covers)), exact_for=exact, wanted=wanted
            )
            prices = sum(part for part, there in zip(by_time, times, strict=True) if there)
            found = packing.price(np.asarray(prices), own)
            for q in mine:
                if q in barred:
                    continue
                best[q], columns[q] = found.best[q], found.columns[q]
                if not columns[q] and q not in query.covers_of:  # left to one of another time
                    others = found.columns[first[q]]
                    columns[q] = [(gain, replace(c, request_idx=q)) for gain, c in others]
        return Priced(best, columns)

    def covers(self, candidate: Any, row: int) -> bool:
        """Return whether a candidate uses one of the first rows."""
        late, row = divmod(row, self._each)
        return self.times[candidate.request_idx][late] and self._own(candidate).covers(
            candidate, row
        )

    # around fixed jobs

    def left_by(self, fixed: Sequence[Any], kept: Sequence[int]) -> Twice:
        """Return the problem of some requests around fixed jobs, each at its times."""
        now = [c for c in fixed if self.times[c.request_idx].now]
        then = [c for c in fixed if self.times[c.request_idx].then]
        return Twice(
            self._of[Times(True, False)].left_by(now, kept),
            self._of[Times(True, True)].left_by(fixed, kept),
            self._of[Times(False, True)].left_by(then, kept),
            [self.times[q] for q in kept],
        )
