"""What sets of ranks can do in a pattern: which steps they keep inside, how many pairs they hold.

A *family* is a pattern among p ranks, its different steps are its *dims*. Two kinds of facts bound
any allocation (docs/proofs-tree.md, "Relaxation"): a set of ranks that keeps some steps inside is
a union of components of those steps, and a set of x ranks holds at most so many pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from topoplace.placement.tree.exact.bounding.isoperimetry import (
    cube_claims,
    cube_pairs,
    grid_pairs,
    least_boundary,
)
from topoplace.placement.tree.patterns import cubic_grid, pattern_steps
from topoplace.snapshot.schema import Pattern

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Dims = frozenset[int]

CUBES = (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING)
GRIDS = {Pattern.STENCIL_2D: 2, Pattern.STENCIL_3D: 3}


@dataclass(frozen=True)
class Family:
    """A pattern among `ranks` ranks; `steps[dim]` is the number in the job of its step `dim`."""

    pattern: Pattern
    ranks: int
    steps: tuple[int, ...]

    @property
    def num_dims(self) -> int:
        """Number of different steps."""
        return len(self.steps)

    @property
    def is_cube(self) -> bool:
        """Whether ranks exchange at distances 1, 2, 4, .."""
        return self.pattern in CUBES

    @property
    def alike(self) -> tuple[int, ...]:
        """Dims that some renumbering of the ranks can permute at will: those of a full cube."""
        full = self.is_cube and self.num_dims == self.ranks.bit_length() - 1
        return tuple(range(self.num_dims)) if full else ()

    def reachable(self, closed: Dims, absent: Dims) -> BoolArray:
        """Return which numbers of ranks can keep `closed` inside and take no part in `absent`.

        Shape ``(ranks + 1,)``.
        """
        return _reachable(self.pattern, self.ranks, closed, absent)

    def pairs_within(self, dims: Dims, closed: Dims) -> IntArray:
        """Return the most pairs of `dims` that x ranks hold which keep `closed` inside.

        `closed` and `dims` are disjoint. Shape ``(ranks + 1,)``; an upper bound, exact for cubes
        of 2^k ranks, rings and binomial trees.
        """
        return _pairs_within(self.pattern, self.ranks, dims, closed)

    def least_boundary(self, dims: Dims, closed: Dims) -> IntArray | None:
        """Return the fewest pairs of `dims` between x ranks of a grid and the others.

        The x ranks keep `closed` inside, all the dims besides `dims`; None if nothing is known.
        Shape ``(ranks + 1,)``.
        """
        if self.pattern not in GRIDS or len(dims) > 2 or len(dims) + len(closed) < self.num_dims:
            return None
        return least_boundary(cubic_grid(self.ranks, GRIDS[self.pattern]), dims, closed)

    def claims(self, dims: Dims, closed: Dims) -> IntArray | None:
        """Return what x ranks that keep `closed` inside claim of those they meet in `dims`.

        In units of 1 / ``len(dims)^2`` ranks; None if nothing is known. Shape ``(ranks + 1,)``.
        """
        if not self.alike or len(dims) < 2:
            return None
        return cube_claims(self.ranks, len(dims), len(closed))

    def degrees(self, dims: Dims) -> IntArray:
        """Return in how many pairs of `dims` every rank is, shape ``(ranks,)``."""
        return _degrees(self.pattern, self.ranks, dims)

    def hosted(self, kept: Dims, absent: Dims, dims: Dims, least: int) -> IntArray:
        """Return the most ranks in components of `dims` of `least` ranks or more.

        Among x ranks that keep `kept` inside, which includes `dims`, and take no part in
        `absent`; shape ``(ranks + 1,)``.
        """
        return _hosted(self.pattern, self.ranks, kept, absent, dims, least)

    def roles(self, closed: Dims) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return, per dim, the sizes of the components of `closed` that its pairs join.

        Both ways round, each once.
        """
        return _roles(self.pattern, self.ranks, closed)

    def large_components(self, dims: Dims) -> tuple[tuple[int, int], ...]:
        """Return sizes above 1 of components of some dims, and the ranks in those as large."""
        return _large_components(self.pattern, self.ranks, dims)


@lru_cache(maxsize=256)
def dims_of(pattern: Pattern, ranks: int) -> tuple[IntArray, ...]:
    """Return the pairs of the different steps of a pattern, in the order they first happen."""
    found: dict[bytes, IntArray] = {}
    for step in pattern_steps(pattern, ranks):
        found.setdefault(step.pairs.tobytes(), step.pairs)
    return tuple(found.values())


@lru_cache(maxsize=4096)
def _degrees(pattern: Pattern, ranks: int, dims: Dims) -> IntArray:
    degree = np.zeros(ranks, dtype=np.int64)
    for dim in dims:
        degree += np.bincount(dims_of(pattern, ranks)[dim].ravel(), minlength=ranks)
    return degree


@lru_cache(maxsize=4096)
def _reachable(pattern: Pattern, ranks: int, closed: Dims, absent: Dims) -> BoolArray:
    return _sums(_sizes(pattern, ranks, closed, absent), ranks)


@lru_cache(maxsize=4096)
def _hosted(
    pattern: Pattern, ranks: int, kept: Dims, absent: Dims, dims: Dims, least: int
) -> IntArray:
    part = components(pattern, ranks, dims)
    counts = np.bincount(part)[part] >= least
    label = components(pattern, ranks, kept)
    value = np.bincount(label, weights=counts).astype(np.int64)
    kinds = np.stack([_sizes(pattern, ranks, kept, absent), value])[:, value > 0]
    best = np.zeros(ranks + 1, dtype=np.int64)
    for (size, worth), number in zip(*_tally(kinds), strict=True):
        left, chunk = number if size else 0, 1
        while left:
            take = min(chunk, left)
            if take * size > ranks:
                break
            np.maximum(
                best[take * size :], best[: -take * size] + take * worth, out=best[take * size :]
            )
            left -= take
            chunk *= 2
    return best


def _tally(kinds: IntArray) -> tuple[list[list[int]], list[int]]:
    found, number = np.unique(kinds, axis=1, return_counts=True)
    return found.T.tolist(), number.tolist()


@lru_cache(maxsize=4096)
def _roles(pattern: Pattern, ranks: int, closed: Dims) -> tuple[tuple[tuple[int, int], ...], ...]:
    label = components(pattern, ranks, closed)
    size = np.bincount(label)[label]
    both = [np.concatenate([pairs, pairs[:, ::-1]]) for pairs in dims_of(pattern, ranks)]
    return tuple(
        tuple((int(a), int(b)) for a, b in np.unique(size[pairs], axis=0).tolist())
        for pairs in both
    )


@lru_cache(maxsize=4096)
def _large_components(pattern: Pattern, ranks: int, dims: Dims) -> tuple[tuple[int, int], ...]:
    size = _sizes(pattern, ranks, dims, frozenset())
    return tuple((n, int(size[size >= n].sum())) for n in np.unique(size[size > 1]).tolist())


@lru_cache(maxsize=4096)
def _sizes(pattern: Pattern, ranks: int, closed: Dims, absent: Dims) -> IntArray:
    """Return the sizes of the components of `closed` that take no part in `absent`."""
    label = components(pattern, ranks, closed)
    size = np.bincount(label)
    for dim in absent:
        size[label[dims_of(pattern, ranks)[dim]]] = 0
    return size


def _sums(size: IntArray, ranks: int) -> BoolArray:
    """Return which numbers are sums of some of the sizes, 0 to `ranks`."""
    sums = 1
    for value, number in zip(*np.unique(size[size > 0], return_counts=True), strict=True):
        left, chunk = int(number), 1
        while left:
            take = min(chunk, left)
            sums |= sums << (take * int(value))
            left -= take
            chunk *= 2
    return np.array([sums >> x & 1 for x in range(ranks + 1)], dtype=bool)


def components(pattern: Pattern, ranks: int, dims: Dims) -> IntArray:
    """Return the component of every rank in the graph of some dims."""
    pairs = np.concatenate(
        [np.zeros((0, 2), dtype=np.int64), *(dims_of(pattern, ranks)[dim] for dim in dims)]
    )
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(ranks, ranks))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


@lru_cache(maxsize=4096)
def _pairs_within(pattern: Pattern, ranks: int, dims: Dims, closed: Dims) -> IntArray:
    if pattern in CUBES:
        return cube_pairs(ranks, dims, closed)
    if pattern in GRIDS:
        return grid_pairs(cubic_grid(ranks, GRIDS[pattern]), dims, closed)
    count = np.arange(ranks + 1)
    if not dims:
        return 0 * count
    # x ranks hold x pairs less one per component they meet (on a ring: unless they are all of it)
    sizes = np.sort(np.bincount(components(pattern, ranks, dims)))[::-1]
    pairs = count - np.searchsorted(np.cumsum(sizes), count) - 1
    pairs[0] = 0
    if pattern is Pattern.RING and ranks > 2:
        pairs[ranks] = ranks
    return pairs
