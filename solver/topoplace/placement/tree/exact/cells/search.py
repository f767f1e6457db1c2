"""Thresholds of a grid refuted by the fewest leaves that its cells need."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.cells._kernels import TOO_MANY, fewest
from topoplace.placement.tree.exact.cells.classes import Board, boards_of
from topoplace.placement.tree.exact.lines.tables import Tables, no_guess, standing

IntArray = NDArray[np.int64]

_MOST_FRONTIERS = 1 << 14


@dataclass
class CellSearch:
    """Finds thresholds at which a grid needs more leaves than there are.

    Attributes
    ----------
    values
        Of thresholds, ascending; thresholds are numbers of them, one per dimension. What is
        impossible stays so with lower ones.
    """

    tables: Tables
    values: IntArray
    deadline: float
    _known: dict[bytes, bool] = field(default_factory=dict)

    def refutes(self, at: IntArray) -> bool:
        """Tell whether thresholds are shown to be impossible."""
        view = standing(self.tables, self.values[at], no_guess(self.tables))
        if view is None:
            return True
        # thresholds matter only by what they leave
        name = b"".join(np.packbits(part).tobytes() for part in view)
        if name not in self._known:
            found = False
            for board in boards_of(self.tables, view):
                if clock.now() > self.deadline:
                    return False
                found = too_few_leaves(board)
                if found:
                    break
            self._known[name] = found
        return self._known[name]

    def raised(self, at: IntArray, order: IntArray) -> IntArray:
        """Return impossible thresholds raised in some order as far as they are shown to be so."""
        at = at.copy()
        for dim in order.tolist():
            trial = at.copy()
            top = trial[dim] = len(self.values) - 1
            while at[dim] < top:
                if self.refutes(trial):
                    at[dim] = trial[dim]
                else:
                    top = int(trial[dim]) - 1
                trial[dim] = (int(at[dim]) + top + 1) // 2
        return at


def too_few_leaves(board: Board) -> bool:
    """Tell whether the cells of a board need more leaves than there are."""
    cost = fewest(board.rows, board.width, board.classes, board.budget, _MOST_FRONTIERS)
    return bool(cost != TOO_MANY and cost > board.budget)
