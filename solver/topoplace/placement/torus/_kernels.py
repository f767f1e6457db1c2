"""Compiled loops that fill the tables of `footprints`."""

# Compiled for the array types it is called with; a kernel is one loop nest over flat arrays.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def sums_along(table):
    """Return the prefix sums of two periods along the middle one of three dimensions."""
    outer, n, inner = table.shape
    sums = np.empty((outer, 2 * n + 1, inner), np.int64)
    for o in range(outer):
        for i in range(inner):
            sums[o, 0, i] = 0
        for k in range(2 * n):
            layer = table[o, k if k < n else k - n]
            for i in range(inner):
                sums[o, k + 1, i] = sums[o, k, i] + layer[i]
    return sums


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


@kernel(inline="always")  # called, it takes a fifth longer
def add_slices(sat, base, offsets, signs, num, out):
    """Add to `out[z]` the share of the first `num` corners in a footprint's sums (`slice_sums`)."""
    n = out.shape[0]
    for k in range(num):
        row = sat[base + offsets[k]]
        if signs[k] > 0:
            for z in range(n):
                out[z] += row[z]
        else:
            for z in range(n):
                out[z] -= row[z]


@kernel()
def slice_sums(sat, base, offsets, signs, out):
    """Write to `out[z]` the footprint sum of every slice of the line whose corner is `base`."""
    n = out.shape[0]
    last = offsets.shape[0] - 1
    farthest = sat[base + offsets[last]]  # its sign is plus
    for z in range(n):
        out[z] = farthest[z]
    add_slices(sat, base, offsets, signs, last, out)
