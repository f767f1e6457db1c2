"""Layouts of a mapping, and what is claimed of it among pencil placements ("Pencils")."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import IntArray, require_room
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.report import RefusedError
from topoplace.machine import Torus
from topoplace.result import Proof
from topoplace.result.mapping import ClassOptimum, FlowCertificate, LayoutModel


@dataclass(frozen=True)
class Window:
    """A layout in its window.

    Attributes
    ----------
    extents
        Cells per machine dimension.
    pencil
        The dimension along the pencils.
    cells
        Cell of every task, shape ``(num_tasks, num_dims)``.
    usable
        Positions that levels may take, shape ``(num_pencils, depth)``.
    """

    extents: tuple[int, ...]
    pencil: int
    cells: IntArray
    usable: NDArray[np.bool_]

    @property
    def levels(self) -> int:
        """Cells of a pencil."""
        return int(self.extents[self.pencil])

    @property
    def depth(self) -> int:
        """Positions of a pencil."""
        return int(self.usable.shape[1])

    @property
    def text(self) -> str:
        """What it is, in a few words."""
        return f"{len(self.usable)} pencils of {self.levels} in depth {self.depth}"

    def pencil_of(self, cells: IntArray) -> IntArray:
        """Return the pencils of cells, numbered row-major."""
        number = np.zeros(len(cells), dtype=np.int64)
        for d, extent in enumerate(self.extents):
            if d != self.pencil:
                number = number * extent + cells[:, d]
        return number


def check_layout(instance: Instance, nodes: IntArray, layout: LayoutModel) -> Window:
    """Check that a mapping is the layout in its window, and return the window.

    Raises
    ------
    RefusedError
        If the layout does not fit the grid or the machine, a task is not on its cell's router,
        or the routers of a pencil's cells do not ascend.
    """
    cells, extents = _cells(instance, layout)
    torus = instance.torus
    _check_window(torus, layout, extents)
    routers = torus.coordinates[nodes // torus.nodes_per_router]
    at = (routers - np.asarray(layout.origin)) % np.asarray(torus.shape)
    q = layout.pencil
    elsewhere = (at != cells).any(axis=1, where=np.arange(torus.num_dims) != q)
    if elsewhere.any():
        raise RefusedError(f"task {int(elsewhere.argmax())} is not on the pencil of its cell")
    if (at[:, q] >= layout.depth).any():
        task = int((at[:, q] >= layout.depth).argmax())
        raise RefusedError(f"task {task} is beyond the depth of the window")
    window = Window(extents, q, cells, _usable(instance, layout, extents))
    _check_selection(window, at[:, q])
    return window


def _cells(instance: Instance, layout: LayoutModel) -> tuple[IntArray, tuple[int, ...]]:
    """Return the cell of every task, and the extents of all cells."""
    if instance.grid is None:
        raise RefusedError("only a grid has a layout")
    shape, dims = instance.grid.shape, instance.torus.num_dims
    folds = layout.folds or [0] * dims
    lists = (layout.axes, layout.logical, layout.partitions, folds, layout.origin)
    if any(len(entries) != dims for entries in lists):
        raise RefusedError(f"the layout needs {dims} entries per list")
    whole = [] if layout.whole is None else [layout.whole]
    placed = [axis for axis in layout.axes if axis != -1] + whole
    if sorted(placed) != list(range(len(shape))):
        raise RefusedError("the layout does not place every dimension of the grid once")
    coords = np.unravel_index(np.arange(instance.num_tasks), shape)
    cells = np.zeros((instance.num_tasks, dims), dtype=np.int64)
    tile, tiles = np.zeros(instance.num_tasks, dtype=np.int64), 1
    for d, axis in enumerate(layout.axes):
        logical, part, folded = layout.logical[d], layout.partitions[d], folds[d]
        if folded < 0 or (axis == -1 and (folded or part != 1)):
            raise RefusedError(f"folds or partitions of dimension {d} are wrong")
        if axis == -1:
            continue
        room = part * (folded + 1)
        if logical != -(-shape[axis] // room):
            raise RefusedError(
                f"dimension {d} of the layout has {logical} routers, the grid needs "
                f"{-(-shape[axis] // room)}"
            )
        turn, place = np.divmod(coords[axis] // part, logical)
        if int(turn.max()) > folded:
            raise RefusedError(f"the grid does not fit into dimension {d} of the layout")
        cells[:, d] = np.where(turn % 2, logical - 1 - place, place)
        tiles *= folded + 1
        require_room(tiles, "the supertiles of the layout")
        tile = tile * (folded + 1) + turn
    return cells, _stack(layout, cells, tile, tiles)


def _stack(layout: LayoutModel, cells: IntArray, tile: IntArray, tiles: int) -> tuple[int, ...]:
    """Put supertiles on their layers, in place; return the extents of all cells."""
    extents = list(layout.logical)
    stacks = [d for d, axis in enumerate(layout.axes) if axis == -1 and extents[d] > 1]
    if len(stacks) > 1 or math.prod(extents[d] for d in stacks) != tiles:
        raise RefusedError("the layers of the layout are not its supertiles")
    layer = tile
    if layout.layer_order or stacks:
        if sorted(layout.layer_order) != list(range(tiles)):
            raise RefusedError("layer_order does not give every supertile a layer")
        layer = np.asarray(layout.layer_order, dtype=np.int64)[tile]
    for d in stacks:
        cells[:, d] = layer
    if layout.stagger:
        first = next((d for d, axis in enumerate(layout.axes) if axis != -1), None)
        if first is None:
            raise RefusedError("a layout without a plane has nothing to stagger")
        extents[first] += 1
        cells[:, first] += layer % 2
    return tuple(extents)


def _check_window(torus: Torus, layout: LayoutModel, extents: tuple[int, ...]) -> None:
    """Check that the window lies in the machine and is deep enough."""
    if layout.pencil >= torus.num_dims:
        raise RefusedError(f"the machine has no dimension {layout.pencil} for pencils")
    if layout.depth < extents[layout.pencil]:
        raise RefusedError("the window is less deep than the layout")
    for d, (n, wraps) in enumerate(zip(torus.shape, torus.wrap, strict=True)):
        extent = layout.depth if d == layout.pencil else extents[d]
        origin = layout.origin[d]
        if origin >= n or extent > n or (not wraps and origin + extent > n):
            raise RefusedError(f"the window leaves dimension {d} of the machine")


def _usable(instance: Instance, layout: LayoutModel, extents: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which positions of the window have all their nodes in the set."""
    torus = instance.torus
    whole = (instance.usable_nodes == torus.nodes_per_router).reshape(torus.shape)
    for d, n in enumerate(torus.shape):
        extent = layout.depth if d == layout.pencil else extents[d]
        whole = whole.take((layout.origin[d] + np.arange(extent)) % n, axis=d)
    usable: NDArray[np.bool_] = np.moveaxis(whole, layout.pencil, -1).reshape(-1, layout.depth)
    return usable


def _check_selection(window: Window, positions: IntArray) -> None:
    """Check that every cell has one position, and that levels without tasks have room between.

    A selection puts every level of a pencil at a usable position above that of the level below.
    Levels with tasks are where these are; the others take the lowest position left.
    """
    num_pencils, levels = len(window.usable), window.levels
    keys = window.pencil_of(window.cells) * levels + window.cells[:, window.pencil]
    fixed: IntArray = np.full(num_pencils * levels, -1, dtype=np.int64)
    fixed[keys] = positions
    if (fixed[keys] != positions).any():
        raise RefusedError("the tasks of a cell are on several routers")
    fixed = fixed.reshape(num_pencils, levels)
    pencils, done = np.arange(num_pencils), np.zeros(num_pencils, dtype=np.int64)
    for at in range(window.depth):
        wanted = fixed[pencils, np.minimum(done, levels - 1)]
        done += window.usable[:, at] & (done < levels) & ((wanted == -1) | (wanted == at))
    if (done < levels).any():
        pencil = int((done < levels).argmax())
        raise RefusedError(
            f"the routers of pencil {pencil} do not ascend with its cells, have nodes outside the "
            "set, or leave no room for a cell"
        )


def check_optimum(
    instance: Instance, window: Window | None, hop_bytes: int, optimum: ClassOptimum
) -> str:
    """Check a class optimum: its figures, and by its flow the bound of the chosen window.

    Returns
    -------
    str
        A summary for the report, which says what was not repeated.
    """
    if window is None:
        raise RefusedError("an optimum of pencils without a layout that holds")
    if optimum.objective != hop_bytes:
        raise RefusedError(f"objective is {optimum.objective}, the hop-bytes are {hop_bytes}")
    if optimum.bound > optimum.objective:
        raise RefusedError(f"bound {optimum.bound} is above objective {optimum.objective}")
    proof = Proof.SEARCH if optimum.bound == optimum.objective else Proof.NONE
    if optimum.proof is not proof:
        raise RefusedError(f"proof is {optimum.proof.value}, the figures say {proof.value}")
    _check_depths(instance, window, optimum)
    if (optimum.window_bound is None) != (optimum.flow is None):
        raise RefusedError("a window bound and its flow come together or not at all")
    if optimum.window_bound is None or optimum.flow is None:
        return f"bound {optimum.bound} by {optimum.proof.value}, not repeated"
    if not optimum.bound <= optimum.window_bound <= hop_bytes:
        raise RefusedError(
            f"window bound {optimum.window_bound} is not between the bound {optimum.bound} "
            f"and the hop-bytes {hop_bytes}"
        )
    proven = window_value(instance, window, optimum.flow)
    if proven > hop_bytes:
        raise RefusedError(
            f"the flow proves {proven}, yet the mapping, which is in the window, reaches "
            f"{hop_bytes}: the evidence contradicts itself"
        )
    if optimum.window_bound > proven:
        raise RefusedError(f"window bound is {optimum.window_bound}, the flow proves {proven}")
    return f"the flow proves {proven} in its window; {optimum.proof.value} elsewhere, not repeated"


def _check_depths(instance: Instance, window: Window, optimum: ClassOptimum) -> None:
    """Raise unless the extents searched lie in the machine and are no less than the window's."""
    shape = instance.torus.shape
    own = [
        window.depth if d == window.pencil else extent for d, extent in enumerate(window.extents)
    ]
    if len(optimum.max_depth) != len(shape) or not all(
        least <= most <= n for least, most, n in zip(own, optimum.max_depth, shape, strict=True)
    ):
        raise RefusedError(
            f"max_depth is {optimum.max_depth}, the window has {own} of the machine's {list(shape)}"
        )


SOURCE, SINK = -1, -2

Arcs = tuple[IntArray, IntArray, IntArray]
"""Tails, heads and capacities."""


def window_value(instance: Instance, window: Window, flow: FlowCertificate) -> int:
    """Return the hop-bytes that a flow proves of every selection in the window.

    Raises
    ------
    RefusedError
        If it is no flow of the threshold network, or some pair of cells is mixed.
    """
    terms = _Terms(instance, window)
    return terms.constant + _flow_value(window, terms.arcs(), flow)


class _Terms:
    """Bytes between cells, split as the proof splits them."""

    def __init__(self, instance: Instance, window: Window) -> None:
        torus, q = instance.torus, window.pencil
        ends = [window.cells[tasks] for tasks in (instance.sources, instance.targets)]
        apart = (ends[0] != ends[1]).any(axis=1)
        here, there = (end[apart] for end in ends)
        self._window = window
        sizes = instance.sizes[apart]
        steps = np.abs(here - there)
        rings = np.asarray(torus.wrap)
        across = np.where(rings, np.minimum(steps, np.asarray(torus.shape) - steps), steps)
        across[:, q] = 0
        self.constant = int(across.sum(axis=1) @ sizes)
        is_low = here[:, q] <= there[:, q]
        first, second = (window.pencil_of(c) * window.levels + c[:, q] for c in (here, there))
        pairs = np.stack([np.where(is_low, first, second), np.where(is_low, second, first)])
        (self._low, self._high), which = np.unique(pairs, axis=1, return_inverse=True)
        # sums of bytes, and of bytes times distances above: see `Instance`
        self._sizes = np.zeros(len(self._low), dtype=np.int64)
        np.add.at(self._sizes, which.ravel(), sizes)
        gap = self._high % window.levels - self._low % window.levels
        slack, n = window.depth - window.levels, torus.shape[q]
        self._far = np.zeros(len(gap), dtype=bool)
        if torus.wrap[q]:
            self._far = 2 * (gap - slack) >= n
            if (~self._far & (2 * (gap + slack) > n)).any():
                raise RefusedError("a pair of cells may lie nearer either way round the ring")
            self.constant += (n - window.depth + 1) * int(self._sizes[self._far].sum())

    def arcs(self) -> Arcs:
        """Return the arcs of finite capacity, parallel ones not yet added up."""
        steps = self._window.depth - 1
        thresholds = np.arange(steps)
        near = ~self._far
        low, high = ((c[:, None] * steps + thresholds) for c in (self._low, self._high))
        sizes = np.repeat(self._sizes[:, None], steps, axis=1)
        source = np.full_like(low[self._far], SOURCE)
        sink = np.full_like(source, SINK)
        tails = [low[near], high[near], source, low[self._far]]
        heads = [high[near], low[near], high[self._far], sink]
        capacities = [sizes[near], sizes[near], sizes[self._far], sizes[self._far]]
        joined = [np.concatenate([p.ravel() for p in part]) for part in (tails, heads, capacities)]
        return joined[0], joined[1], joined[2]


def _flow_value(window: Window, finite: Arcs, flow: FlowCertificate) -> int:
    """Check a flow against the network and return its value."""
    if not len(flow.tails) == len(flow.heads) == len(flow.flows):
        raise RefusedError("the lists of the flow differ in length")
    count = window.usable.shape[0] * window.levels * (window.depth - 1)
    require_room((count + 2) ** 2, "the number of an arc")
    given = [np.asarray(part, dtype=np.int64) for part in (flow.tails, flow.heads, flow.flows)]
    tails, heads, amounts = given
    ends = np.concatenate([tails, heads])
    if len(ends) and (ends.min() < SINK or ends.max() >= count):
        raise RefusedError("the flow names a vertex that the network does not have")
    if (amounts < 0).any():
        raise RefusedError("a flow is negative")
    arcs, carried = _added(tails, heads, amounts, count)
    known, capacities = _added(*finite, count)
    endless = np.unique(_keys(*_endless(window), count))
    is_endless = np.isin(arcs, endless)
    at = np.minimum(np.searchsorted(known, arcs), max(0, len(known) - 1))
    room = np.zeros(len(arcs), dtype=object)
    if len(known):
        room = np.where(known[at] == arcs, capacities[at], 0)
    over = ~is_endless & (carried > room).astype(bool)
    if over.any():
        raise RefusedError(f"{int(over.sum())} arcs carry more than their capacity")
    excess = np.zeros(count + 2, dtype=object)
    np.add.at(excess, heads, amounts.astype(object))
    np.subtract.at(excess, tails, amounts.astype(object))
    if (excess[:count] != 0).any():
        raise RefusedError("the flow is not conserved at a vertex")
    return -int(excess[SOURCE])  # source and sink are the last two entries


def _keys(tails: IntArray, heads: IntArray, count: int) -> IntArray:
    keys: IntArray = (tails - SINK) * (count + 2) + heads - SINK
    return keys


def _added(
    tails: IntArray, heads: IntArray, amounts: IntArray, count: int
) -> tuple[IntArray, IntArray]:
    """Add up parallel arcs; amounts become Python integers of any size."""
    keys, which = np.unique(_keys(tails, heads, count), return_inverse=True)
    sums = np.zeros(len(keys), dtype=object)
    np.add.at(sums, which.ravel(), amounts.astype(object))
    return keys, sums


def _endless(window: Window) -> tuple[IntArray, IntArray]:
    """Return tails and heads of the arcs without a capacity."""
    pencils, levels, depth = window.usable.shape[0], window.levels, window.depth
    # vertex "z >= t" for t = 0..depth: the source at 0, the sink at depth
    vertex = np.full((pencils, levels, depth + 1), SOURCE, dtype=np.int64)
    vertex[:, :, depth] = SINK
    inner = np.arange(pencils * levels * (depth - 1), dtype=np.int64)
    vertex[:, :, 1:depth] = inner.reshape(pencils, levels, depth - 1)
    closed = np.repeat(~window.usable[:, None, :], levels, axis=1)
    pairs = [
        (vertex[:, :, 2:depth], vertex[:, :, 1 : depth - 1]),
        (vertex[:, :, :depth][closed], vertex[:, :, 1:][closed]),
        (vertex[:, :-1, :depth], vertex[:, 1:, 1:]),
    ]
    tails, heads = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    return tails, heads
