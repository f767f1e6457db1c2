"""Compiled loops that fill the tables of `footprints`."""

# Compiled for the array types it is called with; a kernel is one loop nest over flat arrays.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def sums_along(table):
    """Return the prefix sums of two periods along the middle one of three dimensions."""
    outer, n, inner = table.shape
    sums = np.empty((outer, 2 * n + 1, inner), table.dtype)
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
def add_row(values, depths, tops, sums, num):
    """Write a row of depths at `num`, unless it has none; return its number."""
    total, top = 0, 0
    for z in range(values.shape[0]):
        depths[num, z] = values[z]
        total += values[z]
        top = max(top, values[z])
    tops[num], sums[num] = top, total
    return num if top > 0 else 0


@kernel()
def meet(one, other, at, depths, tops, sums, num, out):
    """Write to `out[line]` the row of the smaller depths of `one[line]` and `other[at[line]]`.

    It is 0 where `at` is negative. `num` rows are in use before; the number in use afterwards is
    returned.
    """
    for line in range(one.shape[0]):
        a, there = one[line], at[line]
        b = other[there] if there >= 0 else 0
        if a == 0 or b == 0:
            out[line] = 0
        elif a == b:
            out[line] = a
        else:
            x, y, least = depths[a], depths[b], depths[num]
            total = 0
            for z in range(least.shape[0]):
                least[z] = min(x[z], y[z])
                total += least[z]
            if total == sums[a]:  # not larger anywhere, and the same sum: the same
                out[line] = a
            elif total == sums[b]:
                out[line] = b
            else:
                out[line] = add_row(least, depths, tops, sums, num)
                num += total > 0
    return num


@kernel()
def fold(
    shape, wraps, extents, coords, ahead, dims, smaller, extra, alone, link_runs, ring_runs,
    row, depths, tops, deepest,
):  # fmt: skip
    """Fill the tables of a `Reach` from the depths of single lines; return the rows in use.

    `coords` and `ahead` are by dimension, then line. `dims[f]` and `smaller[f]`: a prism is free if
    two prisms one router smaller in that dimension are, at its origin and one further: they cover
    its routers and links except for those that `extra[f]` adds (1: the links between two routers,
    2: those of the whole ring).
    """
    num_footprints, num_lines = row.shape
    sums = np.empty(depths.shape[0], np.int32)
    here, lines = np.zeros(num_lines, row.dtype), np.arange(num_lines)
    num = 1
    for f in range(num_footprints):
        was_alive, deepest[f] = deepest[f] > 0, 0
        if f == 0:
            for line in range(num_lines):
                if line > 0 and (alone[line] == alone[line - 1]).all():
                    row[f, line] = row[f, line - 1]
                else:
                    row[f, line] = add_row(alone[line], depths, tops, sums, num)
                    num += row[f, line] > 0
        elif deepest[smaller[f, 0]] == 0 or (dims[f, 1] >= 0 and deepest[smaller[f, 1]] == 0):
            if was_alive:
                row[f] = 0
            continue
        for k in range(2):
            d = dims[f, k]
            if d < 0:
                continue
            at, part = ahead[d], row[smaller[f, k]]
            if wraps[d] and extents[f, d] == shape[d]:
                at = np.where(coords[d] == 0, at, -1)
            num = meet(part, part, at, depths, tops, sums, num, row[f] if k == 0 else here)
            if k == 1:
                num = meet(row[f], here, lines, depths, tops, sums, num, row[f])
        if extra[f] > 0:
            more = link_runs[dims[f, 0]] if extra[f] == 1 else ring_runs[dims[f, 0]]
            for line in range(num_lines):
                here[line] = add_row(more[line], depths, tops, sums, num)
                num += here[line] > 0
            num = meet(row[f], here, lines, depths, tops, sums, num, row[f])
        for line in range(num_lines):
            deepest[f] = max(deepest[f], tops[row[f, line]])
    return num


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
