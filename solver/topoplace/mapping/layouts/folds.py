"""The order in which the supertiles of a fold are stacked (Enos 2014 IV.E)."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from topoplace.machine.torus import IntArray

MAX_EXHAUSTIVE = 8
"""Most supertiles whose orders are all tried."""


@lru_cache(maxsize=4096)
def layer_order(
    tiles: tuple[int, int], weights: tuple[int, int], periodic: tuple[bool, bool], ring: bool
) -> tuple[int, ...]:
    """Return the layer of every supertile, supertiles row-major.

    Up to `MAX_EXHAUSTIVE` supertiles the order minimises the bytes x layer distance over all
    folds (and over the seam of periodic dimensions); above, it is the best of the orders row by
    row and column by column, plain and boustrophedon.

    Parameters
    ----------
    tiles
        Supertiles per folded dimension.
    weights
        Bytes across one fold between two supertiles that are neighbours in either dimension.
    periodic
        Whether the first and the last supertile of a dimension exchange bytes too.
    ring
        Whether the layers fill a ring, so that the first and the last are neighbours.
    """
    count = tiles[0] * tiles[1]
    numbers = np.arange(count, dtype=np.int64).reshape(tiles)
    orders = _all_orders(count) if count <= MAX_EXHAUSTIVE else _row_orders(tiles)
    cost = np.zeros(len(orders), dtype=np.int64)
    for d in (0, 1):
        for k in range(tiles[d] if periodic[d] else tiles[d] - 1):
            here, there = np.take(numbers, k, d), np.take(numbers, (k + 1) % tiles[d], d)
            apart = np.abs(orders[:, here] - orders[:, there])
            if ring:
                apart = np.minimum(apart, count - apart)
            cost += weights[d] * apart.sum(axis=1)
    return tuple(orders[int(cost.argmin())].tolist())


@lru_cache(maxsize=MAX_EXHAUSTIVE)
def _all_orders(count: int) -> IntArray:
    """Return all orders of `count` supertiles in lexicographic order."""
    return np.array(list(itertools.permutations(range(count))), dtype=np.int64)


def _row_orders(tiles: tuple[int, int]) -> IntArray:
    """Return the orders row by row and column by column, plain and boustrophedon."""
    found = []
    for rows, columns, by_column in ((*tiles, False), (*tiles[::-1], True)):
        plain = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
        snake = plain.copy()
        snake[1::2] = snake[1::2, ::-1]
        found += [(order.T if by_column else order).ravel() for order in (plain, snake)]
    return np.array(found)
