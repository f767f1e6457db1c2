"""Leaves with given ranks refuted by the pieces that few ranks can cut layers into.

In the dims of a layer some leaves, the *hot* ones, are nowhere neighbours of each other, so that
ranks of the others, the *cold* ones, are between them: what is left of a layer without the cold
ranks are pieces, each of one hot leaf (docs/proofs-tree.md).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.placement.tree.exact.cells.classes import Board, classes_of, has_codes
from topoplace.placement.tree.exact.cells.search import too_few_leaves
from topoplace.placement.tree.exact.layers.kernels.pieces import pieces
from topoplace.placement.tree.exact.lines.tables import Standing, Tables

IntArray = NDArray[np.int64]

_MOST_CELLS = 16
"""Of a layer whose pieces are listed."""

_WORK = 0.5  # CP-SAT's deterministic time


def refuted(tables: Tables, view: Standing, counts: IntArray) -> bool:
    """Tell whether leaves with given ranks cannot be a grid at thresholds.

    Parameters
    ----------
    view
        What the thresholds leave if those are all leaves.
    counts
        Leaves per state.
    """
    num_dims = len(tables.extents)
    choices = [
        list(dims)
        for num in range(num_dims - 1, 0, -1)
        for dims in itertools.combinations(range(num_dims), num)
    ]
    return any(
        _cold_is_short(tables, view, counts, dims) or _do_not_add_up(tables, view, counts, dims)
        for dims in choices
    )


def hot_leaves(view: Standing, counts: IntArray, dims: list[int]) -> IntArray:
    """Return leaves per state of which no two may be neighbours in some dims: all but a few."""
    near = view.pairs[dims].any(axis=0)
    hot = counts.copy()
    while True:
        neighbours = np.where(hot > 0, near @ hot - np.diagonal(near), 0)
        state = int(neighbours.argmax())
        if neighbours[state] <= 0:
            return hot
        hot[state] -= 1


def _cold_is_short(tables: Tables, view: Standing, counts: IntArray, dims: list[int]) -> bool:
    """Tell whether layers need more cold ranks for no piece to be larger than a hot leaf."""
    hot = hot_leaves(view, counts, dims)
    if len(dims) > 2 or not hot.any():
        return False
    rows, width = sorted([*tables.extents[dims].tolist(), 1], reverse=True)[:2]
    cold = int((counts - hot) @ tables.ranks)
    largest = int(tables.ranks[hot > 0].max())
    return _short(rows, width, largest, cold * rows * width // tables.cells)


@lru_cache(maxsize=1024)
def _short(rows: int, width: int, largest: int, cold: int) -> bool:
    """Tell whether it takes more cold cells to cut a layer into pieces of some size at most."""
    hot = np.array([True, False])
    apart = np.tile(~np.outer(hot, hot), (2, 1, 1))
    classes = classes_of(np.array([largest, 1]), np.array([0, 1]), apart, np.tile(hot, (2, 1)))
    board = Board(rows, width, classes, cold)
    return has_codes(board) and too_few_leaves(board)


@lru_cache(maxsize=16)
def _ways(rows: int, width: int) -> IntArray:
    """Return the different ways to cut a layer: cold cells, then pieces by size."""
    found: IntArray = np.unique(pieces(rows, width), axis=0).astype(np.int64)
    return found


def _do_not_add_up(tables: Tables, view: Standing, counts: IntArray, dims: list[int]) -> bool:
    """Tell whether no layers have the pieces of hot leaves, with as many cold cells as there are.

    In every other dim, a leaf with a piece of k cells is in k lines. In a line, ranks of others
    are between any two segments of leaves that are hot there.
    """
    rows, width = sorted([*tables.extents[dims].tolist(), 1], reverse=True)[:2]
    cells = math.prod(tables.extents[dims].tolist())
    if cells > _MOST_CELLS:
        return False
    hot = hot_leaves(view, counts, dims)
    model = cp_model.CpModel()
    ways = _ways(rows, width)
    num_layers = tables.cells // cells
    number = [model.new_int_var(0, num_layers, "") for _ in ways]
    model.add(sum(number) == num_layers)
    cold = int((counts - hot) @ tables.ranks)
    model.add(cp_model.LinearExpr.weighted_sum(number, ways[:, 0].tolist()) == cold)
    leaves = [_add_leaf(model, int(tables.ranks[s]), cells) for s in _states(hot)]
    for size in range(1, cells + 1):
        made = cp_model.LinearExpr.weighted_sum(number, ways[:, size].tolist())
        model.add(made == sum(leaf.pieces[size] for leaf in leaves if size in leaf.pieces))
    of_state: dict[int, list[cp_model.IntVar]] = {}
    for state, leaf in zip(_states(hot), leaves, strict=True):
        of_state.setdefault(state, []).append(leaf.largest)
    for largest in of_state.values():
        for one, other in itertools.pairwise(largest):
            model.add(one <= other)
    for dim in set(range(len(tables.extents))) - set(dims):
        extent = int(tables.extents[dim])
        apart = hot_leaves(view, counts, [dim])
        segments: list[cp_model.LinearExprT] = []
        for state in np.flatnonzero(apart).tolist():
            least = -(-int(tables.ranks[state]) // extent)
            largest = of_state.get(state, [])[::-1][: apart[state]]
            for own in largest:
                lines = model.new_int_var(least, tables.cells // extent, "")
                model.add(lines >= own)
                segments.append(lines)
            segments.append(least * (int(apart[state]) - len(largest)))
        between = int((counts - apart) @ tables.ranks)
        model.add(sum(segments) <= tables.cells // extent + between)
    solver = cp_model.CpSolver()
    solver.parameters.max_deterministic_time = _WORK
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False
    with clock.ended_by(solver.stop_search):
        return bool(solver.solve(model) == cp_model.INFEASIBLE)


def _states(leaves: IntArray) -> list[int]:
    """Return the state of every leaf."""
    found: list[int] = np.repeat(np.arange(len(leaves)), leaves).tolist()
    return found


@dataclass(frozen=True)
class _Leaf:
    """The pieces of a leaf by size, and cells of the largest."""

    pieces: dict[int, cp_model.IntVar]
    largest: cp_model.IntVar


def _add_leaf(model: cp_model.CpModel, ranks: int, cells: int) -> _Leaf:
    """Add a leaf whose ranks are in pieces of layers of so many cells."""
    sizes = range(1, min(ranks, cells) + 1)
    pieces_of = {size: model.new_int_var(0, ranks // size, "") for size in sizes}
    model.add(sum(size * amount for size, amount in pieces_of.items()) == ranks)
    largest = model.new_int_var(1, len(pieces_of), "")
    for size, amount in pieces_of.items():
        there = model.new_bool_var("")
        model.add(amount <= ranks // size * there)
        model.add(largest >= size * there)
    return _Leaf(pieces_of, largest)
