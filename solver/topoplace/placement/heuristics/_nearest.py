"""Compiled search of the prisms nearest to free, for many requests in one pass."""

# Compiled for the array types it is called with; a kernel is one loop nest over flat arrays.

from __future__ import annotations

import numba
import numpy as np

from topoplace.placement.heuristics._kernels import _row


@numba.njit(cache=True, nogil=True)
def nearest(
    first, request, low, high, least_idx, least, need,
    reach, deepest, sums, held_sums, bases, box, signs, area, fewest, volume, code,
):  # fmt: skip
    """Find for every request the admissible prism that holds the fewest nodes of others.

    Entries ``first[f]..first[f+1]-1`` belong to footprint f; entry e admits depths
    `low[e]..high[e]` (not below `least[least_idx[e], origin]`) to `request[e]`. `sums` counts
    usable nodes, `held_sums` nodes of others. `fewest`, `volume` and `code` (all per request,
    `code` -1 for none yet) are updated in place; ties go to the least volume, then code. Only
    the least depth that holds `need` nodes counts: a deeper prism frees no fewer nodes.
    """
    num_lines = bases.shape[0]
    n = (sums.shape[1] - 1) // 2
    total = np.zeros(sums.shape[1], sums.dtype)
    held = np.zeros(sums.shape[1], sums.dtype)
    for f in range(first.shape[0] - 1):
        if deepest[f] == 0 or first[f] == first[f + 1]:
            continue
        for line in range(num_lines):
            row = reach[f, line * n : (line + 1) * n]
            longest = row[0]
            for z in range(n):
                longest = max(longest, row[z])
            if longest == 0:
                continue
            _row(sums, bases[line], box[f], signs, total)
            _row(held_sums, bases[line], box[f], signs, held)
            for e in range(first[f], first[f + 1]):
                if longest < low[e]:
                    continue
                r = request[e]
                # no prism here beats the one known if even the shallowest hold more nodes
                least_held = held[low[e]]
                for z in range(1, n):
                    least_held = min(least_held, held[z + low[e]] - held[z])
                if least_held > fewest[r]:
                    continue
                if least_held == fewest[r] and area[f] * low[e] > volume[r]:
                    continue
                for z in range(n):
                    deep = min(np.int64(row[z]), high[e])
                    depth = low[e]
                    if least_idx[e] >= 0:
                        depth = max(depth, least[least_idx[e], line * n + z])
                    if deep < depth or total[z + deep] - total[z] < need[r]:
                        continue
                    while total[z + depth] - total[z] < need[r]:
                        depth += 1
                    inside = held[z + depth] - held[z]
                    if inside > fewest[r]:
                        continue
                    size = area[f] * depth
                    number = ((np.int64(f) * n + depth - 1) * num_lines + line) * n + z
                    if inside == fewest[r] and (
                        size > volume[r] or (size == volume[r] and number > code[r])
                    ):
                        continue
                    fewest[r] = inside
                    volume[r] = size
                    code[r] = number
