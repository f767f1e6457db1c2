"""Why thresholds are impossible, in integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.lines.kernels.lines import cheapest_lines
from topoplace.placement.tree.exact.lines.kernels.program import too_dear, worths
from topoplace.placement.tree.exact.lines.tables import (
    Guess,
    Standing,
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
class Prices:
    """Prices at which lines cost more than leaves are worth, shape ``(num_dims, num_states)``.

    Those of segments are nowhere above 0; those of segments with all ranks of a leaf come on top.
    """

    of_cell: IntArray
    of_segment: IntArray
    of_whole: IntArray


@dataclass(frozen=True)
class Branch:
    """Proofs for no leaf more in a state, and for one more."""

    state: int
    without: Proof
    more: Proof


Proof = Empty | Prices | Branch


@dataclass(frozen=True)
class Weighed:
    """What prices come to: the cheapest lines by their last state, and what leaves are worth.

    Attributes
    ----------
    lines
        Shape ``(num_dims, num_states)``.
    codes
        Per dimension, the segments of those lines.
    refuted
        Whether the lines cost more.
    """

    lines: IntArray
    codes: list[IntArray]
    worth: IntArray
    refuted: bool


def weigh(tables: Tables, view: Standing, guess: Guess, prices: Prices) -> Weighed:
    """Return what prices come to."""
    num = len(tables.ranks)
    codes = [np.empty((num, extent), dtype=np.int64) for extent in tables.extents.tolist()]
    lines = np.empty((len(codes), num), dtype=np.int64)
    for dim, own in enumerate(codes):
        of_each = (prices.of_cell[dim], prices.of_segment[dim], prices.of_whole[dim])
        extent = own.shape[1]
        lines[dim] = cheapest_lines(extent, view, dim, tables.ranks, *of_each, own)
    worth = worths(tables, view, prices.of_cell, prices.of_segment, prices.of_whole)
    return Weighed(lines, codes, worth, bool(too_dear(tables, guess, lines, worth)))


def refutes(tables: Tables, proof: Proof, thresholds: IntArray, guess: Guess | None = None) -> bool:
    """Tell whether a proof rules out thresholds per dimension."""
    guess = guess or no_guess(tables)
    if isinstance(proof, Branch):
        without, more = branches(guess, proof.state)
        return refutes(tables, proof.without, thresholds, without) and refutes(
            tables, proof.more, thresholds, more
        )
    view = standing(tables, thresholds, guess)
    if view is None:
        return True
    return isinstance(proof, Prices) and weigh(tables, view, guess, proof).refuted
