"""Topaware layouts: which task is on which cell (Enos 2014, IV.A to IV.E)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from topoplace.mapping.graph import VirtualGrid
from topoplace.types import IntArray

# ---- One layout: partitions per router and logical routers, without a place on the machine -------


@dataclass(frozen=True)
class Path:
    """A virtual dimension laid along a path through blocks of routers (see `PathModel`)."""

    dim: int
    partitions: int
    block: tuple[int, ...]

    def routers(self) -> IntArray:
        """Return the routers of a block in the order of the path, shape ``(num_routers, D)``.

        Steps go from a router to one beside it: rows are gone through in turn, and each dimension
        is reversed whenever the ones before it have moved by one.
        """
        return _snake(self.block)


@lru_cache(maxsize=256)
def _snake(block: tuple[int, ...]) -> IntArray:
    if not block:
        return np.zeros((1, 0), dtype=np.int64)
    inner = _snake(block[1:])
    rows = [inner if at % 2 == 0 else inner[::-1] for at in range(block[0])]
    first = np.repeat(np.arange(block[0], dtype=np.int64), len(inner))
    return np.column_stack([first, np.concatenate(rows)])


@dataclass(frozen=True)
class Layout:
    """How a virtual grid lies on a logical grid of routers (Enos 2014 IV.A, IV.C, IV.E, IV.F).

    The other attributes are those of `LayoutModel`, tuples with one entry per machine dimension;
    `folds` and `layer_order` are empty if nothing is folded. docs/proofs/mapping.md, "Layouts", has
    the task -> cell rule.

    Attributes
    ----------
    nodes_per_router
        Nodes among which the tasks of a cell are split.
    split
        Virtual dimension along which they are split (`splitdim` of Fiedler 2014, counted from 0);
        None with one node per router. A virtual one, because it may be `whole`, which lies on no
        machine dimension.
    cell_tasks
        Most tasks of a cell: the product of `partitions`, those of the path, and the size of
        `whole`.
    path
        A virtual dimension that goes through blocks of routers; `logical` counts routers, not
        blocks.
    """

    axes: tuple[int, ...]
    logical: tuple[int, ...]
    partitions: tuple[int, ...]
    cell_tasks: int
    whole: int | None = None
    folds: tuple[int, ...] = ()
    layer_order: tuple[int, ...] = ()
    stagger: bool = False
    nodes_per_router: int = 1
    split: int | None = None
    path: Path | None = None

    @property
    def plane_dims(self) -> tuple[int, ...]:
        """Machine dimensions that carry a virtual dimension, ascending."""
        return tuple(i for i, axis in enumerate(self.axes) if axis >= 0)

    @property
    def tiles(self) -> tuple[int, ...]:
        """Supertiles along each machine dimension: 1 + folds."""
        return tuple(1 + f for f in self.folds) or (1,) * len(self.axes)

    @property
    def layer_dim(self) -> int | None:
        """Machine dimension along which supertiles are stacked; None if nothing is folded."""
        if not self.layer_order:
            return None
        return next(i for i, axis in enumerate(self.axes) if axis < 0 and self.logical[i] > 1)

    @property
    def extents(self) -> tuple[int, ...]:
        """Routers along each dimension of the prism needed with nothing unusable."""
        if not self.stagger:
            return self.logical
        first = self.plane_dims[0]
        return tuple(n + (i == first) for i, n in enumerate(self.logical))

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the logical routers."""
        return math.prod(self.logical) * self.nodes_per_router

    @property
    def map_text(self) -> str:
        """Virtual dimension, from 1, on each machine dimension: ``231`` (Fiedler 2014)."""
        return "".join("-" if axis < 0 else str(axis + 1) for axis in self.axes)

    def partitions_of(self, dim: int, size: int) -> int:
        """Return the partitions per router of virtual dimension `dim` of `size` tasks."""
        if self.path is not None and dim == self.path.dim:
            return self.path.partitions
        return size if dim == self.whole else self.partitions[self.axes.index(dim)]

    def is_balanced(self, shape: tuple[int, ...]) -> bool:
        """Return whether all logical routers get the same number of tasks (Enos 2014 IV.F)."""
        path = self.path
        if path is not None and shape[path.dim] != path.partitions * math.prod(path.block):
            return False
        return all(
            shape[axis] == self.lines[i] * self.partitions[i] * self.tiles[i]
            for i, axis in enumerate(self.axes)
            if axis >= 0
        )

    @property
    def lines(self) -> tuple[int, ...]:
        """Cells of the virtual dimension on each machine dimension: routers, or blocks of them."""
        if self.path is None:
            return self.logical
        return tuple(n // b for n, b in zip(self.logical, self.path.block, strict=True))


# ---- Where a layout puts every task: its logical router, and the node there ----------------------


def cells(layout: Layout, grid: VirtualGrid) -> IntArray:
    """Return the logical router of every task by docs/proofs/mapping.md, "Layouts".

    Shape ``(num_tasks, num_machine_dims)``, inside `Layout.extents`.
    """
    tasks = grid.coordinates()
    found = np.zeros((grid.num_tasks, len(layout.axes)), dtype=np.int64)
    supertile = np.zeros(grid.num_tasks, dtype=np.int64)
    for i in layout.plane_dims:
        found[:, i], tile = line_cells(
            tasks[:, layout.axes[i]], layout.partitions[i], layout.lines[i]
        )
        supertile = supertile * layout.tiles[i] + tile
    if layout.path is not None:
        at = layout.path.routers()[tasks[:, layout.path.dim] // layout.path.partitions]
        found = found * np.array(layout.path.block) + at
    stack = layout.layer_dim
    if stack is not None:
        layers = np.asarray(layout.layer_order, dtype=np.int64)[supertile]
        found[:, stack] = layers
        if layout.stagger:
            found[:, layout.plane_dims[0]] += layers % 2
    return found


def line_cells(positions: IntArray, partitions: int, logical: int) -> tuple[IntArray, IntArray]:
    """Return cells along one dimension, reversed in every odd tile, before stagger; and tiles."""
    tile, at = np.divmod(positions // partitions, logical)
    return np.where(tile % 2 == 0, at, logical - 1 - at), tile


def node_slots(layout: Layout, grid: VirtualGrid) -> IntArray:
    """Return which node of its router every task goes to: equal runs along `Layout.split`."""
    if layout.split is None:
        return np.zeros(grid.num_tasks, dtype=np.int64)
    count = layout.partitions_of(layout.split, grid.shape[layout.split])
    slots: IntArray = grid.coordinates()[:, layout.split] % count * layout.nodes_per_router // count
    return slots


# ---- The order in which the supertiles of a fold are stacked (Enos 2014 IV.E) --------------------

MAX_EXHAUSTIVE = 8
"""Most supertiles whose orders are all tried."""


@lru_cache(maxsize=4096)
def layer_order(
    tiles: tuple[int, int], weights: tuple[int, int], periodic: tuple[bool, bool], ring: bool
) -> tuple[int, ...]:
    """Return the layer of every supertile, supertiles row-major.

    Up to `MAX_EXHAUSTIVE` supertiles the order minimises the bytes x layer distance over all
    folds (and over the seam of periodic dimensions); above, it is the best of the orders row by
    row and column by column, plain and boustrophedon. `tiles` are the supertiles per folded
    dimension, `weights` the bytes across one fold; on a `ring` the first and the last layer are
    neighbours.
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


# ---- The quality metrics of Topaware (Fiedler 2014, "Using Topaware to Find Good Layouts") -------


@dataclass(frozen=True)
class Metrics:
    """Quality of a layout; all are shares of 1, exact.

    Two formulas are inferred from the figures on the slide: the mean over the longest side
    (partitions 4x3x5 have 80 %), and the mean tasks per node cut to an integer. With them the lists
    of 40x30x25 are reproduced as printed, except for the first, 93 and not 94, whose own four
    figures have the mean 92.9; that of 32x32x32 is 0.9 times ours.

    Attributes
    ----------
    percent_used
        Routers of the prism that hold tasks.
    bal_metric
        Tasks on average over the most, per node that holds some (an average of 1 or more that is
        below the most is cut to an integer).
    ppn_metric
        Most tasks on a node over the tasks it may take.
    p2c_metric
        Mean side of the partitions of a router over the longest side; dimensions that lie whole
        on a router have no side.
    """

    percent_used: Fraction
    bal_metric: Fraction
    ppn_metric: Fraction
    p2c_metric: Fraction

    @property
    def product(self) -> Fraction:
        """The product of the four: the order of `qual_metric` without its rounding."""
        return self.percent_used * self.bal_metric * self.ppn_metric * self.p2c_metric

    @property
    def qual_metric(self) -> float:
        """The geometric mean of the four."""
        return math.sqrt(math.sqrt(self.product))


def metrics_of(layout: Layout, grid: VirtualGrid, tasks_per_node: int) -> Metrics:
    """Return the metrics of a layout for nodes that may take `tasks_per_node` tasks."""
    # Along a virtual dimension the first ceil(D / N) cells hold tasks, supertile after supertile:
    # the count is a product also for folded layouts.
    occupied = math.prod(
        -(-grid.shape[layout.axes[i]] // layout.partitions[i]) for i in layout.plane_dims
    )
    sides = [layout.partitions[i] for i in layout.plane_dims]
    if layout.path is not None:
        occupied *= -(-grid.shape[layout.path.dim] // layout.path.partitions)
        sides.append(layout.path.partitions)
    most = Fraction(layout.cell_tasks, layout.nodes_per_router)
    mean = Fraction(grid.num_tasks, occupied * layout.nodes_per_router)
    if 1 <= mean < most:
        mean = Fraction(math.floor(mean))
    return Metrics(
        percent_used=Fraction(occupied, math.prod(layout.extents)),
        bal_metric=mean / most,
        ppn_metric=most / tasks_per_node,
        p2c_metric=Fraction(sum(sides), len(sides) * max(sides)),
    )
