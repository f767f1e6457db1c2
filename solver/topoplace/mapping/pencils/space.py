"""Windows of pencils: where a layout may lie, and the costs of its pencils."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine import Torus
from topoplace.mapping.graph import TaskGraph
from topoplace.mapping.layouts import Layout, enumerate_layouts
from topoplace.mapping.problem import MappingProblem
from topoplace.types import BoolArray, IntArray

# ---- The layouts and window depths that pencil placements are searched over ----------------------


def admissible_layouts(problem: MappingProblem, max_depth: int | None = None) -> list[Layout]:
    """Return every layout of the problem's grid that its usable routers might hold.

    No layout is longer than `max_depth` along the last dimension. `InputError` if there is no
    layout.
    """
    assert problem.grid is not None
    torus = problem.torus
    region = usable_extents(problem.whole_routers.reshape(torus.shape), torus.wrap)
    if max_depth is not None:
        region = (*region[:-1], min(region[-1], max_depth))
    layouts: list[Layout] = []
    if min(region):
        layouts = enumerate_layouts(
            problem.grid,
            problem.tasks_per_node,
            torus.nodes_per_router,
            region,
            rings=[w and n == e for w, n, e in zip(torus.wrap, torus.shape, region, strict=True)],
            stagger=True,
        )
    if not layouts:
        expected = (
            f"a grid with a layout on {'x'.join(map(str, region))} usable routers of "
            f"{number_of(problem.tasks_per_node * torus.nodes_per_router, 'task')}"
        )
        raise InputError(expected, field="shape", value=list(problem.grid.shape))
    return layouts


def usable_extents(whole: BoolArray, wrap: tuple[bool, ...]) -> tuple[int, ...]:
    """Return the largest extents of a window whose every slice holds a usable router.

    `whole` are the usable routers, of the machine's shape. Along the pencils only the slices that
    hold one are counted, as a window may leave out others.
    """
    extents = []
    for d, wraps in enumerate(wrap):
        some = np.asarray(np.moveaxis(whole, d, 0).reshape(whole.shape[d], -1).any(axis=1))
        extents.append(int(some.sum()) if d == whole.ndim - 1 else _longest_run(some, wraps))
    return tuple(extents)


def _longest_run(some: BoolArray, wraps: bool) -> int:
    gaps = np.flatnonzero(~some)
    if not len(gaps):
        return len(some)
    before, after = (gaps[-1] - len(some), gaps[0] + len(some)) if wraps else (-1, len(some))
    return int(np.diff([before, *gaps, after]).max()) - 1


def deepening(
    layouts: list[Layout], pencil: int, extent: int, max_depth: int | None
) -> Iterator[list[int]]:
    """Yield the window depths to search, one per layout, each list deeper than the one before.

    A deeper window holds the shallower ones of the same origin, so one list is enough unless no
    window of it is feasible. It begins at a fifth more positions than levels, and ends at
    `extent`; with `max_depth` that is the only depth.
    """
    levels = [layout.extents[pencil] for layout in layouts]
    if max_depth is not None:
        yield [max(k, min(extent, max_depth)) for k in levels]
        return
    factor = 1
    while True:
        depths = [min(extent, k + factor * max(1, -(-k // 5))) for k in levels]
        yield depths
        if min(depths) == extent:
            return
        factor *= 2


def no_room(problem: MappingProblem) -> InputError:
    """Return the error for a problem where no window can hold a layout."""
    return InputError(
        "nodes whose routers have room for a pencil layout of the grid",
        field="nodes",
        value=number_of(int(problem.whole_routers.sum()), "usable router"),
    )


# ---- Windows of a machine that pencils are chosen in ---------------------------------------------


@dataclass(frozen=True)
class PencilWindow:
    """The pencils of a box of routers (docs/proofs/mapping.md, "Pencils").

    `routers` has the router at every position, shape ``(num_pencils, depth)``, `usable` whether a
    level may go there; pencils are numbered row-major over the window's dimensions without the one
    along them. Every pencil has to hold `levels` levels.
    """

    routers: IntArray
    usable: BoolArray
    levels: int

    @property
    def num_pencils(self) -> int:
        """Number of pencils."""
        return len(self.usable)

    @property
    def depth(self) -> int:
        """Positions per pencil."""
        return int(self.usable.shape[1])

    @property
    def slack(self) -> int:
        """Positions that every pencil leaves free."""
        return self.depth - self.levels

    @cached_property
    def feasible(self) -> bool:
        """Whether every pencil has a usable position for every level."""
        return bool((self.usable.sum(axis=1) >= self.levels).all())

    @cached_property
    def earliest(self) -> IntArray:
        """First position each level can take: Topaware's selection (Enos 2014 IV.B).

        Shape ``(num_pencils, levels)``; the window must be feasible.
        """
        return _first_usable(self.usable, self.levels)

    @cached_property
    def latest(self) -> IntArray:
        """Last position each level can take, shape ``(num_pencils, levels)``."""
        mirrored = _first_usable(self.usable[:, ::-1], self.levels)
        return self.depth - 1 - mirrored[:, ::-1]

    def routers_of(self, selection: IntArray) -> IntArray:
        """Return the router of every cell, shape ``(num_pencils, levels)``."""
        chosen: IntArray = np.take_along_axis(self.routers, selection, axis=1)
        return chosen


def _first_usable(usable: BoolArray, levels: int) -> IntArray:
    """Return the first `levels` usable positions of every row, which has at least that number."""
    order = np.argsort(~usable, axis=1, kind="stable")  # usable ones first, in their order
    return order[:, :levels].astype(np.int64)


def window_at(
    torus: Torus,
    whole: BoolArray,
    logical: tuple[int, ...],
    pencil: int,
    origin: tuple[int, ...],
    depth: int,
) -> PencilWindow:
    """Return a window of a machine, in which the routers `whole` may be used.

    `logical` are the logical routers per machine dimension; the lowest corner is at `origin`, and
    the window goes on at 0 on a ring. Along the pencils it has `depth` positions.
    """
    box = zip(origin, box_of(logical, pencil, depth), torus.shape, strict=True)
    every = np.arange(torus.num_routers).reshape(torus.shape)
    routers = every[np.ix_(*[(first + np.arange(extent)) % n for first, extent, n in box])]
    routers = np.moveaxis(routers, pencil, -1).reshape(-1, depth)
    return PencilWindow(routers, whole[routers], logical[pencil])


# ---- Messages between the cells of a layout, and their costs along the pencils -------------------


@dataclass(frozen=True)
class CellTerms:
    """Bytes between pairs of cells; cell ``pencil * levels + level``.

    The pairs are `low` and `high`, whose level is no less, with `weight` bytes in both directions.
    `ring` is the size of the ring along the pencils, None on a mesh dimension; `fixed` are the
    bytes x hops in the dimensions across the pencils, for any selection.
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
        """Return which pairs always lie nearer round the ring, in a window with this slack."""
        if self.ring is None:
            return np.zeros(len(self.gap), dtype=bool)
        return 2 * (self.gap - slack) >= self.ring

    def mixed(self, slack: int) -> BoolArray:
        """Return which pairs lie nearer either way, depending on the selection."""
        if self.ring is None:
            return np.zeros(len(self.gap), dtype=bool)
        return (2 * (self.gap + slack) > self.ring) & ~self.far(slack)

    def constant(self, depth: int) -> int:
        """Return the difference of hop-bytes and minimum cut in a window of this depth."""
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

    `cells` has the cell of every task, shape ``(num_tasks, num_dims)``, `logical` the logical
    routers per machine dimension.
    """
    levels, order = logical[pencil], [*(d for d in range(torus.num_dims) if d != pencil), pencil]
    sizes = [logical[d] for d in order]
    num_cells = math.prod(sizes)
    numbers = np.ravel_multi_index(tuple(cells[:, order].T), sizes)
    ends = numbers[graph.sources], numbers[graph.targets]
    apart = ends[0] != ends[1]
    first, second = (end[apart] for end in ends)
    # the lower level first, of one level the lower pencil
    swapped = first % levels * num_cells + first > second % levels * num_cells + second
    low, high = np.where(swapped, second, first), np.where(swapped, first, second)
    keys, pair = np.unique(low * num_cells + high, return_inverse=True)
    weight = np.zeros(len(keys), dtype=np.int64)
    np.add.at(weight, pair, graph.bytes[apart])
    low, high = keys // num_cells, keys % num_cells
    fixed = 0
    for d, here, there in zip(
        order[:-1], np.unravel_index(low, sizes), np.unravel_index(high, sizes), strict=False
    ):
        hops = np.abs(there - here)
        if torus.wrap[d]:
            hops = np.minimum(hops, torus.shape[d] - hops)
        fixed += int(hops @ weight)
    ring = torus.shape[pencil] if torus.wrap[pencil] else None
    return CellTerms(num_cells // levels, levels, ring, low, high, weight, fixed)


# ---- All windows of a form at once: where they fit, and the stretch of their pencils -------------
# Every table has the machine's shape, with an entry for the window, or the pencil, that begins at a
# router.


class WindowTables:
    """Tables of a machine and its usable routers, for windows along one dimension."""

    def __init__(self, torus: Torus, whole: BoolArray, pencil: int) -> None:
        self.torus = torus
        self.pencil = pencil
        self._whole = whole.reshape(torus.shape)
        self._stretch = lru_cache(maxsize=64)(self._measure_stretch)

    def num_begins(self, extents: tuple[int, ...]) -> int:
        """Return the number of routers that a box with these extents may begin at."""
        return math.prod(self._rooms(extents))

    def _rooms(self, extents: tuple[int, ...]) -> list[int]:
        """Return per dimension the number of coordinates a box may begin at."""
        torus = self.torus
        return [
            max(0, n - extent + 1) if extent > n or not wraps else n
            for extent, n, wraps in zip(extents, torus.shape, torus.wrap, strict=True)
        ]

    def fits(self, logical: tuple[int, ...], depth: int) -> BoolArray:
        """Return which windows have a usable position for every level of every pencil."""
        inside = self._inside(logical, depth)
        if not inside.any():
            return inside
        fits: BoolArray = inside & (self._short(logical, depth) == 0)
        return fits

    def lacking(self, logical: tuple[int, ...], depth: int) -> IntArray:
        """Return for every window how many pencils have too few usable positions."""
        return self._short(logical, depth)[self._inside(logical, depth)]

    def _inside(self, logical: tuple[int, ...], depth: int) -> BoolArray:
        extents = box_of(logical, self.pencil, depth)
        inside = np.zeros(self.torus.shape, dtype=bool)
        inside[tuple(map(slice, self._rooms(extents)))] = True
        return inside

    def _short(self, logical: tuple[int, ...], depth: int) -> IntArray:
        short = self.stretch(logical[self.pencil], depth) < 0
        return _box_sums(short.astype(np.int64), _across(logical, self.pencil))

    def stretch(self, levels: int, depth: int) -> IntArray:
        """Return the unusable positions in each pencil's narrowest run of `levels` usable ones.

        The pencil takes `depth` positions from the router; -1 where it holds too few usable ones.
        """
        return self._stretch(levels, depth)

    def _measure_stretch(self, levels: int, depth: int) -> IntArray:
        slack = depth - levels
        stretch = np.full(self.torus.shape, -1, dtype=np.int64)
        usable = self._whole.astype(np.int64)
        for holes in range(slack, -1, -1):
            count = _run_sums(usable, self.pencil, levels + holes)
            found = _run_sums((count >= levels).astype(np.int64), self.pencil, slack - holes + 1)
            stretch[found > 0] = holes
        return stretch

    def blocked(self, logical: tuple[int, ...], depth: int) -> IntArray:
        """Return the fewest unusable routers of a box with the layout's extents in each window."""
        holes = _box_sums((~self._whole).astype(np.int64), dict(enumerate(logical)))
        slack = depth - logical[self.pencil]
        fewest = holes
        for start in range(1, slack + 1):
            fewest = np.minimum(fewest, np.roll(holes, -start, axis=self.pencil))
        return fewest

    def weighted_stretch(self, logical: tuple[int, ...], depth: int, price: IntArray) -> IntArray:
        """Return the sum over the pencils of each window of stretch x price.

        `price` has one entry per pencil.
        """
        stretch = np.moveaxis(self.stretch(logical[self.pencil], depth), self.pencil, -1)
        extents = list(_across(logical, self.pencil).values())
        for d, extent in enumerate(extents):
            stretch = np.concatenate((stretch, np.take(stretch, range(extent - 1), d)), axis=d)
        axes = tuple(range(len(extents)))
        boxes = np.lib.stride_tricks.sliding_window_view(stretch, extents, axis=axes)
        dims = self.torus.num_dims
        total: IntArray = np.einsum(
            boxes,
            [*range(dims), *range(dims, 2 * dims - 1)],
            price.reshape(extents),
            list(range(dims, 2 * dims - 1)),
            list(range(dims)),
        )
        return np.moveaxis(total, -1, self.pencil)


def box_of(logical: tuple[int, ...], pencil: int, depth: int) -> tuple[int, ...]:
    """Return the extents of a window."""
    return tuple(depth if d == pencil else n for d, n in enumerate(logical))


def _across(logical: tuple[int, ...], pencil: int) -> dict[int, int]:
    return {d: n for d, n in enumerate(logical) if d != pencil}


def _box_sums(values: IntArray, extents: dict[int, int]) -> IntArray:
    """Add up over the box that begins at each router, round all rings."""
    for dim, extent in extents.items():
        values = _run_sums(values, dim, extent)
    return values


def _run_sums(values: IntArray, dim: int, extent: int) -> IntArray:
    """Add up over `extent` routers, at most the ring's, from each one on."""
    rows = np.moveaxis(values, dim, -1)
    n = rows.shape[-1]
    sums = np.zeros((*rows.shape[:-1], n + extent), dtype=np.int64)
    np.cumsum(np.concatenate((rows, rows[..., : extent - 1]), axis=-1), axis=-1, out=sums[..., 1:])
    return np.moveaxis(sums[..., extent:] - sums[..., :n], -1, dim)
