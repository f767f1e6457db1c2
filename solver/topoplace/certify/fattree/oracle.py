"""The best places on a fat tree at some prices, by code of the checker's own.

Of small trees all places are listed. Of others, a place pays for its hosts and, on each leaf, for
as many of the cheapest free links as it needs, no matter whether leaves have them in common: no
place costs less (docs/proofs/fattree.md, "Large trees").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice, product, zip_longest

import numpy as np

from topoplace.certify.packing import Covers, Prices
from topoplace.machine.fattree import FatTree
from topoplace.types import IntArray

SMALL, LISTED = 64, 20_000
"""Nodes of a tree of which all places are listed, if these are no more, over all sizes."""

NONE = 1 << 60
"""The cost of what is not there: more than that of any place, which is below 2^58."""


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
        By size the rows of all places; None on large trees.
    """

    tree: FatTree
    left: IntArray
    requests: tuple[Request, ...]
    places: Mapping[int, Sequence[Sequence[int]]] | None = None

    @property
    def rows(self) -> dict[str, IntArray]:
        """Capacities of the rows, by family."""
        return {name: self.left[own] for name, own in self.tree.families.items()}

    @property
    def coverable(self) -> int:
        """All rows are covered, on large trees those of leaves."""
        return len(self.tree.sizes) if self.places is None else self.tree.num_rows

    @property
    def largest(self) -> tuple[int, int]:
        """Limits of the value and of the links of a candidate."""
        return max((r.value for r in self.requests), default=0), self.tree.num_rows

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether a request has all places of another: it has as many nodes, or no place."""
        nodes = self.requests[other].nodes
        nowhere = self.places is not None and not self.places[nodes]
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
        sizes: dict[Covers, set[int]] = {}
        for q, covers in wanted.items():
            sizes.setdefault(covers, set()).add(self.requests[q].nodes)
        least = {
            covers: self._limits(paid, per_link, covers, own)
            if self.places is None
            else self._least(paid, covers, own)
            for covers, own in sizes.items()
        }
        costs = {q: least[covers].get(self.requests[q].nodes) for q, covers in wanted.items()}
        return {
            q: None if cost is None else value * self.requests[q].value - cost
            for q, cost in costs.items()
        }

    # ---- all places

    @cached_property
    def _tables(self) -> dict[int, IntArray]:
        """By size the rows of all places, filled up with -1; shape ``(num_places, most rows)``."""
        every = (self.places or {}).items()
        return {n: np.array([*zip_longest(*own, fillvalue=-1)]).T for n, own in every if own}

    def _least(self, paid: IntArray, covers: Covers, sizes: Set[int]) -> dict[int, int]:
        """Return the least costs of places of some sizes, those that have any."""
        found = {}
        for nodes in self._tables.keys() & sizes:
            rows = self._tables[nodes]
            fits = np.ones(len(rows), dtype=bool)
            for row, inside in covers.named:
                fits &= (rows == row).any(axis=1) == inside
            if fits.any():
                found[nodes] = int(np.append(paid, 0)[rows[fits]].sum(axis=1).min())
        return found

    # ---- limits
    #
    # A place has as many full leaves in each of some pods, and other full leaves and the remainder
    # leaf in a last one; or it is in the last one alone.

    @cached_property
    def _divisions(self) -> dict[tuple[int, int, int], IntArray]:
        """All divisions of requests among pods, by nodes and links of full leaves, and the rest.

        By column the nodes of the request, and what `_divided` yields.
        """
        most, pods = max(map(len, self.tree.leaves)), len(self.tree.pods) * (self.tree.spines > 0)
        found: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
        for nodes in {request.nodes for request in self.requests}:
            for each in range(1, min(nodes, max(self.tree.sizes)) + 1):
                count, rest = divmod(nodes, each)
                need = each if count > 1 else rest
                own = ((nodes, *numbers) for numbers in _divided(count, need, rest))
                found.setdefault((each, need, rest), []).extend(
                    one for one in own if one[1] < max(1, pods) and max(one[2:4]) <= most
                )
        return {key: np.array(own).reshape(-1, 5) for key, own in found.items()}

    def _limits(
        self, paid: IntArray, per_link: int, covers: Covers, sizes: Set[int]
    ) -> dict[int, int]:
        """Return limits of the costs of places of some sizes, those that have any."""
        tree, num = self.tree, len(self.tree.sizes)
        hosts, links, _ = (self.left[own].copy() for own in tree.families.values())
        hosts[[*covers.outside]] = 0
        prices = np.where(links > 0, paid[tree.families["links"]], NONE)
        of_links = [np.zeros(num, dtype=np.int64)]
        for dearer in np.sort(prices.reshape(num, -1), axis=1).T:
            of_links.append(np.minimum(of_links[-1] + dearer, NONE))
        most = max(map(len, tree.leaves))
        at = np.array([*zip_longest(*tree.leaves, fillvalue=num)])

        def by_pod(nodes: int, links: int) -> IntArray:
            """Return what nodes and links of a leaf cost, shape ``(most leaves, num_pods)``."""
            costs = np.where(hosts >= nodes, nodes * paid[:num] + of_links[links], NONE)
            return np.asarray(np.append(np.minimum(costs, NONE), NONE)[at])

        without = np.zeros(num + 1, dtype=np.int64)
        without[[*covers.inside]] = NONE
        best = dict.fromkeys(sizes, NONE)
        for (each, need, rest), every in self._divisions.items():
            own = every[np.isin(every[:, 0], [*sizes])]
            if not len(own) or need > tree.switches:
                continue
            odd = by_pod(rest, rest) if rest else np.full_like(at, NONE)
            in_pod = _least_sums(by_pod(each, need), odd, without[at], most)
            nodes, pods, leaves, last, ups = own.T
            ends = in_pod[int(rest > 0), last].T
            costs = _least_sums(in_pod[0, leaves].T, ends, in_pod[0, :1].T, pods.max())
            costs = costs[1, pods, np.arange(len(own))] + ups * per_link
            for n, cost in zip(nodes.tolist(), costs.tolist(), strict=True):
                best[n] = min(best[n], cost)
        return {n: cost for n, cost in best.items() if cost < NONE}


def oracle_of(tree: FatTree, left: IntArray, queue: tuple[Request, ...]) -> FatTreeOracle:
    """Return the oracle of an instance: by all places if they are few."""
    places: dict[int, list[list[int]]] = {}
    room = LISTED if tree.num_nodes <= SMALL else -1
    for nodes in sorted({request.nodes for request in queue}):
        if room >= 0:
            places[nodes] = [*islice(_places(tree, left, nodes), room + 1)]
            room -= len(places[nodes])
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


# ---- Large trees --------------------------------------------------------------------------------


def _least_sums(each: IntArray, odd: IntArray, without: IntArray, most: int) -> IntArray:
    """Return the least costs of 0, 1, .. `most` things, with none (0) or one (1) of an odd kind.

    Things come one after the other. Each is taken or not, or is the odd one, at a cost: the first
    axis of the three arrays. Where there are several columns, each is a sum of its own.
    """
    least = np.full((2, most + 1, *each.shape[1:]), NONE)
    least[0, 0] = 0
    for cost, as_odd, none in zip(each, odd, without, strict=True):
        before = least
        least = np.minimum(before + none, NONE)
        least[:, 1:] = np.minimum(least[:, 1:], before[:, :-1] + cost)
        least[1] = np.minimum(least[1], before[0] + as_odd)
    return least


def _divided(count: int, need: int, rest: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield how full leaves can be divided: equal pods, leaves of each, and those of a last pod.

    The leaf with the rest is in the last pod. At the end are the links to spines that such a place
    has at least.
    """
    every = [(0, 0, count)]
    for leaves in range(1, count + 1):
        pods, last = divmod(count, leaves)
        every.append((pods, leaves, last) if last or rest else (pods - 1, leaves, leaves))
    every += [(1, fewer, count - fewer) for fewer in range(1, count // 2 + 1) if rest]
    for pods, leaves, last in every:
        ups = 0
        for num, own in ((rest, last + 1), (need - rest, last)):
            sizes = [leaves] * pods + [own] * (own > 0)
            ups += num * (2 * min(sizes) if len(sizes) == 2 else sum(sizes) * (len(sizes) > 2))
        yield pods, leaves, last, ups
