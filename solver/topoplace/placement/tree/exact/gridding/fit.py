"""A grid on leaves at given thresholds, with counts given or free."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.gridding.board import SETTLED, Board
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]

_MOVES_PER_PART = 1000


def fit_grid(
    job: Job,
    thresholds: IntArray,
    deadline: float,
    seed: int,
    counts: IntArray | None = None,
) -> IntArray | None:
    """Return the leaf of every rank of a grid with no step above its threshold, if one is found.

    Parameters
    ----------
    thresholds
        Per step of the job, in units of 1 / `job.scale`.
    counts
        Ranks per leaf, shape ``(num_leaves,)``; None if any will do.
    """
    family = job.families[0]
    at = thresholds[list(family.steps)]
    kept = frozenset(np.flatnonzero(at < job.states.crossing.min()).tolist())
    if len(kept) == family.num_dims:
        return None
    board = Board(job, kept)
    start = _start(board, counts)
    if start is None:
        return None
    inside = [thresholds[step] / job.scale for step in board.inside]
    limit = np.array([*(thresholds[list(board.crossing)] / job.scale), min(inside, default=np.inf)])
    for turn in itertools.count():
        # longer each time: short runs find most fits, what they miss wants slow cooling
        moves = _MOVES_PER_PART * len(start) << turn
        weight, leaf = board.settled(start, limit, moves, seed + turn, shifts=counts is None)
        if weight < SETTLED:
            return board.leaves(leaf)
        if clock.now() > deadline:
            break
    return None


def _start(board: Board, counts: IntArray | None) -> IntArray | None:
    """Return the leaf of every part to start from, a number of the board's domain."""
    if counts is None:
        leaf = board.parts.spread()
        return None if leaf is None else np.searchsorted(board.domain, leaf)
    own = counts[board.domain]
    if (own % board.unit).any() or int(own.sum()) < board.job.ranks:
        return None
    found: IntArray = np.repeat(np.arange(len(own)), own // board.unit)
    return found
