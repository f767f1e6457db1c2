"""Where a layout puts every task: its logical router, and the node there."""

from __future__ import annotations

import numpy as np

from topoplace.machine.torus import IntArray
from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.layouts.layout import Layout


def cells(layout: Layout, grid: VirtualGrid) -> IntArray:
    """Return the logical router of every task by docs/proofs.md, "Layouts".

    Returns
    -------
    ndarray
        Shape ``(num_tasks, num_machine_dims)``, inside `Layout.extents`.
    """
    tasks = grid.coordinates()
    found = np.zeros((grid.num_tasks, len(layout.axes)), dtype=np.int64)
    supertile = np.zeros(grid.num_tasks, dtype=np.int64)
    for i in layout.plane_dims:
        found[:, i], tile = line_cells(
            tasks[:, layout.axes[i]], layout.partitions[i], layout.logical[i]
        )
        supertile = supertile * layout.tiles[i] + tile
    stack = layout.layer_dim
    if stack is not None:
        layers = np.asarray(layout.layer_order, dtype=np.int64)[supertile]
        found[:, stack] = layers
        if layout.stagger:
            found[:, layout.plane_dims[0]] += layers % 2
    return found


def line_cells(positions: IntArray, partitions: int, logical: int) -> tuple[IntArray, IntArray]:
    """Return the cell coordinates, before stagger, and the tiles of positions along one dimension.

    The direction is reversed in every odd tile.
    """
    tile, at = np.divmod(positions // partitions, logical)
    return np.where(tile % 2 == 0, at, logical - 1 - at), tile


def node_slots(layout: Layout, grid: VirtualGrid) -> IntArray:
    """Return which node of its router every task goes to, shape ``(num_tasks,)``.

    The partitions along `Layout.split` are dealt to the nodes in equal runs, so no node gets more
    than its share of a full cell.
    """
    if layout.split is None:
        return np.zeros(grid.num_tasks, dtype=np.int64)
    count = layout.partitions_of(layout.split, grid.shape[layout.split])
    slots: IntArray = grid.coordinates()[:, layout.split] % count * layout.nodes_per_router // count
    return slots
