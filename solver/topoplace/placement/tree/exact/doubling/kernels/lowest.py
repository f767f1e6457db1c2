"""The least thresholds that weighted plans can have."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.tree.exact.doubling.kernels.cuts import cut
from topoplace.placement.tree.exact.doubling.kernels.standing import nearest, shortfalls


@kernel()
def _serves(tables, weight, state, path, n, threshold):
    """Tell whether weighted plans can have their step at most at a threshold."""
    num = len(tables.ranks)
    alive = np.zeros(num, dtype=np.bool_)
    alive[state] = True
    short, _, spare = shortfalls(tables, alive)
    for j in range(len(state)):
        s = state[j]
        if short[s] > spare:
            return False
        if tables.idle[n] == 0 and nearest(tables, alive, short, spare, s) > threshold:
            a = path[j, n]
            if path[j, n + 1] != 2 * a or (a > 0 and tables.inside[s] > threshold):
                return False
    bad = np.empty(num, dtype=np.bool_)
    near = np.empty(num, dtype=np.bool_)
    for key in np.unique(tables.key[state]):
        if key <= threshold:
            continue
        cut(tables, alive, short, spare, threshold, key, bad, near)
        sent, received = -1e-6 - tables.idle[n], -1e-6
        for j in range(len(state)):
            s = state[j]
            a = path[j, n]
            new = path[j, n + 1] - a
            if bad[s]:
                inside = min(a, new) if tables.inside[s] <= threshold else 0
                sent += weight[j] * (a - inside)
                received += weight[j] * (new - inside)
            elif near[s]:
                sent -= weight[j] * new
                received -= weight[j] * a
        if sent > 0 or received > 0:
            return False
    return True


@kernel()
def lowest(tables, values, at, weight, state, path):
    """Return the least values, by number and up to some, that weighted plans can have."""
    found = at.copy()
    for n in range(len(at)):
        bottom = 0
        while bottom < found[n]:
            middle = (bottom + found[n]) // 2
            if _serves(tables, weight, state, path, n, values[middle]):
                found[n] = middle
            else:
                bottom = middle + 1
    return found
