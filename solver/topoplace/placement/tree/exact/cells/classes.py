"""The grid of cells that is left where all leaves keep whole rows of some dims."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.lines.tables import Standing, Tables

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_MOST_CODES = 1 << 61
_LARGEST_COST = 1 << 40


class Classes(NamedTuple):
    """The states that a cell's leaf may be in, *classes* here, and what their cells may do.

    Attributes
    ----------
    cells, cost
        Per class: cells of a leaf, cost of a cell; a leaf costs the same in all classes.
    pairs
        Which cells of different leaves may be neighbours, shape ``(2, num, num)`` by dim.
    bonded
        Where neighbours of a class are on the same leaf, shape ``(2, num)``.
    counted
        Whether the cells of a piece count.
    first
        Number of a class's first symbol.
    of_symbol, size
        Per symbol: class, cells of the piece so far.
    """

    cells: IntArray
    cost: IntArray
    pairs: BoolArray
    bonded: BoolArray
    counted: BoolArray
    first: IntArray
    of_symbol: IntArray
    size: IntArray


class Board(NamedTuple):
    """A grid of cells in two dims, and its classes; leaves may cost up to a budget."""

    rows: int
    width: int
    classes: Classes
    budget: int


def classes_of(cells: IntArray, pairs: BoolArray, bonded: BoolArray) -> Classes:
    """Return classes of which the cells of a leaf are known, and what neighbours may be."""
    counted = bonded.any(axis=0) & (cells > 1)
    symbols = np.where(counted, cells, 1)
    first = np.cumsum(symbols) - symbols
    of_symbol = np.repeat(np.arange(len(cells)), symbols)
    return Classes(
        cells=cells,
        cost=math.lcm(*cells.tolist()) // cells,
        pairs=pairs.copy(),
        bonded=bonded.copy(),
        counted=counted,
        first=first,
        of_symbol=of_symbol,
        size=1 + np.arange(len(of_symbol)) - first[of_symbol],
    )


def board_of(tables: Tables, view: Standing) -> Board | None:
    """Return the cells that thresholds leave; None if not one or two dims cross, or too widely.

    Dims that all states left keep inside make a cell of many ranks.
    """
    alive = np.flatnonzero(view.alive)
    keeps = view.keeps[:, alive].all(axis=1)
    crossing = np.flatnonzero(~keeps)
    if not 1 <= len(crossing) <= 2:
        return None
    crossing = crossing[np.argsort(-tables.extents[crossing], kind="stable")]
    cells = tables.ranks[alive] // math.prod(tables.extents[keeps].tolist())
    whole = math.lcm(*cells.tolist())
    budget = whole * int(tables.multiplicity[np.unique(tables.leaf_type[alive])].sum())
    if budget > _LARGEST_COST:
        return None
    pairs = view.pairs[np.ix_(crossing, alive, alive)]
    bonded = view.able[np.ix_(crossing, alive)] & ~np.diagonal(pairs, axis1=1, axis2=2)
    if len(crossing) == 1:  # rows of one cell, without neighbours in them
        pairs, bonded = np.concatenate([pairs] * 2), np.concatenate([bonded] * 2)
    rows, width = [*tables.extents[crossing].tolist(), 1][:2]
    classes = classes_of(cells, pairs, bonded)
    if 2 * len(classes.of_symbol) ** width > _MOST_CODES:
        return None
    return Board(rows, width, classes, budget)
