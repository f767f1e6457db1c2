"""Random windows, and what brute force says of them."""

from __future__ import annotations

import itertools
import random

import numpy as np

from topoplace.mapping.pencils.space import CellTerms, PencilWindow

SOURCE, SINK = -1, -2


def random_window(rng: random.Random) -> PencilWindow:
    """Return a feasible window of at most four pencils, four levels and seven positions."""
    pencils, levels = rng.randint(1, 4), rng.randint(1, 4)
    depth = levels + rng.randint(0, 3 if pencils < 4 else 2)
    usable = np.zeros((pencils, depth), dtype=bool)
    for row in usable:
        row[rng.sample(range(depth), rng.randint(levels, depth))] = True
    routers = np.arange(usable.size).reshape(usable.shape)
    return PencilWindow(routers, usable, levels)


def random_terms(rng: random.Random, window: PencilWindow) -> CellTerms:
    """Return random bytes between random pairs of cells, on a ring or a line."""
    size = window.num_pencils * window.levels
    pairs = [
        (a, b) if a % window.levels <= b % window.levels else (b, a)
        for a, b in itertools.combinations(range(size), 2)
        if rng.random() < 0.7
    ]
    low, high = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    weight = np.array([rng.randint(1, 9) for _ in pairs], dtype=np.int64)
    ring = rng.choice([None, *[window.depth] * 2, window.depth + 1, 2 * window.depth])
    fixed = rng.randint(0, 99)
    return CellTerms(window.num_pencils, window.levels, ring, low, high, weight, fixed)


def least_hop_bytes(window: PencilWindow, terms: CellTerms) -> int:
    """Return the least hop-bytes of all selections, by trying each."""
    choices = [
        list(itertools.combinations(np.flatnonzero(row).tolist(), window.levels))
        for row in window.usable
    ]
    at = np.array(list(itertools.product(*choices)), dtype=np.int64).reshape(
        -1, window.num_pencils * window.levels
    )
    hops = np.abs(at[:, terms.low] - at[:, terms.high])
    if terms.ring is not None:
        hops = np.minimum(hops, terms.ring - hops)
    return terms.fixed + int((hops @ terms.weight).min())
