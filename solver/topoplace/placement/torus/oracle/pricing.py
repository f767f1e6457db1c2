"""Pricing: the best prism of every request at given prices, over all prisms of the machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from threading import Lock
from typing import TypeVar

import numpy as np

from topoplace import clock
from topoplace.kernels import num_cores
from topoplace.packing.problem import NO_VALUE, Cover, Priced, Query
from topoplace.placement.torus.footprints import (
    Footprints,
    quickest_footprints,
)
from topoplace.placement.torus.oracle import _kernels
from topoplace.placement.torus.oracle.groups import (
    Group,
    Listing,
    PriceSums,
    Prisms,
    groups_of,
    list_minimal,
    list_valued,
)
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.types import IntArray

S = TypeVar("S")
T = TypeVar("T")

_NEVER = 1 << 62  # a price no prism has
_NOBODY = -1  # pays for links of its own, though all of a group might
_PRISM_WORK = 2e-9  # nominal seconds of a pass over all prisms, by prism
_LATER_WORK = 1.2  # times as much on later levels
_LEAST_SHARED = 5e-3  # of one over listed prisms that several threads share
_ALONE = 1 << 26
"""Bytes of prefix sums of prices beyond which a machine is large: tables are made one at a time."""
_MOST_KNOWN = 1 << 16  # candidates, some 200 bytes each
MOST_NARROWED = 1 << 26
"""Bytes of groups under branches on covers that a pricer keeps, but at least the last one.

On 24^3 each takes some 0.1 MB if it is listed, else 8 to 16 MB.
"""


@dataclass
class Prices:
    """Integer prices of routers and link rows (docs/proofs/placement.md, "A leaf").

    Those of links are by row family: None for the rows of all strict jobs, or the queue position
    of a tolerant request.
    """

    routers: IntArray
    links: dict[int | None, IntArray] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Sum of all prices."""
        return int(self.routers.sum()) + sum(int(v.sum()) for v in self.links.values())

    def seen_by(self, payer: int | None) -> IntArray | None:
        """Return the link prices a job pays: a strict job all rows, a tolerant one its own."""
        if payer is not None:
            return self.links.get(payer)
        if not self.links:
            return None
        first, *others = self.links.values()
        return sum(others, start=first)


@dataclass(frozen=True)
class Weights:
    """Integer weights of the three level values in a candidate's value."""

    nodes: int = 0
    shape: int = 0
    fragmentation: int = 0

    @property
    def is_first(self) -> bool:
        """Whether the first level alone counts."""
        return self.shape == 0 and self.fragmentation == 0


@cache
def _threads(number: int) -> ThreadPoolExecutor:
    """Return threads that all pricers share: searches of small problems come and go."""
    return ThreadPoolExecutor(number)


def _by_payer(groups: Iterable[Group], prices: Prices) -> Iterator[tuple[Group, int | None]]:
    """Yield groups, each with its request if that pays for links of its own (one per group)."""
    for group in groups:
        own = [i for i in group.requests if group.tolerant and i in prices.links]
        if len(own) < len(group.requests):
            left = group.without(frozenset(own)) if own else group
            yield left, _NOBODY if group.tolerant else None
        for i in own:
            yield replace(group, requests=[i]), i


@lru_cache(maxsize=8)
def _parts(view: Footprints, num_threads: int) -> list[IntArray]:
    """Return the lines that each thread looks at: those of a slot go together.

    Slots are dealt out in turn, as prisms are not spread evenly over the machine.
    """
    order = np.argsort(view.slots, kind="stable")
    thread = view.slots[order] % num_threads
    parts = [order[thread == k] for k in range(num_threads)]
    return [part for part in parts if len(part)]


class ScanPricer:
    """Prices by looking at every prism, in any number of dimensions.

    Parameters
    ----------
    threads
        How many a pass uses, by default one per core, at most eight.
    deadline
        When a pass under way is given up.

    Attributes
    ----------
    is_large
        Whether prefix sums of prices are so large that there are those of one group at a time.
    """

    def __init__(
        self, problem: PlacementProblem, threads: int | None = None, deadline: float = math.inf
    ) -> None:
        self.problem, self.deadline = problem, deadline
        self._chunks = threads or min(8, num_cores())
        self._pool = _threads(self._chunks)
        self._lock = Lock()  # a tree bounds two leaves at once
        self._room = Lock()
        view = quickest_footprints(problem.torus)
        most = np.dtype(np.int64).itemsize * view.num_corners * view.depth * problem.torus.num_dims
        self.is_large = most > _ALONE
        self._narrowed: dict[object, Group] = {}
        self._known: dict[object, dict[tuple[int, int], Candidate]] = {}

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of requests that are priced together."""
        return list(groups_of(self.problem, self.deadline))

    def work(self, level: int) -> float:
        """Return what a pass takes in nominal seconds: on the first level over listed prisms.

        These are listed if they are not yet: what a pass counts must not depend on whether another
        thread has made one.
        """
        if level:
            self._forget_listings()
        groups = [] if level else self.groups
        listed = [self._listings(group, self.deadline) for group in groups]
        if None in listed or not listed:
            return (_LATER_WORK if level else 1) * _PRISM_WORK * self._num_prisms
        return sum(x.work for parts in listed for part in parts or [] for x in part)

    @cached_property
    def _num_prisms(self) -> int:
        """Prisms of free routers."""
        total = 0
        for group in self.groups:
            of_row = group.depths.sum(axis=1, dtype=np.int64)
            total += sum(int(of_row[group.row[f]].sum()) for f in group.footprints.tolist())
        return total

    def price(self, prices: Prices, query: Query) -> Priced:
        """Return the best candidates of every request.

        Of columns there is at most one per value of the first origin coordinate and group. Those
        that cost more than they are worth are left out, except of requests that want them.

        Raises
        ------
        OutOfTimeError
            At the deadline.
        """
        weights = Weights(*query.weights)
        exact_for = query.exact_for if weights.is_first else None
        num = len(self.problem.requests)
        best = np.full(num, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Candidate]]] = [[] for _ in range(num)]
        values, nodes = self._requested
        constants = weights.nodes * values + weights.shape * self.problem.idle_weight * nodes
        at_any = np.ones(num, dtype=bool)
        if query.wanted is not None:
            at_any[:] = False
            at_any[list(query.wanted)] = True
        for group, most, best_codes in self._scans(prices, weights, query, exact_for):
            own = np.array(group.requests, dtype=np.int64)
            known = self._known.setdefault((group.view.axes, group.view.head), {})
            firsts = np.searchsorted(group.sizes, nodes[own])
            worths, codes = _kernels.best_slots(most, best_codes, firsts, query.per_request)
            there = worths != NO_VALUE
            gains = np.where(there, worths + constants[own, None], NO_VALUE)
            best[own] = np.maximum(best[own], gains[:, 0])
            kept = (there & ((gains >= 0) | at_any[own, None])).sum(axis=1)
            seen: set[object] = set()
            for k in np.flatnonzero(kept).tolist():
                idx, num_kept = group.requests[k], kept[k]
                if (kind := self.problem.kinds[idx]) not in seen:
                    seen.add(kind)
                    for gain, code in zip(
                        gains[k, :num_kept].tolist(), codes[k].tolist(), strict=False
                    ):
                        candidate = known.get((idx, code))
                        if candidate is None:
                            candidate = Candidate(idx, group.view.prism(code))
                            if len(known) >= _MOST_KNOWN:
                                known.clear()
                            known[idx, code] = candidate
                        columns[idx].append((gain, candidate))
        for found in columns:
            found.sort(key=lambda item: -item[0])
            del found[query.per_request :]
        return Priced(best, columns)

    @cached_property
    def _requested(self) -> tuple[IntArray, IntArray]:
        """The values and nodes of requests."""
        pairs = [(request.value, request.nodes) for request in self.problem.requests]
        values, nodes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return values.copy(), nodes.copy()

    def _scans(
        self,
        prices: Prices,
        weights: Weights,
        query: Query,
        exact_for: frozenset[int] | None,
    ) -> Iterator[tuple[Group, IntArray, IntArray]]:
        """Yield the requests that pay the same, and their values and codes by slot and size."""
        shared: dict[object, PriceSums] = {}
        listed = weights.is_first
        if not listed:
            self._forget_listings()
        for group, payer in _by_payer(self._groups_under(query.covers_of, listed=listed), prices):
            assert listed or group.taken is None, "what is beside others is for the first level"
            with self._room if self.is_large else nullcontext():
                key = (group.uses_links, payer, group.view.axes, group.taken is None)
                sums = shared.get(key)
                if sums is None:
                    sums = self._price_sums(group, prices.routers, prices.seen_by(payer))
                if payer in (None, _NOBODY) and not self.is_large:
                    shared[key] = sums
                found = self._scan(group, sums, weights, exact_for)
                del sums
                if listed and self.is_large:
                    self._let_tables_go()
            yield (group, *found)

    def _forget_listings(self) -> None:
        """Free what only the first level needs; restore what it had freed."""
        if any(group.minimal.listed is not None for group in self.groups):
            self._narrowed.clear()
            for group in self.groups:
                group.minimal = Prisms()
        if not all(group.has_tables for group in self.groups):
            self.groups = list(groups_of(self.problem, self.deadline))

    def _let_tables_go(self) -> None:
        """Free the tables of groups that are listed: on the first level only branches need them."""
        listed = [group for group in self.groups if group.minimal.listed is not None]
        if any(group.has_tables for group in listed):
            for group in listed:
                group.let_tables_go()
            self.problem.forget_reaches()

    def beside(self, taken: Prices) -> ScanPricer:
        """Return a pricer of the prisms that pay none of some prices, for the first level.

        If there are too many prisms to list, it leaves none out.
        """
        narrowed = copy(self)
        narrowed.groups = [self._beside(group, taken) for group in self.groups]
        return narrowed

    def _beside(self, group: Group, taken: Prices) -> Group:
        listings = self._listings(group, math.inf)
        if listings is None:
            return group
        problem, request = self.problem, self.problem.requests[group.requests[0]]
        links = taken.seen_by(None) if group.uses_links else None
        if group.tolerant:  # what is taken for all of them, by strict jobs
            every = [taken.links.get(i) for i in group.requests]
            taken_of_all = [links for links in every if links is not None]
            links = np.min(taken_of_all, axis=0) if len(taken_of_all) == len(every) else None
        closed = problem.closed_links(request.communication)
        taken_links = np.zeros_like(closed) if links is None else links > 0
        taken_routers = taken.routers > 0
        if group.taken is not None:
            taken_routers |= group.taken[0]
            taken_links |= group.taken[1]
        blocked = ~problem.allowed_routers(request) | taken_routers
        with self._room if self.is_large else nullcontext():
            free = group.view.whole.reach(blocked, closed | taken_links)
            if group.view.head is not None:
                free = replace(free, row=free.row[[group.view.whole.index(group.view.head)]])
            left = self._each(lambda part: [x.within(free) for x in part], listings)
        return replace(group, minimal=Prisms(left), taken=(taken_routers, taken_links))

    def _first_size(self, group: Group, idx: int) -> int:
        """Return the position of the least size of a group that holds a request."""
        return int(np.searchsorted(group.sizes, self.problem.requests[idx].nodes))

    def _groups_under(
        self, covers_of: Mapping[int, Sequence[Cover]], *, listed: bool
    ) -> Iterator[Group]:
        """Yield the groups, requests under branches on covers with those under the same.

        Parameters
        ----------
        listed
            Whether only minimal prisms matter, so that groups need no tables once these are listed.
        """
        for number, group in enumerate(self.groups):
            apart: dict[object, list[int]] = {}
            for i in group.requests:
                if i in covers_of:
                    own = frozenset((x.row, x.inside) for x in covers_of[i])
                    key = (number, own, self.problem.requests[i].nodes, listed)
                    apart.setdefault(key, []).append(i)
            if not apart:
                yield group
            elif sum(map(len, apart.values())) < len(group.requests):
                yield group.without(frozenset(covers_of))
            for kept, requests in apart.items():
                own_covers = covers_of[requests[0]]
                narrowed = self._within(kept, group, requests, own_covers, listed=listed)
                yield replace(narrowed, requests=requests)

    def _within(
        self,
        key: object,
        group: Group,
        requests: list[int],
        covers: Sequence[Cover],
        *,
        listed: bool,
    ) -> Group:
        """Return the group of requests under branches on covers; kept for the next calls."""
        with self._lock:
            narrowed = self._narrowed.pop(key, None)
            if narrowed is not None:
                self._narrowed[key] = narrowed  # as the last one used
                return narrowed
        nodes = self.problem.requests[requests[0]].nodes
        with self._room if self.is_large else nullcontext():
            whole = group if group.has_tables else self._made_anew(group)
            narrowed = whole.within(requests, covers, nodes, self.deadline)
            if listed and self._listings(narrowed, self.deadline) is not None:
                narrowed = narrowed.with_tables_of(group)
        with self._lock:
            self._narrowed[key] = narrowed
            size = sum(kept.own_bytes for kept in self._narrowed.values())
            for oldest in list(self._narrowed)[:-1]:
                if size <= MOST_NARROWED:
                    break
                size -= self._narrowed.pop(oldest).own_bytes
        return narrowed

    def _made_anew(self, group: Group) -> Group:
        """Return a group with the tables that it had freed."""
        number = next(k for k, own in enumerate(self.groups) if own.minimal is group.minimal)
        made = next(itertools.islice(groups_of(self.problem, self.deadline), number, None))
        self.problem.forget_reaches()
        return group.with_tables_of(made)

    def _price_sums(
        self, group: Group, router_prices: IntArray, link_prices: IntArray | None
    ) -> PriceSums:
        view = group.view
        if group.taken is not None:  # none of its prisms pays there
            router_prices = np.where(group.taken[0], 0, router_prices)
        routers = view.slice_sums(router_prices)
        layers = np.zeros((len(view.axes), 0), dtype=np.int64)
        if link_prices is not None and group.uses_links:
            if group.taken is not None:
                link_prices = np.where(group.taken[1], 0, link_prices)
            layers = link_prices.reshape(len(view.axes), -1)
        priced = [bool(layers[d].any()) for d in view.axes]
        leading = np.flatnonzero(priced[:-1])
        summed = [*leading.tolist(), -1] if any(priced) else []
        links = np.empty((len(summed), *routers.shape), dtype=np.int64)
        for position, d in enumerate(summed):
            links[position] = view.slice_sums(layers[view.axes[d]])
        return routers, links, leading

    def _scan(
        self, group: Group, sums: PriceSums, weights: Weights, exact_for: frozenset[int] | None
    ) -> tuple[IntArray, IntArray]:
        """Return the largest values by slot and size, the constants of requests left out."""
        if weights.is_first:
            listings = self._listings(group, self.deadline)
            if listings is not None:
                return self._among(group, listings, sums, weights)
        elif not self.is_large:
            parts = _parts(group.view, self._chunks)
            make = partial(list_valued, group, self.problem, len(parts), self.deadline)
            valued = group.valued.listings(make, parts, self._each)
            if valued is not None:
                return self._among(group, valued, sums, weights)
        if exact_for is None:
            return self._pass(group, sums, weights, _NEVER)
        give_up = weights.nodes * max(self.problem.requests[i].value for i in group.requests)
        needed = [self._first_size(group, i) for i in group.requests if i in exact_for]
        if needed:  # their cost is often above their value, but not by much
            give_up += give_up // 4
        values, codes = self._pass(group, sums, weights, give_up)
        if needed and (values[:, max(needed) :].max() < -give_up):
            return self._pass(group, sums, weights, _NEVER)
        return values, codes

    def _listings(self, group: Group, deadline: float) -> list[list[Listing]] | None:
        """Return the minimal prisms of a group by part of its lines; None if they are too many."""
        parts = _parts(group.view, self._chunks)
        make = partial(list_minimal, group, len(parts), deadline)
        return group.minimal.listings(make, parts, self._each)

    def _among(
        self, group: Group, listings: list[list[Listing]], sums: PriceSums, weights: Weights
    ) -> tuple[IntArray, IntArray]:
        """Return the largest values by slot and size among listed prisms."""
        values, codes = self._nothing(group)
        own = weights.shape, weights.fragmentation

        def work(part: list[Listing]) -> None:
            for listing in part:
                clock.check(self.deadline)
                listing.price(group.view, sums, own, values, codes)

        together = list(itertools.chain.from_iterable(listings))
        if sum(listing.work for listing in together) < _LEAST_SHARED:
            work(together)
        else:
            self._each(work, listings)
        return values, codes

    def _each(self, work: Callable[[S], T], parts: Sequence[S]) -> list[T]:
        """Return the results of all parts, each in a thread, a single one in the caller's."""
        return [work(parts[0])] if len(parts) == 1 else list(self._pool.map(work, parts))

    def _nothing(self, group: Group) -> tuple[IntArray, IntArray]:
        """Return the values and codes by slot and size before any prism is looked at."""
        shape = (group.view.num_slots, len(group.sizes))
        return np.full(shape, NO_VALUE, dtype=np.int64), np.zeros(shape, dtype=np.int64)

    def _pass(
        self, group: Group, sums: PriceSums, weights: Weights, give_up: int
    ) -> tuple[IntArray, IntArray]:
        """Scan all prisms that cost no more than `give_up`, and perhaps more."""
        view = group.view
        values, codes = self._nothing(group)
        routers, links, leading = sums
        nothing = np.zeros((1, view.depth), dtype=np.int64)
        last_links = links[-1] if len(links) else routers
        side = weights.fragmentation
        free = self.problem.free_routers.astype(np.int64)
        free_sat = side * view.slice_sums(free) if side else nothing
        only_nodes = weights.shape == 0 and side == 0
        stop = int(group.sizes[-1]) if only_nodes and not len(group.least) else 1 << 60

        def work(lines: IntArray) -> None:
            for footprints in view.chunks(len(lines), group.footprints):
                clock.check(self.deadline)
                _kernels.scan(
                    footprints, lines, group.row, group.depths, group.least, group.live,
                    view.bases, view.slots, view.line_coords, view.pad_strides, view.extents,
                    np.array(view.turned.shape), np.array(view.turned.wrap),
                    view.box, view.link[leading], view.face, view.signs,
                    group.count_sat, routers, links[:-1], last_links, free_sat,
                    len(links) > 0, side != 0,
                    weights.shape * group.shape_part,
                    weights.shape * self.problem.idle_weight,
                    group.bucket_of_count, stop, give_up,
                    values, codes,
                )  # fmt: skip

        self._each(work, _parts(view, self._chunks))
        return values, codes
