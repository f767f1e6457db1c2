"""The grid of cells that is left where all leaves keep whole rows of some dims."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.lines.tables import Standing, Tables

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_MOST_CODES = 1 << 61
_LARGEST_UNIT = 1 << 30

_PRICE, _CHEAPER = 4, 3
"""Of a leaf, and of one in types that are tried at a lower price."""


class Classes(NamedTuple):
    """The states that a cell's leaf may be in, *classes* here, and what their cells may do.

    Attributes
    ----------
    cells, cost
        Per class: cells of a leaf, cost of a cell.
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
    """A grid of cells in two dims, its classes, and what they may cost."""

    rows: int
    width: int
    classes: Classes
    budget: int


def classes_of(cells: IntArray, cost: IntArray, pairs: BoolArray, bonded: BoolArray) -> Classes:
    """Return classes of which is known what a cell costs, and what neighbours may be."""
    counted = bonded.any(axis=0) & (cells > 1)
    symbols = np.where(counted, cells, 1)
    first = np.cumsum(symbols) - symbols
    of_symbol = np.repeat(np.arange(len(cells)), symbols)
    return Classes(
        cells=cells,
        cost=cost,
        pairs=pairs.copy(),
        bonded=bonded.copy(),
        counted=counted,
        first=first,
        of_symbol=of_symbol,
        size=1 + np.arange(len(of_symbol)) - first[of_symbol],
    )


def boards_of(tables: Tables, view: Standing) -> Iterator[Board]:
    """Yield the cells that thresholds leave, layer by layer if more than two dims cross.

    Dims that all states left keep inside make a cell of many ranks. All leaves cost the same, or
    those of one type less.
    """
    alive = np.flatnonzero(view.alive)
    keeps = view.keeps[:, alive].all(axis=1)
    crossing = np.flatnonzero(~keeps)
    cells = tables.ranks[alive] // math.prod(tables.extents[keeps].tolist())
    leaf_type = tables.leaf_type[alive]
    types = np.unique(leaf_type)
    prices = np.full((1, len(tables.multiplicity)), _PRICE)
    if len(types) > 1:
        cheaper = np.tile(prices, (len(types), 1))
        cheaper[np.arange(len(types)), types] = _CHEAPER
        prices = np.concatenate([prices, cheaper])
    unit = min(math.lcm(*cells.tolist()), _LARGEST_UNIT)
    for price in prices:
        cost = price[leaf_type] * unit // cells
        budget = unit * int(price[types] @ tables.multiplicity[types])
        for dims in _layers(crossing, tables.extents):
            pairs = view.pairs[np.ix_(dims, alive, alive)]
            bonded = view.able[np.ix_(dims, alive)] & ~np.diagonal(pairs, axis1=1, axis2=2)
            if len(dims) == 1:  # rows of one cell, without neighbours in them
                pairs, bonded = np.concatenate([pairs] * 2), np.concatenate([bonded] * 2)
            rows, width = [*tables.extents[dims].tolist(), 1][:2]
            num_layers = math.prod(tables.extents[crossing].tolist()) // (rows * width)
            classes = classes_of(cells, cost, pairs, bonded)
            board = Board(rows, width, classes, budget // num_layers)
            if has_codes(board):
                yield board


def has_codes(board: Board) -> bool:
    """Tell whether the frontiers of a board can be numbered."""
    num_codes: int = 2 * len(board.classes.of_symbol) ** board.width
    return num_codes <= _MOST_CODES


def _layers(crossing: IntArray, extents: IntArray) -> list[IntArray]:
    """Return the pairs of dims that layers may have, of each the longer dim first."""
    ordered = crossing[np.argsort(-extents[crossing], kind="stable")]
    if len(ordered) <= 2:
        return [ordered] if len(ordered) else []
    return [np.array(pair) for pair in itertools.combinations(ordered.tolist(), 2)][::-1]
