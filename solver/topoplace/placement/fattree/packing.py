"""The method `exact` on fat trees: leaf hosts and links as rows of a packing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

import numpy as np

from topoplace import clock
from topoplace.machine.fattree import FatTree
from topoplace.packing.budget import Budget
from topoplace.packing.by_nodes import first_prices, knapsack
from topoplace.packing.listed import Listed, ListedPacking, OfListed
from topoplace.packing.problem import (
    NO_VALUE,
    Priced,
    Query,
    Subproblem,
    capacities_left,
)
from topoplace.packing.ruin_recreate import RuinRecreate, ruined
from topoplace.placement.engine import Packed, exact
from topoplace.placement.fattree.heuristics import place_of, shapes_of
from topoplace.placement.fattree.oracle import NONE, Costs
from topoplace.placement.fattree.places import Room, Shapes, shapes
from topoplace.placement.fattree.state import FatTreeState
from topoplace.result.base import Start
from topoplace.snapshot.state import Queued
from topoplace.solving import register
from topoplace.types import FloatArray, IntArray

LISTED_NODES, LISTED = 64, 20_000
"""Of trees with at most so many nodes all places are listed, if these are not more."""

_SHAPES, _STEPS = 3, 300  # the cheapest ones, of which places are looked for at some prices
_RUINED = 8  # jobs taken out at once by the search for better placements, at most
_KNAPSACKS = 8  # placements of the best knapsacks that the search begins with


class EveryPlace(ListedPacking):
    """The problem with all places of all requests."""

    tree: FatTree

    def rows_at(self, start: Start) -> list[int]:
        """Return the leaves of the nodes of a start."""
        found: list[int] = self.tree.leaf_of(np.array(start.nodes)).tolist()
        return found


def every_place(state: FatTreeState) -> EveryPlace | None:
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
        Listed(q, rows, (request.value, -tree.num_links(rows)))
        for q, request in enumerate(state.requests)
        for rows in places[request.nodes]
    ]
    rows = {name: state.left[own].tolist() for name, own in tree.families.items()}
    names, values = [r.id for r in state.requests], [r.value for r in state.requests]
    found = EveryPlace(names, values, rows, every, (1, -1))
    found.tree = tree
    return found


class FatTreePacking(OfListed):
    """A queue on a tree with too many places to list.

    Leaves are the rows that branches name. The oracle says what places cost at least; those that it
    returns are real ones.
    """

    senses = (1, -1)

    def __init__(self, tree: FatTree, requests: Sequence[Queued], left: IntArray) -> None:
        self.tree, self.requests, self.capacities = tree, requests, left
        self.names = [request.id for request in requests]
        self.values = np.array([request.value for request in requests], dtype=np.int64)
        self.nodes = np.array([request.nodes for request in requests], dtype=np.int64)
        self.families, self.num_covers = tree.families, len(tree.sizes)

    @cached_property
    def shapes(self) -> Shapes:
        """The shapes of all requests."""
        return Shapes({n: shapes(self.tree, n) for n in sorted({*self.nodes.tolist()})})

    @cached_property
    def kinds(self) -> list[tuple[int, int]]:
        """Requests of as many nodes and the same value are of one kind."""
        return [(request.nodes, request.value) for request in self.requests]

    def dominating(self, startable: frozenset[int]) -> dict[int, frozenset[int]]:
        """Return by request those of as many nodes that have more value, or come first."""
        before: dict[int, frozenset[int]] = {}
        found = {}
        for q in sorted(startable, key=lambda q: (-self.values[q], q)):
            nodes = self.requests[q].nodes
            found[q] = before.get(nodes, frozenset())
            before[nodes] = found[q] | {q}
        return found

    def largest(self, level: int) -> int:
        """Return an upper bound on the absolute value of a candidate on a level."""
        return self.num_rows if level else int(self.values.max(initial=0))

    def most(self, level: int) -> int:
        """Return the most that a placement has on a later level: no links."""
        return 0

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        sizes = len({*self.nodes.tolist()})
        return 2e-3 + 2.5e-5 * sizes * max(self.tree.sizes) * len(self.tree.leaves[0])

    @property
    def start_prices(self) -> IntArray:
        """Prices of hosts at which nobody gains: the largest value of a node."""
        prices = np.zeros(self.num_rows, dtype=np.int64)
        prices[: self.num_covers] = (-(-self.values // self.nodes)).max(initial=0)
        return prices

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]]:
        """Return prices at which a subproblem begins: one of all nodes."""
        need = self._links if sub.level else None
        return first_prices(self, sub, self.nodes, self._room(), need)

    @cached_property
    def _links(self) -> IntArray:
        """How many links every request owns at least; 0 if it has no place."""
        costs = Costs(self.tree, self.capacities, np.zeros_like(self.capacities), 1)
        found = costs.least(self.shapes)
        own = (found[self.shapes.of[n]].min(initial=NONE) % NONE for n in self.nodes.tolist())
        return np.array([*own], dtype=np.int64)

    def _room(self, placed: Sequence[Listed] = ()) -> int:
        """Return how many nodes a placement leaves free."""
        return int(capacities_left(self, placed)[: self.num_covers].sum())

    # the oracle

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the most that requests gain at some prices, or more, and some places."""
        best = np.full(len(self.requests), NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Listed]]] = [[] for _ in self.requests]
        per_link = query.weights[1] if len(query.weights) > 1 else 0
        known: dict[object, tuple[Costs, Shapes, IntArray]] = {}
        places: dict[object, list[tuple[int, tuple[int, ...]]]] = {}
        told = set()
        for q, request in enumerate(self.requests):
            covers = frozenset((c.row, c.inside) for c in query.covers_of.get(q, ()))
            alike, key = (covers, request.nodes), (covers, request.nodes if covers else 0)
            if key not in known:
                clock.check(self.deadline)
                some = shapes_of(self.tree, request.nodes) if covers else self.shapes
                costs = Costs(self.tree, self.capacities, row_prices, per_link, covers)
                known[key] = costs, some, costs.least(some)
            costs, some, least = known[key]
            own, worth = some.of[request.nodes], query.weights[0] * request.value
            if least[own].min(initial=NONE) < NONE:
                best[q] = worth - least[own].min()
            kind = self.first_of_kind[q], covers
            if kind in told or best[q] < 0 or clock.now() >= self.deadline:
                continue
            told.add(kind)
            if alike not in places:
                order = np.argsort(least[own], kind="stable")[:_SHAPES].tolist()
                places[alike] = costs.places((some.every[own.start + k] for k in order), _STEPS)
            found = places[alike][: query.per_request]
            columns[q] = [(worth - cost, self.candidate(q, rows)) for cost, rows in found]
        return Priced(best, columns)

    def candidate(self, q: int, rows: tuple[int, ...]) -> Listed:
        """Return a request in a place."""
        return Listed(q, rows, (int(self.values[q]), -self.tree.num_links(rows)))

    # primal side

    def with_one_more(self, placed: Sequence[Listed], q: int) -> list[Listed] | None:
        """Return a placement with a request in addition; None if no place is found for it."""
        rows = place_of(self.tree, capacities_left(self, placed), self.requests[q].nodes)
        return None if rows is None else sorted([*placed, self.candidate(q, rows)])

    def filled(self, kept: Sequence[Listed], order: Sequence[int], until: float) -> list[Listed]:
        """Return a placement with as many others as fit, tried in an order."""
        found, left = list(kept), capacities_left(self, kept).copy()
        there, failed = {c.request_idx for c in kept}, set[int]()
        for q in order:
            nodes = self.requests[q].nodes
            if q in there or nodes in failed or nodes > left[: self.num_covers].sum():
                continue
            if clock.now() >= until:
                break
            rows = place_of(self.tree, left, nodes)
            if rows is None:
                failed.add(nodes)
                continue
            np.subtract.at(left, list(rows), 1)
            found.append(self.candidate(q, rows))
        return sorted(found)

    def packed_full(
        self, kept: Sequence[Listed], rng: np.random.Generator, until: float
    ) -> list[Listed]:
        """Return a placement with others that together use what is free best.

        They are a knapsack of the free nodes, and again one of what it leaves if some of them find
        no place; the largest are placed first.
        """
        found, before = list(kept), -1
        while len(found) > before:
            before = len(found)
            gone = {c.request_idx for c in found}
            waiting = [q for q in rng.permutation(len(self.names)).tolist() if q not in gone]
            room = self._room(found)
            chosen = knapsack(self.values[waiting], self.nodes[waiting], room)
            order = sorted((waiting[k] for k in chosen), key=lambda q: -self.nodes[q])
            found = self.filled(found, order, until)
        return self.filled(found, waiting, until)

    def starts(self, deadline: float) -> Iterator[list[Listed]]:
        """Yield placements by value, by value of a node, and by nodes; then knapsacks of nodes."""
        each = self.values / self.nodes
        for key in (self.values, each * 1e6 + self.nodes, self.nodes):
            yield self.filled([], np.argsort(-key, kind="stable").tolist(), deadline)
        rng = np.random.default_rng(0)
        room = self._room()
        most = self.values[knapsack(self.values, self.nodes, room)].sum()
        for _ in range(_KNAPSACKS):
            if clock.now() >= deadline:
                return
            found = self.packed_full([], rng, deadline)
            yield found
            if sum(int(self.values[c.request_idx]) for c in found) == most:
                return

    def heuristic(self, budget: Budget) -> RuinRecreate:
        """Return the search that takes jobs out of some leaves and puts others in."""

        def again(now: list[Listed], rng: np.random.Generator) -> list[Listed]:
            kept = ruined(now, lambda c: c.rows, rng, _RUINED)
            found = self.packed_full(kept, rng, budget.limit)
            budget.spend(1e-3 * (1 + len(found) - len(kept)))
            return found

        return RuinRecreate(self.values, again)

    def left_by(self, fixed: Sequence[Listed], kept: Sequence[int]) -> FatTreePacking:
        """Return the problem of some requests around fixed jobs; rows have the same numbers."""
        own = [self.requests[q] for q in kept]
        return FatTreePacking(self.tree, own, capacities_left(self, fixed))


def packed(state: FatTreeState) -> Packed:
    """Return the problem as a packing."""
    packing = every_place(state) or FatTreePacking(state.tree, state.requests, state.left)
    return Packed(packing, sorted)


register("fattree", "exact")(exact)
