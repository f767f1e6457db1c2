"""Moves as a plug-in of the engine: staying put is free, moving and ending have a cost.

The value of a running job that may move is above that of all requests that have to start together,
so first every such job stays, goes elsewhere or ends, and then as many requests as possible start.
In addition to the rows of the machine there are *pairs*, which a job that stays takes, and a place
of a request that leaves no room for it (`Site.pairs`), and a row for every budget
(docs/proofs/placement.md, "Repacking").
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from topoplace import clock
from topoplace.packing.problem import (
    NO_VALUE,
    Cover,
    PackingProblem,
    Priced,
    Program,
    Query,
    Subproblem,
    capacities_left,
    fits,
)
from topoplace.placement.repack.problem import (
    ENDS,
    GOES,
    STAYS,
    Offer,
    Relaxed,
    RepackProblem,
    Seat,
)
from topoplace.types import FloatArray, IntArray


class RepackPacking(PackingProblem):
    """Running jobs and requests on rows: those that branches name, pairs, budgets, then others."""

    is_small = True
    """Linear programs bound every level: most jobs stay, so few places matter."""

    def __init__(self, problem: RepackProblem) -> None:
        self.problem, self.site = problem, problem.site
        inner = self.inner = problem.site.packing
        movers, wanted = problem.num_movers, len(problem.site.names) - problem.num_movers
        self.names = [*problem.site.names]
        room = self._makes_room = problem.makes_room
        own = [1] * movers + [0] * wanted if room else [wanted + 1] * movers + [1] * wanted
        self.values = np.array(own, dtype=np.int64)
        self.senses = [1 if sense == "max" else -1 for _, sense in problem.levels]
        self._first, self._pairs = inner.num_covers, problem.site.num_pairs
        self._budgets = self._first + self._pairs
        self.num_covers = self._budgets + len(problem.budgets)
        self._added = self.num_covers - self._first
        limits = np.array([most for _, most in problem.budgets], dtype=np.int64)
        ones = np.ones(self._pairs, dtype=np.int64)
        held = inner.capacities[: self._first], inner.capacities[self._first :]
        self.capacities = np.concatenate([held[0], ones, limits, held[1]])
        own_rows = {"pairs": slice(self._first, self._budgets)}
        if problem.budgets:
            own_rows["budgets"] = slice(self._budgets, self.num_covers)
        before = {n: of for n, of in inner.families.items() if of.start < self._first}
        after = {
            name: slice(of.start + self._added, of.stop + self._added)
            for name, of in inner.families.items()
            if name not in before
        }
        self.families = {**before, **own_rows, **after}
        self._costs = self._costs_by_way(wanted)
        self._stays = [self._own_rows(seat) for seat in problem.stays]
        self._of_budget = [
            np.array(
                [b for b, (jobs, _) in enumerate(problem.budgets) if q in jobs], dtype=np.int64
            )
            + self._budgets
            for q in range(len(self.names))
        ]

    def _costs_by_way(self, wanted: int) -> IntArray:
        """Return costs by way, job and level after the first; a value is a negative cost."""
        problem, num = self.problem, self.problem.num_movers
        found = np.zeros((3, num + wanted, len(self.senses) - 1), dtype=np.int64)
        levels = [name for name, _ in problem.levels[1:]]
        found[GOES, :num, levels.index("moves")] = problem.costs
        if self._makes_room:
            found[GOES, num:, levels.index("room")] = [-value for value in problem.site.values]
            return found
        for name, lost in problem.losses.items():
            found[ENDS, :num, levels.index(name)] = lost
        found[[GOES, ENDS], :num, levels.index("moved_nodes")] = problem.nodes
        return found

    def reported(self, level: int, value: int) -> int:
        """Return a value as it is reported: on the first level, how many requests start.

        Where moves free space, it is how many jobs have a place.
        """
        if level or self._makes_room:
            return self.senses[level] * value
        return value - self.problem.num_movers * int(self.values.max(initial=0))

    @cached_property
    def row_weights(self) -> FloatArray:
        """Little for rows that no branch names, most for pairs."""
        weights = np.full(self.num_rows, 1e-3)
        weights[: self.num_covers] = 1.0
        return weights

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Return prices that add up to the cost of the jobs that are in the way of a request.

        There every job has a place, and on a later level no job costs more than necessary. On the
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
            own = self.inner.row_weights[: self._first]
            prices[: self._first] = own
            return prices, (float(own @ self.capacities[: self._first]), 0.0)
        costs = self._costs[GOES, : self.problem.num_movers, : sub.level]
        factors = np.ones(sub.level, dtype=np.int64)
        for k in reversed(range(sub.level - 1)):
            factors[k] = factors[k + 1] * (1 + int(costs[:, k + 1].sum()))
        paid = costs @ factors
        for q, rows in enumerate(self._stays):
            pairs = rows[(rows >= self._first) & (rows < self._budgets)]
            if len(pairs):
                prices[pairs] = paid[q] // len(pairs)
        return prices, (1.0 + float(paid.sum()), *map(float, factors[:-1]))

    @cached_property
    def _program(self) -> Relaxed | None:
        return self.site.program(self.problem)

    @property
    def has_program(self) -> bool:
        """Whether the site has a linear program."""
        return self._program is not None

    def program(self, sub: Subproblem) -> Program | None:
        """Return the solution of the site's linear program."""
        if self._program is None:
            return None
        found = self._program.solved(sub, self._costs, self.values, self.deadline)
        if found is None:
            return None
        end = len(self.inner.capacities)
        prices = np.concatenate(
            [found.prices[: self._first], found.prices[end:], found.prices[self._first : end]]
        )
        return replace(found, prices=prices)

    # candidates

    def _outer(self, rows: IntArray) -> IntArray:
        return rows + self._added * (rows >= self._first)

    def _inner(self, amounts: IntArray) -> IntArray:
        """Return what is of the rows of the machine."""
        return np.concatenate([amounts[: self._first], amounts[self.num_covers :]])

    def _own_rows(self, seat: Seat) -> IntArray:
        """Return the rows of a job in a place, each repeated by the amount."""
        candidate = self.site.candidate(seat.request_idx, seat.place)
        pairs = self.site.pairs(seat.request_idx, seat.place, stays=seat.way == STAYS)
        return np.concatenate([self._outer(self.inner.rows_of(candidate)), pairs + self._first])

    def rows_of(self, candidate: Seat) -> IntArray:
        """Return the rows of a seat, each repeated by the amount."""
        if candidate.way == STAYS:
            return self._stays[candidate.request_idx]
        budgets = self._of_budget[candidate.request_idx]
        return budgets if candidate.way == ENDS else np.concatenate(
            [self._own_rows(candidate), budgets]
        )  # fmt: skip

    def breakable(self, candidate: Seat, rows: IntArray) -> IntArray:
        """Return the rows of the machine that others may need."""
        if candidate.way == ENDS:
            return rows[:0]
        own = self.site.candidate(candidate.request_idx, candidate.place)
        return self._outer(self.inner.breakable(own, self.inner.rows_of(own)))

    def values_of(self, candidates: Sequence[Seat]) -> IntArray:
        """Return the values of seats on the levels."""
        found = np.zeros((len(candidates), len(self.senses)), dtype=np.int64)
        for k, seat in enumerate(candidates):
            found[k, 0] = self.values[seat.request_idx]
            found[k, 1:] = -self._costs[seat.way, seat.request_idx]
        return found

    def largest(self, level: int) -> int:
        """Return an upper bound on a seat's value, whatever the sign."""
        every = self._costs[:, :, level - 1] if level else self.values
        return int(np.abs(every).max(initial=0))

    def most(self, level: int) -> int:
        """Return that moving gains nothing, except for the requests that then start."""
        return int(np.maximum(-self._costs[GOES, :, level - 1], 0).sum())

    def completed(self, placement: Iterable[Seat]) -> list[Seat]:
        """Return a placement in which no job moves to where it takes the same as now."""
        num, stays = self.problem.num_movers, self.problem.stays
        found = []
        for seat in placement:
            q = seat.request_idx
            if seat.way == GOES and q < num:
                own = self.site.candidate(q, stays[q].place)
                new = self.site.candidate(q, seat.place)
                if np.array_equal(self.inner.rows_of(own), self.inner.rows_of(new)):
                    seat = stays[q]  # noqa: PLW2901
            found.append(seat)
        return sorted(found)

    # the oracle

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return self.site.work()

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best seats; moves are looked at only for jobs that may gain by one."""
        num, most = len(self.names), query.per_request
        factors = np.zeros(len(self.senses), dtype=np.int64)
        factors[: len(query.weights)] = query.weights
        costs = self._costs @ factors[1:]
        best = np.full(num, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Seat]]] = [[] for _ in range(num)]
        known: dict[object, list[Offer]] = {}
        self.inner.deadline = self.deadline
        pairs = row_prices[self._first : self._budgets]
        cheapest = self.site.priced(self._inner(row_prices), pairs)
        for q in range(num):
            clock.check(self.deadline)
            own, value = query.covers_of.get(q, []), int(factors[0] * self.values[q])
            gone = int(row_prices[self._of_budget[q]].sum())
            found = self._staying(q, row_prices, value, own)
            found += self._ending(q, value - int(costs[ENDS, q]) - gone, own)
            gain = value - int(costs[GOES, q]) - gone
            if self._may_go(q, own) and max((g for g, _ in found), default=NO_VALUE) < gain:
                wishes = [(c.row, c.inside) for c in own if c.row < self._budgets]
                key = (self.site.key(q), tuple(wishes))
                if key not in known:
                    known[key] = cheapest(q, most, wishes)
                found += [(gain - cost, Seat(q, GOES, place)) for cost, place in known[key]]
            if found:
                found = sorted(found, key=lambda one: -one[0])[:most]
                best[q], columns[q] = found[0][0], found
        return Priced(best, columns)

    def _staying(
        self, q: int, prices: IntArray, value: int, covers: Sequence[Cover]
    ) -> list[tuple[int, Seat]]:
        """Return what a job gains where it is, if it may stay there."""
        if q >= self.problem.num_movers:
            return []
        seat = self.problem.stays[q]
        if any(self.covers(seat, cover.row) is not cover.inside for cover in covers):
            return []
        return [(value - int(prices[self._stays[q]].sum()), seat)]

    def _ending(self, q: int, gain: int, covers: Sequence[Cover]) -> list[tuple[int, Seat]]:
        """Return what a job gains that ends, if it may."""
        if q >= self.problem.num_movers or not self.problem.ends[q]:
            return []
        seat = Seat(q, ENDS)
        allowed = all(self.covers(seat, cover.row) is cover.inside for cover in covers)
        return [(gain, seat)] if allowed else []

    def _may_go(self, q: int, covers: Sequence[Cover]) -> bool:
        """Return whether a job may have another place, as far as budgets say."""
        if q < self.problem.num_movers and not self.problem.costs[q]:
            return False
        of = [(c.row in self._of_budget[q], c.inside) for c in covers if c.row >= self._budgets]
        return all(takes is inside for takes, inside in of)

    # primal side

    def starts(self, deadline: float) -> Iterator[list[Seat]]:
        """Yield the present state, requests started in place of the cheapest jobs, and plans."""
        now: list[Seat] = [*self.problem.stays]
        self.inner.deadline = self.deadline
        yield now
        nodes, num = self.site.nodes, self.problem.num_movers
        for q in sorted(range(num, len(self.names)), key=lambda q: -nodes[q]):
            if clock.now() >= deadline:
                return
            try:
                now = self._cleared(now, q, deadline) or now
            except clock.OutOfTimeError:
                return
            yield now
        with contextlib.suppress(clock.OutOfTimeError):
            yield from self.site.plans(self.problem, self._costs, deadline)

    def _cleared(self, seats: list[Seat], q: int, deadline: float) -> list[Seat] | None:
        """Return seats with a request started where the jobs in its way cost least, if possible."""
        num, left = self.problem.num_movers, capacities_left(self, seats)
        free = self.site.refuge(q, self._inner(left), np.zeros_like(self._inner(left)))
        if free is not None and fits(self, [*seats, Seat(q, GOES, free)]):
            return [*seats, Seat(q, GOES, free)]
        stay = [s.request_idx for s in seats if s.way == STAYS]
        loss = np.where(self.problem.costs > 0, self.problem.costs, self.problem.ends)
        far = 1 + int(loss.sum()) + int(self._costs[GOES, :num, -1].sum())
        rows, pairs = np.zeros(len(self._inner(self.capacities)), dtype=np.int64), self._pairs
        for seat in seats:
            if seat.way == GOES:
                own = self.site.candidate(seat.request_idx, seat.place)
                rows[self.inner.rows_of(own)] = far * far
        amounts = np.zeros(pairs, dtype=np.int64)
        for j in stay:
            own = self._stays[j]
            own = own[(own >= self._first) & (own < self._budgets)] - self._first
            amounts[own] = far * int(loss[j]) + int(self._costs[GOES, j, -1])
        for place in self.site.openings(q, rows, amounts, far * far):
            if clock.now() >= deadline:
                break
            found = self._beside([*seats, Seat(q, GOES, place)], loss)
            if found is not None:
                return found
        return None

    def _beside(self, seats: list[Seat], loss: IntArray) -> list[Seat] | None:
        """Return seats, the last one kept, with jobs that stayed elsewhere or ended.

        Those go that are on overfull rows, the cheapest first; None if one of them has no place.
        """
        left = capacities_left(self, seats)
        gone: list[int] = []
        while (over := np.flatnonzero(left < 0)).size:
            on = {s: int(np.isin(self.rows_of(s), over).sum()) for s in seats if s.way == STAYS}
            near = [s for s, rows in on.items() if rows]
            if not near:
                return None
            worst = min(near, key=lambda s: (loss[s.request_idx], -on[s]))
            seats = [s for s in seats if s != worst]
            np.add.at(left, self.rows_of(worst), 1)
            gone.append(worst.request_idx)
        return self._moved(seats, gone, left)

    def _moved(self, kept: list[Seat], gone: Sequence[int], left: IntArray) -> list[Seat] | None:
        """Return seats with the jobs that lost theirs in free places, the largest first.

        Places that other moving jobs leave are taken last, as they are free only in a suitable
        order. Who has none ends, if it may; None if one may not.
        """
        avoided = np.zeros(self.num_rows, dtype=np.int64)
        for q in gone:
            avoided[self._stays[q]] = 1
        for q in sorted(gone, key=lambda q: -self.site.nodes[q]):
            place = None
            if self.problem.costs[q]:
                place = self.site.refuge(q, self._inner(left), self._inner(avoided))
            if place is None and not self.problem.ends[q]:
                return None
            kept = [*kept, Seat(q, ENDS) if place is None else Seat(q, GOES, place)]
            np.subtract.at(left, self.rows_of(kept[-1]), 1)
        return kept if (left >= 0).all() else None

    def left_by(self, fixed: Sequence[Seat], kept: Sequence[int]) -> PackingProblem:
        """Raise: it is for dives and neighbourhoods, which a small problem does not have."""
        raise NotImplementedError
