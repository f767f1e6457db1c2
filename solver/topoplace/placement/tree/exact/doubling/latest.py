"""Multipliers that ruled out thresholds before, tried again at others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.doubling.kernels.lifting import first_to_rule_out
from topoplace.placement.tree.exact.doubling.plans import Refutation
from topoplace.placement.tree.exact.doubling.tables import Tables

IntArray = NDArray[np.int64]

_MOST = 40


class Packed(NamedTuple):
    """Refutations one after the other: their shares as rows, and where the cuts of each begin."""

    shares: IntArray
    first: IntArray
    step: IntArray
    least: IntArray
    senders: IntArray
    receivers: IntArray


class Latest:
    """The multipliers that served last, the latest first."""

    def __init__(self) -> None:
        self._proofs: list[Refutation] = []
        self._packed: Packed | None = None

    def add(self, proof: Refutation) -> None:
        """Add multipliers as the latest; the oldest go."""
        self._proofs.insert(0, proof)
        del self._proofs[_MOST:]
        self._packed = None

    def find(self, tables: Tables, thresholds: IntArray) -> Refutation | None:
        """Return the first that rules out thresholds, the latest from now on; None if none does."""
        if not self._proofs:
            return None
        if self._packed is None:
            self._packed = _packed(self._proofs)
        number = first_to_rule_out(tables, self._packed, thresholds)
        if number < 0:
            return None
        if number:
            self.add(self._proofs.pop(number))
        return self._proofs[0]


def _packed(proofs: list[Refutation]) -> Packed:
    return Packed(
        np.stack([proof.shares for proof in proofs]),
        np.cumsum([0, *(len(proof.step) for proof in proofs)]),
        *(np.concatenate(parts) for parts in zip(*(proof[1:] for proof in proofs), strict=True)),
    )
