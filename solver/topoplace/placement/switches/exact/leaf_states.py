"""The states of leaves that thresholds leave, for all patterns except binomial trees.

Given a threshold per step, a leaf keeps inside all steps whose threshold is below its cheapest
crossing, and takes no part in those below its own inside hops. That leaves few numbers of ranks
(docs/proofs/tree.md, "Relaxation").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace.placement.switches.exact.job import NEVER, Family, Job, reachable
from topoplace.placement.switches.exact.thresholds import Empty, Guess, Leaf, Mix, Oracle
from topoplace.types import BoolArray, FloatArray, IntArray

_UNIT, _LARGEST = 1 << 16, 1 << 12
"""Multipliers are whole numbers of 1 / `_UNIT`, and no larger than sums of 64 bits allow."""


class Standing(NamedTuple):
    """What thresholds leave.

    Attributes
    ----------
    alive
        Which states are left.
    able, keeps
        Per step, whether a state may have neighbours inside, and whether it has all its
        neighbours inside; shape ``(num_steps, num_states)``.
    pairs
        Per step, which states may be neighbours; shape ``(num_steps, num_states, num_states)``.
    """

    alive: BoolArray
    able: BoolArray
    keeps: BoolArray
    pairs: BoolArray


def standing(job: Job, thresholds: IntArray, guess: Guess) -> Standing | None:
    """Return what thresholds per step leave, None if that cannot hold all ranks."""
    found = _left(job, thresholds, guess)
    if found is None:
        return None
    alive, keeps, near = found
    crosses = alive & ~keeps
    pairs = job.states.pair <= thresholds[:, None, None]
    for rows in (near, crosses[:, :, None], crosses[:, None]):
        pairs &= rows
    return Standing(alive, job.states.inside <= thresholds[:, None], keeps, pairs)


def _left(
    job: Job, thresholds: IntArray, guess: Guess
) -> tuple[BoolArray, BoolArray, BoolArray] | None:
    """Return which states are left, which steps they keep, and which find room together."""
    states = job.states
    free = states.multiplicity.copy()
    np.subtract.at(free, states.leaf_type, guess.forced)
    if free.min() < 0:
        return None
    held = guess.forced > 0
    more = ~guess.done & (free > 0)[states.leaf_type]
    absent = states.inside > thresholds[:, None]
    alive = held | more
    while True:
        # a state may be smaller than others only as long as all ranks fit
        most = np.zeros(len(free), dtype=np.int64)
        there = alive & more
        np.maximum.at(most, states.leaf_type[there], states.ranks[there])
        spare = int(free @ most + guess.forced @ states.ranks) - job.ranks
        if spare < 0 or (held & ~alive).any():
            return None
        short = np.where(held, 0, most[states.leaf_type] - states.ranks)
        left = alive & (short <= spare)
        near = left & (short[:, None] + short <= spare)
        cheapest = np.where(near, states.pair, NEVER).min(axis=1)
        keeps = left & (cheapest > thresholds[:, None])
        for family in job.families:
            left = left & _fitting(family, states.ranks, keeps, keeps & absent)
        if (left == alive).all():
            return alive, keeps, near
        alive = left


def _fitting(family: Family, ranks: IntArray, keeps: BoolArray, absent: BoolArray) -> BoolArray:
    """Mark the states that some ranks can have which keep some steps and are absent from others."""
    bits = 1 << np.arange(family.num_dims)
    steps = list(family.steps)
    number = (bits @ keeps[steps] << family.num_dims) + bits @ absent[steps]
    fits = np.ones(len(ranks), dtype=bool)
    for code in np.unique(number).tolist():
        own = number == code
        kept, gone = divmod(code, 1 << family.num_dims)
        fits[own] = reachable(family, kept, gone)[ranks[own]]
    return fits


class StateOracle(Oracle):
    """Counts the ranks that the states left can hold."""

    decide_programs = 1
    lift_programs = 1

    def __init__(self, job: Job) -> None:
        self._job = job
        self.ranks = job.states.ranks

    def solve(self, thresholds: IntArray, guess: Guess, deadline: float) -> Leaf | Mix | None:
        """Return that thresholds are impossible, or that this is not known."""
        return Empty() if _left(self._job, thresholds, guess) is None else Mix(None, thresholds)

    def holds(self, leaf: Leaf, thresholds: IntArray, guess: Guess) -> bool:
        """Tell whether thresholds are impossible."""
        return _left(self._job, thresholds, guess) is None


# ---- Programs over states ------------------------------------------------------------------------


def solved(
    matrix: sp.csr_matrix, objective: FloatArray, lower: FloatArray, upper: FloatArray
) -> Any:
    """Return the solved program of the least objective, no variable below 0; None if it is not."""
    num = len(objective)
    helper: Any = mbh.ModelBuilderHelper()  # its stub names no array type that exists
    helper.fill_model_from_sparse_data(
        np.zeros(num), np.full(num, np.inf), objective, lower, upper, matrix
    )
    program = mbh.ModelSolverHelper("glop")
    program.set_solver_specific_parameters("use_preprocessing: false use_scaling: false")
    program.solve(helper)
    return program if program.status() == mbh.SolveStatus.OPTIMAL else None


def whole(multipliers: FloatArray) -> IntArray:
    """Return multipliers in whole numbers; a proof is one at any scale."""
    scale = _UNIT * min(1.0, _LARGEST / max(1.0, np.abs(multipliers).max(initial=0.0)))
    found: IntArray = np.rint(multipliers * scale).astype(np.int64)
    return found
