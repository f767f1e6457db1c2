"""Compiled loops of grids: the cheapest lines, and the values of leaves."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.switches.exact.job import NEVER, NOTHING


@kernel()
def cheapest_lines(extent, view, dim, ranks, of_cell, of_segment, codes):
    """Return, per state, the least cost of a line whose last segment is of a leaf in that state.

    A line is cut into segments of leaves that `view` allows as neighbours.

    Parameters
    ----------
    of_cell, of_segment
        Prices per state.
    codes
        Written: per state the segments of that line, as state x extent + cells - 1, from last to
        first and then -1; shape ``(num_states, extent)``.
    """
    num = len(ranks)
    alive, able, keeps, pairs = view.alive, view.able[dim], view.keeps[dim], view.pairs[dim]
    ending = np.full((extent + 1, num), NEVER, dtype=np.int64)
    length = np.zeros((extent + 1, num), dtype=np.int64)
    before = np.full((extent, num), NEVER, dtype=np.int64)
    previous = np.full((extent, num), -1, dtype=np.int64)
    before[0, :] = 0
    for p in range(extent):
        if p:
            for o in range(num):
                if ending[p, o] == NEVER:
                    continue
                for s in range(num):
                    if pairs[o, s] and ending[p, o] < before[p, s]:
                        before[p, s] = ending[p, o]
                        previous[p, s] = o
        for s in range(num):
            if before[p, s] == NEVER or not alive[s]:
                continue
            least, most = 1, min(ranks[s], extent - p)
            if keeps[s]:
                least = extent
            elif not able[s]:
                most = 1
            for n in range(least, most + 1):
                found = before[p, s] + of_cell[s] * n + of_segment[s]
                if found < ending[p + n, s]:
                    ending[p + n, s] = found
                    length[p + n, s] = n
    for s in range(num):
        at, state, k = extent, s, 0
        while at > 0 and ending[extent, s] < NEVER:
            n = length[at, state]
            codes[s, k] = state * extent + n - 1
            k += 1
            at -= n
            if at:
                state = previous[at, state]
        codes[s, k:] = -1
    return ending[extent]


@kernel()
def fitting(tables, view, dim, codes):
    """Mark the lines of a dimension that the thresholds leave."""
    extent = tables.extents[dim]
    fits = np.ones(len(codes), dtype=np.bool_)
    for j in range(len(codes)):
        last = -1
        for code in codes[j]:
            if code < 0:
                break
            s, cells = code // extent, code % extent + 1
            if (
                not view.alive[s]
                or (cells > 1 and not view.able[dim, s])
                or (cells < extent and view.keeps[dim, s])
                or (last >= 0 and not view.pairs[dim, s, last])
            ):
                fits[j] = False
                break
            last = s
    return fits


@kernel()
def offered(states, ranks, guess, worth):
    """Return the largest value of leaves that hold `ranks` ranks, in whole numbers."""
    left = ranks
    free = states.multiplicity.copy()
    sure = 0
    for s in range(len(worth)):
        if guess.forced[s] > 0:
            if worth[s] == NOTHING:
                return NOTHING
            sure += guess.forced[s] * worth[s]
            left -= guess.forced[s] * states.ranks[s]
            free[states.leaf_type[s]] -= guess.forced[s]
    if left < 0:
        return NOTHING
    best = np.full(left + 1, NOTHING, dtype=np.int64)
    best[0] = 0
    for t in range(len(free)):
        for _ in range(free[t]):
            changed = False
            for r in range(left, 0, -1):  # from the top: this leaf counts once
                for s in range(len(worth)):
                    if states.leaf_type[s] != t or guess.done[s] or worth[s] == NOTHING:
                        continue
                    if states.ranks[s] <= r and best[r - states.ranks[s]] > NOTHING:
                        found = best[r - states.ranks[s]] + worth[s]
                        if found > best[r]:
                            best[r] = found
                            changed = True
            if not changed:
                break
    return NOTHING if best[left] == NOTHING else best[left] + sure
