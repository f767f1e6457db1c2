"""Anchored prisms as a plug-in of the engine: all of them listed, and what they block.

In addition to the requests of the queue there is one for every anchored prism that is not blocked
yet. Its value is 0 on the first level, and on the second the value of the prism if it stays free.
It takes rows of its own, a unit of each, which jobs that meet the prism take, too
(docs/proofs/placement.md, "Anchored prisms"). So the prisms that stay free are part of the packing,
and never start. A candidate of a request in segments is several disjoint prisms, found by branch
and bound from the cheapest on.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from topoplace import clock
from topoplace.packing.problem import NO_VALUE, Cover, PackingProblem, Priced
from topoplace.placement.torus.anchored import (
    AnchoredPrisms,
    busy_routers,
    candidates_of,
    prisms_of,
)
from topoplace.placement.torus.heuristics.slurm_torus3d import slurm_torus3d
from topoplace.placement.torus.packing import TorusPacking, hops_between
from topoplace.placement.torus.problem import Candidate, PlacementProblem, in_prisms
from topoplace.snapshot.schema import FREE_PREFIX
from topoplace.types import BoolArray, FloatArray, IntArray

_FEW_ENTRIES = 1 << 20
"""Rows of all candidates together up to which linear programs bound the first level, too."""

MAX_STEPS = 2000
"""Steps of a search for disjoint prisms of a request in segments; few if all are disjoint."""

_CALL_WORK, _ENTRY_WORK = 1e-3, 2e-9  # nominal seconds of an oracle call, and by row of candidates


class _Tables:
    """What all packings of a problem share, no matter which of its requests they have.

    Attributes
    ----------
    free
        The anchored prisms that are not blocked yet, by number, in their order; each is a request,
        after those of the queue.
    spans
        By request, where its candidates are among `which` and `amounts`.
    alike
        By request, what it has in common with those that have the same span, with or without
        candidates.
    which
        The prisms of candidates, by number; requests that differ in nothing share theirs.
    amounts
        The rows that they take of.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        self.placement, self.torus = problem, TorusPacking(problem)
        self.prisms: AnchoredPrisms = prisms_of(problem)
        self.num_jobs = len(problem.requests)
        self.free = np.flatnonzero(~self.prisms.meeting(busy_routers(problem)))
        self.first_free_row = self.torus.num_rows
        self._list_rows()
        self._list_candidates()

    def _list_rows(self) -> None:
        """Number the rows of prisms that stay free: one by prism and block of its routers."""
        prisms, every = self.prisms, self.prisms.inside
        own, rows = [np.zeros(0, dtype=np.int64)], []
        for number in self.free.tolist():
            routers = every.indices[every.indptr[number] : every.indptr[number + 1]]
            blocks, first = np.unique(prisms.blocks[routers], return_index=True)
            own.append(blocks[np.argsort(first)])  # by their lowest router
        ends = np.cumsum([len(blocks) for blocks in own])
        self.num_free_rows = int(ends[-1])
        self.rows_of_free = [
            self.first_free_row + np.arange(a, b) for a, b in itertools.pairwise(ends.tolist())
        ]
        block_of_row = np.concatenate(own)
        order = np.argsort(block_of_row, kind="stable")
        starts = np.searchsorted(block_of_row[order], np.arange(prisms.blocks.max() + 2))
        for number in range(len(prisms.prisms)):
            routers = every.indices[every.indptr[number] : every.indptr[number + 1]]
            held = np.unique(prisms.blocks[routers]).tolist()
            found = [order[starts[block] : starts[block + 1]] for block in held]
            rows.append(self.first_free_row + np.sort(np.concatenate(found)))
        self.rows_blocked = rows

    def _list_candidates(self) -> None:
        kinds = self.torus.placement.kinds
        spans: dict[Hashable, slice] = {}
        which, rows, self.spans = [], [], []
        self.alike: list[Hashable] = []
        num = 0
        for q in range(self.num_jobs):
            r = self.placement.requests[q]
            tolerant = self.placement.is_tolerant(r.communication)
            size = r.segment or r.nodes
            kind = kinds[q] if tolerant else (r.class_idx, r.region, r.communication, size)
            if kind not in spans:
                mine = candidates_of(self.placement, q)
                spans[kind] = slice(num, num + len(mine))
                num += len(mine)
                which.append(mine)
                rows += [self.rows_of(q, number) for number in mine.tolist()]
            self.spans.append(spans[kind])
            self.alike.append(kind)
        for k, own in enumerate(self.rows_of_free):
            self.spans.append(slice(num + k, num + k + 1))
            self.alike.append(("free", k))
            rows.append(own)
        self.which = np.concatenate([np.zeros(0, dtype=np.int64), *which, self.free])
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        ends = np.cumsum([0, *map(len, rows)])
        shape = len(rows), self.first_free_row + self.num_free_rows
        self.amounts = sp.csr_matrix((np.ones(len(flat), dtype=np.int64), flat, ends), shape=shape)
        self._meeting: dict[tuple[int, int], list[int]] = {}

    def meeting(self, span: slice) -> list[int]:
        """Return by candidate of a span which of them its prism meets, as bits."""
        key = span.start, span.stop
        if key not in self._meeting:
            own = self.prisms.inside[self.which[span]]
            shared = (own @ own.T).tocoo()
            self._meeting[key] = [0] * own.shape[0]
            for one, other in zip(shared.row.tolist(), shared.col.tolist(), strict=True):
                self._meeting[key][one] |= 1 << other
        return self._meeting[key]

    def rows_of(self, q: int, number: int) -> IntArray:
        """Return the rows of a request on a prism."""
        if q >= self.num_jobs:
            return self.rows_of_free[q - self.num_jobs]
        own = self.torus.rows_of(Candidate(q, self.prisms.prisms[number]))
        return np.concatenate([own, self.rows_blocked[number]])


@dataclass(frozen=True)
class _Kept:
    """The requests of a packing, by their numbers among all; its fixed jobs, and what they leave.

    `fixed` are the jobs, numbered among all, and `capacities` what they leave of the rows.
    """

    own: IntArray
    capacities: IntArray
    fixed: tuple[Candidate, ...] = ()


class AnchoredPacking(PackingProblem):
    """A placement on a machine with anchored prisms, as rows, requests and an oracle.

    Candidates whose `request_idx` is beyond the queue's are prisms that stay free.
    """

    senses = (1, -1)

    def __init__(
        self,
        problem: PlacementProblem,
        tables: _Tables | None = None,
        kept: _Kept | None = None,
    ) -> None:
        self.placement = problem
        self._tables = tables = tables or _Tables(problem)
        jobs = [request.id for request in problem.requests]
        prisms = tables.prisms
        names = (prisms.prisms[k].text.replace(",", ".") for k in tables.free.tolist())
        every = [*jobs, *(FREE_PREFIX + name for name in names)]
        values = np.zeros(len(every), dtype=np.int64)
        values[: len(jobs)] = [request.value for request in problem.requests]
        rooms = np.ones(tables.num_free_rows, dtype=np.int64)
        kept = kept or _Kept(
            np.arange(len(every)), np.concatenate([tables.torus.capacities, rooms])
        )
        self._own, self._fixed = kept.own, kept.fixed
        self.names = [every[k] for k in kept.own.tolist()]
        self.values = values[kept.own]
        self.capacities = kept.capacities
        self.num_covers = problem.torus.num_routers
        own_rows = slice(tables.first_free_row, tables.first_free_row + tables.num_free_rows)
        self.families = {**tables.torus.families, "free": own_rows}
        self._position = {whole: here for here, whole in enumerate(kept.own.tolist())}
        self._spans = [tables.spans[k] for k in kept.own.tolist()]
        self._alike = [tables.alike[k] for k in kept.own.tolist()]
        counts = [request.num_prisms for request in problem.requests]
        self._counts = [counts[k] if k < len(counts) else 1 for k in kept.own.tolist()]

    @cached_property
    def row_weights(self) -> FloatArray:
        """Nodes of routers, and little for the others."""
        weights = np.full(self.num_rows, 1e-3)
        weights[: self.num_covers] += self.placement.torus.nodes_per_router
        return weights

    def is_job(self, candidate: Candidate) -> bool:
        """Return whether a candidate is a job in its place, not a prism that stays free."""
        return int(self._own[candidate.request_idx]) < self._tables.num_jobs

    # candidates

    def rows_of(self, candidate: Candidate) -> IntArray:
        """Return the rows of a job, routers first; or those of a prism that stays free."""
        whole, numbers = int(self._own[candidate.request_idx]), self._tables.prisms.numbers
        if not candidate.others:
            return self._tables.rows_of(whole, numbers[candidate.prism])
        every = [self._tables.rows_of(whole, numbers[prism]) for prism in candidate.prisms]
        return np.sort(np.concatenate(every))

    def values_of(self, candidates: Sequence[Candidate]) -> IntArray:
        """Return the values of candidates: jobs, or prisms that stay free."""
        found = np.zeros((len(candidates), 2), dtype=np.int64)
        for k, candidate in enumerate(candidates):
            found[k, 0] = self.values[candidate.request_idx]
            if not self.is_job(candidate):
                found[k, 1] = self._tables.prisms.worth[
                    self._tables.prisms.numbers[candidate.prism]
                ]
        return found

    def largest(self, level: int) -> int:
        """Return an upper bound on a candidate's value."""
        return int((self._tables.prisms.worth if level else self.values).max(initial=0))

    def most(self, level: int) -> int:
        """Return the value of all prisms that stay free."""
        return int(self._tables.prisms.worth[self._tables.free].sum())

    def reported(self, level: int, value: int) -> int:
        """Return a value as it is reported: on the second level what is blocked."""
        return int(self._tables.prisms.worth.sum()) - value if level else value

    def covers(self, candidate: Candidate, row: int) -> bool:
        """Return whether a job's prism has a router; one that stays free takes none."""
        prisms = self._tables.prisms
        numbers = [prisms.numbers[prism] for prism in candidate.prisms]
        return self.is_job(candidate) and any(prisms.inside[number, row] for number in numbers)

    def breakable(self, candidate: Candidate, rows: IntArray) -> IntArray:
        """Return the rows of links outside the prism, and of prisms that stay free."""
        tables = self._tables
        if not self.is_job(candidate):
            return rows
        idx = int(self._own[candidate.request_idx])
        split = int(np.searchsorted(rows >= tables.first_free_row, True))
        if candidate.others:  # they use no links
            return rows[split:]
        links = tables.torus.breakable(replace(candidate, request_idx=idx), rows[:split])
        return np.concatenate([links, rows[split:]])

    # the oracle

    @property
    def is_small(self) -> bool:
        """Whether linear programs bound the first level, too."""
        return bool(self._tables.amounts.nnz <= _FEW_ENTRIES)

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return _CALL_WORK + _ENTRY_WORK * float(self._tables.amounts.nnz)

    @cached_property
    def _there(self) -> BoolArray:
        """Mark the candidates that take of no row without capacity."""
        full = (self.capacities == 0).astype(np.int64)
        return np.asarray(self._tables.amounts @ full == 0)

    def price(
        self,
        row_prices: IntArray,
        weights: Sequence[int],
        per_request: int,
        covers: tuple[Cover, ...] = (),
        *,
        exact_for: frozenset[int] | None = None,
    ) -> Priced:
        """Return the best candidates of every request."""
        tables = self._tables
        paid = tables.amounts @ row_prices
        best = np.full(len(self.names), NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Candidate]]] = []
        covered: dict[int, list[Cover]] = {}
        for cover in covers:
            covered.setdefault(cover.request_idx, []).append(cover)
        cheapest: dict[tuple[int, int], IntArray] = {}
        together: dict[object, tuple[int | None, list[tuple[int, list[int]]]]] = {}
        for q, whole in enumerate(self._own.tolist()):
            span, gain = self._spans[q], weights[0] * int(self.values[q])
            if whole >= tables.num_jobs:
                at = span.start
                worth = int(tables.prisms.worth[tables.which[at]]) if len(weights) > 1 else 0
                order = np.array([at])[self._there[at : at + 1]]
                order = order if not any(c.inside for c in covered.get(q, ())) else order[:0]
                gain = weights[-1] * worth
            elif self._counts[q] > 1:
                own = span.start, span.stop, self._counts[q], tuple(covered.get(q, ()))
                if own not in together:
                    together[own] = self._together(span, paid, self._counts[q], own[-1])
                least, sets = together[own]
                if least is not None:
                    best[q] = max(gain - least, NO_VALUE)
                every = tables.prisms.prisms
                places = [(c, [every[k] for k in tables.which[at].tolist()]) for c, at in sets]
                columns.append([(gain - cost, in_prisms(q, own)) for cost, own in places])
                continue
            elif q in covered:
                order = self._cheapest(span, paid, per_request, covered[q])
            else:
                key = span.start, span.stop
                if key not in cheapest:
                    cheapest[key] = self._cheapest(span, paid, per_request, ())
                order = cheapest[key]
            found = [
                (gain - int(paid[k]), Candidate(q, tables.prisms.prisms[tables.which[k]]))
                for k in order.tolist()
            ]
            if found:
                best[q] = found[0][0]
            columns.append(found)
        return Priced(best, columns)

    def _holding(self, span: slice, row: int) -> BoolArray:
        """Mark the candidates of a span whose prism has a router."""
        inside = self._tables.prisms.inside[:, [row]].toarray().ravel() > 0
        return np.asarray(inside[self._tables.which[span]])

    def _together(
        self, span: slice, paid: IntArray, count: int, covers: Sequence[Cover]
    ) -> tuple[int | None, list[tuple[int, list[int]]]]:
        """Return the least cost of `count` disjoint candidates of a span, and sets with costs.

        The cheapest set is first. None if there is none. If the search was abandoned, the bound is
        the cost of the cheapest candidates, whether they meet or not.
        """
        there = self._there[span].copy()
        must = []
        for cover in covers:
            holding = self._holding(span, cover.row)
            if cover.inside:
                must.append({*np.flatnonzero(holding).tolist()})
            else:
                there &= ~holding
        costs, start = paid[span].tolist(), span.start
        order = sorted(np.flatnonzero(there).tolist(), key=costs.__getitem__)
        search = DisjointSearch(costs, self._tables.meeting(span), count)
        search.run([], 0, order, must)
        sets = [(cost, [start + k for k in chosen]) for cost, chosen in search.found[::-1]]
        if search.steps <= MAX_STEPS:
            return sets[0][0] if sets else None, sets
        return sum(costs[k] for k in order[:count]), sets

    def _cheapest(
        self, span: slice, paid: IntArray, number: int, covers: Sequence[Cover]
    ) -> IntArray:
        """Return the `number` cheapest candidates of a span, of equal ones the first."""
        there = self._there[span].copy()
        for cover in covers:
            there &= self._holding(span, cover.row) == cover.inside
        at = span.start + np.flatnonzero(there)
        return np.asarray(at[np.argsort(paid[at], kind="stable")[:number]])

    @property
    def start_prices(self) -> IntArray:
        """Prices at which no request has a value above what it pays."""
        prices = np.zeros(self.num_rows, dtype=np.int64)
        per_node = max((r.priority for r in self.placement.requests), default=1)
        prices[: self.num_covers] = per_node * self.placement.torus.nodes_per_router
        return prices

    # what is known of requests

    @cached_property
    def kinds(self) -> Sequence[Hashable]:
        """Equal requests are of one kind; none of them needs to have a candidate."""
        return list(zip(self._alike, self._counts, self.values.tolist(), strict=True))

    def dominating(self, startable: frozenset[int]) -> dict[int, frozenset[int]]:
        """Return by request those like it that have a higher value, or come before."""
        alike: dict[Hashable, list[int]] = {}
        for q in sorted(startable):
            alike.setdefault((self._alike[q], self._counts[q]), []).append(q)
        better: dict[int, frozenset[int]] = {}
        for members in alike.values():
            members.sort(key=lambda q: (-self.values[q], q))
            better |= {q: frozenset(members[:k]) for k, q in enumerate(members)}
        return better

    # primal side

    def completed(self, placement: Iterable[Candidate]) -> list[Candidate]:
        """Return the jobs of a placement, and all prisms that these leave free."""
        jobs = [candidate for candidate in placement if self.is_job(candidate)]
        left = self.capacities.copy()
        for candidate in jobs:
            left[self.rows_of(candidate)] -= 1
        tables = self._tables
        stay = [
            Candidate(self._position[tables.num_jobs + k], tables.prisms.prisms[number])
            for k, number in enumerate(tables.free.tolist())
            if tables.num_jobs + k in self._position and (left[tables.rows_of_free[k]] > 0).all()
        ]
        return sorted([*jobs, *stay])

    def starts(self, deadline: float) -> Iterator[list[Candidate]]:
        """Yield the placements of Slurm's rule, in queue order and largest value first."""
        mine = sorted(k for k in self._own.tolist() if k < self._tables.num_jobs)
        largest = sorted(mine, key=lambda k: (-self.placement.requests[k].value, k))
        fixed = {candidate.request_idx for candidate in self._fixed}
        for number, order in enumerate((mine, largest)):
            if not number or clock.now() < deadline:
                every = slurm_torus3d(self.placement, order, deadline, self._fixed)
                new = [c for c in every if c.request_idx not in fixed]
                yield [replace(c, request_idx=self._position[c.request_idx]) for c in new]

    def left_by(self, fixed: Sequence[Candidate], kept: Sequence[int]) -> AnchoredPacking:
        """Return the problem that jobs leave; which prisms stay free is decided again."""
        left, jobs = self.capacities.copy(), list(self._fixed)
        for candidate in fixed:
            if self.is_job(candidate):
                left[self.rows_of(candidate)] -= 1
                jobs.append(replace(candidate, request_idx=int(self._own[candidate.request_idx])))
        own = self._own[np.array(kept, dtype=np.int64)]
        return AnchoredPacking(self.placement, self._tables, _Kept(own, left, tuple(jobs)))

    def near(self, candidates: Sequence[Candidate], first: Candidate) -> list[float]:
        """Return how many hops prisms are from one."""
        torus = self.placement.torus
        return [hops_between(torus, c.prism, first.prism) for c in candidates]


class DisjointSearch:
    """The cheapest set of a given number of disjoint candidates, by branch and bound.

    Attributes
    ----------
    found
        Sets met, each cheaper than the one before, with their costs; the last is the best.
    steps
        Steps taken; if they are more than `MAX_STEPS`, the search was abandoned.
    """

    def __init__(self, costs: Sequence[int], meeting: Sequence[int], count: int) -> None:
        self._costs, self._meeting, self._count = costs, meeting, count
        self.steps = 0
        self.found: list[tuple[int, list[int]]] = []

    def run(self, chosen: list[int], cost: int, left: list[int], must: Sequence[set[int]]) -> None:
        """Add to the chosen ones from the rest, in order of costs, one of each set of `must`."""
        self.steps += 1
        need = self._count - len(chosen)
        if not need:
            if not must:
                self.found.append((cost, chosen))
            return
        first = [k for k in left if k in must[0]] if must else left
        for number, k in enumerate(first):
            rest = left[number:] if not must else left
            # sets are distinguished by the first of them; of `must`, one holds the row
            least = sum(map(self._costs.__getitem__, rest[:need]))
            if must:
                least = max(least, self._costs[k])
            if self.found and cost + least >= self.found[-1][0]:
                return
            if len(rest) < need or self.steps > MAX_STEPS:
                return
            open_to = ~self._meeting[k]
            after = [other for other in (rest if must else rest[1:]) if open_to >> other & 1]
            kept = [one for one in must if k not in one]
            self.run([*chosen, k], cost + self._costs[k], after, kept)
