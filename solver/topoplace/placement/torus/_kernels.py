"""Compiled loops that fill the tables of `footprints`, and that search them for a prism.

The searches keep one prism per request. `rows`, `depths` and `tops` are those of a `Reach`, and of
`prism_search.Entries`: its columns are the footprint of an entry, its least and largest depth, its
row of `least` or -1, and its request. The code of a prism,
``((footprint * n + depth - 1) * num_lines + line) * n + z``, sorts as (extents, origin).
"""

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
    of_first = np.empty(num_lines, ahead.dtype)
    num = 1
    for f in range(num_footprints):
        was_alive, deepest[f] = deepest[f] > 0, 0
        if f == 0:
            for line in range(num_lines):
                alike = line > 0
                for z in range(alone.shape[1]):
                    alike = alike and alone[line, z] == alone[line - 1, z]
                if alike:
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
                for line in range(num_lines):
                    of_first[line] = at[line] if coords[d, line] == 0 else -1
                at = of_first
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
