"""Why thresholds of a cube are impossible, in integers (docs/proofs-tree.md, "Relaxation")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.cubes.sides import Side, row_of
from topoplace.placement.tree.exact.lines.kernels.program import NOTHING, offered
from topoplace.placement.tree.exact.lines.tables import (
    Guess,
    Tables,
    branches,
    no_guess,
    standing,
)

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Empty:
    """The states left cannot hold all ranks."""


@dataclass(frozen=True)
class Needs:
    """Sides with multipliers, above 0, by which the needs of bad states add up to too much."""

    sides: tuple[tuple[Side, int], ...]


@dataclass(frozen=True)
class Branch:
    """Proofs for no leaf more in a state, and for one more."""

    state: int
    without: Proof
    more: Proof


Proof = Empty | Needs | Branch


def refutes(
    tables: Tables, key: IntArray, proof: Proof, thresholds: IntArray, guess: Guess | None = None
) -> bool:
    """Tell whether a proof rules out thresholds per distance, ascending.

    Parameters
    ----------
    key
        Per state, hops between two leaves in it.
    """
    guess = guess or no_guess(tables)
    if isinstance(proof, Branch):
        without, more = branches(guess, proof.state)
        return refutes(tables, key, proof.without, thresholds, without) and refutes(
            tables, key, proof.more, thresholds, more
        )
    view = standing(tables, thresholds, guess)
    if view is None or isinstance(proof, Empty):
        return view is None
    needs = np.zeros(len(key), dtype=np.int64)
    for side, multiplier in proof.sides:
        row = row_of(tables, key, view, side)
        if row is not None:
            needs += multiplier * row
    # in whole numbers of leaves that hold all ranks
    return bool(offered(tables, guess, np.where(view.alive, -needs, NOTHING)) < 0)
