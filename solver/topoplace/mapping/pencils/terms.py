"""What the cells of a layout send each other, and what that costs along the pencils."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray, TaskGraph

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class CellTerms:
    """Bytes between pairs of cells; cell ``pencil * levels + level``.

    Attributes
    ----------
    num_pencils, levels
        Pencils of the layout, and cells on each.
    ring
        Routers on the ring along the pencils; None if they lie on a mesh dimension.
    low, high
        The pairs: the level of `low` is at most that of `high`.
    weight
        Bytes between the two, both directions.
    fixed
        Bytes x hops in the dimensions across the pencils, whatever is selected.
    """

    num_pencils: int
    levels: int
    ring: int | None
    low: IntArray
    high: IntArray
    weight: IntArray
    fixed: int

    @cached_property
    def gap(self) -> IntArray:
        """Levels between the two cells of every pair."""
        return self.high % self.levels - self.low % self.levels

    def far(self, slack: int) -> BoolArray:
        """Tell which pairs always lie nearer round the ring, in a window with this slack."""
        if self.ring is None:
            return np.zeros(len(self.gap), dtype=bool)
        return 2 * (self.gap - slack) >= self.ring

    def mixed(self, slack: int) -> BoolArray:
        """Tell which pairs lie nearer either way, depending on the selection."""
        if self.ring is None:
            return np.zeros(len(self.gap), dtype=bool)
        return (2 * (self.gap + slack) > self.ring) & ~self.far(slack)

    def constant(self, depth: int) -> int:
        """Return what hop-bytes exceed the minimum cut by, in a window of this depth."""
        if self.ring is None:
            return self.fixed
        far = int(self.weight[self.far(depth - self.levels)].sum())
        return self.fixed + far * (self.ring - depth + 1)

    def hop_bytes(self, selection: IntArray) -> int:
        """Return the hop-bytes of a selection, shape ``(num_pencils, levels)``."""
        at = selection.ravel()
        hops = np.abs(at[self.high] - at[self.low])
        if self.ring is not None:
            hops = np.minimum(hops, self.ring - hops)
        return self.fixed + int(hops @ self.weight)


def cell_terms(
    torus: Torus, graph: TaskGraph, cells: IntArray, logical: tuple[int, ...], pencil: int
) -> CellTerms:
    """Add up the messages of a task graph by the cells of their ends.

    Parameters
    ----------
    torus
        The machine.
    graph
        The messages.
    cells
        Cell of every task, shape ``(num_tasks, num_dims)``.
    logical
        Logical routers per machine dimension.
    pencil
        The dimension along the pencils.
    """
    levels = logical[pencil]
    across = [d for d in range(torus.num_dims) if d != pencil]
    pencils = np.zeros(len(cells), dtype=np.int64)
    for d in across:
        pencils = pencils * logical[d] + cells[:, d]
    num_pencils = math.prod(logical[d] for d in across)
    numbers = pencils * levels + cells[:, pencil]
    low, high, weight = _between(graph, numbers, levels, num_pencils * levels)
    fixed = 0
    here, there = low // levels, high // levels
    for d in reversed(across):
        hops = np.abs(there % logical[d] - here % logical[d])
        if torus.wrap[d]:
            hops = np.minimum(hops, torus.shape[d] - hops)
        fixed += int(hops @ weight)
        here, there = here // logical[d], there // logical[d]
    ring = torus.shape[pencil] if torus.wrap[pencil] else None
    return CellTerms(num_pencils, levels, ring, low, high, weight, fixed)


def _between(
    graph: TaskGraph, numbers: IntArray, levels: int, num_cells: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the pairs of different cells with their bytes, the lower level first."""
    first, second = numbers[graph.sources], numbers[graph.targets]
    apart = first != second
    first, second, sizes = first[apart], second[apart], graph.bytes[apart]
    level, other = first % levels, second % levels
    swapped = (level > other) | ((level == other) & (first > second))
    low, high = np.where(swapped, second, first), np.where(swapped, first, second)
    keys, pair = np.unique(low * num_cells + high, return_inverse=True)
    weight = np.zeros(len(keys), dtype=np.int64)
    np.add.at(weight, pair, sizes)
    return keys // num_cells, keys % num_cells, weight
