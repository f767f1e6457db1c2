"""Problems small enough to list all their candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from topoplace import clock
from topoplace.packing.problem import NO_VALUE, PackingProblem, Priced, Query, capacities_left
from topoplace.types import IntArray

_PART = 1000  # candidates whose values are computed at once, for the memory it takes


class ListedOracle:
    """Prices a complete list of candidates.

    Parameters
    ----------
    listed
        Returns every candidate of every request; asked once.
    """

    def __init__(self, problem: PackingProblem, listed: Callable[[], list[Any]]) -> None:
        self._problem, self._listed = problem, listed

    @cached_property
    def _tables(self) -> tuple[list[Any], IntArray, IntArray, sp.csr_matrix]:
        """All candidates, their values and requests, and the amounts that they use of every row."""
        problem, every = self._problem, self._listed()
        num = len(every)
        values, taken = [np.zeros((0, len(problem.senses)), dtype=np.int64)], []
        for k in range(0, num, _PART):
            clock.check(problem.deadline)
            part = every[k : k + _PART]
            values.append(problem.values_of(part))
            taken += [problem.rows_of(c) for c in part]
        owner = np.array([c.request_idx for c in every], dtype=np.int64)
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *taken])
        of = np.repeat(np.arange(num), [len(rows) for rows in taken])
        ones = np.ones(len(flat), dtype=np.int64)
        amounts = sp.csr_matrix((ones, (of, flat)), shape=(num, problem.num_rows))
        return every, np.concatenate(values), owner, amounts

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates of every request (see `PackingProblem.price`)."""
        every, values, owner, amounts = self._tables
        num_requests = len(self._problem.names)
        best = np.full(num_requests, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Any]]] = [[] for _ in range(num_requests)]
        weights = np.array(query.weights)
        gains = values[:, : len(weights)] @ weights - amounts @ row_prices
        allowed = np.ones(len(gains), dtype=bool)
        for cover in query.covers:
            inside = amounts[:, [cover.row]].toarray().ravel() > 0
            allowed &= (owner != cover.request_idx) | (inside == cover.inside)
        for k in np.argsort(-gains, kind="stable").tolist():
            q = int(owner[k])
            if allowed[k] and len(columns[q]) < query.per_request:
                columns[q].append((int(gains[k]), every[k]))
                best[q] = max(best[q], gains[k])
        return Priced(best, columns)


@dataclass(frozen=True, order=True)
class Listed:
    """A candidate: the rows that it uses, each repeated by the amount, and its values by level."""

    request_idx: int
    rows: tuple[int, ...]
    values: tuple[int, ...]


class OfListed(PackingProblem):
    """A problem whose candidates say themselves which rows they use, and what they are worth."""

    def rows_of(self, candidate: Listed) -> IntArray:
        """Return the rows that a candidate uses, each repeated by the amount."""
        return np.array(candidate.rows, dtype=np.int64)

    def values_of(self, candidates: Sequence[Listed]) -> IntArray:
        """Return the values of candidates, shape ``(num_candidates, num_levels)``."""
        values = np.array([c.values for c in candidates], dtype=np.int64)
        return values.reshape(-1, len(self.senses))


class ListedPacking(OfListed):
    """A problem that consists only of its rows and its candidates.

    Parameters
    ----------
    names, values
        The ids of the requests, and what starting one adds to the first level.
    capacities
        Capacities of the rows, by family.
    candidates
        All of them.
    senses
        By level: 1, or -1 where less is better; there, values are negated.
    """

    is_small = True

    def __init__(
        self,
        names: Sequence[str],
        values: Sequence[int],
        capacities: Mapping[str, Sequence[int]],
        candidates: Sequence[Listed],
        senses: Sequence[int],
    ) -> None:
        self.names, self.senses, self._candidates = names, senses, candidates
        self.values = np.array(values, dtype=np.int64)
        ends = np.cumsum([0, *map(len, capacities.values())]).tolist()
        self.families = {
            name: slice(*own) for name, own in zip(capacities, pairwise(ends), strict=True)
        }
        self.capacities = np.array([n for own in capacities.values() for n in own], dtype=np.int64)
        self.num_covers = len(self.capacities)
        self._oracle = ListedOracle(self, lambda: list(candidates))

    @cached_property
    def kinds(self) -> list[tuple[frozenset[Listed], int]]:
        """Requests with the same candidates are of one kind; without any, those of one value."""
        own: list[set[Listed]] = [set() for _ in self.names]
        for candidate in self._candidates:
            own[candidate.request_idx].add(replace(candidate, request_idx=0))
        return [*zip(map(frozenset, own), self.values.tolist(), strict=True)]

    def largest(self, level: int) -> int:
        """Return the largest absolute value of a candidate on a level."""
        return max((abs(c.values[level]) for c in self._candidates), default=0)

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return 1e-6 * (100 + len(self._candidates))

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates of every request."""
        return self._oracle.price(row_prices, query)

    def listed(self, level: int) -> Sequence[Listed]:
        """Return all candidates."""
        return self._candidates

    @property
    def every_candidate(self) -> list[Any] | None:
        """All candidates."""
        return list(self._candidates)

    def left_by(self, fixed: Sequence[Listed], kept: Sequence[int]) -> ListedPacking:
        """Return the problem of some requests around fixed candidates."""
        left, new = capacities_left(self, fixed), {q: k for k, q in enumerate(kept)}
        families = {name: left[own].tolist() for name, own in self.families.items()}
        own = [
            replace(c, request_idx=new[c.request_idx])
            for c in self._candidates
            if c.request_idx in new and (np.bincount(c.rows, minlength=self.num_rows) <= left).all()
        ]
        names, values = [self.names[q] for q in kept], self.values[list(kept)].tolist()
        return ListedPacking(names, values, families, own, self.senses)
