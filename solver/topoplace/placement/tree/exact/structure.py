"""What sets of ranks can do in a pattern: which steps they keep inside, how many pairs they hold.

A *family* is a pattern among p ranks, each of its steps a *dim*. Two kinds of facts bound any
allocation (docs/proofs-tree.md, "Certificates"): a set of ranks closed under some steps is a
union of components of those steps; and a set of x ranks holds at most so many pairs.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.patterns import cubic_grid, pattern_steps
from topoplace.snapshot.schema import Pattern

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Dims = frozenset[int]


@dataclass(frozen=True)
class Family:
    """A pattern among `ranks` ranks; `dims` are the numbers of its steps in the job.

    Arguments called dims are positions in `dims`.
    """

    pattern: Pattern
    ranks: int
    dims: tuple[int, ...]

    @property
    def is_cube(self) -> bool:
        """Whether it exchanges at distance 1, 2, 4, ..: these steps are interchangeable."""
        return self.pattern in (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING)

    @cached_property
    def cube_dims(self) -> tuple[int, ...]:
        """Positions of the interchangeable steps."""
        if not self.is_cube:
            return ()
        folds = int(self.ranks & (self.ranks - 1) != 0)
        return tuple(range(folds, len(self.dims)))

    def same(self, dims: Dims) -> Dims:
        """Return the first of all equivalent sets of dims, so that tables are shared."""
        if not self.is_cube:
            return dims
        cube = self.cube_dims
        inside = sum(dim in dims for dim in cube)
        return frozenset(dims - set(cube)) | frozenset(cube[:inside])

    def reachable(self, closed: Dims, absent: Dims) -> BoolArray:
        """Return which counts of ranks can be closed under dims and take no part in others.

        Shape ``(ranks + 1,)``.
        """
        both = self.same(closed | absent)
        gone = self.same(absent) if absent <= closed else absent
        return _reachable(self.pattern, self.ranks, both, gone)

    def pairs_within(self, dims: Dims, closed: Dims) -> IntArray:
        """Return the most pairs of `dims` without `closed` that x ranks closed under it hold.

        Shape ``(ranks + 1,)``; entries at x that cannot be closed are 0 and mean nothing.
        """
        closed = self.same(closed)
        return _pairs_within(self.pattern, self.ranks, len(self.same(dims) & closed), dims)

    def degrees(self, dims: Dims) -> IntArray:
        """Return in how many pairs of some dims every rank is, descending."""
        return _degrees(self.pattern, self.ranks, self.same(dims))

    def num_pairs(self, dims: Dims) -> int:
        """Return the number of pairs of some dims."""
        return int(self.degrees(dims).sum()) // 2
