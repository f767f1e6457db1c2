"""Grids that a construction divides: full leaves in chains, emptier ones between their links.

Where full leaves may be neighbours in all dims but one, only the lines of cells along that one
matter: in every line there is a cell of an emptier leaf between two full ones. Chains of full
leaves that end at the ends of lines need the fewest such cells.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding.structure import GRIDS
from topoplace.placement.tree.exact.gridding.board import Board
from topoplace.placement.tree.exact.gridding.kernels.settle import pack
from topoplace.placement.tree.patterns import cubic_grid

IntArray = NDArray[np.int64]

_MOST_LEVELS = 24
_MOST_BETWEEN = 12


def chained(board: Board) -> Iterator[IntArray]:
    """Yield assignments of ranks to leaves in chains, for different heights of the full leaves."""
    if len(board.domain) == 0:
        return
    comm, nodes = board.job.comm[board.domain], board.job.model.tree.nodes_per_leaf[board.domain]
    # the emptiest come last: they are put between the others
    order = np.lexsort((-nodes, comm / nodes))[::-1]
    for share in _shares(board):
        full = np.floor(share * nodes + 1e-9).astype(np.int64) - comm
        caps = np.clip(full // board.unit, 0, board.room)
        for row in range(len(board.crossing)):
            cells = _along(board, row)
            for num_between in range(min(_MOST_BETWEEN, len(order) - 1) + 1):
                high, between = np.split(order, [len(order) - num_between])
                high = high[caps[high] > 0]
                leaf = np.empty(cells.size, dtype=np.int64)
                found = _filled(caps, high, between, cells.shape)
                if found is not None and (np.bincount(found, minlength=len(order)) <= caps).all():
                    leaf[cells.ravel()] = found
                    yield board.leaves(leaf)


def _shares(board: Board) -> list[float]:
    """Return the shares of their nodes up to which leaves may be filled, a few of all."""
    comm, nodes = board.job.comm[board.domain], board.job.model.tree.nodes_per_leaf[board.domain]
    counts = [board.unit * np.arange(1, room + 1) for room in board.room]
    held = zip(comm, counts, nodes, strict=True)
    shares = np.unique(np.concatenate([(own + count) / size for own, count, size in held]))
    few = np.linspace(len(shares) - 1, 0, min(_MOST_LEVELS, len(shares))).round()
    found: list[float] = shares[np.unique(few.astype(np.int64))].tolist()
    return found


def _along(board: Board, row: int) -> IntArray:
    """Return the parts in lines along the dim of a crossing step, shape ``(lines, length)``."""
    family = board.job.families[0]
    extents = cubic_grid(family.ranks, GRIDS[family.pattern])
    shape = [extents[dim] for dim in range(family.num_dims) if dim not in board.kept]
    parts = np.arange(len(board.parts.size)).reshape(shape)
    return np.moveaxis(parts, row, -1).reshape(-1, shape[row])


def _filled(
    caps: IntArray, high: IntArray, between: IntArray, shape: tuple[int, ...]
) -> IntArray | None:
    """Return the leaf of every cell, line by line; None if cells between are for no leaf."""
    lines, length = shape
    fewest, ends = pack(caps[high], lines, length)
    if fewest > lines * length or (fewest and not len(between)):
        return None
    cells: list[int] = []
    for (first, start), (last, end) in itertools.pairwise(reversed(ends)):
        chain: list[int] = []
        for leaf in high[first:last].tolist():
            chain += [-1] * bool(chain) + [leaf] * int(caps[leaf])
        room = (end - start) * length
        cells += (chain + [-1] * room)[:room]
    found = np.array(cells)
    alone = np.flatnonzero(found < 0)
    if len(alone):
        found[alone] = between[np.arange(len(alone)) * len(between) // len(alone)]
    return found
