"""What lines of a grid cost at given prices, and what leaves are worth (docs/proofs-tree.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.costs import grid_of
from topoplace.certify.switches.relaxed import Relaxed
from topoplace.certify.switches.states import BoxRules, View
from topoplace.result.tree import LinePrices
from topoplace.snapshot.schema import Pattern
from topoplace.types import IntArray

LARGEST_PRICE = (1 << 35) + 1
"""A rank pays at most 3 prices in each of 3 dimensions, and there are at most 2^20 ranks, so that
all sums of prices are below 2^59.

That is `_NEVER` / 4, which stands for what is not possible.
"""

_NEVER = 1 << 61


class Lines(BoxRules):
    """A request on a grid whose lines are cut into segments of leaves."""

    leaf = LinePrices

    def __init__(self, relaxed: Relaxed, pattern: Pattern) -> None:
        extents = [extent for extent in grid_of(pattern, relaxed.ranks) if extent > 1]
        super().__init__(relaxed, extents)
        counts = np.unique(relaxed.ranks_on).tolist()
        self._ways = {n: least_met(n, extents) for n in counts}
        self._ways_in_runs = {n: _in_runs(n, self._ways[n], extents) for n in counts}

    def read(self, leaf: LinePrices) -> None:
        """Raise `RefusedError` unless prices are of the dimensions and states that are there."""
        wholes = leaf.cells if leaf.wholes is None else leaf.wholes
        for part in (leaf.cells, leaf.segments, wholes):
            if [len(own) for own in part] != [len(self.relaxed.ranks_on)] * len(self.extents):
                raise RefusedError("prices of another number of dimensions or states")
            highest = max((abs(price) for own in part for price in own), default=0)
            require_room(highest, "a price of cells or segments", LARGEST_PRICE)
        if any(price > 0 for own in leaf.segments for price in own):
            raise RefusedError("a segment's price is above 0")

    def refutes(self, leaf: LinePrices, view: View) -> bool:
        """Tell whether all lines cost more than leaves that hold all ranks are worth."""
        ways = self._ways if leaf.wholes is None else self._ways_in_runs
        cells, segments = (
            np.array(own, dtype=np.int64)[:, view.states] for own in (leaf.cells, leaf.segments)
        )
        wholes = np.zeros_like(cells)
        if leaf.wholes is not None:
            wholes = np.array(leaf.wholes, dtype=np.int64)[:, view.states]
        wanted = 0
        for dim, extent in enumerate(self.extents):
            least = self._line(view, dim, cells[dim], segments[dim], wholes[dim])
            if least is None:
                return True
            wanted += self.relaxed.ranks // extent * least
        most = self.most_worth(view, self._worths(view, ways, cells, segments, wholes))
        return most is None or most < wanted

    def _line(
        self, view: View, dim: int, cell: IntArray, segment: IntArray, whole: IntArray
    ) -> int | None:
        """Return the least cost of a line of a dimension, None if there is no line."""
        extent, ranks, keeps = self.extents[dim], view.ranks, view.keeps[dim]
        longest = np.where(view.able[dim], ranks, 1)
        longest[keeps] = 0  # theirs are whole lines, below
        most = min(extent, int(longest.max(initial=0)))
        length = np.arange(1, most + 1)[:, None]
        price = length * cell + segment + np.where(length == ranks, whole, 0)
        span = np.where(length <= longest, price, _NEVER)
        barrier = np.where(view.beside[dim], 0, _NEVER)
        recent = np.full((most, len(ranks)), _NEVER, dtype=np.int64)  # the last cell's first
        recent[:1] = 0
        end = np.full(len(ranks), _NEVER, dtype=np.int64)
        for _ in range(extent if most else 0):
            end = np.minimum((recent + span).min(axis=0), _NEVER)
            start = np.minimum((end[:, None] + barrier).min(axis=0), _NEVER)
            recent = np.concatenate([start[None], recent[:-1]])
        lines = (extent * cell + segment + np.where(ranks == extent, whole, 0))[keeps]
        least = int(min(end.min(), lines.min(initial=_NEVER)))
        return least if least < _NEVER // 2 else None

    def _worths(
        self,
        view: View,
        ways: dict[int, IntArray],
        cells: IntArray,
        segments: IntArray,
        wholes: IntArray,
    ) -> list[int | None]:
        """Return the most that the ranks of a leaf are worth, per state left, None if impossible.

        Segments cost, so the fewest that the ranks can be in are worth most.
        """
        found: list[int | None] = []
        extents = np.array(self.extents)[:, None]
        for n, of_cell, of_segment, of_whole, kept in zip(
            view.ranks.tolist(), cells.T, segments.T, wholes.T, view.keeps.T, strict=True
        ):
            own = ways[n]
            fits = ((own * extents == n) | ~kept[:, None]).all(axis=0)
            worth = of_segment @ own[:, fits] + of_whole @ (own[:, fits] == 1)
            found.append(int(of_cell.sum()) * n + int(worth.max()) if fits.any() else None)
        return found


def _in_runs(ranks: int, ways: IntArray, extents: Sequence[int]) -> IntArray:
    """Return in how many segments per dimension ranks may be: in one run, or in no single one.

    In a run along a dimension they are one segment of it and single cells of the others;
    otherwise two segments or more of every one. Shape ``(num_dims, num_ways)``.
    """
    num_dims = len(extents)
    if ranks == 1:
        return np.ones((num_dims, 1), dtype=np.int64)
    able = [dim for dim, extent in enumerate(extents) if ranks <= extent]
    runs = np.full((num_dims, len(able)), ranks, dtype=np.int64)
    runs[able, np.arange(len(able))] = 1
    return np.concatenate([runs, np.maximum(ways, 2)], axis=1)


def least_met(ranks: int, extents: Sequence[int]) -> IntArray:
    """Return how many lines per dimension some cells of a grid may meet, where none is fewer.

    By Loomis and Whitney, the product is at least ``ranks ** (num_dims - 1)``. Shape
    ``(num_dims, num_ways)``.
    """
    cells = math.prod(extents)
    ranges = [np.arange(-(-ranks // n), min(ranks, cells // n) + 1) for n in extents]
    heads = np.meshgrid(*ranges[:-1], indexing="ij") if len(extents) > 1 else []
    product = math.prod(heads, start=np.ones([len(own) for own in ranges[:-1]], dtype=np.int64))
    last = np.maximum(ranges[-1][0], -(-(ranks ** (len(extents) - 1)) // product))
    never = cells + 1
    last = np.where(last <= ranges[-1][-1], last, never)
    fewest = last
    for axis in range(last.ndim):
        fewest = np.minimum.accumulate(fewest, axis=axis)
    least = last < never
    for axis in range(last.ndim):
        before = np.roll(fewest, 1, axis=axis)
        np.moveaxis(before, axis, 0)[0] = never
        least &= last < before
    return np.stack([*(head[least] for head in heads), last[least]])
