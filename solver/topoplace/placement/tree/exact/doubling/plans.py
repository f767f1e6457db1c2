"""Thresholds of a binomial job refuted by a program over plans (docs/proofs-tree.md).

A *plan* is a state with its active ranks before every step and at the end. What is active on all
leaves together doubles step by step; and what crosses from leaves that pair badly goes to others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.doubling.kernels.lifting import rules_out
from topoplace.placement.tree.exact.doubling.kernels.lowest import lowest
from topoplace.placement.tree.exact.doubling.kernels.refuting import (
    MIXED,
    REFUTED,
    Mix,
    Pool,
    Refutation,
    refute,
)
from topoplace.placement.tree.exact.doubling.tables import Tables

IntArray = NDArray[np.int64]

_ROOM = 1 << 13
_MOST_PLANS = 60
"""Plans that are kept, and that a program begins with."""

_LONG_AGO = 1 << 40


class Plans:
    """All plans met so far, and programs over them."""

    def __init__(self, tables: Tables, most: int = _MOST_PLANS, room: int = _ROOM) -> None:
        self.tables = tables
        self._most = most
        num_active = len(self.tables.active)
        self.pool = Pool(
            state=np.zeros(room, dtype=np.int64),
            path=np.zeros((room, num_active), dtype=np.int64),
            used=np.zeros(room, dtype=np.int64),
            served=np.full((num_active - 1, len(tables.ranks)), -_LONG_AGO, dtype=np.int64),
            size=np.zeros(2, dtype=np.int64),
        )

    @property
    def num_programs(self) -> int:
        """How many programs were solved."""
        return int(self.pool.size[1])

    def test(self, thresholds: IntArray) -> Refutation | Mix | None:
        """Return why thresholds are impossible, or plans that have them; None if neither."""
        found = refute(self.tables, self.pool, thresholds, self._most)
        if found.verdict == REFUTED:
            return Refutation(*found.proof)
        if found.verdict == MIXED:
            return Mix(*found.mix)
        return None

    def refutes(self, proof: Refutation, thresholds: IntArray) -> bool:
        """Tell whether multipliers rule out thresholds, in integers."""
        return bool(rules_out(self.tables, proof, thresholds, np.zeros(1, dtype=np.int64)))

    def least(self, values: IntArray, at: IntArray, mix: Mix) -> IntArray:
        """Return the least values that some plans can have, by number."""
        found: IntArray = lowest(self.tables, values, at, mix.weight, mix.state, mix.path)
        return found
