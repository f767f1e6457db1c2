"""Which states thresholds leave."""

from __future__ import annotations

import numba
import numpy as np

from topoplace.placement.tree.exact.doubling.tables import Standing


@numba.njit(cache=True, nogil=True)
def _reaches(ranks, active, closed, able, s):
    """Tell whether a state has a trajectory."""
    reach = np.zeros(ranks + 1, dtype=np.bool_)
    reach[0] = True
    reach[1] = True
    for n in range(len(closed)):
        after = np.zeros(ranks + 1, dtype=np.bool_)
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
        reach = after
    return reach[ranks]


@numba.njit(cache=True, nogil=True)
def standing(tables, thresholds):
    """Return which states have a plan under thresholds, and what they do in every step."""
    num_steps, num = len(thresholds), len(tables.ranks)
    alive = np.ones(num, dtype=np.bool_)
    closed = np.zeros((num_steps, num), dtype=np.bool_)
    able = np.zeros((num_steps, num), dtype=np.bool_)
    for n in range(num_steps):
        for s in range(num):
            able[n, s] = tables.inside[s] <= thresholds[n]
    changed = True
    while changed:
        changed = False
        for s in range(num):
            if not alive[s]:
                continue
            nearest = np.int64(1 << 60)
            for other in range(num):
                if alive[other]:
                    nearest = min(nearest, tables.pair[s, other])
            for n in range(num_steps):
                closed[n, s] = nearest > thresholds[n] and tables.idle[n] == 0
        for s in range(num):
            if alive[s] and not _reaches(tables.ranks[s], tables.active, closed, able, s):
                alive[s] = False
                changed = True
    return Standing(alive, closed, able)


@numba.njit(cache=True, nogil=True)
def room(tables, alive):
    """Return how many ranks the states left can hold."""
    most = np.zeros(len(tables.multiplicity), dtype=np.int64)
    for s in range(len(alive)):
        if alive[s]:
            most[tables.leaf_type[s]] = max(most[tables.leaf_type[s]], tables.ranks[s])
    return (most * tables.multiplicity).sum()
