"""The method `exact` on fat trees: leaf hosts and links as rows of a packing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from topoplace import clock
from topoplace.machine.fattree import FatTree
from topoplace.packing.budget import Budget
from topoplace.packing.listed import Listed, ListedPacking
from topoplace.packing.problem import (
    NO_VALUE,
    PackingProblem,
    Priced,
    Query,
    capacities_left,
)
from topoplace.placement.engine import Packed, solved
from topoplace.placement.fattree.heuristics import STEPS, num_links, place_of
from topoplace.placement.fattree.oracle import Costs
from topoplace.placement.fattree.places import Room, TooManyStepsError, shapes
from topoplace.placement.fattree.state import FatTreeState
from topoplace.result.base import Start
from topoplace.snapshot.state import Queued
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray

LISTED_NODES, LISTED = 64, 20_000
"""Of trees with at most so many nodes all places are listed, if these are not more."""

_SHAPES, _STEPS = 3, 300  # the cheapest ones, of which places are looked for at some prices
_DEAREST = 1 << 30  # the price of a node where none is free
_RUINED = 8  # jobs taken out at once by the search for better placements, at most
_NOISE = 0.4  # variation of the order in which requests are put in again


def listed(state: FatTreeState) -> ListedPacking | None:
    """Return the problem with all places of all requests; None if they are too many."""
    tree, left = state.tree, LISTED
    if tree.num_nodes > LISTED_NODES:
        return None
    places: dict[int, list[tuple[int, ...]]] = {}
    room = Room(tree, state.left)
    for nodes in sorted({request.nodes for request in state.requests}):
        own = (place for shape in shapes(tree, nodes) for place in room.places(shape))
        places[nodes] = list(islice(own, left + 1))
        left -= len(places[nodes])
        if left < 0:
            return None
    every = [
        Listed(q, rows, (request.value, -num_links(tree, rows)))
        for q, request in enumerate(state.requests)
        for rows in places[request.nodes]
    ]
    rows = {name: state.left[own].tolist() for name, own in tree.families.items()}
    names = [request.id for request in state.requests]
    found = _AllPlaces(names, [r.value for r in state.requests], rows, every, (1, -1))
    found.tree = tree
    return found


class _AllPlaces(ListedPacking):
    tree: FatTree

    def rows_at(self, start: Start) -> list[int]:
        """Return the leaves of the nodes of a start."""
        return [int(leaf) for leaf in self.tree.leaf_of(np.array(start.nodes))]


class FatTreePacking(PackingProblem):
    """A queue on a tree with too many places to list.

    Leaves are the rows that branches name. The oracle says what places cost at least; those that it
    returns are real ones.
    """

    senses = (1, -1)

    def __init__(self, tree: FatTree, requests: Sequence[Queued], left: IntArray) -> None:
        self.tree, self.requests, self.capacities = tree, requests, left
        self.names = [request.id for request in requests]
        self.values = np.array([request.value for request in requests], dtype=np.int64)
        self.families: Mapping[str, slice] = tree.families
        self.num_covers = len(tree.sizes)

    @cached_property
    def kinds(self) -> list[tuple[int, int]]:
        """Requests of as many nodes and the same value are of one kind."""
        return [(request.nodes, request.value) for request in self.requests]

    def dominating(self, startable: frozenset[int]) -> dict[int, frozenset[int]]:
        """Return by request those of as many nodes that have more value, or come first."""
        order = sorted(startable, key=lambda q: (-self.values[q], q))
        alike: dict[int, list[int]] = {}
        found = {}
        for q in order:
            before = alike.setdefault(self.requests[q].nodes, [])
            found[q] = frozenset(before)
            before.append(q)
        return found

    def rows_of(self, candidate: Listed) -> IntArray:
        """Return the rows that a candidate uses, each repeated by the amount."""
        return np.array(candidate.rows, dtype=np.int64)

    def values_of(self, candidates: Sequence[Listed]) -> IntArray:
        """Return the values of candidates, shape ``(num_candidates, num_levels)``."""
        return np.array([c.values for c in candidates], dtype=np.int64).reshape(-1, 2)

    def largest(self, level: int) -> int:
        """Return an upper bound on the absolute value of a candidate on a level."""
        return self.tree.num_rows if level else int(self.values.max(initial=0))

    def most(self, level: int) -> int:
        """Return the most that a placement has on a later level: no links."""
        return 0

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        sizes = len({request.nodes for request in self.requests})
        return 2e-3 + 2.5e-5 * sizes * max(self.tree.sizes) * len(self.tree.leaves[0])

    @property
    def start_prices(self) -> IntArray:
        """Prices of hosts at which nobody gains: the largest value of a node."""
        prices = np.zeros(self.num_rows, dtype=np.int64)
        each = (-(-r.value // r.nodes) for r in self.requests)
        prices[: self.num_covers] = max(each, default=0)
        return prices

    # the oracle

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the most that requests gain at some prices, or more, and some places."""
        num, open_leaves = len(self.requests), self.capacities[: self.num_covers] > 0
        best = np.full(num, NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Listed]]] = [[] for _ in range(num)]
        pricings: dict[object, _Pricing] = {}
        cheapest = int(row_prices[: self.num_covers][open_leaves].min(initial=_DEAREST))
        told = set()
        for q, request in enumerate(self.requests):
            is_exact = query.exact_for is None or q in query.exact_for
            worth = query.weights[0] * request.value
            if not is_exact and worth <= request.nodes * cheapest:
                best[q] = worth - request.nodes * cheapest
                continue
            covers = frozenset((c.row, c.inside) for c in query.covers_of.get(q, ()))
            if covers not in pricings:
                pricings[covers] = _Pricing(self, row_prices, query, covers)
            least, places = pricings[covers].places(request.nodes)
            if least is not None:
                best[q] = worth - least
            kind = self.first_of_kind[q], covers
            if kind not in told and (is_exact or best[q] > 0):
                told.add(kind)
                found = [(worth - cost, self.candidate(q, rows)) for cost, rows in places]
                columns[q] = found[: query.per_request]
        return Priced(best, columns)

    def candidate(self, q: int, rows: tuple[int, ...]) -> Listed:
        """Return a request in a place."""
        return Listed(q, rows, (int(self.values[q]), -num_links(self.tree, rows)))

    # primal side

    def with_one_more(self, placed: Sequence[Listed], q: int) -> list[Listed] | None:
        """Return a placement with a request in addition; None if no place is found for it."""
        left = capacities_left(self, placed)
        rows = place_of(self.tree, left, shapes(self.tree, self.requests[q].nodes))
        return None if rows is None else sorted([*placed, self.candidate(q, rows)])

    def filled(self, kept: Sequence[Listed], order: Sequence[int], until: float) -> list[Listed]:
        """Return a placement with as many others as fit, tried in an order."""
        found, left = list(kept), capacities_left(self, kept).copy()
        there = {c.request_idx for c in kept}
        failed: set[int] = set()
        for q in order:
            nodes = self.requests[q].nodes
            room = int(left[: self.num_covers].sum())
            if q in there or nodes in failed or nodes > room:
                continue
            if clock.now() >= until:
                break
            rows = place_of(self.tree, left, shapes(self.tree, nodes))
            if rows is None:
                failed.add(nodes)
                continue
            np.subtract.at(left, list(rows), 1)
            found.append(self.candidate(q, rows))
        return sorted(found)

    def starts(self, deadline: float) -> Iterator[list[Listed]]:
        """Yield placements by value, by value of a node, and by nodes, the largest first."""
        nodes = np.array([request.nodes for request in self.requests])
        each = self.values / np.maximum(nodes, 1)
        for key in (self.values, each * 1e6 + nodes, nodes):
            yield self.filled([], np.argsort(-key, kind="stable").tolist(), deadline)

    def heuristic(self, budget: Budget) -> RuinRecreate:
        """Return the search that takes jobs out and puts others in."""
        return RuinRecreate(self)

    def left_by(self, fixed: Sequence[Listed], kept: Sequence[int]) -> FatTreePacking:
        """Return the problem of some requests around fixed jobs; rows have the same numbers."""
        own = [self.requests[q] for q in kept]
        return FatTreePacking(self.tree, own, capacities_left(self, fixed))


class _Pricing:
    """The costs of places under some covers, and the search for real places."""

    def __init__(
        self,
        packing: FatTreePacking,
        prices: IntArray,
        query: Query,
        covers: frozenset[tuple[int, bool]],
    ) -> None:
        tree, left = packing.tree, packing.capacities
        self._per_link = query.weights[1] if len(query.weights) > 1 else 0
        inside = [row for row, within in covers if within]
        outside = [row for row, within in covers if not within]
        self._costs = Costs(tree, left, prices, self._per_link, inside, outside)
        self._inside, self._prices, self._tree = {*inside}, prices, tree
        self._left = left.copy()
        self._left[outside] = 0
        self._known: dict[int, tuple[int | None, list[tuple[int, tuple[int, ...]]]]] = {}

    @cached_property
    def _room(self) -> Room:
        return Room(self._tree, self._left, STEPS, self._costs.price - self._costs.discount)

    def places(self, nodes: int) -> tuple[int | None, list[tuple[int, tuple[int, ...]]]]:
        """Return what a place costs at least, and some places with their costs, cheap ones first.

        The first is None if there is no place.
        """
        if nodes not in self._known:
            least, found = self._costs.best(nodes, _SHAPES), []
            for _, shape in least:
                self._room.steps = _STEPS
                with suppress(TooManyStepsError):
                    own = next(self._room.places(shape), None)
                    if own is not None and self._inside <= {*own}:
                        links = self._per_link * num_links(self._tree, own)
                        found.append((int(self._prices[list(own)].sum()) + links, own))
            self._known[nodes] = least[0][0] if least else None, sorted(found)
        return self._known[nodes]


@dataclass(frozen=True)
class RuinRecreate:
    """Takes jobs out of some leaves, and puts those and others in again."""

    packing: FatTreePacking

    def run(
        self,
        start: Sequence[Listed],
        budget: Budget,
        until: float,
        temperature: float,
        seed: int,
        is_over: Callable[[], bool],
    ) -> list[Listed]:
        """Return the best placement met; see `packing.problem.PrimalHeuristic`."""
        rng, values = np.random.default_rng(seed), self.packing.values
        nodes = np.array([request.nodes for request in self.packing.requests])
        begin, now = budget.now(), list(start)
        best, worth = now, sum(int(values[c.request_idx]) for c in now)
        most = worth
        while (time := budget.now()) < until and not is_over():
            heat = temperature * (until - time) / max(1e-9, until - begin)
            noise = 1 + _NOISE * rng.random(len(values))
            key = values * noise if rng.random() < 0.5 else values / nodes * noise * nodes**0.3
            kept = self._ruined(now, rng)
            found = self.packing.filled(
                kept, np.argsort(-key, kind="stable").tolist(), budget.limit
            )
            budget.spend(1e-3 * (1 + len(found) - len(kept)))
            total = sum(int(values[c.request_idx]) for c in found)
            if total >= worth - heat * rng.random():
                now, worth = found, total
            if total > most:
                best, most = found, total
        return sorted(best)

    def _ruined(self, placed: list[Listed], rng: np.random.Generator) -> list[Listed]:
        """Return what stays when some jobs on the same leaves are taken out."""
        if not placed:
            return []
        leaves = {*placed[int(rng.integers(len(placed)))].rows}
        near = [c for c in placed if not leaves.isdisjoint(c.rows)]
        others = [placed[k] for k in rng.permutation(len(placed)).tolist()]
        gone = {*near[: int(rng.integers(1, _RUINED + 1))], *others[: int(rng.integers(3))]}
        return [c for c in placed if c not in gone]


def packed(state: FatTreeState) -> Packed:
    """Return the problem as a packing."""
    packing: PackingProblem | None = listed(state)
    return Packed(packing or FatTreePacking(state.tree, state.requests, state.left), sorted)


@register("fattree", "exact")
def exact(state: FatTreeState, options: Options) -> Outcome:
    """Place the requests of most value, then with the fewest links."""
    return solved(state, packed(state), options, Budget(options.time_limit))
