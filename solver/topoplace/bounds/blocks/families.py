"""Families of tilings: which blocks to try, and the boxes they cut a machine into."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray

SINGLE_CUT = 0
MAX_PRODUCTS = 64
MAX_BOXES = 1 << 18


@dataclass(frozen=True)
class Pieces:
    """The intervals that the patterns of one dimension cut it into.

    Attributes
    ----------
    starts, ends
        Routers of the distinct intervals, ends exclusive; on a ring an end may pass the ring's
        size.
    counts
        In how many patterns each interval occurs.
    num_patterns
        Number of patterns.
    rate
        Share of the patterns in which a plane is present.
    """

    starts: IntArray
    ends: IntArray
    counts: IntArray
    num_patterns: int
    rate: Fraction


def pieces_of(size: int, extent: int, *, wraps: bool) -> Pieces:
    """Return the intervals of one dimension (docs/proofs-mapping.md, "Blocks")."""
    found: Counter[tuple[int, int]] = Counter()
    if extent == size:
        found[0, size] = 1
        patterns, rate = 1, Fraction(0)
    elif wraps:
        patterns, rate = size, Fraction(-(-size // extent), size)
        # as each pattern starts at another router, every interval of a length occurs alike
        for start in range(size):
            found[start, start + extent] = size // extent
            if size % extent:
                found[start, start + size % extent] += 1
    else:
        patterns = size - 1 if extent == SINGLE_CUT else extent
        rate = Fraction(1, patterns)
        for t in range(1, patterns + 1):
            step = size if extent == SINGLE_CUT else extent
            marks = [0, *range(t, size, step), size]
            found.update(itertools.pairwise(marks))
    bounds = np.asarray(sorted(found), dtype=np.int64)
    counts = np.asarray([found[a, b] for a, b in bounds.tolist()], dtype=np.int64)
    return Pieces(bounds[:, 0], bounds[:, 1], counts, patterns, rate)


def candidate_extents(torus: Torus) -> list[tuple[int, ...]]:
    """Return the block extents worth trying, a few dozen.

    Cubes of all small sizes; slabs of every thickness up to half a dimension, and single cuts;
    products of 1, 2, half and all of each dimension where these are few.
    """
    shape = torus.shape
    wide = [d for d, n in enumerate(shape) if n > 1]
    found: dict[tuple[int, ...], None] = {}
    for a in range(1, max(shape) // 2 + 1):
        if a <= 4 or a & (a - 1) == 0 or all(n % a == 0 for n in shape):
            found[tuple(min(a, n) for n in shape)] = None
    for d in wide:
        slabs = {a for a in range(1, shape[d] // 2 + 1) if a <= 4 or shape[d] % a == 0}
        slabs.add(max(1, shape[d] // 2))
        if not torus.wrap[d]:
            slabs.add(SINGLE_CUT)
        for a in sorted(slabs):
            found[(*shape[:d], a, *shape[d + 1 :])] = None
    choices = [sorted({1, min(2, n), max(1, n // 2), n}) for n in shape]
    for choice in (choices, [sorted({1, min(2, n), n}) for n in shape]):
        products = list(itertools.islice(itertools.product(*choice), MAX_PRODUCTS + 1))
        if len(products) <= MAX_PRODUCTS:
            found.update(dict.fromkeys(products))
            break
    found.pop(shape, None)
    return list(found)


def pieces_of_all(torus: Torus, extents: tuple[int, ...]) -> list[Pieces]:
    """Return the intervals of every dimension."""
    return [
        pieces_of(n, a, wraps=w) for n, a, w in zip(torus.shape, extents, torus.wrap, strict=True)
    ]
