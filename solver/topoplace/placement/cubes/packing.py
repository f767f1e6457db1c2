"""Cubes as a packing: spots where requests may stand, told apart only where that matters.

In the pool whatever fits by number fits in place: there a request has one spot, which takes of the
blocks of the pool by size, and `unpooled` finds the place afterwards. In other cubes every part is
a spot, which takes of its chips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from topoplace.machine.cubes import Extents
from topoplace.packing.problem import (
    NO_VALUE,
    Cover,
    PackingProblem,
    Priced,
    Query,
    capacities_left,
)
from topoplace.placement.cubes.pool import Pool
from topoplace.placement.cubes.problem import CubesProblem, Placed, Room
from topoplace.types import BoolArray, IntArray

_WORK = 3e-4  # seconds of a call, as measured
_MORE = 3  # candidates of several spots each: the best, and those with its dearest spot replaced


@dataclass(frozen=True, order=True)
class Candidate:
    """A request on some spots: one, or as many whole cubes as it wants."""

    request_idx: int
    spots: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """Where requests of one kind may stand: on `count` of some spots."""

    spots: IntArray
    count: int = 1


class CubesPacking(PackingProblem):
    """The queue, and as many spares as there are free cubes: each keeps one free as a whole.

    Spares are worth nothing on the first level and one each on the second. Rows are all chips, and
    the blocks of the pool by size, free cubes at the end.
    """

    senses = (1, 1)
    is_small = True

    def __init__(self, problem: CubesProblem) -> None:
        spots = _Spots(problem)
        num_spares, queue = len(problem.free_cubes), problem.requests
        self.spots = spots
        self.names = [request.id for request in queue]
        self.names += spare_names(self.names, num_spares)
        self.values = np.array([r.value for r in queue] + [0] * num_spares, dtype=np.int64)
        self.spares = np.arange(len(self.names)) >= len(queue)
        self.forms = [spots.part(r.parts) if r.parts else spots.whole(r.num_cubes) for r in queue]
        self.forms += [spots.whole(1)] * num_spares
        self.form_ids = [id(form) for form in self.forms]
        self.families, self.capacities = spots.rows()
        self.num_covers = len(self.capacities)
        self._amounts = spots.amounts(self.num_covers)
        self._open = self._fitting()

    @property
    def kinds(self) -> list[tuple[int, int, bool]]:
        """Requests are alike that stand on the same spots for the same value."""
        return list(zip(self.form_ids, self.values.tolist(), self.spares.tolist(), strict=True))

    def rows_of(self, candidate: Candidate) -> IntArray:
        """Return the rows a candidate takes of, each as often as the amount it takes."""
        return np.concatenate([self.spots.rows_of[spot] for spot in candidate.spots])

    def values_of(self, candidates: Sequence[Candidate]) -> IntArray:
        """Return what candidates are worth, shape ``(num_candidates, 2)``."""
        own = [c.request_idx for c in candidates]
        return np.stack([self.values[own], self.spares[own].astype(np.int64)], axis=1)

    def largest(self, level: int) -> int:
        """Return an upper bound on the value of a candidate on a level."""
        return 1 if level else int(self.values.max(initial=0))

    def most(self, level: int) -> int:
        """Return how many spares there are."""
        return int(self.spares.sum())

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return _WORK

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates: those on the cheapest spots."""
        costs = self._amounts @ row_prices
        worth = np.stack([self.values, self.spares.astype(np.int64)], axis=1)[
            :, : len(query.weights)
        ]
        worth = worth @ np.array(query.weights, dtype=np.int64)
        best = np.full(len(self.names), NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Candidate]]] = [[] for _ in self.names]
        known: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        told: set[int] = set()
        for q, form in enumerate(self.forms):
            own = query.covers_of.get(q)
            if own is not None:
                found = self._cheapest(form, costs, query.per_request, own)
            elif self.form_ids[q] in known:
                found = known[self.form_ids[q]]
            else:
                found = known[self.form_ids[q]] = self._cheapest(form, costs, query.per_request)
            if not found:
                continue
            best[q] = worth[q] - found[0][0]
            if own is not None or self.first_of_kind[q] not in told:
                columns[q] = [(int(worth[q]) - cost, Candidate(q, spots)) for cost, spots in found]
            if own is None:
                told.add(self.first_of_kind[q])
        return Priced(best, columns)

    def _cheapest(
        self, form: Form, costs: IntArray, most: int, covers: Iterable[Cover] = ()
    ) -> list[tuple[int, tuple[int, ...]]]:
        """Return the cheapest candidates of a form: what they cost, and their spots."""
        must: set[int] = set()
        allowed = self._open[form.spots]
        for cover in covers:
            taken = self._covering(cover.row)[form.spots]
            if not cover.inside:
                allowed &= ~taken
            elif form.count == 1:
                allowed &= taken
            else:  # whole cubes share no row: one spot at most
                must |= {int(spot) for spot in form.spots[taken]} or {-1}
        spots = form.spots[allowed]
        if len(spots) < form.count or len(must) > form.count or not must <= {*spots.tolist()}:
            return []
        spots = spots[np.lexsort((spots, costs[spots], ~np.isin(spots, [*must])))]
        first, last = spots[: form.count - 1], spots[form.count - 1 :]
        if len(must) == form.count:
            last = last[:1]
        base = int(costs[first].sum())
        last = last[: most if form.count == 1 else min(most, _MORE)].tolist()
        return [(base + int(costs[s]), tuple(sorted([*first.tolist(), s]))) for s in last]

    def _covering(self, row: int) -> BoolArray:
        """Mark the spots that take of a row."""
        return np.asarray(self._amounts[:, [row]].toarray().ravel() > 0)

    def completed(self, placement: Iterable[Candidate]) -> list[Candidate]:
        """Return the requests of a placement, and a spare on every cube that these leave free."""
        found = [candidate for candidate in placement if not self.spares[candidate.request_idx]]
        spares = np.flatnonzero(self.spares).tolist()
        left = capacities_left(self, found)
        for spot in self.forms[spares[0]].spots.tolist() if spares else ():
            taken = np.bincount(self.spots.rows_of[spot], minlength=len(left))
            while spares and (taken <= left).all():
                found.append(Candidate(spares.pop(0), (spot,)))
                left = left - taken
        return sorted(found)

    def left_by(self, fixed: Sequence[Candidate], kept: Sequence[int]) -> CubesPacking:
        """Return the problem of some requests around fixed jobs; rows have the same numbers."""
        rest = copy(self)
        for name in ("first_of_kind", "takable", "is_unit", "row_weights"):
            rest.__dict__.pop(name, None)
        rest.capacities = capacities_left(self, fixed)
        rest.names = [self.names[q] for q in kept]
        rest.values, rest.spares = self.values[list(kept)], self.spares[list(kept)]
        rest.forms = [self.forms[q] for q in kept]
        rest.form_ids = [self.form_ids[q] for q in kept]
        rest._open = rest._fitting()
        return rest

    def _fitting(self) -> BoolArray:
        """Mark the spots that take no more of any row than it holds."""
        taken = self._amounts.tocoo()
        over = taken.data > self.capacities[taken.col]
        return np.asarray(np.bincount(taken.row[over], minlength=taken.shape[0]) == 0)


def spare_names(names: Iterable[str], num: int) -> list[str]:
    """Return names of spares that no request has: numbers after as few ``~`` as are needed."""
    mark, taken = "~", list(names)
    while any(name.startswith(mark) for name in taken):
        mark += "~"
    return [f"{mark}{number}" for number in range(num)]


# ---- Spots ---------------------------------------------------------------------------------------


class _Spots:
    """The spots of a problem, numbered as they are asked for.

    Attributes
    ----------
    rows_of, places
        By spot the rows it takes of, as often as it does, and where it is; None in the pool.
    """

    def __init__(self, problem: CubesProblem) -> None:
        self.problem, self.pool = problem, Pool(problem)
        self.rows_of: list[IntArray] = []
        self.places: list[Placed | None] = []
        self._forms: dict[object, Form] = {}
        self._parts: dict[Extents, list[int]] = {}
        self._apart = np.flatnonzero(~self.pool.cubes & problem.state.free.any(axis=1)).tolist()

    def rows(self) -> tuple[dict[str, slice], IntArray]:
        """Return the families of rows, and what they hold."""
        chips, blocks = self.problem.state.free.ravel(), self.pool.blocks
        num, ends = len(chips), len(chips) + len(blocks)
        families = {"chips": slice(0, num), "blocks": slice(num, ends)}
        return families, np.array([*chips, *blocks], dtype=np.int64)

    def amounts(self, num_rows: int) -> sp.csr_matrix:
        """Return what every spot takes of every row."""
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *self.rows_of])
        of = np.repeat(np.arange(len(self.rows_of)), [len(rows) for rows in self.rows_of])
        ones = np.ones(len(flat), dtype=np.int64)
        return sp.csr_matrix((ones, (of, flat)), shape=(len(self.rows_of), num_rows))

    def whole(self, count: int) -> Form:
        """Return where so many whole cubes may be: free cubes are all of the pool, or none is."""
        if self.pool.has_free:
            return self._form(count, lambda: [self._of_pool(self.pool.blocks_of_cube, count)])
        machine, cubes = self.problem.machine, self.problem.free_cubes.tolist()
        every = self._form(
            0, lambda: [self._add(machine.chips_of(cube), Placed(0, (cube,))) for cube in cubes]
        )
        return self._forms.setdefault(("cubes", count), Form(every.spots, count))

    def part(self, parts: Sequence[Extents]) -> Form:
        """Return where a part of some shapes may be."""
        return self._form(frozenset(parts), lambda: self._spots_of(parts))

    def _form(self, key: object, listed: Callable[[], list[int]]) -> Form:
        if key not in self._forms:
            self._forms[key] = Form(np.array(listed(), dtype=np.int64))
        return self._forms[key]

    def _spots_of(self, parts: Sequence[Extents]) -> list[int]:
        found = []
        for extents in parts:
            if extents not in self._parts:
                self._parts[extents] = self._apart_of(extents)
            found += self._parts[extents]
        nodes = math.prod(parts[0])
        if self.pool.cubes.any():
            in_pool = self._form(
                ("part", nodes), lambda: [self._of_pool(self.pool.blocks_of(nodes))]
            )
            found += in_pool.spots.tolist()
        return found

    def _apart_of(self, extents: Extents) -> list[int]:
        """Return the spots of a shape outside the pool."""
        machine, free, found = self.problem.machine, self.problem.state.free, []
        for origin in machine.origins(extents):
            inside = machine.inside(origin, extents)
            for cube in self._apart:
                if free[cube, inside].all():
                    place = Placed(0, (cube,), origin, extents)
                    found.append(self._add(inside + cube * machine.volume, place))
        return found

    def _of_pool(self, blocks: Sequence[int], times: int = 1) -> int:
        num_chips = self.problem.machine.num_chips
        numbers = np.repeat(np.arange(len(blocks)), np.array(blocks) * times)
        return self._add(num_chips + numbers)

    def _add(self, rows: IntArray, place: Placed | None = None) -> int:
        self.rows_of.append(rows)
        self.places.append(place)
        return len(self.places) - 1


def unpooled(packing: CubesPacking, candidates: Sequence[Candidate]) -> list[Placed]:
    """Return where the requests of a packing stand.

    Those on spots of the pool get places there: whole cubes the first free ones, parts, the largest
    first, blocks of the pool's chain in the fullest cube that has one, but for as many free cubes
    as there are spares.
    """
    spots, problem = packing.spots, packing.spots.problem
    room, placed, pooled, num_spares = Room(problem), [], [], 0
    for candidate in candidates:
        idx, places = candidate.request_idx, [spots.places[spot] for spot in candidate.spots]
        first = places[0]
        if packing.spares[idx]:
            num_spares += 1
        elif first is None:
            pooled.append(idx)
        else:
            cubes = tuple(cube for place in places if place for cube in place.cubes)
            placed.append(Placed(idx, cubes, first.origin, first.extents))
            room.free.ravel()[problem.chips_of(placed[-1])] = False
    among = spots.pool.cubes.copy()
    requests = problem.requests
    for idx in sorted(pooled, key=lambda idx: (-requests[idx].nodes, idx)):
        if requests[idx].num_cubes:
            found = room.whole(idx)
        else:
            if num_spares:
                among[np.flatnonzero(room.free.all(axis=1))[-num_spares:]] = False
                num_spares = 0
            found = room.part(idx, [spots.pool.chain[requests[idx].nodes]], among, fullest=True)
        assert found is not None, "what fits by number fits in place"
        placed.append(found)
    return sorted(placed, key=lambda one: one.request_idx)
