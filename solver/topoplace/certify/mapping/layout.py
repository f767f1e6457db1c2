"""Whether a mapping is what its layout says (docs/proofs-mapping.md, "Layouts" and "Pencils")."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import IntArray, require_room
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.report import RefusedError
from topoplace.machine import Torus
from topoplace.result.mapping import LayoutModel


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
