"""What states that pair badly need of others."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.tree.exact.doubling.tables import Cuts


@kernel()
def cut(tables, alive, short, spare, threshold, least, bad, near):
    """Write the states left from a key on that cannot pair with each other, and their partners."""
    num = len(alive)
    near[:] = False
    for s in range(num):
        if alive[s] and tables.key[s] >= least:
            for other in range(num):
                if (
                    alive[other]
                    and not near[other]
                    and tables.pair[s, other] <= threshold
                    and short[s] + short[other] <= spare
                ):
                    near[other] = True
    for s in range(num):
        bad[s] = alive[s] and tables.key[s] >= least and not near[s]


@kernel()
def cuts(tables, view, thresholds):
    """Return the inequalities of all steps, for every set of partners that of most bad states."""
    num = len(view.alive)
    keys = np.unique(tables.key[view.alive])
    num_steps = len(thresholds)
    most = num_steps * len(keys)
    step = np.empty(most, dtype=np.int64)
    lowest = np.empty(most, dtype=np.int64)
    bad = np.empty((most, num), dtype=np.bool_)
    near = np.empty((most, num), dtype=np.bool_)
    found = 0
    for n in range(num_steps):
        begin = found
        for key in keys:
            if key <= thresholds[n]:
                continue
            cut(
                tables,
                view.alive,
                view.short,
                view.spare,
                thresholds[n],
                key,
                bad[found],
                near[found],
            )
            useful = False
            for s in range(num):
                if bad[found, s] and not view.closed[n, s]:
                    useful = True
            if found > begin and (near[found] == near[found - 1]).all():
                useful = False
            if useful:
                step[found] = n
                lowest[found] = key
                found += 1
    return Cuts(step[:found], lowest[:found], bad[:found], near[:found])


@kernel()
def named_cuts(tables, view, thresholds, step, least):
    """Return the inequalities of given steps and keys."""
    bad = np.empty((len(step), len(view.alive)), dtype=np.bool_)
    near = np.empty((len(step), len(view.alive)), dtype=np.bool_)
    rows = Cuts(step, least, bad, near)
    renew(tables, view, thresholds, rows, -1)
    return rows


@kernel()
def renew(tables, view, thresholds, rows, only):
    """Write the states of inequalities anew, those of one step only or, if that is -1, of all."""
    for r in range(len(rows.step)):
        n = rows.step[r]
        if only in (-1, n):
            cut(
                tables,
                view.alive,
                view.short,
                view.spare,
                thresholds[n],
                rows.least[r],
                rows.bad[r],
                rows.near[r],
            )
