"""Which states thresholds leave."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.tree.exact.doubling.tables import Standing


@kernel()
def shortfalls(tables, alive):
    """Return ranks fewer than the most on a leaf, per state, and how many all leaves may lack.

    A leaf of a type without states left lacks nothing.

    Returns
    -------
    short
        Per state; of use where it is alive.
    most
        The most ranks on a leaf of every type.
    spare
        Sum of the most over all leaves without the ranks of the job: below 0, they do not fit.
    """
    most = np.zeros(len(tables.multiplicity), dtype=np.int64)
    for s in range(len(alive)):
        if alive[s]:
            most[tables.leaf_type[s]] = max(most[tables.leaf_type[s]], tables.ranks[s])
    spare = (most * tables.multiplicity).sum() - tables.active[-1]
    return most[tables.leaf_type] - tables.ranks, most, spare


@kernel()
def nearest(tables, alive, short, spare, s):
    """Return the least hops of a state to one on another leaf; they grow with its ranks."""
    found = np.int64(1 << 60)
    for t in range(len(tables.multiplicity)):
        for other in range(tables.first[t], tables.first[t + 1]):
            if alive[other] and short[s] + short[other] <= spare:
                found = min(found, tables.pair[s, other])
                break
    return found


@kernel()
def _reaches(ranks, active, closed, able, s):
    """Tell whether a state has a trajectory."""
    reach = np.zeros(ranks + 1, dtype=np.bool_)
    after = np.zeros(ranks + 1, dtype=np.bool_)
    reach[0] = True
    reach[1] = True
    for n in range(len(closed)):
        after[:] = False
        if closed[n, s]:
            after[0] = reach[0]
            if able[n, s]:
                for a in range(1, ranks // 2 + 1):
                    after[2 * a] = reach[a]
        else:
            lowest = 0
            while lowest <= ranks and not reach[lowest]:
                lowest += 1
            after[lowest:] = True
        for a in range(min(ranks, active[n + 1]) + 1, ranks + 1):
            after[a] = False
        reach, after = after, reach
    return reach[ranks]


@kernel()
def standing(tables, thresholds):
    """Return which states have a plan under thresholds, and what they do in every step."""
    num_steps, num = len(thresholds), len(tables.ranks)
    alive = np.ones(num, dtype=np.bool_)
    closed = np.zeros((num_steps, num), dtype=np.bool_)
    able = np.zeros((num_steps, num), dtype=np.bool_)
    for n in range(num_steps):
        for s in range(num):
            able[n, s] = tables.inside[s] <= thresholds[n]
    while True:
        short, most, spare = shortfalls(tables, alive)
        changed = False
        for s in range(num):
            if alive[s] and short[s] > spare:
                alive[s] = False
                changed = True
        if changed:
            continue
        for s in range(num):
            if not alive[s]:
                continue
            least = nearest(tables, alive, short, spare, s)
            crosses = True
            for n in range(num_steps):
                closed[n, s] = least > thresholds[n] and tables.idle[n] == 0
                crosses &= not closed[n, s]
            if not crosses and not _reaches(tables.ranks[s], tables.active, closed, able, s):
                alive[s] = False
                changed = True
        if not changed:
            return Standing(alive, closed, able, short, spare, tables.held | (most > spare))
