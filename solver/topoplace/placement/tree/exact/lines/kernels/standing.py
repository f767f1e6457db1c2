"""What thresholds leave of the states of a grid's leaves."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def stand(tables, thresholds, forced, done):
    """Return which states are left, what they do per dimension, and which pairs may be neighbours.

    A leaf may only have so many ranks fewer than it could that all ranks find room; neighbours
    may only together. A state without a neighbour has whole lines of the dimension.

    Parameters
    ----------
    thresholds
        Hops per dimension.
    forced, done
        Per state, leaves that are in it, and whether those are all.

    Returns
    -------
    left
        Whether leaves can hold all ranks.
    alive
        Per state.
    able, keeps
        Per dimension and state.
    pairs
        Per dimension and two states.
    """
    num, num_dims = len(tables.ranks), len(thresholds)
    alive = np.ones(num, dtype=np.bool_)
    able = np.zeros((num_dims, num), dtype=np.bool_)
    keeps = np.zeros((num_dims, num), dtype=np.bool_)
    pairs = np.zeros((num_dims, num, num), dtype=np.bool_)
    for d in range(num_dims):
        for s in range(num):
            able[d, s] = tables.inside[s] <= thresholds[d]
    free = tables.multiplicity.copy()
    for s in range(num):
        free[tables.leaf_type[s]] -= forced[s]
    if free.min() < 0:
        return False, alive, able, keeps, pairs
    room = np.empty(num, dtype=np.int64)
    most = np.empty(len(free), dtype=np.int64)
    while True:
        most[:] = 0
        spare = -tables.cells
        for s in range(num):
            t = tables.leaf_type[s]
            spare += forced[s] * tables.ranks[s]
            if alive[s] and not done[s] and free[t] > 0:
                most[t] = max(most[t], tables.ranks[s])
            if forced[s] > 0 and not alive[s]:
                return False, alive, able, keeps, pairs
        for t in range(len(free)):
            spare += free[t] * most[t]
        if spare < 0:
            return False, alive, able, keeps, pairs
        changed = False
        for s in range(num):
            if not alive[s]:
                continue
            t = tables.leaf_type[s]
            if forced[s] > 0:
                room[s] = spare
            elif done[s] or free[t] == 0:
                room[s] = -1
            else:
                room[s] = spare - most[t] + tables.ranks[s]
            if room[s] < 0:
                alive[s] = False
                changed = True
        for s in range(num):
            if not alive[s]:
                continue
            whole = 1
            for d in range(num_dims):
                keeps[d, s] = True
                for o in range(num):
                    if (
                        alive[o]
                        and tables.pair[s, o] <= thresholds[d]
                        and room[s] + room[o] >= spare
                    ):
                        keeps[d, s] = False
                        break
                if keeps[d, s]:
                    whole *= tables.extents[d]
                    if not able[d, s]:
                        whole = tables.cells + 1
            if tables.ranks[s] % whole:
                alive[s] = False
                changed = True
        if not changed:
            break
    for d in range(num_dims):
        for s in range(num):
            if not alive[s]:
                keeps[d, s] = False
                continue
            for o in range(num):
                pairs[d, s, o] = (
                    alive[o]
                    and not keeps[d, s]
                    and not keeps[d, o]
                    and tables.pair[s, o] <= thresholds[d]
                    and room[s] + room[o] >= spare
                )
    return True, alive, able, keeps, pairs
