"""The program over plans as a sparse matrix."""

from __future__ import annotations

import numba
import numpy as np


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
def program_of(tables, view, rows, state, path):
    """Return the program over some plans and shortfalls: least, most, objective, rows.

    Rows, compressed: active ranks per step, both sides of the inequalities, leaves per type.
    Columns: plans, missing active ranks per step, surplus active ranks per step, missing leaves
    per type (where none can be without ranks).
    """
    num_steps, num_cuts, num = len(tables.idle), len(rows.step), len(state)
    num_types = len(tables.multiplicity)
    num_rows = num_steps + 1 + 2 * num_cuts + num_types
    most = num_rows * num + 2 * (num_steps + 1) + num_types
    data = np.empty(most)
    column = np.empty(most, dtype=np.int32)
    first = np.zeros(num_rows + 1, dtype=np.int32)
    used = 0
    for n in range(num_steps + 1):
        for j in range(num):
            if path[j, n]:
                data[used] = path[j, n]
                column[used] = j
                used += 1
        for side in range(2):
            data[used] = 1.0 - 2.0 * side
            column[used] = num + side * (num_steps + 1) + n
            used += 1
        first[n + 1] = used
    at = num_steps + 1
    for side in range(2):
        for r in range(num_cuts):
            n = rows.step[r]
            for j in range(num):
                s = state[j]
                a = path[j, n]
                new = path[j, n + 1] - a
                if side:
                    a, new = new, a
                found = 0
                if rows.bad[r, s]:
                    found = a
                    if view.able[n, s]:
                        found -= min(a, new)
                elif rows.near[r, s]:
                    found = -new
                if found:
                    data[used] = found
                    column[used] = j
                    used += 1
            at += 1
            first[at] = used
    missing = num + 2 * (num_steps + 1)
    for t in range(num_types):
        for j in range(num):
            if tables.leaf_type[state[j]] == t:
                data[used] = 1.0
                column[used] = j
                used += 1
        if view.full[t]:
            data[used] = 1.0
            column[used] = missing + t
            used += 1
        at += 1
        first[at] = used
    upper = np.zeros(num_rows)
    upper[: num_steps + 1] = tables.active
    for r in range(num_cuts):
        upper[num_steps + 1 + r] = tables.idle[rows.step[r]]
    upper[num_rows - num_types :] = tables.multiplicity
    lower = upper.copy()
    lower[num_steps + 1 :] = -np.inf
    for t in range(num_types):
        if view.full[t]:
            lower[num_rows - num_types + t] = tables.multiplicity[t]
    objective = np.zeros(missing + num_types)
    objective[num:] = 1.0
    return lower, upper, objective, (data[:used], column[:used], first)
