"""The method `exact` on fat trees: leaf hosts and links as rows of a packing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import islice

import numpy as np

from topoplace import clock
from topoplace.machine.fattree import FatTree
from topoplace.packing.budget import Budget
from topoplace.packing.by_nodes import first_prices, knapsack
from topoplace.packing.listed import Listed, ListedPacking, OfListed
from topoplace.packing.problem import NO_VALUE, Priced, Query, Subproblem, capacities_left
from topoplace.packing.ruin_recreate import RuinRecreate, ruined
from topoplace.placement.engine import Packed, exact
from topoplace.placement.fattree.places import Room, needs, shapes
from topoplace.placement.fattree.state import FatTreeState
from topoplace.snapshot.state import Queued
from topoplace.solving import register
from topoplace.types import FloatArray, IntArray

LISTED_NODES, LISTED = 64, 20_000
"""Of trees with at most so many nodes all places are listed, if these are not more."""

_RUINED = 8  # jobs taken out at once by the search for better placements, at most


def every_place(state: FatTreeState) -> ListedPacking | None:
    """Return the problem with all places of all requests; None if they are too many."""
    tree, room = state.tree, Room(state.tree, state.left)
    if tree.num_nodes > LISTED_NODES:
        return None
    sizes = sorted({request.nodes for request in state.requests})
    every = ((n, rows) for n in sizes for shape in shapes(tree, n) for rows in room.places(shape))
    places = [*islice(every, LISTED + 1)]
    if len(places) > LISTED:
        return None
    own = [
        Listed(q, rows, (request.value, -tree.num_links(rows)))
        for q, request in enumerate(state.requests)
        for nodes, rows in places
        if nodes == request.nodes
    ]
    rows = {name: state.left[own].tolist() for name, own in tree.families.items()}
    names, values = [r.id for r in state.requests], [r.value for r in state.requests]
    found = ListedPacking(names, values, rows, own, (1, -1))
    found.row_of = tree.leaf_of
    return found


class FatTreePacking(OfListed):
    """A queue on a tree with too many places to list.

    The oracle says what places cost at least; of each number of nodes it returns one place. To it
    the nodes of all leaves are alike, so branches name no rows.
    """

    senses, num_covers = (1, -1), 0

    def __init__(self, tree: FatTree, requests: Sequence[Queued], left: IntArray) -> None:
        self.tree, self.requests, self.capacities = tree, requests, left
        self.names = [request.id for request in requests]
        self.values = np.array([request.value for request in requests], dtype=np.int64)
        self.nodes = np.array([request.nodes for request in requests], dtype=np.int64)
        self.families, self._leaves = tree.families, tree.families["hosts"]
        most = int(left[self._leaves].max())
        self._needs = {n: [*needs(tree, n, most)] for n in sorted({*self.nodes.tolist()})}
        self._place_for = cache(lambda nodes: Room(tree, left).first(shapes(tree, nodes)))

    @cached_property
    def kinds(self) -> list[tuple[int, int]]:
        """Requests of as many nodes and the same value are of one kind."""
        return [(request.nodes, request.value) for request in self.requests]

    def largest(self, level: int) -> int:
        """Return an upper bound on the absolute value of a candidate on a level."""
        return self.num_rows if level else int(self.values.max(initial=0))

    def most(self, level: int) -> int:
        """Return the most that a placement has on a later level: no links."""
        return 0

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return 1e-3 + 2e-6 * len(self.nodes) * max(self.tree.sizes)

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]]:
        """Return prices at which a subproblem begins: one of all nodes."""
        fewest = [min(self._needs[n], default=(0, 0))[0] for n in self.nodes.tolist()]
        need = np.array(fewest) if sub.level else None
        return first_prices(self, sub, self.nodes, self.capacities[self._leaves], need)

    # the oracle

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the most that requests gain at some prices, or more, and some places."""
        best = np.full(len(self.requests), NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Listed]]] = [[] for _ in self.requests]
        per_link = query.weights[1] if len(query.weights) > 1 else 0
        hosts, links, _ = (row_prices[own] for own in self.families.values())
        free, up, _ = (self.capacities[own] for own in self.families.values())
        of_nodes = np.cumsum([0, *np.sort(np.repeat(hosts, free))])
        of_links = np.cumsum([0, *np.sort(links[up > 0] + per_link)])
        for nodes, every in self._needs.items():
            clock.check(self.deadline)
            costs = [of_links[k] + per_link * ups for k, ups in every if k < len(of_links)]
            if nodes >= len(of_nodes) or not costs:
                continue
            some = np.flatnonzero(self.nodes == nodes)
            best[some] = query.weights[0] * self.values[some] - of_nodes[nodes] - min(costs)
            firsts = {self.first_of_kind[q] for q in some[best[some] >= 0].tolist()}
            rows = (self._place_for(nodes) if firsts else None) or ()
            paid = int(row_prices[[*rows]].sum()) + per_link * self.tree.num_links(rows)
            for q in firsts if rows else ():
                gain = query.weights[0] * int(self.values[q]) - paid
                columns[q].append((gain, self.candidate(q, rows)))
        return Priced(best, columns)

    def candidate(self, q: int, rows: tuple[int, ...]) -> Listed:
        """Return a request in a place."""
        return Listed(q, rows, (int(self.values[q]), -self.tree.num_links(rows)))

    # primal side

    def filled(self, kept: Sequence[Listed], order: Sequence[int], until: float) -> list[Listed]:
        """Return a placement with others, tried in an order; they use up leaves if they can."""
        found, left = list(kept), capacities_left(self, kept).copy()
        failed = set[int]()
        for q in order:
            nodes = self.requests[q].nodes
            if nodes in failed or nodes > left[self._leaves].sum():
                continue
            if clock.now() >= until:
                break
            every = shapes(self.tree, nodes)
            rows = Room(self.tree, left, tight=True).first(every)
            rows = rows or Room(self.tree, left).first(every)
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
            room = int(capacities_left(self, found)[self._leaves].sum())
            chosen = knapsack(self.values[waiting], self.nodes[waiting], room)
            order = sorted((waiting[k] for k in chosen), key=lambda q: -self.nodes[q])
            found = self.filled(found, order, until)
        return self.filled(found, waiting, until)

    def starts(self, deadline: float) -> Iterator[list[Listed]]:
        """Yield a placement by value of a node, and one of a knapsack."""
        yield self.filled([], np.argsort(-self.values / self.nodes).tolist(), deadline)
        yield self.packed_full([], np.random.default_rng(0), deadline)

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
