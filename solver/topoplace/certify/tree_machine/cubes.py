"""What bad leaves of a full cube or a ring need of the others (docs/proofs-tree.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.certify.integers import IntArray, require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.box_states import (
    Assumed,
    BoxStates,
    View,
    most_worth,
    work_of_holding,
)
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.result.tree import BinomialShares, Empty, LinePrices, Needs
from topoplace.snapshot.schema import Pattern

LARGEST_SUM = (1 << 34) + 1
"""Above the multipliers of a tree's leaf together.

A rank needs or gives at most its distances, of which a cube of 2^20 ranks has 20, so that all
ranks together do so below 2^60.
"""


class Sides:
    """A request on a full cube, whose pairs are at distances 1, 2, 4, .., or on a ring."""

    def __init__(self, relaxed: Relaxed, pattern: Pattern) -> None:
        self._ranks, self._is_ring = relaxed.ranks, pattern is Pattern.RING
        self._num_dims = len(relaxed.prices)
        number = {value: n for n, value in enumerate(relaxed.values)}
        kinds = [relaxed.kind(state) for state in relaxed.states]
        self._key = np.array([number[relaxed.between[kind, kind]] for kind in kinds])
        # a cube is a box of two layers each way, a ring one of a single line
        extents = [relaxed.ranks] if self._is_ring else [2] * self._num_dims
        self.states = BoxStates(relaxed, extents)

    @property
    def work(self) -> int:
        """About how many additions weighing needs takes."""
        return work_of_holding(self.states, self._ranks)

    def read(self, leaf: Needs | BinomialShares | LinePrices) -> None:
        """Raise `RefusedError` unless multipliers are of distances that are there."""
        if not isinstance(leaf, Needs):
            raise RefusedError("a cube or a ring has multipliers of sides alone")
        require_room(sum(abs(m) for _, _, m in leaf.sides), "multipliers of sides", LARGEST_SUM)
        if not all(1 <= dims <= self._num_dims and m >= 0 for dims, _, m in leaf.sides):
            raise RefusedError("a side of unknown distances, or a multiplier below 0")

    def refutes(
        self,
        leaf: Needs | BinomialShares | LinePrices | Empty,
        most: Sequence[int],
        assumed: Assumed,
    ) -> bool:
        """Tell whether multipliers rule out thresholds."""
        view = self.states.view(most, assumed)
        if view is None or not isinstance(leaf, Needs):
            return view is None
        needs, more = np.zeros(len(view.states), dtype=np.int64), 0
        for dims, least, multiplier in leaf.sides:
            side = self.side(view, dims, least)
            needs += multiplier * side
            more += multiplier * self._crowd(view, side)
        found = most_worth(self.states, view, (-needs).tolist(), self._ranks)
        return found is None or found < more

    def _crowd(self, view: View, side: IntArray) -> int:
        """Return what all leaves need more on a ring with assumed bad ones and assumed others.

        Without the ranks near bad leaves, a ring falls into no more pieces than those are. Every
        bad leaf has a piece of its own, and the others, which need and give nothing, have one.
        """
        sure = view.assumed > 0
        apart = (side[sure] > 0).any() and (side[sure] == 0).any()
        return 2 * int(self._is_ring and apart)

    def side(self, view: View, dims: int, least: int) -> IntArray:
        """Return what leaves need beyond what they give, per state left, in ranks.

        The pairs of a bad leaf that cross at distances which not all bad ones keep are at least
        all of its ranks' less twice those inside; each takes a rank near the bad ones there.
        """
        beside = view.beside[:dims]
        high = self._key[view.states] >= least
        bad = high & ~beside[:, :, high].any(axis=(0, 2))
        free = ~view.keeps[:dims, bad].all(axis=1)
        ranks = self.states.ranks[view.states]
        near = beside[free][:, :, bad].any(axis=2)
        degree = 2 if self._is_ring else 1
        needs: IntArray = -degree * ranks * near.sum(axis=0)
        num_free = int(free.sum())
        closed = dims - num_free
        if self._is_ring:  # fewer ranks than all hold a pair less than they are
            needs[bad] = 2 * num_free
        else:
            inside = _pairs(self._ranks >> closed, num_free)[ranks[bad] >> closed] << closed
            needs[bad] = num_free * ranks[bad] - 2 * inside
        return needs


def _pairs(corners: int, dims: int) -> IntArray:
    """Return the most pairs of some distances among x corners, x = 0 .. `corners`.

    By the edge-isoperimetric inequality the first binary numbers have as many.
    """
    number = np.arange(corners)
    ones = sum((number >> bit & 1 for bit in range(dims)), np.zeros_like(number))
    return np.concatenate([[0], np.cumsum(ones)])
