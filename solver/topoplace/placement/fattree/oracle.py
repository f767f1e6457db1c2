"""What places cost at some prices, on trees with too many places to list.

A place pays for its hosts and, on each leaf, for as many of the cheapest free links as it needs, no
matter whether its leaves have them in common (docs/proofs/fattree.md, "Large trees").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.machine.fattree import FatTree
from topoplace.placement.fattree.places import Shapes
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

    def leaf(self, nodes: int, links: int) -> IntArray:
        """Return what so many nodes and links of every leaf cost, `NONE` where it has too few."""
        fits = (self.hosts >= nodes) & (self.num_free >= links)
        return np.where(fits, nodes * self.price + self.links[:, links] - self.discount, NONE)

    def in_pods(self, costs: IntArray) -> IntArray:
        """Return costs of leaves by pod, shape ``(num_pods, largest number of leaves)``."""
        return np.asarray(np.append(costs, NONE)[self._at])

    def least(self, some: Shapes) -> IntArray:
        """Return what a place of every shape costs at least, `NONE` where there is none."""
        found = np.full(len(some.every), NONE)
        for (each, need), own in some.groups.items():
            if each <= self.hosts.max(initial=0) and need <= self.tree.switches:
                found[own] = self._least_of(some, own, self.in_pods(self.leaf(each, need)))
        found += np.where(found < _LARGE, some.ups * self.per_link + self.must * self.num_inside, 0)
        return np.where(found < (self.must if self.num_inside else _LARGE), found, NONE)

    def _least_of(self, some: Shapes, own: IntArray, costs: IntArray) -> IntArray:
        """Return what places of shapes with the same full leaves cost at least.

        A place is on some pods with as many full leaves each, the cheapest ones, and another pod.

        Parameters
        ----------
        own
            The numbers of the shapes.
        costs
            What full leaves cost, by pod.
        """
        rank, sums = _cheapest(costs)
        pod_rank, pod_sums = _cheapest(sums.T)
        leaves, alike, odd, rest = some.numbers[own].T
        most = costs.shape[1]
        fits = (leaves <= most) & (odd <= most) & (alike < len(costs))
        leaves, alike, odd = np.where(fits, (leaves, alike, odd), 0)
        other = np.full((len(own), len(costs)), NONE)
        for r in np.unique(rest[fits]).tolist():
            last = self._with_rest(costs, rank, sums, r) if r else sums
            other[fits & (rest == r)] = last[:, odd[fits & (rest == r)]].T
        among = pod_rank[leaves] < alike[:, None]
        beside = pod_sums[leaves[:, None], alike[:, None] + among]
        none = (other >= _LARGE) | (beside >= _LARGE)
        total = other + beside - np.where(among, sums.T[leaves], 0)
        return np.asarray(np.where(none, NONE, total).min(axis=1))

    def _with_rest(self, costs: IntArray, rank: IntArray, sums: IntArray, rest: int) -> IntArray:
        """Return by pod the least cost of 0, 1, .. full leaves and one with the rest."""
        own = self.in_pods(self.leaf(rest, rest))[:, :, None]
        more = np.append(sums[:, 1:], np.full((len(own), 1), NONE), axis=1)[:, None]
        among = rank[:, :, None] < np.arange(sums.shape[1])
        others = np.where(among, more - costs[:, :, None], sums[:, None])
        none = (own >= _LARGE) | (np.where(among, more, others) >= _LARGE)
        return np.asarray(np.where(none, NONE, own + others).min(axis=1))


def _cheapest(costs: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rank of every cost in its row, and by row the least sums of 0, 1, 2, .. costs."""
    order = np.argsort(costs, axis=1, kind="stable")
    ordered = np.take_along_axis(costs, order, axis=1)
    there = ordered < _LARGE
    sums = np.where(there, np.cumsum(np.where(there, ordered, 0), axis=1), NONE)
    none = np.zeros((len(costs), 1), dtype=np.int64)
    return np.argsort(order, axis=1, kind="stable"), np.append(none, sums, axis=1)
