"""The best plan of every state at given multipliers."""

from __future__ import annotations

import numba
import numpy as np

NOTHING = -(1 << 60)
"""Value of a state that no plan reaches."""


@numba.njit(cache=True, nogil=True)
def price(tables, view, rows, shares, senders, receivers, paths):
    """Return, per state, the largest value of a plan; write its trajectory to `paths`.

    Parameters
    ----------
    shares
        Value of an active rank, per step and at the end.
    senders, receivers
        Multipliers of both sides of the inequalities, none below 0.
    """
    num, num_steps = len(tables.ranks), len(tables.idle)
    value = np.full(num, NOTHING, dtype=np.int64)
    of_active = np.empty(num_steps + 1, dtype=np.int64)
    of_new = np.empty(num_steps, dtype=np.int64)
    of_inside = np.empty(num_steps, dtype=np.int64)
    top = tables.ranks.max() + 1
    best = np.empty((num_steps + 1, top), dtype=np.int64)
    came = np.empty((num_steps + 1, top), dtype=np.int64)
    for s in range(num):
        if not view.alive[s]:
            continue
        of_active[:] = shares
        of_new[:] = 0
        of_inside[:] = 0
        for r in range(len(rows.step)):
            n = rows.step[r]
            if rows.bad[r, s]:
                of_active[n] -= senders[r]
                of_new[n] -= receivers[r]
                of_inside[n] += senders[r] + receivers[r]
            elif rows.near[r, s]:
                of_active[n] += receivers[r]
                of_new[n] += senders[r]
        ranks = tables.ranks[s]
        best[:, : ranks + 1] = NOTHING
        best[0, 0] = 0
        best[0, 1] = of_active[0]
        for n in range(num_steps):
            inside = of_inside[n] if view.able[n, s] else 0
            highest = min(ranks, tables.active[n + 1])
            for a in range(min(ranks, tables.active[n]) + 1):
                so_far = best[n, a]
                if so_far == NOTHING:
                    continue
                low, high = a, highest
                if view.closed[n, s]:
                    if 2 * a > highest or (a > 0 and not view.able[n, s]):
                        continue
                    low = high = 2 * a
                for after in range(low, high + 1):
                    new = after - a
                    found = so_far + of_new[n] * new + of_active[n + 1] * after
                    found += inside * min(a, new)
                    if found > best[n + 1, after]:
                        best[n + 1, after] = found
                        came[n + 1, after] = a
        value[s] = best[num_steps, ranks]
        if value[s] > NOTHING:
            at = ranks
            for n in range(num_steps, -1, -1):
                paths[s, n] = at
                if n:
                    at = came[n, at]
    return value


@numba.njit(cache=True, nogil=True)
def refutes(tables, view, rows, shares, senders, value):
    """Tell whether the best plans together are worth too little, given multipliers."""
    wanted = 0
    for n in range(len(shares)):
        wanted += shares[n] * tables.active[n]
    for r in range(len(senders)):
        wanted -= senders[r] * tables.idle[rows.step[r]]
    best = np.where(view.full, NOTHING, 0)
    for s in range(len(value)):
        best[tables.leaf_type[s]] = max(best[tables.leaf_type[s]], value[s])
    for t in range(len(best)):
        wanted -= best[t] * tables.multiplicity[t]
    return wanted > 0


@numba.njit(cache=True, nogil=True)
def weigh(tables, view, rows, duals, unit):
    """Return multipliers rounded to integers, whether they refute, plans worth more than known.

    Returns
    -------
    shares, senders, receivers
        Multipliers in units of 1 / `unit`.
    refuted
        Whether no plans have the thresholds.
    better, paths
        States with a plan that the program wants, and the best trajectory of every state.
    """
    num_active, num_cuts = len(tables.active), len(rows.step)
    scaled = np.empty(len(duals), dtype=np.int64)
    for i in range(len(duals)):
        scaled[i] = np.int64(np.rint(duals[i] * unit))
        if i >= num_active:
            scaled[i] = -scaled[i]
            if i < num_active + 2 * num_cuts:
                scaled[i] = max(0, scaled[i])
    shares = scaled[:num_active]
    senders = scaled[num_active : num_active + num_cuts]
    receivers = scaled[num_active + num_cuts : num_active + 2 * num_cuts]
    paths = np.zeros((len(tables.ranks), num_active), dtype=np.int64)
    value = price(tables, view, rows, shares, senders, receivers, paths)
    of_type = scaled[num_active + 2 * num_cuts :]
    better = np.zeros(len(value), dtype=np.bool_)
    for s in range(len(value)):
        better[s] = value[s] > of_type[tables.leaf_type[s]] + 2
    refuted = refutes(tables, view, rows, shares, senders, value)
    return shares, senders, receivers, refuted, np.flatnonzero(better), paths
