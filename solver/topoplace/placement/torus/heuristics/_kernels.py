"""Compiled loops over every prism of a machine, for searches that keep one prism per request.

Tables are those of `footprints`, `rows`, `depths` and `tops` those of a `Reach`, and of
`prism_search.Entries`: its columns are the footprint of an
entry, its least and largest depth, its row of `least` or -1, and its request. The code of a prism,
``((footprint * n + depth - 1) * num_lines + line) * n + z``, sorts as (extents, origin).
"""

# Compiled for the array types it is called with; a kernel is one loop nest over flat arrays.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.torus._kernels import slice_sums


@kernel()
def best(
    entries, least, bound, need, rows, depths, tops, sums, bases, box, signs,
    part, suffix_best, idle_weight,
):  # fmt: skip
    """Return the code of the best-scored prism with at least `need` usable nodes, or -1.

    `bound[k]`, descending, is at least the score of all prisms of entry k;
    `suffix_best[f, depth-1]` the largest `part[f]` from that depth on. Ties: the smallest code.
    """
    num_lines, n = bases.shape[0], part.shape[1]
    top, chosen = np.int64(-(1 << 62)), np.int64(-1)
    total = np.zeros(sums.shape[1], sums.dtype)
    for k in range(entries.shape[0]):
        if bound[k] < top:
            break
        f, low, high, bounded = entries[k, 0], entries[k, 1], entries[k, 2], entries[k, 3]
        for line in range(num_lines):
            if tops[rows[f, line]] < low:
                continue
            row = depths[rows[f, line]]
            slice_sums(sums, bases[line], box[f], signs, total)
            for z in range(n):
                deepest = min(np.int64(row[z]), high)
                depth = low if bounded < 0 else max(low, least[bounded, line * n + z])
                if deepest < depth or total[z + deepest] - total[z] < need:
                    continue
                while total[z + depth] - total[z] < need:
                    depth += 1
                while depth <= deepest:
                    idle = idle_weight * (total[z + depth] - total[z] - need)
                    if suffix_best[f, depth - 1] - idle < top:
                        break
                    score = part[f, depth - 1] - idle
                    code = ((np.int64(f) * n + depth - 1) * num_lines + line) * n + z
                    if score > top or (score == top and (chosen < 0 or code < chosen)):
                        top = score
                        chosen = code
                    depth += 1
    return chosen


@kernel()
def first(entries, least, need, rows, depths, tops, sums, bases, box, signs, area, part):
    """Return the code of the prism that first fit takes (see `first_fit`), or -1."""
    num_lines, n = bases.shape[0], part.shape[1]
    total = np.zeros(sums.shape[1], sums.dtype)
    origin, chosen = num_lines * n, np.int64(-1)
    volume, score = np.int64(0), np.int64(0)
    for k in range(entries.shape[0]):
        f, low, high, bounded = entries[k, 0], entries[k, 1], entries[k, 2], entries[k, 3]
        for line in range(num_lines):
            if line * n > origin:
                break
            if tops[rows[f, line]] < low:
                continue
            row, summed = depths[rows[f, line]], False
            for z in range(min(n, origin - line * n + 1)):
                at = line * n + z
                deepest = min(np.int64(row[z]), high)
                depth = low if bounded < 0 else max(low, least[bounded, at])
                if deepest < depth:
                    continue
                if not summed:
                    slice_sums(sums, bases[line], box[f], signs, total)
                    summed = True
                if total[z + deepest] - total[z] < need:
                    continue
                while total[z + depth] - total[z] < need:
                    depth += 1
                code = ((np.int64(f) * n + depth - 1) * num_lines + line) * n + z
                size, worth = area[f] * depth, part[f, depth - 1]
                if (
                    at < origin
                    or size < volume
                    or (size == volume and (worth > score or (worth == score and code < chosen)))
                ):
                    origin, volume, score, chosen = at, size, worth, code
                break
    return chosen


@kernel()
def nearest(
    footprints, first, entries, least, need,
    rows, depths, tops, deepest, sums, held_sums, bases, box, signs, area, fewest, volume, code,
):  # fmt: skip
    """Find for every request the admissible prism that holds the fewest nodes of others.

    Only prisms with the given footprints are looked at; entries ``first[f]..first[f+1]-1`` are of
    footprint f. `sums` counts usable nodes, `held_sums` nodes of others. `fewest`, `volume` and
    `code` (all per request, the largest integer for none yet) are updated in place; ties go to the
    least volume, then code. Only the least depth that holds `need` nodes counts: a deeper prism
    frees no fewer nodes.
    """
    num_lines = bases.shape[0]
    n = (sums.shape[1] - 1) // 2
    total = np.zeros(sums.shape[1], sums.dtype)
    held = np.zeros(sums.shape[1], sums.dtype)
    for f in footprints:
        if deepest[f] == 0 or first[f] == first[f + 1]:
            continue
        need_least = need[entries[first[f], 4]]
        for e in range(first[f], first[f + 1]):
            need_least = min(need_least, need[entries[e, 4]])
        for line in range(num_lines):
            row, longest = depths[rows[f, line]], tops[rows[f, line]]
            if longest == 0:
                continue
            most = 0  # nodes on the whole ring: a look at one column of the sums
            for k in range(box.shape[1]):
                most += signs[k] * sums[bases[line] + box[f, k], n]
            if most < need_least:
                continue
            slice_sums(sums, bases[line], box[f], signs, total)
            slice_sums(held_sums, bases[line], box[f], signs, held)
            for e in range(first[f], first[f + 1]):
                low, high, bounded, r = entries[e, 1], entries[e, 2], entries[e, 3], entries[e, 4]
                if longest < low or most < need[r]:
                    continue
                # no prism here beats the one known if even the shallowest hold more nodes
                ahead = held[low : low + n]
                least_held = ahead[0]
                for z in range(1, n):
                    least_held = min(least_held, ahead[z] - held[z])
                if least_held > fewest[r]:
                    continue
                if least_held == fewest[r] and area[f] * low > volume[r]:
                    continue
                end = 0  # of the shallowest prism at z that holds enough: it never moves back
                for z in range(n):
                    deep = min(np.int64(row[z]), high)
                    if deep < low or held[z + low] - held[z] > fewest[r]:
                        continue
                    end = max(end, z + low)
                    while end < z + deep and total[end] - total[z] < need[r]:
                        end += 1
                    if end > z + deep or total[end] - total[z] < need[r]:
                        continue
                    depth = end - z
                    if bounded >= 0:
                        depth = max(depth, least[bounded, line * n + z])
                        if depth > deep:
                            continue
                    inside = held[z + depth] - held[z]
                    size = area[f] * depth
                    number = ((np.int64(f) * n + depth - 1) * num_lines + line) * n + z
                    if inside < fewest[r] or (
                        inside == fewest[r]
                        and (size < volume[r] or (size == volume[r] and number < code[r]))
                    ):
                        fewest[r], volume[r], code[r] = inside, size, number
