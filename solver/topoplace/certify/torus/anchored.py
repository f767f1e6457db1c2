"""Machines with anchored prisms: what jobs block (docs/proofs/placement.md, "Anchored prisms")."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace.certify.packing import Covers, Prices
from topoplace.certify.torus.instance import Instance, Request, marked
from topoplace.certify.torus.starts import why_no_candidate
from topoplace.machine import Prism, prism_links
from topoplace.snapshot.schema import FREE_PREFIX
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True)
class Stay:
    """A request of the packing that is not a job: an anchored prism that stays free."""

    id: str
    prism: Prism
    value: int = 0


@dataclass(frozen=True)
class Anchored:
    """The anchored prisms of an instance, and whether those that stay free are a part of it."""

    instance: Instance
    keeps: bool = True

    @property
    def worth(self) -> Mapping[Prism, int]:
        """The value of each, which is lost if it is blocked, in the order of their numbers."""
        return self.instance.anchored

    @cached_property
    def prisms(self) -> list[Prism]:
        """The prisms by number."""
        return list(self.worth)

    @cached_property
    def routers(self) -> list[IntArray]:
        """The routers of every prism."""
        return [prism.routers(self.instance.torus) for prism in self.prisms]

    def touched(self, routers: BoolArray) -> list[bool]:
        """Return for every prism whether it holds some of these routers."""
        return [bool(routers[own].any()) for own in self.routers]

    @cached_property
    def blocked(self) -> BoolArray:
        """Routers with a node, other than service nodes, that is down or held by a running job."""
        instance = self.instance
        lost = (instance.node_class >= 0) & ~instance.usable
        return np.asarray(lost.reshape(instance.torus.num_routers, -1).any(axis=1))

    def fragmentation(self, started: Iterable[Prism]) -> int:
        """Return what all prisms count that jobs, nodes down, or started jobs block."""
        taken = self.blocked | marked(
            len(self.blocked), (prism.routers(self.instance.torus) for prism in started)
        )
        every = zip(self.worth.values(), self.touched(taken), strict=True)
        return sum(worth for worth, touched in every if touched)

    @property
    def total(self) -> int:
        """What all prisms count together."""
        return sum(self.worth.values())

    @cached_property
    def stays(self) -> list[Stay]:
        """The prisms that nothing blocks yet, as requests of the packing."""
        free = zip(self.prisms if self.keeps else [], self.touched(self.blocked), strict=False)
        names = ((p, FREE_PREFIX + p.text.replace(",", ".")) for p, touched in free if not touched)
        return [Stay(name, prism) for prism, name in names]

    @cached_property
    def rows(self) -> tuple[list[IntArray], list[IntArray]]:
        """The rows of the family `free`: of every prism that may stay free, and of every prism.

        The first take a row each for every block of the prism, the second those of all prisms that
        they block. Blocks are sets of routers in the same prisms, in the order of their lowest.
        """
        holders: list[list[int]] = [[] for _ in self.blocked]
        for number, own in enumerate(self.routers):
            for router in own.tolist():
                holders[router].append(number)
        blocks = [tuple(numbers) for numbers in holders]
        number_of = {prism: number for number, prism in enumerate(self.prisms)}
        own_rows: list[IntArray] = []
        taken: list[list[int]] = [[] for _ in self.prisms]
        num_rows = 0
        for stay in self.stays:
            inside = np.sort(self.routers[number_of[stay.prism]]).tolist()
            here = list(dict.fromkeys(blocks[router] for router in inside))
            own_rows.append(np.arange(num_rows, num_rows + len(here)))
            for row, block in enumerate(here, num_rows):
                for other in block:
                    taken[other].append(row)
            num_rows += len(here)
        return own_rows, [np.array(rows, dtype=np.int64) for rows in taken]


@dataclass(frozen=True)
class AnchoredOracle:
    """Candidates are anchored prisms, for jobs or to stay free (see `CheckingOracle`)."""

    anchored: Anchored
    requests: Sequence[Request | Stay]

    @property
    def coverable(self) -> int:
        """Routers are covered."""
        return self.anchored.instance.torus.num_routers

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """One job per router and per link, and one that takes or keeps free a block of a prism."""
        num = sum(map(len, self.anchored.rows[0]))
        return self.anchored.instance.rows | {"free": np.ones(num, dtype=np.int64)}

    @cached_property
    def largest(self) -> tuple[int, int]:
        """Limits of a candidate's nodes, and of what its prism counts."""
        values = [request.value for request in self.requests]
        return max(values, default=0), max(self.anchored.worth.values(), default=0)

    def may_replace(self, one: int, other: int) -> bool:
        """Tell whether a request is of the same kind as another, and of the same sizes."""
        a, b = self.requests[one], self.requests[other]
        if isinstance(a, Stay) or isinstance(b, Stay):
            return one == other
        return a.kind == b.kind and (a.nodes, a.per_prism) == (b.nodes, b.per_prism)

    def among(self, chosen: Sequence[tuple[int, int]]) -> AnchoredOracle:
        """Return an oracle of some requests; one that may replace another has the same places."""
        return replace(self, requests=tuple(self.requests[q] for q, _ in chosen))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return what the best prisms gain, going through all that are free for a request."""
        anchored, (to_value, to_worth) = self.anchored, (*prices.factors, 0)[:2]
        free = prices.rows.get("free")
        found: dict[int, int | None] = {}
        least: dict[tuple[object, ...], int | None] = {}
        number_of_stay = {stay.id: k for k, stay in enumerate(anchored.stays)}
        for q, covers in wanted.items():
            request = self.requests[q]
            if isinstance(request, Stay):
                own = anchored.rows[0][number_of_stay[request.id]]
                price = 0 if free is None else int(free[own].sum())
                gain = to_worth * anchored.worth[request.prism] - price
                found[q] = None if covers.inside else gain
                continue
            families = [*filter(request.pays, prices.rows)]
            key = (*request.kind, request.nodes, request.per_prism, covers, *families)
            if key not in least:
                least[key] = self._least(request, prices, covers, families)
            paid = least[key]
            found[q] = None if paid is None else to_value * request.value - paid
        return found

    def _least(
        self, request: Request, prices: Prices, covers: Covers, families: Sequence[str]
    ) -> int | None:
        """Return what the prisms of a request pay at least; None if it has none."""
        if request.num_prisms == 1:
            return min(self._paid(request, prices, covers, families).values(), default=None)
        if request.others:  # all its prisms have nodes of one kind
            each = (self._least(own, prices, covers, families) for own in request.alone)
            return min((paid for paid in each if paid is not None), default=None)
        paid = self._paid(request, prices, replace(covers, inside=frozenset()), families)
        routers = self.anchored.instance.torus
        places = [(p, frozenset(prism.routers(routers).tolist())) for prism, p in paid.items()]
        return cheapest_disjoint(places, request.num_prisms, covers.inside)

    def _paid(
        self, request: Request, prices: Prices, covers: Covers, families: Sequence[str]
    ) -> dict[Prism, int]:
        """Return what the candidates of a request that obey its branches pay."""
        anchored, torus = self.anchored, self.anchored.instance.torus
        nothing = np.zeros(torus.num_routers, dtype=np.int64)
        routers, free = prices.rows.get("routers", nothing), prices.rows.get("free")
        found = {}
        for number in self._candidates(request):
            inside, prism = anchored.routers[number], anchored.prisms[number]
            held = set(inside.tolist()) if covers.inside or covers.outside else set()
            if not covers.admit(held):
                continue
            paid = int(routers[inside].sum())
            if free is not None:
                paid += int(free[anchored.rows[1][number]].sum())
            if families:
                links = prism_links(torus, prism)
                paid += sum(int(prices.rows[family][links].sum()) for family in families)
            found[prism] = paid
        return found

    def _candidates(self, request: Request) -> list[int]:
        """Return the prisms that a request may have, by number."""
        key = *request.kind, request.per_prism
        if key not in self._known:
            prisms = enumerate(self.anchored.prisms)
            instance = self.anchored.instance
            self._known[key] = [k for k, p in prisms if not why_no_candidate(instance, request, p)]
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[object, ...], list[int]]:
        return {}


MAX_STEPS = 20_000
"""Most steps of a search for disjoint prisms. A lower bound on their cost is known at any time."""


def cheapest_disjoint(
    places: Sequence[tuple[int, frozenset[int]]], count: int, wanted: frozenset[int]
) -> int | None:
    """Return the cost of `count` disjoint places with all wanted routers; None if impossible.

    The partial set that can end cheapest is continued first: by one of the places that hold a
    router still wanted, else by the cheapest remaining place, or without that. After `MAX_STEPS`
    the answer is a lower bound.
    """
    places = sorted(places, key=lambda place: place[0])

    def begun(cost: int, missing: int, left: list[int], want: frozenset[int]) -> None:
        if len(left) >= missing and (missing or not want):
            least = cost + sum(places[k][0] for k in left[:missing])
            heapq.heappush(heap, (least, missing, next(number), cost, left, want))

    heap: list[tuple[int, int, int, int, list[int], frozenset[int]]] = []
    number = itertools.count()
    begun(0, count, list(range(len(places))), wanted)
    for _ in range(MAX_STEPS):
        if not heap:
            return None
        least, missing, _, cost, left, want = heapq.heappop(heap)
        if not missing:
            return least
        router = min(want, default=None)
        options = left[:1] if router is None else [k for k in left if router in places[k][1]]
        for k in options:
            price, inside = places[k]
            rest = [other for other in left if not inside & places[other][1]]
            begun(cost + price, missing - 1, rest, want - inside)
        if router is None:
            begun(cost, missing, left[1:], want)
    return heap[0][0] if heap else None


def oracle_of(anchored: Anchored) -> AnchoredOracle:
    """Return the oracle of an instance: its queue, then the prisms that may stay free."""
    return AnchoredOracle(anchored, (*anchored.instance.requests, *anchored.stays))
