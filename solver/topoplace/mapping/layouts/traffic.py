"""Bytes between the routers of a layout with nothing unusable, without listing the tasks.

Everything is a sum over positions along single virtual dimensions: messages of one offset that
move alike in each dimension are counted together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from topoplace.machine import Torus
from topoplace.machine.torus import IntArray
from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.layouts.cells import line_cells
from topoplace.mapping.layouts.layout import Layout


@dataclass(frozen=True)
class _Moves:
    """Steps along one virtual dimension that are alike, and how many positions make each.

    `change` is the step in cells, before stagger; `tile`, `next_tile` are the supertiles;
    `num_positions` is the sum of `count`.
    """

    change: IntArray
    tile: IntArray
    next_tile: IntArray
    count: IntArray
    num_positions: int


def off_router_bytes(layout: Layout, grid: VirtualGrid) -> int:
    """Return the bytes of all messages between tasks of different cells."""
    total = 0
    for offset, size in _two_way(grid).items():
        moves = _all_moves(layout, grid, offset)
        stay = (m.count[(m.change == 0) & (m.tile == m.next_tile)].sum() for m in moves)
        leave = math.prod(m.num_positions for m in moves) - math.prod(map(int, stay))
        total += size * _beside(layout, grid, offset) * leave
    return total


def ideal_hop_bytes(layout: Layout, grid: VirtualGrid, torus: Torus) -> int:
    """Return the hop-bytes of a layout laid onto adjacent routers, all of them usable.

    Equal to `off_router_bytes` when every logical neighbour is one hop away.
    """
    hops_of = _folded_hops if layout.layer_order else _direct_hops
    return sum(
        size
        * _beside(layout, grid, offset)
        * hops_of(layout, torus, _all_moves(layout, grid, offset))
        for offset, size in _two_way(grid).items()
    )


def _two_way(grid: VirtualGrid) -> dict[tuple[int, ...], int]:
    """Return the bytes per offset, those of -v added to v: both go the same way, back and forth."""
    total: dict[tuple[int, ...], int] = {}
    for offset, size in grid.offsets:
        key = max(offset, tuple(-step for step in offset))
        total[key] = total.get(key, 0) + size
    return total


def _beside(layout: Layout, grid: VirtualGrid, offset: tuple[int, ...]) -> int:
    """Return the positions in the dimension that lies whole on a router, 1 if none does."""
    if layout.whole is None:
        return 1
    ends = offset[layout.whole] != 0 and not grid.periodic[layout.whole]
    return grid.shape[layout.whole] - ends


def _all_moves(layout: Layout, grid: VirtualGrid, offset: tuple[int, ...]) -> list[_Moves]:
    """Return the moves of one offset along every dimension in `Layout.plane_dims`."""
    return [
        _moves(
            grid.shape[layout.axes[i]],
            grid.periodic[layout.axes[i]],
            layout.partitions[i],
            layout.logical[i],
            offset[layout.axes[i]],
        )
        for i in layout.plane_dims
    ]


@lru_cache(maxsize=1 << 14)
def _moves(size: int, periodic: bool, partitions: int, logical: int, step: int) -> _Moves:
    """Return the moves by `step` along one virtual dimension."""
    positions = np.arange(size, dtype=np.int64)
    if not periodic:
        positions = positions[(positions + step >= 0) & (positions + step < size)]
    here, tile = line_cells(positions, partitions, logical)
    there, next_tile = line_cells((positions + step) % size, partitions, logical)
    alike, count = np.unique(np.stack([there - here, tile, next_tile]), axis=1, return_counts=True)
    return _Moves(alike[0], alike[1], alike[2], count.astype(np.int64), len(positions))


def _direct_hops(layout: Layout, torus: Torus, moves: list[_Moves]) -> int:
    """Return the hops of all messages that make one move in each dimension."""
    if not all(m.num_positions for m in moves):
        return 0
    messages = math.prod(m.num_positions for m in moves)
    return sum(
        int(m.count @ _hops(torus, i, m.change)) * (messages // m.num_positions)
        for i, m in zip(layout.plane_dims, moves, strict=True)
    )


def _folded_hops(layout: Layout, torus: Torus, moves: list[_Moves]) -> int:
    """Return the hops of all messages that make one move in each in-plane dimension."""
    (first, second), stack = layout.plane_dims, layout.layer_dim
    assert stack is not None
    a, b = moves
    order = np.asarray(layout.layer_order, dtype=np.int64).reshape(
        layout.tiles[first], layout.tiles[second]
    )
    layer = order[a.tile[:, None], b.tile]
    next_layer = order[a.next_tile[:, None], b.next_tile]
    change = np.broadcast_to(a.change[:, None], layer.shape)
    if layout.stagger:
        change = change + next_layer % 2 - layer % 2
    hops = (
        _hops(torus, first, change)
        + _hops(torus, second, b.change)
        + _hops(torus, stack, next_layer - layer)
    )
    return int(a.count @ hops @ b.count)


def _hops(torus: Torus, dim: int, change: IntArray) -> IntArray:
    """Return the hops of steps along one machine dimension."""
    steps: IntArray = np.abs(change)
    return np.minimum(steps, torus.shape[dim] - steps) if torus.wrap[dim] else steps
