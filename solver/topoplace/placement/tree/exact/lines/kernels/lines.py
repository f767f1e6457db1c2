"""The cheapest line of a dimension at given prices of cells and segments."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

NEVER = 1 << 60
"""Cost of a line that cannot be."""


@kernel()
def cheapest_lines(extent, view, dim, ranks, of_cell, of_segment, of_whole, codes):
    """Return, per state, the least cost of a line whose last segment is of a leaf in that state.

    A line is cut into segments of leaves that `view` allows as neighbours.

    Parameters
    ----------
    of_cell, of_segment, of_whole
        Prices per state; the last for a segment that has all ranks of its leaf.
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
                if n == ranks[s]:
                    found += of_whole[s]
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
