"""What places cost at some prices, on trees with too many places to list.

A place pays for its hosts and, on each leaf, for as many of the cheapest free links as it needs, no
matter whether its leaves have them in common (docs/proofs/fattree.md, "Large trees").
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from topoplace.machine.fattree import FatTree
from topoplace.placement.fattree.places import Shape
from topoplace.types import IntArray

NONE, _LARGE = 1 << 60, 1 << 59
"""The cost of what is not there, and a cost that no place has."""


class Costs:
    """The least costs of places of one tree at some prices.

    Parameters
    ----------
    left, prices
        What is free of every row, and its price.
    per_link
        What a link costs besides.
    inside, outside
        Leaves that a place must have, or must not have.
    """

    def __init__(
        self,
        tree: FatTree,
        left: IntArray,
        prices: IntArray,
        per_link: int,
        inside: Sequence[int] = (),
        outside: Sequence[int] = (),
    ) -> None:
        self.tree, self.per_link, self.num_inside = tree, per_link, len(inside)
        self.hosts = left[tree.families["hosts"]].copy()
        self.hosts[[*outside]] = 0
        shape = len(tree.sizes), tree.switches
        own = prices[tree.families["links"]].reshape(shape) + per_link
        free = left[tree.families["links"]].reshape(shape) > 0
        sums = np.cumsum(np.sort(np.where(free, own, NONE // 256), axis=1), axis=1)
        self.links = np.concatenate([np.zeros((shape[0], 1), dtype=np.int64), sums], axis=1)
        self.num_free = free.sum(axis=1)
        self.price = prices[tree.families["hosts"]]
        self.must = 1 + int((prices * left).sum()) + per_link * tree.num_rows
        self.discount = np.zeros(shape[0], dtype=np.int64)
        self.discount[[*inside]] = self.must
        most = max(map(len, tree.leaves))
        self._at = np.array([[*own, *([-1] * (most - len(own)))] for own in tree.leaves])
        self._full: dict[tuple[int, int], _Full] = {}
        self._last: dict[tuple[int, int, int], IntArray] = {}

    def leaf(self, nodes: int, links: int) -> IntArray:
        """Return what so many nodes and links of every leaf cost, `NONE` where it has too few."""
        fits = (self.hosts >= nodes) & (self.num_free >= links)
        return np.where(fits, nodes * self.price + self.links[:, links] - self.discount, NONE)

    def in_pods(self, costs: IntArray) -> IntArray:
        """Return costs of leaves by pod, shape ``(num_pods, largest number of leaves)``."""
        return np.asarray(np.append(costs, NONE)[self._at])

    def best(self, nodes: int, most: int | None = None) -> list[tuple[int, Shape]]:
        """Return the least costs of the shapes that places may have, the cheapest `most` first."""
        found = [(int(self.leaf(nodes, 0).min()), Shape(nodes, 0, ((1, False),)))]
        for each in range(1, min(nodes - 1, max(self.tree.sizes)) + 1):
            count, rest = divmod(nodes, each)
            if (rest if count == 1 else each) <= self.tree.switches:
                found += self._spread(each, count, rest)
        extra = self.must * self.num_inside
        least = ((cost + extra, k) for k, (cost, _) in enumerate(found) if cost < _LARGE)
        limit = self.must if self.num_inside else _LARGE
        cheap = heapq.nsmallest(most or len(found), (one for one in least if one[0] < limit))
        return [(cost, found[k][1]) for cost, k in cheap]

    def _full_of(self, each: int, need: int) -> _Full:
        if (each, need) not in self._full:
            self._full[each, need] = _Full(self.in_pods(self.leaf(each, need)))
        return self._full[each, need]

    def _last_of(self, each: int, need: int, rest: int) -> IntArray:
        """Return by pod the least cost of 0, 1, .. full leaves and one with the rest."""
        full = self._full_of(each, need)
        if not rest:
            return full.sums
        if (each, need, rest) not in self._last:
            own = self.in_pods(self.leaf(rest, rest))[:, :, None]
            counts = np.arange(full.sums.shape[1])
            more = np.append(full.sums[:, 1:], np.full((len(own), 1), NONE), axis=1)
            among = full.rank[:, :, None] < counts
            others = np.where(
                among, more[:, None, :] - full.costs[:, :, None], full.sums[:, None, :]
            )
            none = (own >= _LARGE) | (np.where(among, more[:, None, :], others) >= _LARGE)
            self._last[each, need, rest] = np.where(none, NONE, own + others).min(axis=1)
        return self._last[each, need, rest]

    def _spread(self, each: int, count: int, rest: int) -> Iterator[tuple[int, Shape]]:
        """Yield costs of places with so many full leaves, in one pod and in several."""
        need, tree = rest if count == 1 else each, self.tree
        full, last = self._full_of(each, need), self._last_of(each, need, rest)
        if count < last.shape[1]:
            yield int(last[:, count].min()), Shape(each, rest, ((count, rest > 0),))
        if not tree.spines:
            return
        for leaves in range(1, min(count, full.sums.shape[1] - 1) + 1):
            pods, odd = divmod(count, leaves)
            if pods > len(tree.pods):
                continue
            if odd or rest:
                shape = Shape(each, rest, (*((leaves, False),) * pods, (odd, rest > 0)))
                yield full.with_another(leaves, pods, last[:, odd]) + self._ups(shape), shape
            elif pods > 1:
                shape = Shape(each, 0, ((leaves, False),) * pods)
                yield full.alike(leaves, pods) + self._ups(shape), shape
        for fewer in range(1, count // 2 + 1) if rest else ():
            if count - fewer < last.shape[1]:
                shape = Shape(each, rest, ((count - fewer, True), (fewer, False)))
                cost = full.with_another(fewer, 1, last[:, count - fewer])
                yield cost + self._ups(shape), shape

    def _ups(self, shape: Shape) -> int:
        """Return what the links to spines of a shape cost at least."""
        total = 0
        for num, more in ((shape.rest, True), (shape.common - shape.rest, False)):
            sizes = sorted(own + (has and more) for own, has in shape.pods)
            sizes = [size for size in sizes if size]
            links = sum(sizes) if len(sizes) > 2 else 2 * sizes[0] * (len(sizes) == 2)
            total += num * links
        return total * self.per_link


class _Full:
    """The costs of full leaves by pod.

    Attributes
    ----------
    costs, rank
        By pod and leaf, and the place of each leaf among those of its pod, the cheapest first.
    sums
        By pod the least costs of 0, 1, 2, .. leaves, `NONE` where there are too few.
    """

    def __init__(self, costs: IntArray) -> None:
        self.costs = costs
        order = np.argsort(costs, axis=1, kind="stable")
        self.rank = np.argsort(order, axis=1, kind="stable")
        ordered = np.take_along_axis(costs, order, axis=1)
        there = ordered < _LARGE
        sums = np.cumsum(np.where(there, ordered, 0), axis=1)
        none = np.zeros((len(costs), 1), dtype=np.int64)
        self.sums = np.append(none, np.where(there, sums, NONE), axis=1)

    @cached_property
    def _by_leaves(self) -> dict[int, tuple[IntArray, IntArray, IntArray]]:
        return {}

    def _of(self, leaves: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return what pods cost for so many leaves, their ranks, and sums of the cheapest."""
        if leaves not in self._by_leaves:
            own = self.sums[:, leaves]
            order = np.argsort(own, kind="stable")
            ordered = own[order]
            there = ordered < _LARGE
            sums = np.where(there, np.cumsum(np.where(there, ordered, 0)), NONE)
            self._by_leaves[leaves] = own, np.argsort(order, kind="stable"), np.append(0, sums)
        return self._by_leaves[leaves]

    def alike(self, leaves: int, pods: int) -> int:
        """Return the least cost of some pods with so many leaves each."""
        return int(self._of(leaves)[2][pods])

    def with_another(self, leaves: int, pods: int, other: IntArray) -> int:
        """Return the least cost of some such pods and one more, whose costs are given."""
        own, rank, sums = self._of(leaves)
        among = rank < pods
        beside = np.append(sums, NONE)[pods + among]
        none = (other >= _LARGE) | (beside >= _LARGE)
        return int(np.where(none, NONE, other + beside - np.where(among, own, 0)).min())
