"""Requests alone at their least cost, and all that start together.

Alone, a request gets a start, a bound, and better allocations where the bound leaves a gap.
Together, they are placed one after the other, then each again if that helps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from topoplace import clock
from topoplace.placement.switches.allocators import registered_allocator, serve
from topoplace.placement.switches.cost import CostModel
from topoplace.placement.switches.exact.annealing import best_start, realised, turned
from topoplace.placement.switches.exact.binomial import DoublingSearch, doubles
from topoplace.placement.switches.exact.cubes import SideOracle, has_sides
from topoplace.placement.switches.exact.grids import LineOracle, has_lines, is_grid
from topoplace.placement.switches.exact.job import Job, job_of
from topoplace.placement.switches.exact.leaf_states import StateOracle
from topoplace.placement.switches.exact.settling import CountedSearch, around, chained
from topoplace.placement.switches.exact.starts import Part
from topoplace.placement.switches.exact.thresholds import Oracle, ThresholdSearch, certificate_of
from topoplace.placement.switches.outcome import costs_of
from topoplace.placement.switches.problem import TreeProblem
from topoplace.result.tree import ThresholdNogood
from topoplace.snapshot.schema import Pattern, PatternUse
from topoplace.types import IntArray

Leaves = Mapping[int, IntArray]
"""Per request that starts, the leaf of every rank."""

_ALLOCATORS = ("default", "greedy", "balanced", "adaptive", "fewest-domains", "random")

_SEARCH = 0.7
"""Share of the time for the bound."""

_MOST_OPEN = 12
"""Thresholds to settle ranks at."""

_START = 0.6
"""Share of the time of a grid's start for annealing; chains have the rest."""

_EACH, _ALL = 0.1, 0.8
"""Shares of the time for counts that are likely to fit: for each of those, then for all; the
first ones get most to settle."""


def at_share(share: float, deadline: float) -> float:
    """Return the time when a share of what is left until a deadline is over."""
    now = clock.now()
    return now + share * (deadline - now)


@dataclass(frozen=True)
class Room:
    """Where one request may go: L_comm without it and free nodes per leaf."""

    model: CostModel
    comm: IntArray
    free: IntArray

    def jobs(self, patterns: Sequence[PatternUse], ranks: int) -> list[Job]:
        """Return the request on every set of leaves that it may use together and fits on."""
        found = [
            job_of(self.model, patterns, ranks, self.comm, self.free, domain)
            for domain in self.model.machine.roots
        ]
        return [job for job in found if int(self.free[job.domain].sum()) >= ranks]


@dataclass(frozen=True)
class Answer:
    """The least cost known of a request, the leaf of every rank at it, and a lower bound.

    `nogoods` prove the bound on a single domain; None if they cannot.
    """

    leaves: IntArray
    cost: Fraction
    bound: Fraction
    nogoods: list[ThresholdNogood] | None = None


def least_cost(jobs: Sequence[Job], leaves: IntArray, deadline: float, seed: int) -> Answer:
    """Return a bound over all domains of a request, and a better allocation if one turns up."""
    cost = Fraction(jobs[0].cost(leaves), 100 * int(jobs[0].model.scale))
    best = Answer(leaves, cost, cost)
    for number, job in enumerate(jobs):
        end = at_share(1 / (len(jobs) - number), deadline)
        found = (_doubled if doubles(job) else _settled)(job, best.leaves, end, seed)
        best = replace(found, bound=min(best.bound, found.bound, found.cost))
    return best if len(jobs) == 1 else replace(best, nogoods=None)


def _answer(
    job: Job, leaves: IntArray, bound: int, nogoods: list[ThresholdNogood] | None
) -> Answer:
    """Return an answer with a bound in units of the job."""
    cost = Fraction(job.cost(leaves), 100 * int(job.model.scale))
    found = Fraction(bound * job.price_unit, 100 * job.scale)
    return Answer(leaves, cost, min(cost, found), nogoods if job.exact else None)


_ORACLES: tuple[tuple[Callable[[Job], bool], Callable[[Job], Oracle]], ...] = (
    (has_lines, LineOracle),
    (has_sides, SideOracle),
    (lambda job: True, StateOracle),
)
"""By whether a job is one that it is made for, the first that suits."""


def _doubled(job: Job, leaves: IntArray, deadline: float, seed: int) -> Answer:
    """Return the best allocation found and a bound of a binomial job."""
    search = DoublingSearch(job, leaves, at_share(0.98, deadline), seed)
    bound, leaves = search.run(), search.leaves
    if bound < job.units(leaves):
        leaves = realised(job, leaves, bound, deadline, seed)
    return _answer(job, leaves, bound, certificate_of(job, search.nogoods))


def _settled(job: Job, leaves: IntArray, deadline: float, seed: int) -> Answer:
    """Return a bound, and the best allocation found where it leaves thresholds."""
    oracle = next(kind for suits, kind in _ORACLES if suits(job))(job)
    search = ThresholdSearch(job, oracle, job.units(leaves), at_share(_SEARCH, deadline), seed)
    counted = CountedSearch(job, leaves, seed)
    bound = search.to_beat
    for num_open, found in enumerate(search.open_thresholds(), start=1):
        bound = found.cost if num_open == 1 else bound
        if num_open > _MOST_OPEN or clock.now() > search.deadline:
            break
        if found.counts is None:
            break  # nothing is known of them
        if job.families[0].pattern is Pattern.RING:
            counted.best = min(counted.best, around(job, found.counts), key=job.cost)
        else:
            counted.add(job.values[found.at], found.cost, found.counts)
        fits = counted.run(at_share(_EACH / num_open, deadline))
        if fits or job.units(counted.best) <= found.cost:
            break  # the next thresholds cost as much or more
    counted.run_on(bound, at_share(_ALL, deadline))
    leaves = realised(job, counted.best, bound, deadline, seed)
    return _answer(job, leaves, bound, certificate_of(job, search.nogoods, search.num_proven))


def in_order(job: Job) -> IntArray:
    """Return the leaf of every rank, leaf after leaf."""
    return np.repeat(job.domain, job.free[job.domain])[: job.ranks]


# ---- Several requests ---------------------------------------------------------------------------


class Placing:
    """Places the requests of a problem on the nodes that the running jobs leave."""

    def __init__(self, problem: TreeProblem, seed: int) -> None:
        self._problem = problem
        self._seed = seed
        found = map(registered_allocator, _ALLOCATORS)
        self._allocators = [allocator for allocator in found if allocator is not None]
        self.room = Room(problem.costs, problem.state.comm, problem.occupancy().free_per_leaf)

    def good(self, q: int, room: Room, deadline: float) -> IntArray | None:
        """Return a good allocation of one request; None if it does not fit.

        Where only the running jobs are there, it is no worse than any of the algorithms'.
        """
        request = self._problem.requests[q]
        jobs = room.jobs(request.patterns, request.nodes)
        if not jobs:
            return None
        found = []
        if room is self.room:
            occupancy = self._problem.occupancy()
            rng = np.random.default_rng(self._seed)
            nodes = [allocator(occupancy, request, rng) for allocator in self._allocators]
            leaf_of_node = self._problem.state.machine.leaf_of
            found += [leaf_of_node[own] for own in nodes if own is not None]
        for number, job in enumerate(jobs):
            end = at_share(1 / (len(jobs) - number), deadline)
            start = best_start(job, at_share(_START if is_grid(job) else 1.0, end), self._seed)
            if start is not None:
                found.append(start)
                found += chained(job, end) if is_grid(job) else ()
        return turned(jobs[0], min(found, key=jobs[0].cost)) if found else None

    def served(self) -> list[dict[int, IntArray]]:
        """Return the allocations of the algorithms for the queue."""
        every = [serve(allocator, self._problem, self._seed) for allocator in self._allocators]
        leaf_of_node = self._problem.state.machine.leaf_of
        return [{q: leaf_of_node[nodes] for q, nodes in one.items()} for one in every]

    def worth(self, started: Iterable[int]) -> int:
        """Return the value of the nodes of some requests."""
        return sum(self._problem.requests[q].value for q in started)

    def place(self, parts: Mapping[int, Part], deadline: float) -> dict[int, IntArray]:
        """Place requests in their parts one after the other, intensive and large ones first."""
        requests = self._problem.requests
        order = sorted(parts, key=lambda q: (not requests[q].intensive, -requests[q].nodes, q))
        placed: dict[int, IntArray] = {}
        for number, q in enumerate(order):
            room = self._left(placed)
            inside = np.isin(np.arange(len(room.free)), parts[q].leaves)
            room = replace(room, free=np.where(inside, room.free, 0))
            if requests[q].intensive:
                leaves = self.good(q, room, at_share(1 / (len(order) - number), deadline))
                assert leaves is not None, "it fits in its part"
                placed[q] = leaves
            else:
                placed[q] = in_order(room.jobs((), requests[q].nodes)[0])
        return placed

    def _left(self, placed: Leaves) -> Room:
        """Return the leaves as some requests leave them."""
        comm, free = self.room.comm.copy(), self.room.free
        for q, leaves in placed.items():
            taken = np.bincount(leaves, minlength=len(free))
            free = free - taken
            if self._problem.requests[q].intensive:
                comm += taken
        return Room(self.room.model, comm, free)

    def improved(self, placed: dict[int, IntArray], deadline: float) -> dict[int, IntArray]:
        """Place one request after the other again as long as that lowers the total cost."""
        best = self.cost(placed)
        movable = [q for q in placed if self._problem.requests[q].intensive]
        tried = 0
        for q in itertools.cycle(movable):
            if tried == len(movable) or clock.now() > deadline:
                break
            tried += 1
            others = {other: leaves for other, leaves in placed.items() if other != q}
            room = self._left(others)
            anew = self.good(q, room, at_share(1 / (2 * len(movable)), deadline))
            if anew is not None and (cost := self.cost({**others, q: anew})) < best:
                best, placed, tried = cost, {**others, q: anew}, 0
        return placed

    def nodes(self, placed: Leaves) -> dict[int, IntArray]:
        """Return the nodes of every rank: on each leaf the lowest-numbered free ones."""
        occupancy = self._problem.occupancy()
        nodes = {}
        for q, leaves in placed.items():
            nodes[q] = occupancy.nodes_of([(leaf, 1) for leaf in leaves.tolist()])
            occupancy.start(nodes[q], self._problem.requests[q].intensive)
        return nodes

    def cost(self, placed: Leaves) -> Fraction:
        """Return the total cost of eq. (6)."""
        return sum(costs_of(self._problem, self.nodes(placed)).values(), Fraction(0))
