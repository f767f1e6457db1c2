"""Repacking as a plug-in of the engine: staying put is free, moving is a candidate with a cost.

The value of a running job that may move is above that of all requests that have to start together,
so first every such job has a place, and then as many requests as possible start. In addition to
routers and links there is a row for every pair of a request that has to start and a job that may
move: a job that stays takes it, and so does a prism of the request that is in conflict with it
(docs/proofs/placement.md, "Repacking").
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from topoplace import clock
from topoplace.machine import Prism
from topoplace.packing.problem import NO_VALUE, Cover, PackingProblem, Priced, Query, Subproblem
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate
from topoplace.placement.torus.repack.places import Places, Standing
from topoplace.placement.torus.repack.problem import RepackProblem, Seat
from topoplace.snapshot.schema import Communication
from topoplace.types import FloatArray, IntArray

_WORK = 1e-7  # nominal seconds of a call, by prism of the requests that have to start
_MOST_TRIES = 200  # prisms of a request that are cleared one after the other


class RepackPacking(PackingProblem):
    """Running jobs and requests on rows: routers, pairs, then links by family."""

    is_small = True
    """Linear programs bound every level: most jobs stay, so few prisms matter."""

    def __init__(self, problem: RepackProblem) -> None:
        self.problem = problem
        self.torus = torus = TorusPacking(problem.emptied)
        movable, requests = problem.num_movable, problem.requests
        wanted = len(requests) - movable
        self.names = torus.names
        room = self._makes_room = problem.makes_room
        own = [1] * movable + [0] * wanted if room else [wanted + 1] * movable + [1] * wanted
        self.values = np.array(own, dtype=np.int64)
        self.senses = (1, -1, 1 if room else -1)
        routers, self._num_pairs = torus.num_covers, movable * wanted
        rest = torus.capacities[routers:]
        ones = np.ones(self._num_pairs, dtype=np.int64)
        self.capacities = np.concatenate([torus.capacities[:routers], ones, rest])
        self.num_covers = routers + self._num_pairs
        self.families = {"routers": slice(0, routers), "pairs": slice(routers, self.num_covers)}
        for name, of_torus in torus.families.items():
            if name != "routers":
                start, stop = of_torus.start + self._num_pairs, of_torus.stop + self._num_pairs
                self.families[name] = slice(start, stop)
        self._costs = np.zeros((len(requests), 2), dtype=np.int64)
        self._costs[:movable, 0] = problem.costs
        if room:  # a value is a negative cost
            self._costs[movable:, 1] = [-r.value for r in requests[movable:]]
        else:
            self._costs[:movable, 1] = [r.nodes for r in requests[:movable]]
        self._stay_rows = [self._own_rows(seat) for seat in problem.stays]
        self._places: dict[Hashable, Places] = {}

    def reported(self, level: int, value: int) -> int:
        """Return a value as it is reported: on the first level, how many requests start.

        Where moves free space, it is how many jobs have a place.
        """
        if level or self._makes_room:
            return self.senses[level] * value
        return value - self.problem.num_movable * int(self.values.max(initial=0))

    @cached_property
    def row_weights(self) -> FloatArray:
        """Little for links, most for pairs."""
        weights = np.full(self.num_rows, 1e-3)
        weights[: self.num_covers] = 1.0
        return weights

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Return prices that add up to the cost of the jobs that are in the way of a request.

        There every job has a place, and on the last level no job costs more than necessary. On the
        first level there are no prices, as most often every job finds a place. For room, the prices
        are the nodes of routers: a running job pays for the same number anywhere, and the rest is
        room.
        """
        prices = np.zeros(self.num_rows)
        if not sub.level:
            return prices, ()
        if self._makes_room:
            if sub.level == 1:
                return None
            torus = self.problem.emptied.torus
            prices[: self.torus.num_covers] = torus.nodes_per_router
            everybody = float(torus.num_routers * torus.nodes_per_router)
            return prices, (everybody, 0.0)
        costs = self._costs[: self.problem.num_movable]
        below = 1 + int(costs[:, 1].sum())
        paid = costs[:, 0] if sub.level == 1 else below * costs[:, 0] + costs[:, 1]
        num_wanted = len(self.names) - self.problem.num_movable
        prices[self.torus.num_covers : self.num_covers] = np.tile(paid // num_wanted, num_wanted)
        everybody = 1.0 + float(paid.sum())
        return prices, (everybody,) if sub.level == 1 else (everybody, float(below))

    # candidates

    def _own_rows(self, seat: Seat) -> IntArray:
        """Return the rows of routers and links."""
        rows = self.torus.rows_of(Candidate(seat.request_idx, seat.prism))
        return rows + self._num_pairs * (rows >= self.torus.num_covers)

    @cached_property
    def _holder(self) -> IntArray:
        """The job that holds each row if it stays, -1 for none, shape ``(num_rows,)``."""
        holder = np.full(self.num_rows, -1, dtype=np.int64)
        for q, rows in enumerate(self._stay_rows):
            holder[rows] = q
        return holder

    def displaced(self, seat: Seat) -> IntArray:
        """Return the jobs that may move and cannot stay if a seat is taken, ascending."""
        held = np.unique(self._holder[self._own_rows(seat)])
        return np.asarray(held[(held >= 0) & (held != seat.request_idx)])

    def _pairs_of(self, seat: Seat) -> IntArray:
        """Return the rows of pairs that a seat takes."""
        movable, start = self.problem.num_movable, self.torus.num_covers
        if seat.stays:
            return np.arange(start + seat.request_idx, self.num_covers, movable)
        if seat.request_idx < movable:
            return np.zeros(0, dtype=np.int64)
        return start + (seat.request_idx - movable) * movable + self.displaced(seat)

    def rows_of(self, candidate: Seat) -> IntArray:
        """Return the rows of a seat, each once."""
        return np.concatenate([self._own_rows(candidate), self._pairs_of(candidate)])

    def breakable(self, candidate: Seat, rows: IntArray) -> IntArray:
        """Return the rows of those links that do not lie inside the prism."""
        own = self._own_rows(candidate)
        own = own - self._num_pairs * (own >= self.torus.num_covers)
        found = self.torus.breakable(Candidate(candidate.request_idx, candidate.prism), own)
        return found + self._num_pairs

    def values_of(self, candidates: Sequence[Seat]) -> IntArray:
        """Return the values of seats on the three levels."""
        found = np.zeros((len(candidates), 3), dtype=np.int64)
        for k, seat in enumerate(candidates):
            found[k, 0] = self.values[seat.request_idx]
            if not seat.stays:
                found[k, 1:] = -self._costs[seat.request_idx]
        return found

    def largest(self, level: int) -> int:
        """Return an upper bound on a seat's value, whatever the sign."""
        every = self._costs[:, level - 1] if level else self.values
        return int(np.abs(every).max(initial=0))

    def most(self, level: int) -> int:
        """Return that moving gains nothing, except for the requests that then start."""
        return int(np.maximum(-self._costs[:, level - 1], 0).sum())

    def completed(self, placement: Iterable[Seat]) -> list[Seat]:
        """Return a placement in which no job moves to its own place."""
        return sorted(self.problem.settled(placement))

    # the oracle

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        wanted = range(self.problem.num_movable, len(self.names))
        return 1e-3 + _WORK * sum(len(self.places(q).shape_of) for q in wanted)

    def places(self, q: int) -> Places:
        """Return the prisms of a request; requests with the same prisms share them."""
        r = self.problem.requests[q]
        wanted = q >= self.problem.num_movable
        key = wanted, r.nodes, r.class_idx, r.geometries, r.region, r.communication
        if key not in self._places:
            clock.check(self.deadline)
            standing = self._standing(r.communication) if wanted else None
            self._places[key] = Places(self.problem.emptied, q, standing)
        return self._places[key]

    def _standing(self, kind: Communication) -> Standing:
        """Return the jobs that may move, as they appear to requests of a kind of communication."""
        problem, whole = self.problem, self.problem.emptied
        prisms = [seat.prism for seat in problem.stays]
        shape = (len(prisms), whole.torus.num_dims)
        others = [job.communication for job in problem.movable]
        closes = [
            whole.uses_links(kind)
            and whole.uses_links(other)
            and not (whole.is_tolerant(kind) and whole.is_tolerant(other))
            for other in others
        ]
        return Standing(
            np.array([p.origin for p in prisms], dtype=np.int64).reshape(shape),
            np.array([p.extents for p in prisms], dtype=np.int64).reshape(shape),
            np.array(closes, dtype=bool),
        )

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best seats; moves are looked at only for jobs that may gain by one."""
        num = len(self.names)
        factors = np.array([*query.weights, 0, 0][:3], dtype=np.int64)
        best = np.full(num, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Seat]]] = [[] for _ in range(num)]
        known: dict[object, list[tuple[int, Prism]]] = {}
        for q in range(num):
            own, value = query.covers_of.get(q, []), int(factors[0] * self.values[q])
            gain = value - int(factors[1:] @ self._costs[q])
            found = self._staying(q, row_prices, value, own)
            if not found or found[0][0] < gain:
                alone = own or q >= self.problem.num_movable  # no pairs, no branches to share
                key = q if alone else (id(self.places(q)), self._payer(q))
                if key not in known:
                    known[key] = self.cheapest(q, row_prices, query.per_request, own)
                found += [(gain - cost, Seat(q, prism)) for cost, prism in known[key]]
                found = sorted(found, key=lambda one: -one[0])[: query.per_request]
            if found:
                best[q], columns[q] = found[0][0], found
        return Priced(best, columns)

    def _staying(
        self, q: int, prices: IntArray, value: int, covers: Sequence[Cover]
    ) -> list[tuple[int, Seat]]:
        """Return what a job gains where it is, if it may stay there."""
        if q >= self.problem.num_movable:
            return []
        seat = self.problem.stays[q]
        if any(self.covers(seat, cover.row) is not cover.inside for cover in covers):
            return []
        paid = int(prices[self._stay_rows[q]].sum() + prices[self._pairs_of(seat)].sum())
        return [(value - paid, seat)]

    def _payer(self, q: int) -> int | None:
        """Return the request that pays for links of its own, if it is tolerant."""
        tolerant = self.problem.emptied.is_tolerant(self.problem.requests[q].communication)
        return q if tolerant else None

    def _own_pairs(self, q: int) -> slice:
        """Return the rows of the pairs of a request that has to start; none for others."""
        movable = self.problem.num_movable
        start = self.torus.num_covers + max(0, q - movable) * movable
        return slice(start, start + movable * (q >= movable))

    def cheapest(
        self, q: int, prices: IntArray, number: int, covers: Sequence[Cover] = ()
    ) -> list[tuple[int, Prism]]:
        """Return a number of the cheapest prisms to move to, or to start on, and what they pay.

        They obey the branches.
        """
        places, routers, pairs = self.places(q), self.torus.num_covers, self._own_pairs(q)
        paid = self._paid(q, prices)
        allowed = np.ones(len(paid), dtype=bool)
        for cover in covers:
            held = np.zeros(len(paid), dtype=bool)
            if cover.row < routers:
                held = places.holding(cover.row)
            elif pairs.start <= cover.row < pairs.stop and places.clashes is not None:
                held = places.clashes[:, [cover.row - pairs.start]].toarray().ravel() > 0
            allowed &= held == cover.inside
        at = np.flatnonzero(allowed)
        if number < len(at):
            at = np.sort(at[np.argpartition(paid[at], number)[:number]])
        at = at[np.argsort(paid[at], kind="stable")]
        return [(int(paid[k]), places.prism(k)) for k in at.tolist()]

    def _paid(self, q: int, prices: IntArray) -> IntArray:
        """Return what a request pays on each of its prisms."""
        clock.check(self.deadline)
        routers, links = self.torus.num_covers, None
        if self.problem.emptied.uses_links(self.problem.requests[q].communication):
            of_torus = np.concatenate([prices[:routers], prices[self.num_covers :]])
            links = self.torus.priced(of_torus).seen_by(self._payer(q))
        return self.places(q).paid(prices[:routers], links, prices[self._own_pairs(q)])

    # primal side

    def starts(self, deadline: float) -> Iterator[list[Seat]]:
        """Yield the present state, then requests started in place of the cheapest jobs."""
        now: list[Seat] = [*self.problem.stays]
        yield now
        wanted = range(self.problem.num_movable, len(self.names))
        for q in sorted(wanted, key=lambda q: -self.problem.requests[q].nodes):
            if clock.now() >= deadline:
                return
            try:
                now = self._cleared(now, q, deadline) or now
            except clock.OutOfTimeError:
                return
            yield now

    def _cleared(self, seats: list[Seat], q: int, deadline: float) -> list[Seat] | None:
        """Return seats with a request started where the jobs in its way cost least, if possible.

        These jobs move to free places, the largest first.
        """
        stay = [s.request_idx for s in seats if s.stays]
        far = 1 + int(self._costs.sum())
        prices = np.zeros(self.num_rows, dtype=np.int64)
        for seat in seats:
            if not seat.stays:
                prices[self._own_rows(seat)] = far * far
        amounts = np.zeros(self.problem.num_movable, dtype=np.int64)
        amounts[stay] = far * self._costs[stay, 0] + self._costs[stay, 1]
        prices[self._own_pairs(q)] = amounts
        for new in self._displacing_others(q, prices, far * far):
            if clock.now() >= deadline:
                break
            gone = [int(k) for k in self.displaced(new)]
            kept = [s for s in seats if s.request_idx not in gone]
            moved = self._moved([*kept, new], gone)
            if moved is not None:
                return moved
        return None

    def _displacing_others(self, q: int, prices: IntArray, most: int) -> list[Seat]:
        """Return the cheapest seats of a request, below a price, that all displace other jobs."""
        places = self.places(q)
        assert places.clashes is not None
        paid = self._paid(q, prices)
        marks = np.random.default_rng(0).integers(1, 1 << 40, places.clashes.shape[1])
        kinds = places.clashes @ marks
        order = np.lexsort((paid, kinds))
        first = order[np.diff(kinds[order], prepend=-1) != 0]
        first = first[paid[first] < most]
        first = first[np.argsort(paid[first], kind="stable")][:_MOST_TRIES]
        return [Seat(q, places.prism(k)) for k in first.tolist()]

    def _moved(self, kept: list[Seat], gone: Sequence[int]) -> list[Seat] | None:
        """Return seats with the jobs that lost theirs on free prisms; None if one has none.

        Places that other moving jobs leave are taken last, as they are free only in a suitable
        order.
        """
        prices = np.zeros(self.num_rows, dtype=np.int64)
        for q in gone:
            prices[self._stay_rows[q]] = 1
        taken = self.num_rows + 1
        for seat in kept:
            prices[self._own_rows(seat)] = taken
        for q in sorted(gone, key=lambda q: -self.problem.requests[q].nodes):
            found = self.cheapest(q, prices, 1)
            if not found or found[0][0] >= taken:
                return None
            kept = [*kept, Seat(q, found[0][1])]
            prices[self._own_rows(kept[-1])] = taken
        return kept

    def left_by(self, fixed: Sequence[Seat], kept: Sequence[int]) -> PackingProblem:
        """Raise: it is for dives and neighbourhoods, which a small problem does not have."""
        raise NotImplementedError
