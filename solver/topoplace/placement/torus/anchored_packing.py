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
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property

import numpy as np

from topoplace import clock
from topoplace.machine import Prism
from topoplace.packing.positions import Costed, Form, PositionPacking, Positions
from topoplace.placement.torus.anchored import (
    AnchoredPrisms,
    busy_routers,
    candidates_of,
    prisms_of,
)
from topoplace.placement.torus.heuristics.fits import slurm_torus3d
from topoplace.placement.torus.packing import TorusPacking, hops_between
from topoplace.placement.torus.problem import Candidate, PlacementProblem, in_prisms
from topoplace.result.base import Start
from topoplace.snapshot.schema import FREE_PREFIX
from topoplace.types import BoolArray, FloatArray, IntArray

_FEW_ENTRIES = 1 << 20
"""Rows of all candidates together up to which linear programs bound the first level, too."""

MAX_STEPS = 2000
"""Steps of a search for disjoint prisms of a request in segments; few if all are disjoint."""

_CALL_WORK, _ENTRY_WORK = 1e-3, 2e-9  # nominal seconds of an oracle call, and by row of candidates


class AnchoredPacking(PositionPacking):
    """A placement on a machine with anchored prisms, as rows, requests and an oracle.

    A position is a prism for requests of one kind. Spares are prisms that stay free.

    Parameters
    ----------
    keeps
        Whether there are spares.
    """

    senses = (1, -1)

    def __init__(self, problem: PlacementProblem, *, keeps: bool = True) -> None:
        self.placement, self.torus = problem, TorusPacking(problem)
        self._prisms: AnchoredPrisms = prisms_of(problem)
        prisms, num_routers = self._prisms, problem.torus.num_routers
        free = np.flatnonzero(keeps & ~prisms.meeting(busy_routers(problem))).tolist()
        rows_of_free, blocked = _rows_that_stay(prisms, free, self.torus.num_rows)
        rows: list[IntArray] = []
        self._which: list[int] = []  # by position, the number of its prism
        forms, requests = self._forms(rows, blocked), problem.requests
        self._which += free
        forms += [Form(np.array([len(rows) + k])) for k in range(len(free))]
        num_rooms = sum(map(len, rows_of_free))
        ends = self.torus.num_rows, self.torus.num_rows + num_rooms
        capacities = np.concatenate([self.torus.capacities, np.ones(num_rooms, dtype=np.int64)])
        families = {**self.torus.families, "free": slice(*ends)}
        names = [request.id for request in requests]
        names += [FREE_PREFIX + prisms.prisms[k].text.replace(",", ".") for k in free]
        worth = np.zeros((len(names), 2), dtype=np.int64)
        worth[: len(requests), 0] = [request.value for request in requests]
        worth[len(requests) :, 1] = prisms.worth[free]
        rows += rows_of_free
        super().__init__(names, worth, forms, rows, families, capacities, len(requests))
        self.num_covers = num_routers
        self._running: tuple[Candidate, ...] = ()
        self._meeting: dict[Form, list[int]] = {}

    def _forms(self, rows: list[IntArray], blocked: Sequence[IntArray]) -> list[Form]:
        """Return the forms of the requests, and number their positions on from those with `rows`.

        A prism takes its routers and links, and of the rows of the prisms that it blocks.
        """
        problem, prisms = self.placement, self._prisms.prisms
        positions: dict[Hashable, IntArray] = {}
        known: dict[Hashable, Form] = {}
        found = []
        for q, r in enumerate(problem.requests):
            kind: Hashable = (r.classes, r.region, r.communication, r.segment or r.nodes)
            if problem.is_tolerant(r.communication):
                kind = self.torus.kinds[q]
            if kind not in positions:
                mine = candidates_of(problem, q).tolist()
                positions[kind] = len(rows) + np.arange(len(mine))
                self._which += mine
                for k in mine:
                    taken = self.torus.rows_of(Candidate(q, prisms[k]))
                    rows.append(np.concatenate([taken, blocked[k]]))
            key, ways = (kind, r.num_prisms), list[BoolArray]()
            if r.num_prisms > 1 and r.others:
                which = np.array(self._which, dtype=np.int64)[positions[kind]]
                ways = [np.isin(which, candidates_of(problem, q, way)) for way in r.ways]
            found.append(known.setdefault(key, Form(positions[kind], r.num_prisms, tuple(ways))))
        return found

    @cached_property
    def row_weights(self) -> FloatArray:
        """Nodes of routers, and little for the others."""
        weights = np.full(self.num_rows, 1e-3)
        weights[: self.num_covers] += self.placement.torus.nodes_per_router
        return weights

    # candidates

    def jobs(self, placement: Sequence[Positions]) -> list[Candidate]:
        """Return the jobs of a placement, numbered as in the whole problem, on their prisms."""
        return [
            in_prisms(int(self.own[c.request_idx]), [self._prism(s) for s in c.positions])
            for c in placement
            if not self.spares[c.request_idx]
        ]

    def _prism(self, position: int) -> Prism:
        return self._prisms.prisms[self._which[position]]

    def label(self, candidate: Positions) -> str:
        """Return extents and origins."""
        return "_".join(self._prism(position).text for position in candidate.positions)

    def rows_at(self, start: Start) -> list[int]:
        """Return the routers of a start's prisms."""
        first = self.torus.rows_at(start)
        others = (prism.routers(self.placement.torus).tolist() for prism in start.others)
        return list(itertools.chain(first, *others))

    def largest(self, level: int) -> int:
        """Return an upper bound on a candidate's value."""
        return int((self._prisms.worth if level else self.values).max(initial=0))

    def reported(self, level: int, value: int) -> int:
        """Return a value as it is reported: on the second level what is blocked."""
        return int(self._prisms.worth.sum()) - value if level else value

    def covers(self, candidate: Positions, row: int) -> bool:
        """Tell whether a job's prism has a router; one that stays free takes none."""
        return any(self.amounts[position, row] for position in candidate.positions)

    def breakable(self, candidate: Positions, rows: IntArray) -> IntArray:
        """Return the rows of links outside the prism, and of prisms that stay free."""
        is_room = rows >= self.families["free"].start
        if len(candidate.positions) > 1 or self.spares[candidate.request_idx]:
            return np.asarray(rows[is_room])  # these use no links
        [job] = self.jobs([candidate])
        return np.concatenate([self.torus.breakable(job, rows[~is_room]), rows[is_room]])

    # the oracle

    @property
    def is_small(self) -> bool:
        """Whether linear programs bound the first level, too."""
        return bool(self.amounts.nnz <= _FEW_ENTRIES)

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return _CALL_WORK + _ENTRY_WORK * float(self.amounts.nnz)

    def together(
        self,
        form: Form,
        costs: IntArray,
        allowed: BoolArray,
        must: Sequence[BoolArray],
        most: int,
    ) -> tuple[int | None, Costed]:
        """Return the least cost of a number of disjoint prisms; and sets, the cheapest first.

        Of a search that was left off the bound is the cost of the cheapest prisms, whether they
        meet or not.
        """
        own = costs[form.positions].tolist()
        order = sorted(np.flatnonzero(allowed).tolist(), key=own.__getitem__)
        search = DisjointSearch(own, self._meeting_in(form), form.count)
        search.run([], 0, order, [{*np.flatnonzero(marks).tolist()} for marks in must])
        positions = form.positions.tolist()
        sets = [
            (cost, tuple(sorted(positions[k] for k in chosen)))
            for cost, chosen in search.found[::-1]
        ]
        if search.steps <= MAX_STEPS:
            return (sets[0][0] if sets else None), sets
        return sum(own[k] for k in order[: form.count]), sets

    def _meeting_in(self, form: Form) -> list[int]:
        """Return by position of a form which of them its prism meets, as bits."""
        if form not in self._meeting:
            own = self._prisms.inside[
                [self._which[position] for position in form.positions.tolist()]
            ]
            shared = (own @ own.T).tocoo()
            found = self._meeting[form] = [0] * len(form.positions)
            for one, other in zip(shared.row.tolist(), shared.col.tolist(), strict=True):
                found[one] |= 1 << other
        return self._meeting[form]

    @property
    def start_prices(self) -> IntArray:
        """Prices at which no request has a value above what it pays."""
        prices = np.zeros(self.num_rows, dtype=np.int64)
        per_node = max((-(-r.value // r.nodes) for r in self.placement.requests), default=1)
        prices[: self.num_covers] = per_node * self.placement.torus.nodes_per_router
        return prices

    # what is known of requests

    def dominating(self, startable: frozenset[int]) -> dict[int, frozenset[int]]:
        """Return, for each request, those like it that have a higher value or come before it."""
        alike: dict[Form, list[int]] = {}
        for q in sorted(startable, key=lambda q: (-self.values[q], q)):
            alike.setdefault(self.forms[q], []).append(q)
        return {
            q: frozenset(members[:k]) for members in alike.values() for k, q in enumerate(members)
        }

    # primal side

    def starts(self, deadline: float) -> Iterator[list[Positions]]:
        """Yield the placements of Slurm's rule, in queue order and largest value first."""
        mine = self.own[~self.spares].tolist()
        position = {whole: here for here, whole in enumerate(self.own.tolist())}
        largest = sorted(mine, key=lambda k: (-self.placement.requests[k].value, k))
        for number, order in enumerate((mine, largest)):
            if not number or clock.now() < deadline:
                every = slurm_torus3d(self.placement, order, deadline, self._running)
                new = [c for c in every if c.request_idx in position]
                yield [self.positions_of(position[c.request_idx], c) for c in new]

    def positions_of(self, q: int, job: Candidate) -> Positions:
        """Return a job on its prisms as a candidate of a request."""
        numbers = {self._prisms.numbers[prism] for prism in job.prisms}
        own = self.forms[q].positions.tolist()
        return Positions(q, tuple(position for position in own if self._which[position] in numbers))

    def left_by(self, fixed: Sequence[Positions], kept: Sequence[int]) -> AnchoredPacking:
        """Return the problem that jobs leave; prisms that stay free are decided anew."""
        rest = super().left_by([c for c in fixed if not self.spares[c.request_idx]], kept)
        rest._running = (*self._running, *self.jobs(fixed))
        return rest

    def narrowed(self, earlier: PlacementProblem) -> AnchoredPacking:
        """Return the problem when more jobs run, with the same rows and positions."""
        capacities, known = self.capacities.copy(), dict[Form, Form]()
        capacities[: self.num_covers] = ~earlier.state.occupied
        which = np.array(self._which, dtype=np.int64)
        for q, form in enumerate(self.forms):
            if form not in known:
                known[form] = form.among(np.isin(which[form.positions], candidates_of(earlier, q)))
        return self.where(capacities, [known[form] for form in self.forms])

    def near(self, candidates: Sequence[Positions], first: Positions) -> list[float]:
        """Return how many hops prisms are from one."""
        torus, own = self.placement.torus, self._prism(first.positions[0])
        return [hops_between(torus, self._prism(c.positions[0]), own) for c in candidates]


def _rows_that_stay(
    prisms: AnchoredPrisms, free: Sequence[int], first_row: int
) -> tuple[list[IntArray], list[IntArray]]:
    """Return the rows of prisms that stay free, and by prism those that it blocks.

    There is a row by free prism and block of its routers.
    """
    every = prisms.inside
    routers = [every.indices[a:b] for a, b in itertools.pairwise(every.indptr.tolist())]
    own = [np.zeros(0, dtype=np.int64)]
    for number in free:
        blocks, first = np.unique(prisms.blocks[routers[number]], return_index=True)
        own.append(blocks[np.argsort(first)])  # by their lowest router
    ends = first_row + np.cumsum([len(blocks) for blocks in own])
    rows_of_free = [np.arange(a, b) for a, b in itertools.pairwise(ends.tolist())]
    block_of_row = np.concatenate(own)
    order = np.argsort(block_of_row, kind="stable")
    starts = np.searchsorted(block_of_row[order], np.arange(prisms.blocks.max() + 2))
    blocked = []
    for inside in routers:
        held = np.unique(prisms.blocks[inside]).tolist()
        found = [order[starts[block] : starts[block + 1]] for block in held]
        blocked.append(first_row + np.sort(np.concatenate(found)))
    return rows_of_free, blocked


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
