"""Requests on positions: places from a list, where each request takes one or several."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp

from topoplace.packing.problem import (
    NO_VALUE,
    PackingProblem,
    Priced,
    Query,
    capacities_left,
)
from topoplace.types import BoolArray, IntArray

_MORE = 3  # candidates of several positions: the best, and those with its dearest one replaced

Costed = list[tuple[int, tuple[int, ...]]]
"""The costs and the positions of candidates of a form, the cheapest first."""


@dataclass(frozen=True, order=True)
class Positions:
    """A request on one or several positions, ascending."""

    request_idx: int
    positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Form:
    """Where requests of one kind may be: on `count` of these positions, which share no row.

    If some `ways` mark positions, all of a candidate are among those that one of them marks.
    """

    positions: IntArray
    count: int = 1
    ways: tuple[BoolArray, ...] = ()

    def among(self, there: BoolArray) -> Form:
        """Return the form with some of its positions alone, as marked."""
        ways = tuple(way[there] for way in self.ways)
        return Form(self.positions[there], self.count, ways)

    @property
    def each_way(self) -> Sequence[BoolArray]:
        """Marks of its positions, each of some that a candidate may have together."""
        return self.ways or (np.ones(len(self.positions), dtype=bool),)


class PositionPacking(PackingProblem):
    """A problem whose candidates are positions or sets of them, with the values of their request.

    The last requests are *spares*. Each keeps a position free, which counts only on later levels.

    Parameters
    ----------
    names, worth, forms
        Ids of the requests, their values by level, shape ``(num_requests, num_levels)``, and where
        they may be. Equal forms are one object.
    rows
        For each position the rows that it uses, each repeated as often as the amount it uses.
    families, capacities
        Names and capacities of the rows.
    num_jobs
        The number of requests before the spares.
    """

    def __init__(
        self,
        names: Sequence[str],
        worth: IntArray,
        forms: Sequence[Form],
        rows: Sequence[IntArray],
        families: Mapping[str, slice],
        capacities: IntArray,
        num_jobs: int,
    ) -> None:
        self.families, self.capacities = families, capacities
        self.num_covers = len(capacities)
        self._flat = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        self._ends = np.cumsum([0, *map(len, rows)])
        of = np.repeat(np.arange(len(rows)), np.diff(self._ends))
        ones, shape = np.ones(len(self._flat), dtype=np.int64), (len(rows), len(capacities))
        self.amounts = sp.csr_matrix((ones, (of, self._flat)), shape=shape)
        self._by_row = self.amounts.tocsc()
        self.names, self.worth, self.forms = list(names), worth, list(forms)
        self.values = worth[:, 0]
        self.own = np.arange(len(names))
        """The numbers of the requests in the whole problem, of which this one may be a part."""
        self.num_jobs = num_jobs

    @cached_property
    def spares(self) -> BoolArray:
        """Marks the requests that are spares."""
        return np.asarray(self.own >= self.num_jobs)

    @cached_property
    def kinds(self) -> Sequence[Hashable]:
        """The kind of each request: requests with equal positions and values are of one kind."""
        return list(zip(self.forms, map(tuple, self.worth.tolist()), strict=True))

    def rows_of(self, candidate: Positions) -> IntArray:
        """Return the rows that a candidate uses, each repeated as often as the amount it uses."""
        parts = [self._flat[self._ends[s] : self._ends[s + 1]] for s in candidate.positions]
        return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))

    def values_of(self, candidates: Sequence[Positions]) -> IntArray:
        """Return the values of candidates, shape ``(num_candidates, num_levels)``."""
        return self.worth[[c.request_idx for c in candidates]]

    def largest(self, level: int) -> int:
        """Return the largest value of a candidate on a level."""
        return int(self.worth[:, level].max(initial=0))

    def most(self, level: int) -> int:
        """Return the sum of the values of all requests on a level."""
        return int(self.worth[:, level].sum())

    def taking(self, row: int) -> BoolArray:
        """Mark the positions that use a row."""
        marked = np.zeros(len(self._ends) - 1, dtype=bool)
        marked[self._by_row.indices[self._by_row.indptr[row] : self._by_row.indptr[row + 1]]] = True
        return marked

    @cached_property
    def _open(self) -> BoolArray:
        """Mark the positions that use no row beyond its capacity."""
        taken = self.amounts.tocoo()
        over = taken.data > self.capacities[taken.col]
        return np.asarray(np.bincount(taken.row[over], minlength=taken.shape[0]) == 0)

    def listed(self, level: int) -> Iterator[Positions]:
        """Yield the positions of every request, or the sets of them that share no row."""
        for q, form in enumerate(self.forms):
            each = (form.positions[way].tolist() for way in form.each_way)
            sets = (some for own in each for some in itertools.combinations(own, form.count))
            for some in dict.fromkeys(sets):
                candidate = Positions(q, some)
                if form.count == 1 or len(np.unique(self.rows_of(candidate))) == len(
                    self.rows_of(candidate)
                ):
                    yield candidate

    # the oracle

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates of every request, which are on the cheapest positions."""
        costs, weights = self.amounts @ row_prices, np.array(query.weights)
        worth = self.worth[:, : len(weights)] @ weights
        best = np.full(len(self.names), NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Positions]]] = [[] for _ in self.names]
        known: dict[object, tuple[int | None, Costed]] = {}
        told: set[object] = set()
        (alone, positions), covered = self._alone, query.covers_of
        best[alone] = gains = worth[alone] - costs[positions]
        for q, gain, position in zip(
            alone.tolist(), gains.tolist(), positions.tolist(), strict=True
        ):
            if q not in covered and self.first_of_kind[q] not in told:
                told.add(self.first_of_kind[q])
                columns[q] = [(gain, Positions(q, (position,)))]
        for q in sorted({*self._others, *covered}):
            form, most = self.forms[q], int(worth[q])
            covers = tuple((c.row, c.inside) for c in covered.get(q, ()))
            if (form, covers) not in known:
                marks = [(self.taking(row), inside) for row, inside in covers]
                known[form, covers] = self.cheapest(form, costs, query.per_request, marks)
            least, found = known[form, covers]
            best[q] = NO_VALUE if least is None else max(most - least, NO_VALUE)
            key = self.first_of_kind[q], covers
            if key not in told:
                told.add(key)
                columns[q] = [(most - cost, Positions(q, some)) for cost, some in found]
        return Priced(best, columns)

    @cached_property
    def _alone(self) -> tuple[IntArray, IntArray]:
        """Return the requests with a single position, if it is open, and these positions."""
        every = (
            (q, f.positions[0])
            for q, f in enumerate(self.forms)
            if len(f.positions) == f.count == 1
        )
        alone, positions = np.array([*every], dtype=np.int64).reshape(-1, 2).T
        return alone[self._open[positions]], positions[self._open[positions]]

    @cached_property
    def _others(self) -> list[int]:
        """The requests with several positions, or none."""
        return [q for q, f in enumerate(self.forms) if not len(f.positions) == f.count == 1]

    def cheapest(
        self, form: Form, costs: IntArray, most: int, marks: Iterable[tuple[BoolArray, bool]]
    ) -> tuple[int | None, Costed]:
        """Return the least cost of a candidate of a form (None without any), and the cheapest.

        It has one of the positions of each of some `marks`, or none of them.
        """
        allowed, must = self._open[form.positions], list[BoolArray]()
        for marked, inside in marks:
            taking = marked[form.positions]
            if not inside:
                allowed &= ~taking
            elif form.count == 1:
                allowed &= taking
            else:
                must.append(taking)
        if form.count > 1:
            ways = [self.together(form, costs, allowed & w, must, most) for w in form.each_way]
            sets = sorted({one for _, found in ways for one in found})[:most]
            return min((least for least, _ in ways if least is not None), default=None), sets
        positions = form.positions[allowed]
        positions = positions[np.lexsort((positions, costs[positions]))[:most]].tolist()
        found: Costed = [(int(costs[s]), (s,)) for s in positions]
        return (found[0][0] if found else None), found

    def together(
        self,
        form: Form,
        costs: IntArray,
        allowed: BoolArray,
        must: Sequence[BoolArray],
        most: int,
    ) -> tuple[int | None, Costed]:
        """Return the least cost of `form.count` positions of a form, and the cheapest such sets.

        No two positions of the form may share a row.

        Parameters
        ----------
        allowed
            Marks the positions of the form that may be taken.
        must
            Sets of positions, as marks: a candidate has to take one position of each set.
        """
        named = {
            int(position) for marks in must for position in form.positions[marks] if marks.any()
        }
        positions = form.positions[allowed]
        if not all(marks.any() for marks in must) or not named <= {*positions.tolist()}:
            return None, []
        if len(positions) < form.count or len(named) > form.count:
            return None, []
        positions = positions[
            np.lexsort((positions, costs[positions], ~np.isin(positions, [*named])))
        ]
        first, last = positions[: form.count - 1], positions[form.count - 1 :]
        if len(named) == form.count:
            last = last[:1]
        base = int(costs[first].sum())
        found: Costed = [
            (base + int(costs[s]), tuple(sorted([*first.tolist(), s])))
            for s in last[: min(most, _MORE)].tolist()
        ]
        return found[0][0], found

    # primal side

    def completed(self, placement: Iterable[Positions]) -> list[Positions]:
        """Return the jobs of a placement, with a spare on every position that they leave free."""
        found = [candidate for candidate in placement if not self.spares[candidate.request_idx]]
        left = capacities_left(self, found).copy()
        spares: dict[Form, list[int]] = {}
        for q in np.flatnonzero(self.spares).tolist()[::-1]:
            spares.setdefault(self.forms[q], []).append(q)
        for form, waiting in spares.items():
            for position in form.positions.tolist():
                rows = self.rows_of(Positions(0, (position,)))
                np.subtract.at(left, rows, 1)
                while waiting and (left[rows] >= 0).all():
                    found.append(Positions(waiting.pop(), (position,)))
                    np.subtract.at(left, rows, 1)
                np.add.at(left, rows, 1)
        return sorted(found)

    def left_by(self, fixed: Sequence[Positions], kept: Sequence[int]) -> Self:
        """Return the problem of some requests around fixed jobs; rows have the same numbers."""
        own = list(kept)
        rest = self.where(capacities_left(self, fixed), [self.forms[q] for q in own])
        rest.names = [self.names[q] for q in own]
        rest.worth, rest.own = self.worth[own], self.own[own]
        rest.values = rest.worth[:, 0]
        return rest

    def where(self, capacities: IntArray, forms: Sequence[Form]) -> Self:
        """Return the problem with other capacities and forms, and the same rows and positions."""
        other = copy(self)
        for name in [*vars(other)]:
            if isinstance(getattr(type(self), name, None), cached_property):
                del other.__dict__[name]
        other.capacities, other.forms = capacities, list(forms)
        return other


def spare_names(names: Iterable[str], num: int) -> list[str]:
    """Return names of spares that no request has: numbers after as few ``~`` as are needed."""
    mark, taken = "~", list(names)
    while any(name.startswith(mark) for name in taken):
        mark += "~"
    return [f"{mark}{number}" for number in range(num)]
