"""Thresholds refuted, or plans that have them: rounds of programs and pricing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.kernels import kernel
from topoplace.placement.tree.exact.doubling.kernels.cuts import cuts
from topoplace.placement.tree.exact.doubling.kernels.pricing import weigh
from topoplace.placement.tree.exact.doubling.kernels.program import (
    add_plan,
    begun,
    duals,
    fitting,
    solve,
    taken,
    weights,
)
from topoplace.placement.tree.exact.doubling.kernels.simplex import OPTIMAL
from topoplace.placement.tree.exact.doubling.kernels.standing import standing
from topoplace.placement.tree.exact.doubling.tables import Cuts

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

REFUTED, MIXED, NEITHER = 0, 1, 2

UNIT = 1 << 16
_LARGEST = 1 << 12
"""Multipliers are kept so small that sums of their products stay within 64 bits."""

_ROOM = 200
"""Plans that a program may get on the way."""

_RECENT = 30
"""For how many programs an inequality that had multipliers is among the first."""

_ZERO = 1e-6


class Pool(NamedTuple):
    """Plans met, and what served.

    Attributes
    ----------
    state, path, used
        Of plans, and when they were used last.
    served
        When the inequality of a step and the key of a state had multipliers last.
    size
        How many plans there are, and how many programs were.
    """

    state: IntArray
    path: IntArray
    used: IntArray
    served: IntArray
    size: IntArray


class Refutation(NamedTuple):
    """Why thresholds are impossible: integer multipliers of what must hold.

    Attributes
    ----------
    shares
        Of the active ranks before every step and at the end.
    step, least, senders, receivers
        Per inequality its step and the least key of its states; multipliers of both sides.
    """

    shares: IntArray
    step: IntArray
    least: IntArray
    senders: IntArray
    receivers: IntArray


class Mix(NamedTuple):
    """Plans with weights: a solution of the program."""

    weight: FloatArray
    state: IntArray
    path: IntArray


class Outcome(NamedTuple):
    """`REFUTED` with multipliers, `MIXED` with plans, or `NEITHER`."""

    verdict: int
    proof: Refutation
    mix: Mix


@kernel()
def _nothing(num_active):
    """Return an outcome to be told apart by its verdict only."""
    none = np.zeros(0, dtype=np.int64)
    proof = Refutation(np.zeros(num_active, dtype=np.int64), none, none, none, none)
    mix = Mix(np.zeros(0), none, np.zeros((0, num_active), dtype=np.int64))
    return Outcome(NEITHER, proof, mix)


@kernel()
def _known(view, pool, most):
    """Return the plans that thresholds leave; if they are more than so many, those used last."""
    num = pool.size[0]
    known = np.flatnonzero(fitting(view, pool.state[:num], pool.path[:num]))
    if len(known) > most:
        known = known[np.argsort(-pool.used[known], kind="mergesort")[:most]]
    return known


@kernel()
def _number(pool, s, path):
    """Return the number of a plan in the pool, a new one if there is room, else -1."""
    num = pool.size[0]
    for j in range(num):
        if pool.state[j] == s and (pool.path[j] == path).all():
            return j
    if num == len(pool.state):
        return -1
    pool.state[num] = s
    pool.path[num] = path
    pool.size[0] += 1
    return num


@kernel()
def _served(tables, pool, rows):
    """Mark the inequalities that had multipliers not long ago."""
    recent = pool.size[1] - _RECENT
    marked = np.zeros(len(rows.step), dtype=np.bool_)
    for r in range(len(rows.step)):
        s = np.argmax(tables.key == rows.least[r])
        marked[r] = pool.served[rows.step[r], s] > recent
    return marked


@kernel()
def _serve(tables, pool, proof):
    """Note which inequalities a proof has."""
    for r in range(len(proof.step)):
        s = np.argmax(tables.key == proof.least[r])
        pool.served[proof.step[r], s] = pool.size[1]


@kernel()
def _some(rows, marked):
    """Return some inequalities."""
    kept = np.flatnonzero(marked)
    return Cuts(rows.step[kept], rows.least[kept], rows.bad[kept], rows.near[kept])


@kernel()
def _mark_broken(tables, view, rows, marked, mix):
    """Mark the inequalities that weighted plans break; return whether there are any."""
    num_active, num_cuts = len(tables.active), len(rows.step)
    total = np.zeros(num_active + 2 * num_cuts + len(tables.multiplicity))
    column = np.empty(len(total))
    for j in range(len(mix.weight)):
        taken(tables, view, rows, mix.state[j], mix.path[j], column)
        total += mix.weight[j] * column
    found = False
    for r in range(num_cuts):
        over = max(
            total[num_active + r] - tables.idle[rows.step[r]], total[num_active + num_cuts + r]
        )
        if not marked[r] and over > _ZERO:
            marked[r] = True
            found = True
    return found


@kernel()
def _decided(tables, pool, view, rows, most):
    """Return what a program over some inequalities decides."""
    nothing = _nothing(len(tables.active))
    known = _known(view, pool, most)
    plan = np.concatenate((known, np.empty(_ROOM, dtype=np.int64)))
    program = begun(tables, view, rows, pool.state[known], pool.path[known], _ROOM)
    while True:
        if solve(program) != OPTIMAL:
            return nothing
        pool.size[1] += 1
        num = program.size[0]
        weight, missing = weights(program)
        there = np.flatnonzero(weight > _ZERO)
        pool.used[plan[there]] = pool.size[1]
        if missing < _ZERO:
            used = plan[there]
            mix = Mix(weight[there], pool.state[used], pool.path[used])
            return Outcome(MIXED, nothing.proof, mix)
        # a proof at any scale
        multipliers = duals(program)
        multipliers *= min(1.0, _LARGEST / np.abs(multipliers).max())
        shares, senders, receivers, refuted, better, paths = weigh(
            tables, view, rows, multipliers, UNIT
        )
        if refuted:
            kept = (senders > 0) | (receivers > 0)
            proof = Refutation(
                shares, rows.step[kept], rows.least[kept], senders[kept], receivers[kept]
            )
            _serve(tables, pool, proof)
            return Outcome(REFUTED, proof, nothing.mix)
        for s in better:
            j = _number(pool, s, paths[s])
            if j < 0 or (plan[:num] == j).any():
                continue
            pool.used[j] = pool.size[1]
            if add_plan(tables, view, rows, program, s, paths[s]):
                plan[program.size[0] - 1] = j
        if program.size[0] == num:
            return nothing


@kernel()
def refute(tables, pool, thresholds, most):
    """Return why thresholds are impossible, or plans that have them.

    Programs begin with so many plans of the pool at most, and the inequalities that served last.
    """
    view = standing(tables, thresholds)
    if view.spare < 0:
        # each rank on a leaf is worth 1: no choice of states has enough
        nothing = _nothing(len(tables.active))
        nothing.proof.shares[-1] = 1
        return Outcome(REFUTED, nothing.proof, nothing.mix)
    rows = cuts(tables, view, thresholds)
    marked = _served(tables, pool, rows)
    while True:
        found = _decided(tables, pool, view, _some(rows, marked), most)
        if found.verdict == NEITHER and not marked.all():
            marked[:] = True  # rounding is no trouble then, mostly
        elif found.verdict != MIXED or not _mark_broken(tables, view, rows, marked, found.mix):
            return found
