"""Requests on spots: places that are listed, of which each request takes one or several."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
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

_MORE = 3  # candidates of several spots each: the best, and those with its dearest spot replaced

Costed = list[tuple[int, tuple[int, ...]]]
"""Candidates of a form: what they cost, and their spots; the cheapest first."""


@dataclass(frozen=True, order=True)
class Spots:
    """A request on one or several spots, ascending."""

    request_idx: int
    spots: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Form:
    """Where requests of one kind may stand: on `count` of some spots that share no row."""

    spots: IntArray
    count: int = 1


class SpotPacking(PackingProblem):
    """A problem whose candidates are spots, or sets of them, and are worth what their request is.

    The last requests are *spares*: each keeps a spot free, which counts on later levels alone.

    Parameters
    ----------
    names, worth, forms
        Ids of the requests, their values by level, shape ``(num_requests, num_levels)``, and where
        they may stand; equal forms are one object.
    rows
        By spot the rows it takes of, each as often as the amount it takes.
    families, capacities
        Names and capacities of the rows.
    num_jobs
        Requests before the spares.
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
        """Requests are alike that stand on the same spots for the same values."""
        return list(zip(self.forms, map(tuple, self.worth.tolist()), strict=True))

    def rows_of(self, candidate: Spots) -> IntArray:
        """Return the rows a candidate takes of, each as often as the amount it takes."""
        parts = [self._flat[self._ends[s] : self._ends[s + 1]] for s in candidate.spots]
        return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))

    def values_of(self, candidates: Sequence[Spots]) -> IntArray:
        """Return what candidates are worth, shape ``(num_candidates, num_levels)``."""
        return self.worth[[c.request_idx for c in candidates]]

    def largest(self, level: int) -> int:
        """Return the largest value of a candidate on a level."""
        return int(self.worth[:, level].max(initial=0))

    def most(self, level: int) -> int:
        """Return what all requests are worth on a level."""
        return int(self.worth[:, level].sum())

    def taking(self, row: int) -> BoolArray:
        """Mark the spots that take of a row."""
        marked = np.zeros(len(self._ends) - 1, dtype=bool)
        marked[self._by_row.indices[self._by_row.indptr[row] : self._by_row.indptr[row + 1]]] = True
        return marked

    @cached_property
    def _open(self) -> BoolArray:
        """Mark the spots that take no more of any row than it holds."""
        taken = self.amounts.tocoo()
        over = taken.data > self.capacities[taken.col]
        return np.asarray(np.bincount(taken.row[over], minlength=taken.shape[0]) == 0)

    # the oracle

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates of every request: those on the cheapest spots."""
        costs, weights = self.amounts @ row_prices, np.array(query.weights)
        worth = self.worth[:, : len(weights)] @ weights
        best = np.full(len(self.names), NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Spots]]] = [[] for _ in self.names]
        known: dict[object, tuple[int | None, Costed]] = {}
        told: set[object] = set()
        (alone, spots), covered = self._alone, query.covers_of
        best[alone] = gains = worth[alone] - costs[spots]
        for q, gain, spot in zip(alone.tolist(), gains.tolist(), spots.tolist(), strict=True):
            if q not in covered and self.first_of_kind[q] not in told:
                told.add(self.first_of_kind[q])
                columns[q] = [(gain, Spots(q, (spot,)))]
        for q in sorted({*self._others, *covered}):
            form, most = self.forms[q], int(worth[q])
            covers = tuple((c.row, c.inside) for c in covered.get(q, ()))
            if (form, covers) not in known:
                known[form, covers] = self._cheapest(form, costs, query.per_request, covers)
            least, found = known[form, covers]
            best[q] = NO_VALUE if least is None else max(most - least, NO_VALUE)
            key = self.first_of_kind[q], covers
            if key not in told:
                told.add(key)
                columns[q] = [(most - cost, Spots(q, some)) for cost, some in found]
        return Priced(best, columns)

    @cached_property
    def _alone(self) -> tuple[IntArray, IntArray]:
        """Return the requests with a single spot, as most spares have, if it is open; and these."""
        every = ((q, f.spots[0]) for q, f in enumerate(self.forms) if len(f.spots) == f.count == 1)
        alone, spots = np.array([*every], dtype=np.int64).reshape(-1, 2).T
        return alone[self._open[spots]], spots[self._open[spots]]

    @cached_property
    def _others(self) -> list[int]:
        """Requests with several spots, or none."""
        return [q for q, f in enumerate(self.forms) if not len(f.spots) == f.count == 1]

    def _cheapest(
        self, form: Form, costs: IntArray, most: int, covers: Iterable[tuple[int, bool]]
    ) -> tuple[int | None, Costed]:
        """Return what a candidate of a form costs at least, None without any, and the cheapest."""
        allowed, must = self._open[form.spots], list[BoolArray]()
        for row, inside in covers:
            taking = self.taking(row)[form.spots]
            if not inside:
                allowed &= ~taking
            elif form.count == 1:
                allowed &= taking
            else:
                must.append(taking)
        if form.count > 1:
            return self.together(form, costs, allowed, must, most)
        spots = form.spots[allowed]
        spots = spots[np.lexsort((spots, costs[spots]))[:most]].tolist()
        found: Costed = [(int(costs[s]), (s,)) for s in spots]
        return (found[0][0] if found else None), found

    def together(
        self,
        form: Form,
        costs: IntArray,
        allowed: BoolArray,
        must: Sequence[BoolArray],
        most: int,
    ) -> tuple[int | None, Costed]:
        """Return the least cost of a number of spots of a form, and the cheapest sets of them.

        This is for forms no two of whose spots share a row.

        Parameters
        ----------
        allowed
            Marks the spots of the form that may be taken.
        must
            Marks of spots, one of each of which must be taken.
        """
        named = {int(spot) for marks in must for spot in form.spots[marks] if marks.any()}
        spots = form.spots[allowed]
        if not all(marks.any() for marks in must) or not named <= {*spots.tolist()}:
            return None, []
        if len(spots) < form.count or len(named) > form.count:
            return None, []
        spots = spots[np.lexsort((spots, costs[spots], ~np.isin(spots, [*named])))]
        first, last = spots[: form.count - 1], spots[form.count - 1 :]
        if len(named) == form.count:
            last = last[:1]
        base = int(costs[first].sum())
        found: Costed = [
            (base + int(costs[s]), tuple(sorted([*first.tolist(), s])))
            for s in last[: min(most, _MORE)].tolist()
        ]
        return found[0][0], found

    # primal side

    def completed(self, placement: Iterable[Spots]) -> list[Spots]:
        """Return the jobs of a placement, and a spare on every spot that these leave to it."""
        found = [candidate for candidate in placement if not self.spares[candidate.request_idx]]
        left = capacities_left(self, found).copy()
        spares: dict[Form, list[int]] = {}
        for q in np.flatnonzero(self.spares).tolist()[::-1]:
            spares.setdefault(self.forms[q], []).append(q)
        for form, waiting in spares.items():
            for spot in form.spots.tolist():
                rows = self.rows_of(Spots(0, (spot,)))
                np.subtract.at(left, rows, 1)
                while waiting and (left[rows] >= 0).all():
                    found.append(Spots(waiting.pop(), (spot,)))
                    np.subtract.at(left, rows, 1)
                np.add.at(left, rows, 1)
        return sorted(found)

    def left_by(self, fixed: Sequence[Spots], kept: Sequence[int]) -> Self:
        """Return the problem of some requests around fixed jobs; rows have the same numbers."""
        rest, own = copy(self), list(kept)
        for name in [*vars(rest)]:
            if isinstance(getattr(type(self), name, None), cached_property):
                del rest.__dict__[name]
        rest.capacities = capacities_left(self, fixed)
        rest.names = [self.names[q] for q in own]
        rest.worth, rest.own = self.worth[own], self.own[own]
        rest.values = rest.worth[:, 0]
        rest.forms = [self.forms[q] for q in own]
        return rest
