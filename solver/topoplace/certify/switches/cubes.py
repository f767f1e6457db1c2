"""What bad leaves of a full cube or a ring need of the others (docs/proofs-tree.md)."""

from __future__ import annotations

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.relaxed import Relaxed
from topoplace.certify.switches.states import BoxRules, View
from topoplace.result.tree import Needs
from topoplace.snapshot.schema import Pattern
from topoplace.types import IntArray

LARGEST_SUM = (1 << 34) + 1
"""Above the multipliers of a tree's leaf together.

A rank needs or gives at most its distances, of which a cube of 2^20 ranks has 20, so that all
ranks together do so below 2^60.
"""


class Sides(BoxRules):
    """A request on a full cube, whose pairs are at distances 1, 2, 4, .., or on a ring."""

    leaf = Needs

    def __init__(self, relaxed: Relaxed, pattern: Pattern) -> None:
        self._is_ring, self._num_dims = pattern is Pattern.RING, len(relaxed.prices)
        # a cube is a box of two layers each way, a ring one of a single line
        super().__init__(relaxed, [relaxed.ranks] if self._is_ring else [2] * self._num_dims)

    def read(self, leaf: Needs) -> None:
        """Raise `RefusedError` unless multipliers are of distances that are there."""
        require_room(sum(abs(m) for _, _, m in leaf.sides), "multipliers of sides", LARGEST_SUM)
        if not all(1 <= dims <= self._num_dims and m >= 0 for dims, _, m in leaf.sides):
            raise RefusedError("a side of unknown distances, or a multiplier below 0")

    def refutes(self, leaf: Needs, view: View) -> bool:
        """Tell whether multipliers rule out what is left."""
        needs, more = np.zeros(len(view.states), dtype=np.int64), 0
        for dims, least, multiplier in leaf.sides:
            side = self._side(view, dims, least)
            needs += multiplier * side
            more += multiplier * self._crowd(view, side)
        found = self.most_worth(view, (-needs).tolist())
        return found is None or found < more

    def _crowd(self, view: View, side: IntArray) -> int:
        """Return what all leaves need more on a ring with assumed bad ones and assumed others.

        Without the ranks near bad leaves, a ring falls into no more pieces than those are. Every
        bad leaf has a piece of its own, and the others, which need and give nothing, have one.
        """
        apart = (side[view.held] > 0).any() and (side[view.held] == 0).any()
        return 2 * int(self._is_ring and apart)

    def _side(self, view: View, dims: int, least: int) -> IntArray:
        """Return what leaves need beyond what they give, per state left, in ranks.

        The pairs of a bad leaf that cross at distances which not all bad ones keep are at least
        all of its ranks' less twice those inside; each takes a rank near the bad ones there.
        """
        beside, ranks = view.beside[:dims], view.ranks
        high = self.relaxed.between.diagonal()[view.states] >= least
        bad = high & ~beside[:, :, high].any(axis=(0, 2))
        free = ~view.keeps[:dims, bad].all(axis=1)
        near = beside[free][:, :, bad].any(axis=2)
        degree = 2 if self._is_ring else 1
        needs: IntArray = -degree * ranks * near.sum(axis=0)
        num_free = int(free.sum())
        closed = dims - num_free
        if self._is_ring:  # fewer ranks than all hold a pair less than they are
            needs[bad] = np.where(ranks[bad] < self.relaxed.ranks, 2 * num_free, 0)
        else:
            inside = _pairs(self.relaxed.ranks >> closed, num_free)[ranks[bad] >> closed] << closed
            needs[bad] = num_free * ranks[bad] - 2 * inside
        return needs


def _pairs(corners: int, dims: int) -> IntArray:
    """Return the most pairs of some distances among x corners, x = 0 .. `corners`.

    By the edge-isoperimetric inequality the first binary numbers have as many.
    """
    number = np.arange(corners)
    ones = sum((number >> bit & 1 for bit in range(dims)), np.zeros_like(number))
    return np.concatenate([[0], np.cumsum(ones)])
