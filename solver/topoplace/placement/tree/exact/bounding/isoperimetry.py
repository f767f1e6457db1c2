"""How many pairs x ranks can hold, and must leave: isoperimetric facts of cubes and grids."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Dims = frozenset[int]


def cube_pairs(ranks: int, dims: Dims, closed: Dims) -> IntArray:
    """Return the most pairs within a cube whose surplus ranks hang on some of its corners.

    Among a corners at j distances there are at most as many as among the first a binary numbers
    (the edge-isoperimetric inequality of the cube), copied for the distances kept inside.
    """
    bits = ranks.bit_length() - 1
    surplus = ranks - (1 << bits)
    fold = frozenset({0}) if surplus else frozenset()
    free, kept = len(dims - fold), len(closed - fold)
    number = np.arange(1 << bits)
    ones = np.zeros(1 << bits, dtype=np.int64)
    for bit in range(free):
        ones += number >> bit & 1
    among = np.concatenate([[0], np.cumsum(ones)])
    pairs = np.zeros(ranks + 1, dtype=np.int64)
    for corners in range(0, (1 << bits) + 1, 1 << kept):
        hanging = np.arange(min(surplus, ranks - corners) + 1)
        if fold & closed:
            hanging = hanging[hanging <= corners]
        held = (among[corners >> kept] << kept) + np.minimum(hanging, corners) * len(fold & dims)
        np.maximum.at(pairs, corners + hanging, held)
    return pairs


@lru_cache(maxsize=1024)
def cube_claims(ranks: int, free: int, closed: int) -> IntArray:
    """Return what x ranks of a cube claim of the ranks around, in units of 1 / `free`^2 ranks.

    The x ranks keep `closed` distances inside; at `free` others whatever crosses goes to ranks
    that are not of their kind (docs/proofs-tree.md, "Claims"). Shape ``(ranks + 1,)``.
    """
    claims = np.zeros(ranks + 1, dtype=np.int64)
    last = (1 << free) - 1
    ones = np.cumsum([0, *((number & last).bit_count() for number in range(ranks >> closed))])
    for x in range(1, (ranks >> closed) + 1):
        most_pairs = int(ones[x])
        claim = free * (free * x - 2 * most_pairs)
        if x <= 4 * free:  # beyond, that is the larger one
            claim = max(claim, free**2 * x - 2 * _close(x, free, most_pairs))
        claims[x << closed] = claim << closed
    return claims


def _close(ranks: int, dims: int, most_pairs: int) -> int:
    """Return an upper bound of pairs at distance 1, and twice those at distance 2 by way of one.

    Of any so many corners of a cube: ranks of even and of odd number are a and b. Two of a kind
    have at most two neighbours in common, so ``a C(pairs / a, 2) <= 2 C(b, 2)``; at distance 2
    all to all are at most `dims` of them, or four (Turan's theorem for more).
    """
    most = 0
    clique = max(dims, 4)
    for a in range(1, ranks // 2 + 1):
        b = ranks - a
        pairs = min(most_pairs, a * min(dims, b), _shared(a, b), _shared(b, a))
        apart = 0
        for own, other in ((a, b), (b, a)):
            all_ = own * (own - 1) // 2
            if own > clique:
                all_ = (clique - 1) * own * own // (2 * clique)
            apart += min(all_, other * math.comb(min(dims, own), 2))
        most = max(most, pairs + 2 * apart)
    return most


def _shared(a: int, b: int) -> int:
    """Return the largest e with ``a (e/a) (e/a - 1) <= 2 b (b - 1)``."""
    # e^2 - a e <= 2 a b (b - 1)
    return (a + math.isqrt(a * a + 8 * a * b * (b - 1))) // 2


def grid_pairs(extents: tuple[int, ...], dims: Dims, closed: Dims) -> IntArray:
    """Return the most pairs within a grid: every line that is met costs one.

    Lines of one dimension are at least x over its extent; the product of the lines of two is at
    least x, and of three at least x^2 (Loomis and Whitney).
    """
    real = [extent for extent in extents if extent > 1]
    copies = math.prod(real[dim] for dim in closed)
    pairs = np.zeros(math.prod(extents) + 1, dtype=np.int64)
    for cells in range(1, math.prod(extents) // copies + 1):
        least = [-(-cells // real[dim]) for dim in sorted(dims)]
        lines = sum(least)
        if len(least) == 2:
            while not _two_factors(cells, lines, least):
                lines += 1
        elif len(least) == 3:
            while lines**3 < 27 * cells**2:
                lines += 1
        pairs[copies * cells] = copies * (len(least) * cells - lines)
    return pairs


def _two_factors(product: int, total: int, least: list[int]) -> bool:
    """Tell whether two numbers of that sum, each at least so large, have that product or more."""
    low, high = least[0], total - least[1]
    best = min(max(total // 2, low), high)
    return best * (total - best) >= product


@lru_cache(maxsize=1024)
def least_boundary(extents: tuple[int, ...], dims: Dims, closed: Dims) -> IntArray:
    """Return the fewest pairs that leave x cells of a path or a rectangle, copied.

    Of a rectangle with shorter side s, either x cells or the others are a corner, or a line
    ends on either long side: ``min(s, 2 sqrt(x), 2 sqrt(cells - x))`` (Bollobas and Leader).
    """
    real = [extent for extent in extents if extent > 1]
    copies = math.prod(real[dim] for dim in closed)
    sides = [real[dim] for dim in dims]
    cells = math.prod(sides)
    least = np.zeros(math.prod(extents) + 1, dtype=np.int64)
    for x in range(1, cells):
        corner = min(x, cells - x)
        pairs = 1 if len(sides) == 1 else min(*sides, _ceil_root(4 * corner))
        least[copies * x] = copies * pairs
    return least


def _ceil_root(square: int) -> int:
    """Return the least integer whose square is at least so large."""
    root = math.isqrt(square)
    return root + (root * root < square)
