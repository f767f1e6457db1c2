"""The best plan of every state at given multipliers."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

NOTHING = -(1 << 60)
"""Value of a state that no plan reaches."""


@kernel()
def _best_plan(tables, view, rows, shares, senders, receivers, s, best, came):
    """Return the largest value of a plan of a state, its active ranks' origins in `came`."""
    num_steps = len(tables.idle)
    of_active = shares.copy()
    of_new = np.zeros(num_steps, dtype=np.int64)
    of_inside = np.zeros(num_steps, dtype=np.int64)
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
    return best[num_steps, ranks]


@kernel()
def _room(tables):
    """Return tables to find a plan with."""
    shape = len(tables.active), tables.ranks.max() + 1
    return np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)


@kernel()
def price(tables, view, rows, shares, senders, receivers):
    """Return, per state, the largest value of a plan, and its trajectory.

    Parameters
    ----------
    shares
        Value of an active rank, per step and at the end.
    senders, receivers
        Multipliers of both sides of the inequalities, none below 0.
    """
    best, came = _room(tables)
    value = np.full(len(tables.ranks), NOTHING, dtype=np.int64)
    paths = np.zeros((len(value), len(shares)), dtype=np.int64)
    for s in range(len(value)):
        if not view.alive[s]:
            continue
        value[s] = _best_plan(tables, view, rows, shares, senders, receivers, s, best, came)
        if value[s] > NOTHING:
            at = tables.ranks[s]
            for n in range(len(shares) - 1, -1, -1):
                paths[s, n] = at
                if n:
                    at = came[n, at]
    return value, paths


@kernel()
def _wanted(tables, rows, shares, senders):
    """Return what all plans together have to be worth at least."""
    wanted = (shares * tables.active).sum()
    for r in range(len(senders)):
        wanted -= senders[r] * tables.idle[rows.step[r]]
    return wanted


@kernel()
def _refutes(tables, view, rows, shares, senders, value):
    """Tell whether the best plans together are worth too little, given multipliers."""
    best = np.where(view.full, NOTHING, 0)
    for s in range(len(value)):
        best[tables.leaf_type[s]] = max(best[tables.leaf_type[s]], value[s])
    return _wanted(tables, rows, shares, senders) > (best * tables.multiplicity).sum()


@kernel()
def refutes(tables, view, rows, shares, senders, receivers, hint):
    """Tell whether multipliers rule out what thresholds leave.

    `hint` has the state to begin with, and in the end the last one seen: where multipliers fail,
    they often fail at the same state.
    """
    room = np.zeros(len(view.full), dtype=np.int64)
    unseen = view.full.copy()
    lack = _wanted(tables, rows, shares, senders)
    best, came = _room(tables)
    first = hint[0]
    for turn in range(len(tables.ranks) + 1):
        s = first if turn == 0 else turn - 1
        if not view.alive[s] or (turn and s == first):
            continue
        value = _best_plan(tables, view, rows, shares, senders, receivers, s, best, came)
        t = tables.leaf_type[s]
        if value > NOTHING and (unseen[t] or value > room[t]):
            lack -= (value - room[t]) * tables.multiplicity[t]
            room[t] = value
            unseen[t] = False
        hint[0] = s
        if lack <= 0 and not unseen.any():
            return False
    return True


@kernel()
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
    value, paths = price(tables, view, rows, shares, senders, receivers)
    of_type = scaled[num_active + 2 * num_cuts :]
    better = np.zeros(len(value), dtype=np.bool_)
    for s in range(len(value)):
        better[s] = value[s] > of_type[tables.leaf_type[s]] + 2
    refuted = _refutes(tables, view, rows, shares, senders, value)
    return shares, senders, receivers, refuted, np.flatnonzero(better), paths
