"""Thresholds refuted, or plans that have them: rounds of programs and pricing."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.doubling.kernels.cuts import cuts
from topoplace.placement.tree.exact.doubling.kernels.pricing import weigh
from topoplace.placement.tree.exact.doubling.kernels.program import fitting, solved
from topoplace.placement.tree.exact.doubling.kernels.standing import standing

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

REFUTED, MIXED, NEITHER = 0, 1, 2

UNIT = 1 << 16
_LARGEST = 1 << 12
"""Multipliers are kept so small that sums of their products stay within 64 bits."""

_MOST_ROUNDS = 60
_ZERO = 1e-6


class Pool(NamedTuple):
    """Plans met: state, path and when last used; how many there are and how many programs were."""

    state: IntArray
    path: IntArray
    used: IntArray
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


class Outcome(NamedTuple):
    """`REFUTED` with multipliers, `MIXED` with weights of plans by number, or `NEITHER`."""

    verdict: int
    proof: Refutation
    weight: FloatArray
    plan: IntArray


@numba.njit(cache=True, nogil=True)
def _nothing(num_active):
    """Return an outcome to be told apart by its verdict only."""
    none = np.zeros(0, dtype=np.int64)
    proof = Refutation(np.zeros(num_active, dtype=np.int64), none, none, none, none)
    return Outcome(NEITHER, proof, np.zeros(0), none)


@numba.njit(cache=True, nogil=True)
def _known(view, pool, most):
    """Return the plans that thresholds leave; if they are more than so many, those used last."""
    num = pool.size[0]
    known = np.flatnonzero(fitting(view, pool.state[:num], pool.path[:num]))
    if len(known) > most:
        known = known[np.argsort(-pool.used[known], kind="mergesort")[:most]]
    return known


@numba.njit(cache=True, nogil=True)
def _add(pool, states, paths, known):
    """Add plans, or let known ones come next; return whether any was not in a program."""
    new = False
    for s in states:
        found = -1
        for j in range(pool.size[0]):
            if pool.state[j] == s and (pool.path[j] == paths[s]).all():
                found = j
                break
        if found < 0:
            if pool.size[0] == len(pool.state):
                continue
            found = pool.size[0]
            pool.state[found] = s
            pool.path[found] = paths[s]
            pool.size[0] += 1
            new = True
        elif not (known == found).any():
            new = True
        pool.used[found] = pool.size[1]
    return new


@numba.njit(cache=True, nogil=True)
def refute(tables, pool, thresholds, most):
    """Return why thresholds are impossible, or plans that have them.

    Programs begin with so many plans of the pool at most.
    """
    num_active = len(tables.active)
    view = standing(tables, thresholds)
    outcome = _nothing(num_active)
    if view.spare < 0:
        # each rank on a leaf is worth 1: no choice of states has enough
        outcome.proof.shares[-1] = 1
        return Outcome(REFUTED, outcome.proof, outcome.weight, outcome.plan)
    rows = cuts(tables, view, thresholds)
    for _ in range(_MOST_ROUNDS):
        known = _known(view, pool, most)
        found = solved(tables, view, rows, pool.state[known], pool.path[known])
        pool.size[1] += 1
        if not found.certain:
            return outcome
        there = found.weight > _ZERO
        pool.used[known[there]] = pool.size[1]
        if found.short < _ZERO:
            return Outcome(MIXED, outcome.proof, found.weight[there], known[there])
        # a proof at any scale
        duals = found.duals * min(1.0, _LARGEST / np.abs(found.duals).max())
        shares, senders, receivers, refuted, better, paths = weigh(tables, view, rows, duals, UNIT)
        if refuted:
            kept = (senders > 0) | (receivers > 0)
            proof = Refutation(
                shares, rows.step[kept], rows.least[kept], senders[kept], receivers[kept]
            )
            return Outcome(REFUTED, proof, outcome.weight, outcome.plan)
        if not _add(pool, better, paths, known):
            return outcome
    return outcome
