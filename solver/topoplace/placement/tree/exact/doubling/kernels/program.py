"""Programs over plans in a dense tableau, to which plans may be added."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.kernels import kernel
from topoplace.placement.tree.exact.doubling.kernels.simplex import minimised

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_APART = 1e-7
"""By how much right hand sides are made unequal, so that no pivot is without effect."""


class Program(NamedTuple):
    """What least active ranks (and leaves, where none can be empty) plans fall short of.

    Rows are active ranks per step, both sides of the inequalities, leaves per type. The first
    columns are one per row, what is short or left; then what is over of active ranks; then plans.

    Attributes
    ----------
    matrix, costs, sides, basis
        In terms of the basis (`simplex.minimised`).
    short
        Which rows may not fall short.
    first
        The first column of a plan.
    size
        How many plans there are.
    """

    matrix: FloatArray
    costs: FloatArray
    sides: FloatArray
    basis: IntArray
    short: BoolArray
    first: int
    size: IntArray


@kernel()
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


@kernel()
def taken(tables, view, rows, s, path, column):
    """Write what a plan takes of every row."""
    num_active, num_cuts = len(tables.active), len(rows.step)
    column[:] = 0.0
    for n in range(num_active):
        column[n] = path[n]
    for r in range(num_cuts):
        n = rows.step[r]
        a = path[n]
        new = path[n + 1] - a
        if rows.bad[r, s]:
            inside = min(a, new) if view.able[n, s] else 0
            column[num_active + r] = a - inside
            column[num_active + num_cuts + r] = new - inside
        elif rows.near[r, s]:
            column[num_active + r] = -new
            column[num_active + num_cuts + r] = -a
    column[num_active + 2 * num_cuts + tables.leaf_type[s]] = 1.0


@kernel()
def begun(tables, view, rows, states, paths, room):
    """Return a program over some plans, with room for more."""
    num_active, num_cuts = len(tables.active), len(rows.step)
    num_types = len(tables.multiplicity)
    num_rows = num_active + 2 * num_cuts + num_types
    first = num_rows + num_active
    matrix = np.zeros((num_rows, first + len(states) + room))
    costs = np.zeros(first + len(states) + room)
    sides = np.zeros((num_rows, 2))
    short = np.zeros(num_rows, dtype=np.bool_)
    for n in range(num_active):
        short[n] = True
        sides[n, 1] = tables.active[n]
        matrix[n, num_rows + n] = -1.0
        costs[num_rows + n] = 2.0
    for r in range(num_cuts):
        sides[num_active + r, 1] = tables.idle[rows.step[r]]
    for t in range(num_types):
        short[num_rows - num_types + t] = view.full[t]
        sides[num_rows - num_types + t, 1] = tables.multiplicity[t]
    for i in range(num_rows):
        matrix[i, i] = 1.0
        sides[i, 0] = sides[i, 1] + _APART * (1.0 + (i * 0.6180339887498949) % 1.0)
    column = np.empty(num_rows)
    for j in range(len(states)):
        taken(tables, view, rows, states[j], paths[j], column)
        matrix[:, first + j] = column
        for i in range(num_rows):
            if short[i]:
                costs[first + j] -= column[i]
    basis = np.arange(num_rows)
    return Program(matrix, costs, sides, basis, short, first, np.array([len(states)]))


@kernel()
def duals(program):
    """Return the multipliers of the rows."""
    return np.where(program.short, 1.0, 0.0) - program.costs[: len(program.basis)]


@kernel()
def add_plan(tables, view, rows, program, s, path):
    """Add a plan, in terms of the basis; return whether there was room."""
    at = program.first + program.size[0]
    if at == len(program.costs):
        return False
    num_rows = len(program.basis)
    column = np.empty(num_rows)
    taken(tables, view, rows, s, path, column)
    multipliers = duals(program)
    for i in range(num_rows):
        if column[i] != 0.0:
            program.costs[at] -= multipliers[i] * column[i]
            for k in range(num_rows):
                program.matrix[k, at] += program.matrix[k, i] * column[i]
    program.size[0] += 1
    return True


@kernel()
def solve(program):
    """Solve a program from its basis on; return `simplex.OPTIMAL` or `STOPPED`."""
    num = program.first + program.size[0]
    return minimised(program.matrix, program.costs, program.sides, program.basis, num)


@kernel()
def weights(program):
    """Return the weight of every plan, and what is short or over."""
    weight = np.zeros(program.size[0])
    missing = 0.0
    for i in range(len(program.basis)):
        at = program.basis[i]
        if at >= program.first:
            weight[at - program.first] = program.sides[i, 1]
        elif at >= len(program.basis) or program.short[at]:
            missing += program.sides[i, 1]
    return weight, missing
