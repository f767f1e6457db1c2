"""Ways to divide what a grid may cost among its steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.gridding.board import Board

FloatArray = NDArray[np.float64]

_MOST_VALUES = 24
_NEAR = 1e-9


@dataclass(frozen=True)
class Division:
    """Some crossing steps at one value, what stays inside at another, the rest shared evenly.

    In the best allocations known, some steps cross between the leaves that hold the most ranks,
    and the others only to leaves that hold fewer.

    Attributes
    ----------
    top
        What the steps in `at_top` may cost, in hops.
    at_top
        Numbers of crossing steps; the others cost no more than `top`.
    inside
        What every step that stays inside may cost, in hops; infinite if there is none.
    """

    board: Board
    top: float
    at_top: tuple[int, ...]
    inside: float

    def limit(self, budget: float) -> FloatArray | None:
        """Return the limits of the board's rows whose sum is at most a budget, in hops.

        None if they are too low for any pair, or those not at the top would be above it.
        """
        values = self.board.values[0]
        rows = len(self.board.crossing)
        left = budget - len(self.at_top) * self.top
        if self.board.kept:
            left -= len(self.board.kept) * self.inside
        others = [row for row in range(rows) if row not in self.at_top]
        found = np.full(rows + 1, self.inside)
        found[list(self.at_top)] = self.top
        for number, row in enumerate(others):
            share = left / (len(others) - number)
            at = int(np.searchsorted(values, share + _NEAR)) - 1
            if at < 0 or values[at] > self.top + _NEAR:
                return None
            found[row] = values[at]
            left -= values[at]
        return found if left > -_NEAR else None


def divisions(board: Board) -> Iterator[Division]:
    """Yield ways to divide what a board may cost, the highest values first."""
    crossing, inside = (_some(values) for values in board.values)
    rows = range(len(board.crossing))
    for kept in inside[::-1].tolist() if board.kept else [np.inf]:
        for top in crossing[::-1].tolist():
            for number in range(1, len(rows) + 1):
                for at_top in itertools.combinations(rows, number):
                    yield Division(board, top, at_top, kept)


def _some(values: FloatArray) -> FloatArray:
    """Return a few of many values, evenly drawn, the last among them."""
    few = np.unique(np.linspace(len(values) - 1, 0, _MOST_VALUES).round().astype(np.int64))
    return values[few] if len(values) > _MOST_VALUES else values
