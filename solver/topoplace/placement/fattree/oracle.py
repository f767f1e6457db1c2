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
        self._links = _sums(costs.reshape(-1, tree.switches))
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
            leaves = self._leaves(full, common)
            of_leaves = _sums(leaves)
            beside_leaf, beside_pod = _sums_of_others(leaves), _sums_of_others(of_leaves.T)
            for rest, own in by_rest.items():
                alike, each, last = some.numbers[own].T
                each, last = np.minimum((each, last), of_leaves.shape[1] - 1)
                of_last = of_leaves
                if rest:
                    of_last = _with(self._leaves(rest, rest)[..., None], beside_leaf)
                found[own] = _with(of_last[:, last], beside_pod[each, :, alike].T, axis=0)
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


def _sums(costs: IntArray) -> IntArray:
    """Return by row the least sums of 0, 1, 2, .. costs, and `NONE` for one more than there are."""
    ordered = np.sort(costs, axis=-1)
    there, edge = ordered < _LARGE, np.zeros_like(ordered[..., :1])
    sums = np.where(there, np.cumsum(np.where(there, ordered, 0), axis=-1), NONE)
    return np.concatenate([edge, sums, edge + NONE], axis=-1)


def _sums_of_others(costs: IntArray) -> IntArray:
    """Return by row, and by part of it, the least sums of costs of its other parts."""
    return _sums(np.where(np.eye(costs.shape[1], dtype=bool), NONE, costs[:, None]))


def _with(costs: IntArray, others: IntArray, axis: int = 1) -> IntArray:
    """Return the least costs of one part, and of what there is besides, over an axis of parts."""
    there = (costs < _LARGE) & (others < _LARGE)
    return np.asarray(np.where(there, costs + others, NONE).min(axis=axis))
