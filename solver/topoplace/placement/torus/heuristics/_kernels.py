"""Compiled loops over every prism of a machine, for searches that keep one prism.

A machine of shape (N_1, .., N_D) is seen as *lines*, the routers along its last dimension; a
*footprint* is the extents of a prism in all dimensions but the last. `reach[f, o]` is the largest
depth of a prism with footprint f and origin (router) o; every smaller depth is feasible too, as
a shallower prism holds fewer routers and uses fewer links.
"""

# Compiled for the array types it is called with; a kernel is one loop nest over flat arrays.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def runs(blocked, cut, wraps, out):
    """Write per router how far a line of free routers goes in the positive direction.

    `blocked` and `cut` (the link to the next router is closed) have shape (lines, n). On a ring,
    only the run from 0 may span it, and a run that uses the whole ring needs all its links.
    """
    num_lines, n = blocked.shape
    half = (n - 1) // 2 + 1
    for line in range(num_lines):
        is_cut = False
        for z in range(n):
            is_cut |= cut[line, z]
        run = 0
        rounds = 2 if wraps else 1
        for step in range(rounds * n):
            z = n - 1 - step % n
            if blocked[line, z]:
                run = 0
            elif cut[line, z] and (wraps or z < n - 1):
                run = 1
            else:
                run += 1
            longest = min(run, n)
            if wraps:
                if z > 0:
                    longest = min(longest, n - 1)
                if is_cut:
                    longest = min(longest, half)
            out[line, z] = longest


@kernel()
def fold(shape, wraps, extents, dims, smaller, extra, link_runs, ring_runs, reach, deepest):
    """Fill `reach` from `reach[0]` (one line) and `deepest[f]`, its largest entry.

    `dims[f]` and `smaller[f]`: a prism is free if two prisms one router smaller in that
    dimension are, at its origin and one further: they cover its routers and links but for those
    that `extra[f]` adds (1: the links between two routers, 2: those of the whole ring).
    Where a footprint is dead (`deepest[f] == 0`), its row of `reach` is left as it was.
    """
    size = reach.shape[1]
    most = reach[0, 0]
    for i in range(size):
        most = max(most, reach[0, i])
    deepest[0] = most
    for f in range(1, reach.shape[0]):
        deepest[f] = 0
        if deepest[smaller[f, 0]] == 0 or (dims[f, 1] >= 0 and deepest[smaller[f, 1]] == 0):
            continue
        here = reach[f]
        for k in range(2):
            d = dims[f, k]
            if d < 0:
                continue
            part = reach[smaller[f, k]]
            inner = 1
            for j in range(d + 1, shape.shape[0]):
                inner *= shape[j]
            ring = shape[d]
            origins = ring
            if not wraps[d]:
                origins = ring - extents[f, d] + 1
            elif extents[f, d] == ring:
                origins = 1
            for outer in range(0, size, inner * ring):
                for c in range(origins):
                    a = part[outer + c * inner : outer + (c + 1) * inner]
                    after = outer + (c + 1) % ring * inner
                    b = part[after : after + inner]
                    to = here[outer + c * inner : outer + (c + 1) * inner]
                    if k == 0:
                        for i in range(inner):
                            to[i] = min(a[i], b[i])
                    else:
                        for i in range(inner):
                            to[i] = min(to[i], a[i], b[i])
                for i in range(outer + origins * inner, outer + ring * inner):
                    here[i] = 0
        if extra[f] > 0:
            more = link_runs[dims[f, 0]] if extra[f] == 1 else ring_runs[dims[f, 0]]
            for i in range(size):
                here[i] = min(here[i], more[i])
        most = here[0]
        for i in range(size):
            most = max(most, here[i])
        deepest[f] = most


@kernel()
def _row(sums, base, offsets, signs, out):
    """Write the footprint sums of a line, accumulated over two periods of the last dimension."""
    width = out.shape[0]
    first = sums[base + offsets[0]]
    if signs[0] > 0:
        for i in range(width):
            out[i] = first[i]
    else:
        for i in range(width):
            out[i] = -first[i]
    for k in range(1, offsets.shape[0]):
        row = sums[base + offsets[k]]
        if signs[k] > 0:
            for i in range(width):
                out[i] += row[i]
        else:
            for i in range(width):
                out[i] -= row[i]


@kernel()
def best(
    entries, low, high, least_idx, least, bound, need,
    reach, sums, bases, box, signs, part, suffix_best, idle_weight,
):  # fmt: skip
    """Return (score, code) of the best-scored prism with at least `need` usable nodes.

    Entry k admits footprint `entries[k]` at depths `low[k]..high[k]`, not below
    `least[least_idx[k], origin]` where that index is not negative; `bound[k]`, descending, is
    at least the score of all its prisms. `suffix_best[f, depth-1]` is the largest `part[f]` from
    that depth on. Ties go to the smallest code, which sorts as (extents, origin).
    """
    num_lines = bases.shape[0]
    n = part.shape[1]
    top = np.int64(-(1 << 62))
    chosen = np.int64(-1)
    total = np.zeros(sums.shape[1], sums.dtype)
    for k in range(entries.shape[0]):
        if bound[k] < top:
            break
        f = entries[k]
        for line in range(num_lines):
            row = reach[f, line * n : (line + 1) * n]
            longest = row[0]
            for z in range(n):
                longest = max(longest, row[z])
            if longest < low[k]:
                continue
            _row(sums, bases[line], box[f], signs, total)
            for z in range(n):
                deepest = min(np.int64(row[z]), high[k])
                shallowest = low[k]
                if least_idx[k] >= 0:
                    shallowest = max(shallowest, least[least_idx[k], line * n + z])
                if deepest < shallowest or total[z + deepest] - total[z] < need:
                    continue
                depth = shallowest
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
    return top, chosen


@kernel()
def first(entries, low, high, least_idx, least, need, reach, sums, bases, box, signs, area, part):
    """Return the code of the prism that first fit takes (see `first_fit`), or -1."""
    num_lines = bases.shape[0]
    n = part.shape[1]
    total = np.zeros(sums.shape[1], sums.dtype)
    origin = num_lines * n
    for k in range(entries.shape[0]):
        f = entries[k]
        for line in range(num_lines):
            if line * n >= origin:
                break
            summed = False
            for z in range(min(n, origin - line * n)):
                deepest = min(np.int64(reach[f, line * n + z]), high[k])
                shallowest = low[k]
                if least_idx[k] >= 0:
                    shallowest = max(shallowest, least[least_idx[k], line * n + z])
                if deepest < shallowest:
                    continue
                if not summed:
                    _row(sums, bases[line], box[f], signs, total)
                    summed = True
                if total[z + deepest] - total[z] >= need:
                    origin = line * n + z
                    break
    chosen = np.int64(-1)
    if origin == num_lines * n:
        return chosen
    line, z = origin // n, origin % n
    volume = np.int64(0)
    score = np.int64(0)
    for k in range(entries.shape[0]):
        f = entries[k]
        deepest = min(np.int64(reach[f, origin]), high[k])
        shallowest = low[k]
        if least_idx[k] >= 0:
            shallowest = max(shallowest, least[least_idx[k], origin])
        if deepest < shallowest:
            continue
        _row(sums, bases[line], box[f], signs, total)
        if total[z + deepest] - total[z] < need:
            continue
        depth = shallowest
        while total[z + depth] - total[z] < need:
            depth += 1
        code = ((np.int64(f) * n + depth - 1) * num_lines + line) * n + z
        size = area[f] * depth
        if chosen >= 0:
            if size > volume or (size == volume and part[f, depth - 1] < score):
                continue
            if size == volume and part[f, depth - 1] == score and code > chosen:
                continue
        volume = size
        score = part[f, depth - 1]
        chosen = code
    return chosen
