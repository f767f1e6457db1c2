"""Compiled search of the prisms nearest to free, for many requests in one pass."""

# Compiled for the array types it is called with; a kernel is one loop nest over flat arrays.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.torus.heuristics._kernels import _row


@kernel()
def nearest(
    footprints, first, request, low, high, least_idx, least, need,
    reach, deepest, sums, held_sums, bases, box, signs, area, fewest, volume, code,
):  # fmt: skip
    """Find for every request the admissible prism that holds the fewest nodes of others.

    Only prisms with the given footprints are looked at. Entries ``first[f]..first[f+1]-1``
    belong to footprint f; entry e admits depths `low[e]..high[e]` (not below
    `least[least_idx[e], origin]`) to `request[e]`. `sums` counts usable nodes, `held_sums`
    nodes of others. `fewest`, `volume` and `code` (all per request,
    the largest integer for none yet) are updated in place; ties go to the least volume, then
    code. Only the least depth that holds `need` nodes counts: a deeper prism frees no fewer nodes.
    """
    num_lines = bases.shape[0]
    n = (sums.shape[1] - 1) // 2
    total = np.zeros(sums.shape[1], sums.dtype)
    held = np.zeros(sums.shape[1], sums.dtype)
    for f in footprints:
        if deepest[f] == 0 or first[f] == first[f + 1]:
            continue
        need_least = need[request[first[f]]]
        for e in range(first[f], first[f + 1]):
            need_least = min(need_least, need[request[e]])
        for line in range(num_lines):
            row = reach[f, line * n : (line + 1) * n]
            longest = row[0]
            for z in range(n):
                longest = max(longest, row[z])
            if longest == 0:
                continue
            most = 0  # nodes on the whole ring: a look at one column of the sums
            for k in range(box.shape[1]):
                most += signs[k] * sums[bases[line] + box[f, k], n]
            if most < need_least:
                continue
            _row(sums, bases[line], box[f], signs, total)
            _row(held_sums, bases[line], box[f], signs, held)
            for e in range(first[f], first[f + 1]):
                if longest < low[e]:
                    continue
                r = request[e]
                if most < need[r]:
                    continue
                # no prism here beats the one known if even the shallowest hold more nodes
                ahead = held[low[e] : low[e] + n]
                least_held = ahead[0]
                for z in range(1, n):
                    least_held = min(least_held, ahead[z] - held[z])
                if least_held > fewest[r]:
                    continue
                if least_held == fewest[r] and area[f] * low[e] > volume[r]:
                    continue
                end = 0  # of the shallowest prism at z that holds enough: it never moves back
                for z in range(n):
                    deep = min(np.int64(row[z]), high[e])
                    if deep < low[e] or held[z + low[e]] - held[z] > fewest[r]:
                        continue
                    end = max(end, z + low[e])
                    while end < z + deep and total[end] - total[z] < need[r]:
                        end += 1
                    if end > z + deep or total[end] - total[z] < need[r]:
                        continue
                    depth = end - z
                    if least_idx[e] >= 0:
                        depth = max(depth, least[least_idx[e], line * n + z])
                        if depth > deep:
                            continue
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
