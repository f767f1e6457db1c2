"""What places cost at some prices, on trees with too many places to list.

A place pays for its hosts and, on each leaf, for as many of the cheapest free links as it needs, no
matter whether its leaves have them in common (docs/proofs/fattree.md, "Large trees").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

import numpy as np

from topoplace.machine.fattree import FatTree
from topoplace.placement.fattree.places import Room, Shape, Shapes
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
    covers
        Leaves that a place must have (each costs so much less that others cost more), or must not.
    """

    def __init__(
        self,
        tree: FatTree,
        left: IntArray,
        prices: IntArray,
        per_link: int = 0,
        covers: Collection[tuple[int, bool]] = (),
    ) -> None:
        self._tree, self._prices, self._per_link, self._left = tree, prices, per_link, left.copy()
        self._left[[row for row, within in covers if not within]] = 0
        self._inside = [row for row, within in covers if within]
        hosts, links, _ = tree.families.values()
        self._hosts, self._price = self._left[hosts], prices[hosts]
        costs = np.where(left[links] > 0, prices[links] + per_link, NONE)
        self._links = _Cheapest(costs.reshape(-1, tree.switches)).sums
        self._must = 1 + int((prices * left).sum()) + per_link * tree.num_rows
        self._discount = np.zeros(len(self._price), dtype=np.int64)
        self._discount[self._inside] = self._must
        most = max(map(len, tree.leaves))
        self._at = np.array([[*own, *([-1] * (most - len(own)))] for own in tree.leaves])

    def _leaves(self, nodes: int, links: int) -> IntArray:
        """Return what so many nodes and links of every leaf cost, by pod."""
        of_links = self._links[:, links]
        there = (self._hosts >= nodes) & (of_links < _LARGE)
        costs = np.where(there, nodes * self._price + of_links - self._discount, NONE)
        return np.asarray(np.append(costs, NONE)[self._at])

    def least(self, some: Shapes) -> IntArray:
        """Return what a place of every shape costs at least, `NONE` where there is none."""
        found = np.full(len(some.every), NONE)
        for (full, common), by_rest in some.groups.items():
            if full > self._hosts.max(initial=0) or common >= self._links.shape[1]:
                continue
            leaves = _Cheapest(self._leaves(full, common))
            num = np.arange(leaves.sums.shape[1])[None]
            pods, every = _Cheapest(leaves.sums.T), np.arange(len(leaves.costs))
            for rest, own in by_rest.items():
                alike, each, last = some.numbers[own].T
                each, last = np.minimum((each, last), num[0, -1])
                of_last = leaves.sums
                if rest:
                    of_last = leaves.with_another(every, num, self._leaves(rest, rest))
                found[own] = pods.with_another(each, alike[:, None], of_last[:, last].T)[:, 0]
        found += np.where(found < _LARGE, some.ups * self._per_link, 0)
        if self._inside:
            found += self._must * len(self._inside)
            found[found >= self._must] = NONE
        return found

    @cached_property
    def _room(self) -> Room:
        return Room(self._tree, self._left, self._price - self._discount)

    def places(self, some: Iterable[Shape], steps: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return a place of each shape with what it costs, cheap ones first, where one is found."""
        every = (self._room.first(shape, steps) for shape in some)
        found = [rows for rows in every if rows is not None and {*self._inside} <= {*rows}]
        links = map(self._tree.num_links, found)
        costs = (
            int(self._prices[[*r]].sum()) + self._per_link * n
            for r, n in zip(found, links, strict=True)
        )
        return sorted(zip(costs, found, strict=True))


class _Cheapest:
    """The cheapest of some parts: links of a leaf, leaves of a pod, pods with as many leaves.

    Attributes
    ----------
    costs, rank
        Of every part, shape ``(num_rows, num_parts)``.
    sums
        By row the least sums of 0, 1, 2, .. costs, and `NONE` for one more than there are.
    """

    def __init__(self, costs: IntArray) -> None:
        self.costs = costs
        order = np.argsort(costs, axis=1, kind="stable")
        self.rank = np.argsort(order, axis=1, kind="stable")
        ordered = np.take_along_axis(costs, order, axis=1)
        there, none = ordered < _LARGE, np.full((len(costs), 1), NONE)
        sums = np.where(there, np.cumsum(np.where(there, ordered, 0), axis=1), NONE)
        self.sums = np.concatenate([np.zeros_like(none), sums, none], axis=1)

    def with_another(self, rows: IntArray, num: IntArray, others: IntArray) -> IntArray:
        """Return the least costs of the cheapest parts of some rows and another one.

        Parameters
        ----------
        rows, num
            The rows, and how many parts: shape ``(len(rows), count)``, or one that becomes it.
        others
            What every part costs as the other one, shape ``(len(rows), num_parts)``.
        """
        among = self.rank[rows][:, None] < num[..., None]
        count = np.minimum(num[..., None] + among, self.sums.shape[1] - 1)
        beside, others = self.sums[rows[:, None, None], count], others[:, None]
        total = others + beside - np.where(among, self.costs[rows][:, None], 0)
        there = (others < _LARGE) & (beside < _LARGE)
        return np.asarray(np.where(there, total, NONE).min(axis=-1))
