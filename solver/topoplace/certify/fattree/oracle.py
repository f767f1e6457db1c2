"""The best places on a fat tree at some prices, by code of the checker's own.

Of small trees all places are listed. On others, a place costs at least the cheapest nodes of the
tree, and as many of the cheapest links of leaves as it needs (docs/proofs/fattree.md, "Large
trees").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, combinations, islice, product, zip_longest

import numpy as np

from topoplace.certify.packing import Covers, Prices
from topoplace.machine.fattree import FatTree
from topoplace.types import IntArray

SMALL, LISTED = 64, 20_000
"""Nodes of a tree of which all places are listed, if these are no more, over all sizes."""


@dataclass(frozen=True)
class Request:
    """A request of the queue."""

    id: str
    value: int
    nodes: int


@dataclass(frozen=True)
class FatTreeOracle:
    """What places gain at most: by all places of every size, or by limits of their costs.

    Attributes
    ----------
    left
        How many jobs every row has room for: one per free node and per free link.
    places
        By size that has any, the rows of all places, filled up with -1; shape
        ``(num_places, most rows)``. None on large trees.
    """

    tree: FatTree
    left: IntArray
    requests: tuple[Request, ...]
    places: Mapping[int, IntArray] | None = None

    @property
    def rows(self) -> dict[str, IntArray]:
        """Capacities of the rows, by family."""
        return {name: self.left[own] for name, own in self.tree.families.items()}

    @property
    def coverable(self) -> int:
        """All rows are covered, on large trees none."""
        return 0 if self.places is None else self.tree.num_rows

    @property
    def largest(self) -> tuple[int, int]:
        """Limits of the value and of the links of a candidate."""
        return max((r.value for r in self.requests), default=0), self.tree.num_rows

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether a request has all places of another: it has as many nodes, or no place."""
        nodes = self.requests[other].nodes
        nowhere = self.places is not None and nodes not in self.places
        return self.requests[one].nodes == nodes or nowhere

    def among(self, chosen: Sequence[tuple[int, int]]) -> FatTreeOracle:
        """Return an oracle of some requests, each in the places of another of its size."""
        own = self.requests
        some = (replace(own[q], nodes=own[other].nodes) for q, other in chosen)
        return replace(self, requests=tuple(some))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return the most that requests gain."""
        value, per_link = [*prices.factors, 0][:2]
        paid = np.zeros(self.tree.num_rows, dtype=np.int64)
        for name, own in self.tree.families.items():
            paid[own] = prices.rows.get(name, 0)
        paid[len(self.tree.sizes) :] += per_link
        limits = self._limits(paid, per_link) if self.places is None else {}

        @cache
        def cost(covers: Covers, nodes: int) -> int | None:
            if self.places is None or nodes not in self.places:
                return limits.get(nodes)
            return _least(self.places[nodes], paid, covers)

        found = dict[int, int | None]()
        for q, covers in wanted.items():
            request = self.requests[q]
            least = cost(covers, request.nodes)
            found[q] = None if least is None else value * request.value - least
        return found

    def _limits(self, paid: IntArray, per_link: int) -> dict[int, int]:
        """Return limits of the costs of places, by size that may have any.

        A place costs the cheapest nodes, and the cheapest links of leaves, as many as its shape
        needs: full leaves, and perhaps one with the rest. As many as possible are in one pod.
        """
        hosts, links, _ = (self.left[own] for own in self.tree.families.values())
        at_leaves, at_links, _ = (paid[own] for own in self.tree.families.values())
        of_nodes = [0, *accumulate(sorted(np.repeat(at_leaves, hosts).tolist()))]
        of_links = [0, *accumulate(sorted(at_links[links > 0].tolist()))]
        widest, found = max(map(len, self.tree.leaves)), dict[int, int]()
        for nodes in {request.nodes for request in self.requests} & {*range(len(of_nodes))}:
            for each in range(1, min(nodes, int(hosts.max())) + 1):
                count, rest = divmod(nodes, each)
                need = each if count > 1 else rest
                used = count * need + rest
                if count + (rest > 0) <= len(hosts) and used < len(of_links):
                    # in two pods each leaf of the smaller one needs a link in both
                    at = (rest, count + 1), (need - rest, count)
                    ups = sum(num * min(d, 2 * max(0, d - widest)) for num, d in at)
                    cost = of_nodes[nodes] + of_links[used] + per_link * ups
                    found[nodes] = min(found.get(nodes, cost), cost)
        return found


def _least(places: IntArray, paid: IntArray, covers: Covers) -> int | None:
    """Return the least cost of some places that are where covers say; None if there are none."""
    for row, inside in covers.named:
        places = places[(places == row).any(axis=1) == inside]
    return min(np.append(paid, 0)[places].sum(axis=1).tolist(), default=None)


def oracle_of(tree: FatTree, left: IntArray, queue: tuple[Request, ...]) -> FatTreeOracle:
    """Return the oracle of an instance: by all places if they are few."""
    places, room = dict[int, IntArray](), LISTED if tree.num_nodes <= SMALL else -1
    for nodes in sorted({request.nodes for request in queue} if room >= 0 else ()):
        own = [*islice(_places(tree, left, nodes), room + 1)]
        room -= len(own)
        if room < 0:
            return FatTreeOracle(tree, left, queue)
        if own:
            places[nodes] = np.array([*zip_longest(*own, fillvalue=-1)]).T
    return FatTreeOracle(tree, left, queue, places if room >= 0 else None)


# ---- All places ---------------------------------------------------------------------------------


def _places(tree: FatTree, left: IntArray, nodes: int) -> Iterator[list[int]]:
    """Yield the rows of all places: leaves by their numbers, then switches, then spines."""
    hosts, width = left[tree.families["hosts"]].tolist(), range(tree.switches)
    every = range(len(hosts))
    up = [frozenset(i for i in width if left[tree.link(leaf, i)]) for leaf in every]
    for each in range(1, nodes + 1):
        count, rest = divmod(nodes, each)
        need = each if count > 1 else rest
        fitting = [leaf for leaf in every if hosts[leaf] >= each]
        for own in _sharing(fitting, up, count, need, frozenset(width)):
            odd = [(x,) for x in every if hosts[x] >= rest and x not in own] if rest else [()]
            for last in odd:
                sizes = dict.fromkeys(own, each) | dict.fromkeys(last, rest)
                below = [leaf for leaf, n in sizes.items() for _ in range(n)]
                for used in _shared({x: (n, up[x]) for x, n in sizes.items()}):
                    below_links = [tree.link(x, i) for x, some in used.items() for i in some]
                    for ups in product(*_over_pods(tree, left, used)):
                        yield below + below_links + [row for some in ups for row in some]


def _sharing(
    leaves: Sequence[int],
    up: Sequence[frozenset[int]],
    count: int,
    need: int,
    common: frozenset[int],
) -> Iterator[tuple[int, ...]]:
    """Yield sets of leaves that share enough switches."""
    if not count:
        yield ()
    for k, leaf in enumerate(leaves if count else ()):
        both = common & up[leaf]
        if len(both) >= need:
            for more in _sharing(leaves[k + 1 :], up, count - 1, need, both):
                yield (leaf, *more)


def _over_pods(
    tree: FatTree, left: IntArray, used: Mapping[int, Collection[int]]
) -> Iterator[list[list[int]]]:
    """Yield by switch that leaves use the choices of links to its spines."""
    for i in {i for some in used.values() for i in some}:
        pods = [tree.pod_of[leaf] for leaf, some in used.items() if i in some]
        free = {p: {j for j in range(tree.spines) if left[tree.up(p, i, j)]} for p in pods}
        choices = _shared({pod: (pods.count(pod), own) for pod, own in free.items()})
        yield [[tree.up(p, i, j) for p, some in own.items() for j in some] for own in choices]


def _shared(parts: Mapping[int, tuple[int, Set[int]]]) -> Iterator[dict[int, tuple[int, ...]]]:
    """Yield what parts of a job share: leaves switches, or pods the spines of a plane.

    Each has a size and what is free of it. Those of the largest size take as many things, the same,
    and at most one other part its size of these. Of two, both take only what the smaller one does.
    """
    most, least = (f(size for size, _ in parts.values()) for f in (max, min))
    small = [part for part, (size, _) in parts.items() if size < most]
    if len(parts) == 1 or len(small) > 1:
        if len(parts) == 1:
            yield dict.fromkeys(parts, ())
        return
    common = set.intersection(*({*free} for size, free in parts.values() if size == most))
    for own in combinations(sorted(common), least if len(parts) == 2 else most):
        found = dict.fromkeys(parts, own)
        for part in small:
            size, free = parts[part]
            yield from (found | {part: some} for some in combinations(sorted({*own} & free), size))
        if not small:
            yield found
