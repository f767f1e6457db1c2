"""Prisms on a torus or mesh as a plug-in of the engine (`topoplace.packing`).

Rows are the routers, and the links by family: those of all strict jobs, and under the tolerant
rule those of every tolerant request, which it shares with all strict jobs
(docs/proofs/placement.md). Where no strict job waits, tolerant requests need none. The candidates
of machines small enough are listed (`all_candidates`), those of others are scanned.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, all_origins
from topoplace.packing.budget import Budget
from topoplace.packing.listed import ListedOracle
from topoplace.packing.problem import PackingProblem, Priced, Query
from topoplace.placement.torus.anchored import candidates_of, prisms_of
from topoplace.placement.torus.annealing import Annealer
from topoplace.placement.torus.footprints import footprints_of
from topoplace.placement.torus.heuristics.fits import best_fit, first_fit
from topoplace.placement.torus.heuristics.prism_search import near_depths
from topoplace.placement.torus.oracle._prism_rows import links_outside, rows_of_prisms
from topoplace.placement.torus.oracle.pricing import Prices, ScanPricer
from topoplace.placement.torus.problem import (
    Candidate,
    PlacementProblem,
    largest_shape_part,
    shape_parts,
)
from topoplace.result.base import Start
from topoplace.snapshot.state import QueuedState, RunningState
from topoplace.types import BoolArray, FloatArray, IntArray

MAX_PRISMS = 4_000
"""Machines with more prisms than this are scanned instead (`ScanPricer`)."""

MAX_CANDIDATES = 400_000
"""Prisms times requests, likewise: listing them takes a few seconds."""

MOST_LISTED = 60_000
"""Prisms times requests that are listed if there is no other way: that takes a second or two."""


MOST_PRISMS = 1 << 22
"""Prisms of machines up to which candidates are listed for models that are exported."""


def num_prisms(problem: PlacementProblem) -> int:
    """Count the prisms of a machine."""
    total = 1
    for n, wraps in zip(problem.torus.shape, problem.torus.wrap, strict=True):
        total *= n * (n - 1) + 1 if wraps else n * (n + 1) // 2
    return total


def are_few(problem: PlacementProblem) -> bool:
    """Return whether a machine's prisms, and candidates, are few enough to be listed."""
    num = num_prisms(problem)
    return num <= MAX_PRISMS and num * len(problem.requests) <= MAX_CANDIDATES


def all_candidates(
    problem: PlacementProblem, deadline: float = math.inf, *, minimal: bool = False
) -> list[Candidate]:
    """Return every candidate of every request (docs/proofs/placement.md, "The problem").

    Parameters
    ----------
    minimal
        Whether to leave out candidates of requests without geometry that contain another one of
        the request: a smaller prism takes nothing that a larger one around it does not take.

    Raises
    ------
    OutOfTimeError
        At the deadline.
    """
    torus = problem.torus
    if problem.is_anchored:
        every = prisms_of(problem).prisms
        queue = range(len(problem.requests))
        return [Candidate(q, every[k]) for q in queue for k in candidates_of(problem, q).tolist()]
    found: list[Candidate] = []
    for idx, request in enumerate(problem.requests):
        fits = _where_enough_fits(problem, request, deadline)
        for extents, at in fits.items():
            is_minimal = minimal and not request.geometries
            there = at & ~_around_smaller(fits, extents) if is_minimal else at
            here = (o for o in all_origins(torus, extents) if there[o])
            own = (Candidate(idx, Prism(origin, extents)) for origin in here)
            if request.geometries:
                own = (c for c in own if problem.matching_geometry(c) is not None)
            found += own
    return found


def _where_enough_fits(
    problem: PlacementProblem, request: QueuedState, deadline: float
) -> dict[tuple[int, ...], BoolArray]:
    """Return by extents the origins of prisms that are open to a request, with routers near it.

    Without a geometry they also have enough usable nodes.
    """
    torus, view = problem.torus, footprints_of(problem.torus)
    reach, per_router = problem.reach(request, view), problem.state.usable_per_router
    sums = [view.sums(per_router[class_idx]) for class_idx in request.classes]
    found = {}
    for extents in itertools.product(*(range(1, n + 1) for n in torus.shape)):
        clock.check(deadline)
        there = reach.of(view.index(extents[:-1])) >= extents[-1]
        if not request.geometries:
            held = [view.everywhere(own, extents) for own in sums]
            there = there & (np.max(held, axis=0) >= request.nodes)
        if request.near is not None:
            near = near_depths(torus, request.near)[view.index(extents[:-1])]
            there = there & (near <= extents[-1])
        found[extents] = there.reshape(torus.shape)
    return found


def _around_smaller(fits: dict[tuple[int, ...], BoolArray], extents: tuple[int, ...]) -> BoolArray:
    """Mark the origins of prisms that contain one with an extent less by one that fits."""
    found = np.zeros_like(fits[extents])
    for d, e in enumerate(extents):
        if e > 1:
            smaller = fits[*extents[:d], e - 1, *extents[d + 1 :]]
            if e == smaller.shape[d]:  # at any place along the dimension
                found |= smaller.any(axis=d, keepdims=True)
            else:
                found |= smaller | np.roll(smaller, -1, axis=d)
    return found


_ALIKE_SHARE = 0.97  # of the nodes of the largest: fewer would loosen the bound
_CALL_WORK = 2e-3  # nominal seconds of an oracle call, apart from its size


def resized(request: QueuedState, nodes: int) -> QueuedState:
    """Return a request as if it needed another number of nodes, on prisms of any shape."""
    return replace(request, nodes=nodes, geometries=())


class TorusPacking(PackingProblem):
    """A placement problem as rows, requests and an oracle of prisms.

    Parameters
    ----------
    threads
        How many a call of the oracle uses, by default one per core, at most eight.
    """

    def __init__(self, problem: PlacementProblem, threads: int | None = None) -> None:
        self.placement = problem
        self.senses = (1, 1, -1) if problem.costs is None else (1, -1)
        torus, requests = problem.torus, problem.requests
        self.names = [request.id for request in requests]
        self.values = np.array([request.value for request in requests], dtype=np.int64)
        self.num_covers = torus.num_routers
        uses_links = [problem.uses_links(r.communication) for r in requests]
        tolerant = [i for i, r in enumerate(requests) if problem.is_tolerant(r.communication)]
        if sum(uses_links) == len(tolerant):  # nobody is there to share no links with
            tolerant = []
        self._families: list[int | None] = [None, *tolerant]
        # a request too large for any machine, as those of other parts, shares nothing
        self._may_share = [
            i is None or requests[i].nodes <= torus.num_nodes for i in self._families
        ]
        num_rows = torus.num_routers + len(self._families) * torus.num_links
        self.capacities = np.ones(num_rows, dtype=np.int64)
        self.capacities[: torus.num_routers] = ~problem.state.occupied
        self.families = {"routers": slice(0, torus.num_routers)}
        for k, own in enumerate(self._families):
            name = "links" if own is None else f"links of {self.names[own]}"
            self.families[name] = self._links_of(k)
        self._machine = np.array(torus.shape), np.array(torus.strides), np.array(torus.wrap)
        self._pricer = ScanPricer(problem, threads)
        self.most_at_once = 1 if self._pricer.is_large else 2

    def _links_of(self, k: int) -> slice:
        """Return the rows of the links of family number k."""
        num_links = self.placement.torus.num_links
        start = self.num_covers + k * num_links
        return slice(start, start + num_links)

    @cached_property
    def row_weights(self) -> FloatArray:
        """Usable nodes of routers, and little for links."""
        weights = np.full(self.num_rows, 1e-3)
        weights[: self.num_covers] += self.placement.state.usable_of_any
        return weights

    # candidates

    def rows_of(self, candidate: Candidate) -> IntArray:
        """Return the rows of a prism, routers first."""
        return self.rows_of_all([candidate])[1]

    def rows_of_all(self, candidates: Sequence[Candidate]) -> tuple[IntArray, IntArray]:
        """Return the rows of prisms, of each the routers first."""
        linked = self._linked[[c.request_idx for c in candidates]]
        boxes = boxes_of(candidates, self.placement.torus.num_dims)
        starts, rows = rows_of_prisms(*self._machine, *boxes, linked)
        if len(self._families) == 1 or not linked.any():
            return starts, rows
        found = [np.zeros(0, dtype=np.int64)]
        for k, candidate in enumerate(candidates):
            routers, links = np.split(rows[starts[k] : starts[k + 1]], [candidate.prism.volume])
            found.append(np.concatenate([routers, *self._in_families(candidate, links)]))
        return np.cumsum([len(own) for own in found]), np.concatenate(found)

    @cached_property
    def _linked(self) -> BoolArray:
        """Which requests use rows of links."""
        problem, alone = self.placement, len(self._families) == 1
        own = [request.communication for request in problem.requests]
        return np.array(
            [problem.uses_links(x) and not (alone and problem.is_tolerant(x)) for x in own],
            dtype=bool,
        )

    def _in_families(self, candidate: Candidate, links: IntArray) -> Iterator[IntArray]:
        """Yield the rows of a prism's links in each family that it is in."""
        q = candidate.request_idx
        tolerant = self.placement.is_tolerant(self.placement.requests[q].communication)
        for k, family in enumerate(self._families):
            if family == q or (self._may_share[k] and not tolerant):
                yield links + k * self.placement.torus.num_links

    def breakable(self, candidate: Candidate, rows: IntArray) -> IntArray:
        """Return the rows of those links that do not lie inside the prism.

        Two jobs with disjoint routers share a link only if it lies outside the prism of one of
        them.
        """
        return self.breakable_of_all([candidate], np.array([0, len(rows)]), rows)

    def breakable_of_all(
        self, candidates: Sequence[Candidate], starts: IntArray, rows: IntArray
    ) -> IntArray:
        """Return the rows of links that do not lie inside their prism."""
        boxes = boxes_of(candidates, self.placement.torus.num_dims)
        outside: IntArray = links_outside(*self._machine, *boxes, starts, rows)
        return outside

    def values_of(self, candidates: Sequence[Candidate]) -> IntArray:
        """Return the values of candidates on the levels."""
        return self.placement.values_of(candidates)[:, : len(self.senses)]

    def listed(self, level: int) -> list[Candidate]:
        """Return all prisms, or on the first level those that contain no other one."""
        if num_prisms(self.placement) > MOST_PRISMS:
            expected = f"at most {MOST_PRISMS} prisms, for a model of all candidates"
            raise InputError(expected, field="machine", value=num_prisms(self.placement))
        found = all_candidates(self.placement, minimal=level == 0)
        if level:
            return found
        own = dict.fromkeys(found)
        better = self.dominating(frozenset(range(len(self.names))))
        for c in found:
            own |= {replace(c, request_idx=q): None for q in better[c.request_idx]}
        return sorted(own)

    def label(self, candidate: Candidate) -> str:
        """Return extents and origin."""
        return candidate.prism.text

    def rows_at(self, start: Start) -> list[int]:
        """Return the routers of a start's prism."""
        if start.origin is None or start.extents is None:
            raise InputError("starts on prisms", field="solution", value=start.request)
        routers = Prism(start.origin, start.extents).routers(self.placement.torus)
        return [int(r) for r in routers]

    def covers(self, candidate: Candidate, row: int) -> bool:
        """Return whether a prism has a router."""
        torus, prism = self.placement.torus, candidate.prism
        at = zip(torus.coords(row), torus.shape, prism.origin, prism.extents, strict=True)
        return all((c - o) % n < e for c, n, o, e in at)

    def largest(self, level: int) -> int:
        """Return an upper bound on a candidate's value, whatever the sign."""
        torus, weights = self.placement.torus, self.placement.state.snapshot.weights
        if level == 0:
            return int(self.values.max(initial=0))
        if self.placement.costs is not None:
            return max((int(costs.max()) for costs in self.placement.costs), default=0)
        if level == 1:
            return largest_shape_part(torus, weights) + weights.idle * torus.num_nodes
        return 2 * torus.num_dims * torus.num_routers

    def most(self, level: int) -> int:
        """Return an upper bound on the value of a placement on a later level."""
        if self.senses[level] < 0:
            return 0
        torus = self.placement.torus
        parts = shape_parts(torus, self.placement.state.snapshot.weights)
        nodes = np.full(torus.shape, torus.nodes_per_router, dtype=np.int64)
        for d, n in enumerate(torus.shape):
            along = [1] * torus.num_dims
            along[d] = n
            nodes = nodes * np.arange(1, n + 1).reshape(along)
        return sum(
            int(parts[nodes >= request.nodes].max(initial=0)) for request in self.placement.requests
        )

    # the oracle

    @cached_property
    def _listed(self) -> ListedOracle:
        """All candidates. They refer back to this; only small problems are kept for that long."""
        return ListedOracle(self, lambda: all_candidates(self.placement, self.deadline))

    @cached_property
    def every_candidate(self) -> list[Candidate] | None:
        """All candidates, of machines somewhat larger than those that are small, too."""
        if num_prisms(self.placement) * len(self.placement.requests) > MOST_LISTED:
            return None
        return all_candidates(self.placement, self.deadline)

    @property
    def _scan(self) -> ScanPricer:
        self._pricer.deadline = self.deadline
        return self._pricer

    @property
    def is_small(self) -> bool:
        """Whether all candidates are listed."""
        return are_few(self.placement)

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return _CALL_WORK + (0.0 if self.is_small else self._scan.work(level))

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best prisms of every request."""
        if self.is_small:
            return self._listed.price(row_prices, query)
        return self._scan.price(self.priced(row_prices), query)

    def priced(self, row_prices: IntArray) -> Prices:
        """Return prices of rows as those of routers, and of links by family."""
        links = {}
        for k, family in enumerate(self._families):
            part = row_prices[self._links_of(k)]
            if part.any():
                links[family] = part
        return Prices(row_prices[: self.num_covers], links)

    def beside(self, fixed: Sequence[Candidate]) -> TorusPacking:
        """Return the problem whose oracle leaves out the prisms that meet fixed jobs."""
        if self.is_small:
            return self
        taken = np.zeros(self.num_rows, dtype=np.int64)
        for candidate in fixed:
            taken[self.rows_of(candidate)] = 1
        narrowed = copy(self)
        narrowed._pricer = self._scan.beside(self.priced(taken))
        return narrowed

    @cached_property
    def start_prices(self) -> IntArray:
        """Prices that bound the nodes started by the number of usable nodes."""
        prices = np.zeros(self.num_rows, dtype=np.int64)
        usable = self.placement.state.usable_of_any
        highest = max((-(-r.value // r.nodes) for r in self.placement.requests), default=1)
        prices[: self.num_covers] = usable * highest
        return prices

    # what is known of requests

    @property
    def kinds(self) -> Sequence[Hashable]:
        """Equal requests without rows of their own are of one kind."""
        return self.placement.kinds

    def _sort(self, q: int) -> tuple[object, ...]:
        """Return what requests have in common that may differ only in the number of nodes."""
        r = self.placement.requests[q]
        shapes = (r.nodes, r.geometries) if r.geometries else ()
        return r.classes, r.region, r.communication, shapes, r.near, self.placement.priced_as(q)

    def dominating(self, startable: frozenset[int]) -> dict[int, frozenset[int]]:
        """Return by request those like it that need no more nodes and have at least its value."""
        requests = self.placement.requests
        alike: dict[object, list[int]] = {}
        for q in sorted(startable):
            alike.setdefault(self._sort(q), []).append(q)
        better: dict[int, frozenset[int]] = {}
        for members in alike.values():
            members.sort(key=lambda q: (-requests[q].value, requests[q].nodes, q))
            for k, q in enumerate(members):
                before = (b for b in members[:k] if requests[b].nodes <= requests[q].nodes)
                better[q] = frozenset(before)
        return better

    def alike(self, among: Iterable[int]) -> list[tuple[int, ...]]:
        """Return groups of two requests or more that differ by few nodes and in nothing else."""
        requests = self.placement.requests
        groups: list[list[int]] = []
        open_groups: dict[object, list[int]] = {}
        for q in sorted(among, key=lambda q: (-requests[q].nodes, q)):
            if requests[q].geometries:
                continue
            group = open_groups.get(self._sort(q))
            if group is None or requests[q].nodes < _ALIKE_SHARE * requests[group[0]].nodes:
                group = open_groups[self._sort(q)] = []
                groups.append(group)
            group.append(q)
        return [tuple(group) for group in groups if len(group) > 1]

    def unified(self, groups: Sequence[tuple[int, ...]]) -> TorusPacking:
        """Return the problem in which each request needs the fewest nodes of its group.

        This can only raise the optimum, so a bound for it is also valid here; the prisms of a group
        are then the same (docs/proofs/placement.md, "Alike requests").
        """
        queue = list(self.placement.requests)
        for group in groups:
            fewest = min(queue[q].nodes for q in group)
            for q in group:
                queue[q] = resized(queue[q], fewest)
        return self._of_queue(queue)

    @property
    def classes(self) -> Sequence[object]:
        """The kinds of nodes of every request."""
        return [request.classes for request in self.placement.requests]

    def only(self, requests: frozenset[int]) -> TorusPacking:
        """Return the problem in which no other request has a prism."""
        too_many = self.placement.torus.num_nodes + 1
        every = enumerate(self.placement.requests)
        return self._of_queue([r if q in requests else resized(r, too_many) for q, r in every])

    def _of_queue(self, queue: Sequence[QueuedState]) -> TorusPacking:
        """Return the problem of another queue, whose requests are at the same places."""
        problem = TorusPacking(self.placement.of_queue(queue), threads=1)
        problem.deadline = self.deadline
        return problem

    def families_of(self, requests: frozenset[int]) -> BoolArray:
        """Mark all rows but the link rows of other tolerant requests."""
        marked = np.ones(self.num_rows, dtype=bool)
        for k, family in enumerate(self._families):
            if family is not None and family not in requests:
                marked[self._links_of(k)] = False
        return marked

    # primal side

    def starts(self, deadline: float) -> Iterator[list[Candidate]]:
        """Yield the placements of the prism heuristics, in queue order and largest value first."""
        largest = np.argsort(-self.values, kind="stable").tolist()
        methods = itertools.product((None, largest), (first_fit, best_fit))
        for number, (order, method) in enumerate(methods):
            if not number or clock.now() < deadline:
                yield method(self.placement, order, deadline)

    def left_by(self, fixed: Sequence[Candidate], kept: Sequence[int]) -> TorusPacking:
        """Return the problem of a snapshot in which fixed jobs run."""
        whole = self.placement
        state, torus = whole.state, whole.torus
        occupied, running = state.occupied.copy(), list(state.running)
        for candidate in fixed:
            request = whole.requests[candidate.request_idx]
            routers = np.sort(candidate.prism.routers(torus))
            occupied[routers] = True
            nodes = torus.nodes_of(routers)
            running.append(
                RunningState(request.id, nodes, routers, candidate.prism, request.communication)
            )
        smaller = replace(
            state,
            usable=state.usable & ~np.repeat(occupied, torus.nodes_per_router),
            occupied=occupied,
            running=tuple(running),
            queue=tuple(state.queue[i] for i in kept),
        )
        return TorusPacking(replace(whole, state=smaller, _memo={}, _reaches={}))

    def near(self, candidates: Sequence[Candidate], first: Candidate) -> list[float]:
        """Return how many hops prisms are from one."""
        return [hops_between(self.placement.torus, c.prism, first.prism) for c in candidates]

    def heuristic(self, budget: Budget) -> Annealer:
        """Return the annealing over refills."""
        return Annealer(self.placement, budget.deadline)


def boxes_of(candidates: Sequence[Candidate], num_dims: int) -> tuple[IntArray, IntArray]:
    """Return the origins and extents of prisms, shape ``(num_candidates, num_dims)`` each."""
    boxes = [(c.prism.origin, c.prism.extents) for c in candidates]
    found = np.array(boxes, dtype=np.int64).reshape(-1, 2, num_dims)
    return found[:, 0].copy(), found[:, 1].copy()


def hops_between(torus: Torus, one: Prism, other: Prism) -> int:
    """Return the least distance in hops of a router of one prism from one of another."""
    total = 0
    for n, wraps, a, b, p, q in zip(
        torus.shape, torus.wrap, one.origin, other.origin, one.extents, other.extents, strict=True
    ):
        ahead, behind = (b - (a + p - 1)) % n, (a - (b + q - 1)) % n
        if (b - a) % n < p or (a - b) % n < q:
            continue  # they overlap along this dimension
        if wraps:
            total += min(ahead, behind)
        else:
            total += ahead if a < b else behind
    return total
