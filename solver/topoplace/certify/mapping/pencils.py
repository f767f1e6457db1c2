"""Layouts of a mapping, and what is claimed of it among pencil placements ("Pencils")."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import require_room
from topoplace.certify.mapping.instance import Instance, merged
from topoplace.certify.report import RefusedError
from topoplace.errors import number_of
from topoplace.result import Proof
from topoplace.result.mapping import ClassOptimum, FlowCertificate, LayoutModel, PathModel
from topoplace.types import IntArray


@dataclass(frozen=True)
class Window:
    """A layout in its window, which has pencils along the dimension `pencil`.

    `extents` are the cells per machine dimension, `cells` the cell of every task, shape
    ``(num_tasks, num_dims)``, and `usable` the positions that levels may take, shape
    ``(num_pencils, depth)``.
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

    @cached_property
    def numbers(self) -> IntArray:
        """Cell of every task, as pencil x levels + level; pencils are numbered row-major."""
        number = np.zeros(len(self.cells), dtype=np.int64)
        for d, extent in enumerate(self.extents):
            if d != self.pencil:
                number = number * extent + self.cells[:, d]
        return number * self.levels + self.cells[:, self.pencil]


def check_layout(instance: Instance, nodes: IntArray, layout: LayoutModel) -> Window:
    """Check that a mapping is the layout in its window, and return the window."""
    cells, extents = _cells(instance, layout)
    torus, q = instance.torus, layout.pencil
    if q >= torus.num_dims:
        raise RefusedError(f"the machine has no dimension {q} for pencils")
    if layout.depth < extents[q]:
        raise RefusedError("the window is less deep than the layout")
    box = [layout.depth if d == q else extent for d, extent in enumerate(extents)]
    # positions of a window are usable where all nodes of the router are in the set
    whole = (instance.usable_nodes == torus.nodes_per_router).reshape(torus.shape)
    for d, (n, wraps) in enumerate(zip(torus.shape, torus.wrap, strict=True)):
        origin, extent = layout.origin[d], box[d]
        if origin >= n or extent > n or (not wraps and origin + extent > n):
            raise RefusedError(f"the window leaves dimension {d} of the machine")
        whole = whole.take((origin + np.arange(extent)) % n, axis=d)
    routers = torus.coordinates[nodes // torus.nodes_per_router]
    at = (routers - np.asarray(layout.origin)) % np.asarray(torus.shape)
    elsewhere = (at != cells).any(axis=1, where=np.arange(torus.num_dims) != q)
    if elsewhere.any():
        raise RefusedError(f"task {int(elsewhere.argmax())} is not on the pencil of its cell")
    if (at[:, q] >= layout.depth).any():
        task = int((at[:, q] >= layout.depth).argmax())
        raise RefusedError(f"task {task} is beyond the depth of the window")
    window = Window(extents, q, cells, np.moveaxis(whole, q, -1).reshape(-1, layout.depth))
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
        raise RefusedError(f"the layout needs {number_of(dims, 'entry')} per list")
    whole = [] if layout.whole is None else [layout.whole]
    placed = [axis for axis in layout.axes if axis != -1] + whole
    lines = layout.logical
    if layout.path is not None:
        placed.append(layout.path.dim)
        lines = _blocks(layout, layout.path)
    if sorted(placed) != list(range(len(shape))):
        raise RefusedError("the layout does not place every dimension of the grid once")
    coords = np.unravel_index(np.arange(instance.num_tasks), shape)
    cells = np.zeros((instance.num_tasks, dims), dtype=np.int64)
    tile, tiles = np.zeros(instance.num_tasks, dtype=np.int64), 1
    for d, axis in enumerate(layout.axes):
        logical, part, folded = lines[d], layout.partitions[d], folds[d]
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
    if layout.path is None:
        return cells, _stack(layout, cells, tile, tiles)
    cells *= np.asarray(layout.path.block)
    cells += _along(layout.path, coords[layout.path.dim])
    return cells, tuple(layout.logical)


def _blocks(layout: LayoutModel, path: PathModel) -> list[int]:
    """Return how many blocks a layout with a path has along each dimension of the machine."""
    if layout.folds or layout.layer_order or layout.stagger or len(path.block) != len(layout.axes):
        raise RefusedError("a layout with a path has a block, and no folds")
    lines = [n // b for n, b in zip(layout.logical, path.block, strict=True)]
    for d, (n, b) in enumerate(zip(layout.logical, path.block, strict=True)):
        if n % b or (layout.axes[d] == -1 and n != b):
            raise RefusedError(f"dimension {d} of the layout is not made of its blocks")
    return lines


def _along(path: PathModel, positions: IntArray) -> IntArray:
    """Return where tasks are in their blocks, given their place along the path's dimension.

    The path counts through a block with the last dimension fastest; a dimension goes backwards
    where the count of all those before it, as a number, is odd.
    """
    step = positions // path.partitions
    room = math.prod(path.block)
    require_room(room, "the blocks of the path")
    if int(step.max()) >= room:
        raise RefusedError("the grid does not fit into the blocks of the path")
    found = np.zeros((len(step), len(path.block)), dtype=np.int64)
    before = np.zeros(len(step), dtype=np.int64)
    for d, extent in enumerate(path.block):
        room //= extent
        digit = step // room % extent
        found[:, d] = np.where(before % 2, extent - 1 - digit, digit)
        before = step // room
    return found


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


def _check_selection(window: Window, positions: IntArray) -> None:
    """Check that every cell has one position, and that levels without tasks have room between.

    A selection puts every level of a pencil at a usable position above that of the level below.
    Levels with tasks are where these are; the others take the lowest position left.
    """
    num_pencils, levels = len(window.usable), window.levels
    fixed: IntArray = np.full(num_pencils * levels, -1, dtype=np.int64)
    fixed[window.numbers] = positions
    if (fixed[window.numbers] != positions).any():
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

    Returns a summary for the report, which says what was not repeated.
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
    box = [window.depth if d == window.pencil else n for d, n in enumerate(window.extents)]
    shape, searched = list(instance.torus.shape), optimum.max_depth
    if len(searched) != len(shape) or not all(
        least <= most <= n for least, most, n in zip(box, searched, shape, strict=True)
    ):
        raise RefusedError(
            f"max_depth is {searched}, the window has {box} of the machine's {shape}"
        )
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


# ---- The flow in the threshold network of a window ("Pencils") -----------------------------------

SOURCE, SINK = -1, -2


def window_value(instance: Instance, window: Window, flow: FlowCertificate) -> int:
    """Return the hop-bytes that a flow proves of every selection in the window."""
    if not len(flow.tails) == len(flow.heads) == len(flow.flows):
        raise RefusedError("the lists of the flow differ in length")
    network = _Network(instance, window)
    carried, excess = Counter[tuple[int, int]](), Counter[int]()
    for tail, head, amount in zip(flow.tails, flow.heads, flow.flows, strict=True):
        if amount < 0:
            raise RefusedError("a flow is negative")
        if min(tail, head) < SINK or max(tail, head) >= network.num_vertices:
            raise RefusedError("the flow names a vertex that the network does not have")
        carried[tail, head] += amount
        excess[head] += amount
        excess[tail] -= amount
    for (tail, head), amount in carried.items():
        if amount > network.capacity(tail, head) and not network.is_endless(tail, head):
            raise RefusedError(f"the arc from {tail} to {head} carries more than its capacity")
    if any(amount for vertex, amount in excess.items() if vertex >= 0):
        raise RefusedError("the flow is not conserved at a vertex")
    return network.constant + excess[SINK]


class _Network:
    """The arcs of a window, by the bytes between its cells; `constant` is added to the cut."""

    def __init__(self, instance: Instance, window: Window) -> None:
        torus, q, levels = instance.torus, window.pencil, window.levels
        self._usable, self._levels, self._steps = window.usable, levels, window.depth - 1
        num_cells = len(window.usable) * levels
        self.num_vertices = num_cells * self._steps
        ends = [window.numbers[tasks] for tasks in (instance.sources, instance.targets)]
        apart = ends[0] != ends[1]
        here, there = (end[apart] for end in ends)
        cells = [window.cells[tasks[apart]] for tasks in (instance.sources, instance.targets)]
        steps, shape = np.abs(cells[0] - cells[1]), np.asarray(torus.shape)
        across = np.where(torus.wrap, np.minimum(steps, shape - steps), steps)
        across[:, q] = 0
        # sums of bytes, and of bytes times distances: see `Instance`
        self.constant = int(across.sum(axis=1) @ instance.sizes[apart])
        pairs = merged(
            num_cells, np.minimum(here, there), np.maximum(here, there), instance.sizes[apart]
        )
        self._near = Counter[tuple[int, int]]()
        self._far = {SOURCE: Counter[int](), SINK: Counter[int]()}
        slack, n = window.depth - levels, torus.shape[q]
        columns = (pairs.tasks.tolist(), pairs.partners.tolist(), pairs.sizes.tolist())
        for first, second, size in zip(*columns, strict=True):
            low, high = sorted((first, second), key=lambda cell: cell % levels)
            gap = high % levels - low % levels
            if torus.wrap[q] and 2 * (gap - slack) >= n:
                self._far[SOURCE][high] += size
                self._far[SINK][low] += size
                self.constant += (n - window.depth + 1) * size
            elif torus.wrap[q] and 2 * (gap + slack) > n:
                raise RefusedError("a pair of cells may lie nearer either way round the ring")
            else:
                self._near[first, second] = size

    def capacity(self, tail: int, head: int) -> int:
        """Return the bytes that an arc between two vertices stands for."""
        if tail == SOURCE and head >= 0:
            return self._far[SOURCE][head // self._steps]
        if head == SINK and tail >= 0:
            return self._far[SINK][tail // self._steps]
        if min(tail, head) < 0 or (tail - head) % self._steps:
            return 0
        first, second = sorted((tail // self._steps, head // self._steps))
        return self._near[first, second]

    def is_endless(self, tail: int, head: int) -> bool:
        """Tell whether an arc has no limit: every level is at one usable position, above the last.

        The source is the threshold 0 of all cells, the sink the one beyond the last position.
        """
        levels, steps, usable = self._levels, self._steps, self._usable
        if tail == SOURCE and head >= 0:
            cell, threshold = divmod(head, steps)
            return threshold == 0 and bool(cell % levels or not usable[cell // levels, 0])
        if head == SINK and tail >= 0:
            cell, threshold = divmod(tail, steps)
            is_last = cell % levels == levels - 1
            return threshold == steps - 1 and not (is_last and usable[cell // levels, -1])
        if min(tail, head) < 0:
            return False
        (cell, threshold), (other, after) = divmod(tail, steps), divmod(head, steps)
        if cell == other:
            up = after == threshold + 1 and not usable[cell // levels, after]
            return up or after == threshold - 1
        return other == cell + 1 and other % levels > 0 and after == threshold + 1
