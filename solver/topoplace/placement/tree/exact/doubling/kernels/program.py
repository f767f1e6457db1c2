"""The program over plans, solved."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.doubling.kernels.simplex import OPTIMAL, minimised

FloatArray = NDArray[np.float64]

_APART = 1e-7
"""By how much right hand sides are made unequal, so that no pivot is without effect."""


class Solution(NamedTuple):
    """Weights of plans, multipliers of the rows, what is short; whether that is the optimum."""

    weight: FloatArray
    duals: FloatArray
    short: float
    certain: bool


@numba.njit(cache=True, nogil=True)
def fitting(view, state, path):
    """Mark the plans that the thresholds leave."""
    fits = np.ones(len(state), dtype=np.bool_)
    for j in range(len(state)):
        s = state[j]
        if not view.alive[s]:
            fits[j] = False
            continue
        for n in range(len(view.closed)):
            if view.closed[n, s]:
                a = path[j, n]
                if path[j, n + 1] != 2 * a or (a > 0 and not view.able[n, s]):
                    fits[j] = False
                    break
    return fits


@numba.njit(cache=True, nogil=True)
def _write_rows(tables, view, rows, state, path, matrix):
    """Write what plans take: active ranks per step, both sides of the inequalities, leaves."""
    num_active, num_cuts = len(tables.active), len(rows.step)
    for j in range(len(state)):
        s = state[j]
        for n in range(num_active):
            matrix[n, j] = path[j, n]
        for r in range(num_cuts):
            n = rows.step[r]
            a = path[j, n]
            new = path[j, n + 1] - a
            if rows.bad[r, s]:
                inside = min(a, new) if view.able[n, s] else 0
                matrix[num_active + r, j] = a - inside
                matrix[num_active + num_cuts + r, j] = new - inside
            elif rows.near[r, s]:
                matrix[num_active + r, j] = -new
                matrix[num_active + num_cuts + r, j] = -a
        matrix[num_active + 2 * num_cuts + tables.leaf_type[s], j] = 1.0


@numba.njit(cache=True, nogil=True)
def solved(tables, view, rows, state, path):
    """Return what least active ranks (and leaves, where none can be empty) plans fall short of.

    Duals are those of active ranks per step, both sides of the inequalities, leaves per type.
    """
    num_active, num_cuts, num = len(tables.active), len(rows.step), len(state)
    num_types = len(tables.multiplicity)
    num_rows = num_active + 2 * num_cuts + num_types
    # a column per plan; one per row: what is short of it, or what is left; what is over
    matrix = np.zeros((num_rows, num + num_rows + num_active))
    _write_rows(tables, view, rows, state, path, matrix)
    sides = np.zeros((num_rows, 2))
    costs = np.zeros(num + num_rows + num_active)
    basis = np.empty(num_rows, dtype=np.int64)
    short = np.zeros(num_rows, dtype=np.bool_)
    for i in range(num_rows):
        matrix[i, num + i] = 1.0
        basis[i] = num + i
        if i < num_active:
            short[i] = True
            matrix[i, num + num_rows + i] = -1.0
            costs[num + num_rows + i] = 2.0
            sides[i, 1] = tables.active[i]
        elif i >= num_rows - num_types:
            t = i - (num_rows - num_types)
            short[i] = view.full[t]
            sides[i, 1] = tables.multiplicity[t]
        elif i < num_active + num_cuts:
            sides[i, 1] = tables.idle[rows.step[i - num_active]]
        sides[i, 0] = sides[i, 1] + _APART * (1.0 + (i * 0.6180339887498949) % 1.0)
        if short[i]:
            for j in range(num):
                costs[j] -= matrix[i, j]
    certain = minimised(matrix, costs, sides, basis) == OPTIMAL
    weight = np.zeros(num)
    missing = 0.0
    for i in range(num_rows):
        if basis[i] < num:
            weight[basis[i]] = sides[i, 1]
        elif basis[i] >= num + num_rows or short[basis[i] - num]:
            missing += sides[i, 1]
    duals = np.where(short, 1.0, 0.0) - costs[num : num + num_rows]
    return Solution(weight, duals, missing, certain)
