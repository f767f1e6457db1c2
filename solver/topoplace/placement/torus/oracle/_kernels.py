"""Compiled loops over every prism of a machine.

A machine of shape (N_1, .., N_D) is seen as *lines*: the routers along its last dimension. A
*footprint* is the extents of a prism in all dimensions but the last. Sums over a footprint come
from periodic prefix sums over the first D-1 dimensions: with `sat[corner, z]` the prefix sum at a
corner, the sum of slice z is a signed sum over the footprint's 2^(D-1) corners, each read as one
contiguous row.
"""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.torus._kernels import add_slices, slice_sums


@kernel()
def scan(
    footprints,
    lines,
    row,
    depths,
    least,
    live,
    bases,
    slots,
    coords,
    pad_strides,
    extents,
    sizes,
    wraps,
    box,
    link,
    face,
    signs,
    count_sat,
    price_sat,
    link_sats,
    link_last_sat,
    free_sat,
    use_links,
    use_sides,
    extent_value,
    idle_weight,
    bucket_of_count,
    stop_count,
    give_up,
    best,
    arg,
):
    """Find the best prism per slot and bucket over some lines and footprints.

    The value of a prism is `extent_value[footprint, depth-1] - idle_weight * count - price
    - boundary`, with price the sum of router and link prices. A prism with `count`
    usable nodes enters bucket `bucket_of_count[count]` (negative: too few for any request).
    `best[slot, bucket]` and `arg[slot, bucket]` (the prism's code) are updated in place. Prisms
    deeper than the first to reach `stop_count` are skipped, and so are those deeper than one that
    costs more than `give_up`. `row`, `depths` and `least` are those of `Reach`.
    `live[footprint, line]`, 0 where no prism is free, becomes 0 where too few nodes are usable for
    any request, which no prices change.
    """
    n = depths.shape[1]
    num_lines = bases.shape[0]
    num_corners = signs.shape[0]
    count = np.zeros(n, np.int64)
    price = np.zeros(n, np.int64)
    along = np.zeros(n, np.int64)
    cap = np.zeros(n, np.int64)
    max_count = bucket_of_count.shape[0] - 1
    has_least = least.shape[0] > 0
    wraps_last = wraps[wraps.shape[0] - 1]
    for f in footprints:
        for line in lines:
            if live[f, line] == 0:
                continue
            r, base, slot = row[f, line], bases[line], slots[line]
            slice_sums(count_sat, base, box[f], signs, count)
            there = 0
            for z in range(n):
                there += count[z]
            if bucket_of_count[min(there, max_count)] < 0:
                live[f, line] = 0
                continue
            slice_sums(price_sat, base, box[f], signs, price)
            ring = 0
            if use_links:
                for d in range(link_sats.shape[0]):
                    add_slices(link_sats[d], base, link[d, f], signs, num_corners, price)
                slice_sums(link_last_sat, base, box[f], signs, along)
                for z in range(n):
                    ring += along[z]
            if use_sides:
                for d in range(face.shape[0]):
                    if extents[f, d] == sizes[d]:
                        continue
                    for step in (-1, extents[f, d]):
                        at = coords[line, d] + step
                        if not wraps[d] and (at < 0 or at >= sizes[d]):
                            continue
                        shift = (at % sizes[d] - coords[line, d]) * pad_strides[d]
                        add_slices(free_sat, base + shift, face[d, f], signs, num_corners, price)
                slice_sums(free_sat, base, box[f], signs, cap)
            for z0 in range(n):
                deepest = depths[r, z0]
                if deepest == 0:
                    continue
                shallowest = least[r, z0] if has_least else 1
                if shallowest > deepest:
                    continue
                nodes = 0
                paid = 0
                on_links = 0
                z = z0
                before = 0
                if use_sides and (wraps_last or z0 > 0):
                    before = cap[z0 - 1 if z0 > 0 else n - 1]
                for depth in range(1, deepest + 1):
                    nodes += count[z]
                    paid += price[z]
                    if use_links and depth > 1:
                        if wraps_last and 2 * (depth - 1) >= n:
                            on_links = ring
                        else:
                            on_links += along[z - 1 if z > 0 else n - 1]
                    z += 1
                    if z == n:
                        z = 0
                    if depth >= shallowest:
                        bucket = bucket_of_count[min(nodes, max_count)]
                        if bucket >= 0:
                            value = extent_value[f, depth - 1] - idle_weight * nodes
                            value -= paid + on_links
                            if use_sides and depth < n:
                                value -= before
                                if wraps_last or z0 + depth < n:
                                    value -= cap[z]
                            if value > best[slot, bucket]:
                                best[slot, bucket] = value
                                arg[slot, bucket] = (
                                    (f * n + depth - 1) * num_lines + line
                                ) * n + z0
                    if nodes >= stop_count or paid + on_links > give_up:
                        break


@kernel()
def best_slots(values, codes, firsts, num):
    """Return the largest values by slot of those that hold each request, and their codes.

    `values` and `codes` are by slot and size; request i takes sizes from `firsts[i]` on. Rows of
    the answer have `num` slots at most, falling, the lower slot first among equals.
    """
    num_slots = values.shape[0]
    num = min(num, num_slots)
    worths = np.empty((firsts.shape[0], num), np.int64)
    found = np.empty((firsts.shape[0], num), np.int64)
    for i in range(firsts.shape[0]):
        for slot in range(num_slots):
            best = firsts[i]
            for size in range(firsts[i] + 1, values.shape[1]):
                if values[slot, size] > values[slot, best]:
                    best = size
            worth, at = values[slot, best], min(slot, num)
            while at > 0 and worths[i, at - 1] < worth:
                if at < num:
                    worths[i, at], found[i, at] = worths[i, at - 1], found[i, at - 1]
                at -= 1
            if at < num:
                worths[i, at], found[i, at] = worth, codes[slot, best]
    return worths, found


@kernel()
def is_over(extents, first, coords, shape):
    """Return whether a router lies ahead of or behind a footprint that begins on a line."""
    for d in range(extents.shape[0]):  # noqa: SIM110 - compiled
        if (coords[d] - first[d]) % shape[d] >= extents[d]:
            return False
    return True


@kernel()
def narrow(
    footprints, row, depths, least, live, extents, line_coords, shape, coords, inside,
    row_left, depths_left, least_left, still, num,
):  # fmt: skip
    """Narrow the tables of a group to prisms that cover some routers, and others not.

    Parameters
    ----------
    footprints
        Those to look at.
    coords, inside
        Of every router in question.
    row_left, depths_left, least_left
        Get the narrowed tables; `row_left` holds zeros before, and `least_left` may be empty if
        nothing has to be covered.
    still
        Marks, of the lines that were live, those that still have prisms.
    num
        Rows in use.

    Returns
    -------
    int
        Rows in use after it.
    """
    last = shape.shape[0] - 1
    for f in footprints:
        for line in range(live.shape[1]):
            if live[f, line] == 0:
                continue
            num_over, num_inside = 0, 0
            for k in range(coords.shape[0]):
                if is_over(extents[f], line_coords[line], coords[k], shape):
                    num_over += inside[k]
                num_inside += inside[k]
            if num_over < num_inside:
                continue
            old = row[f, line]
            depths_left[num] = depths[old]
            if least_left.shape[0] > 0:
                for z in range(shape[last]):
                    least_left[num, z] = least[old, z] if least.shape[0] > 0 else 1
            for k in range(coords.shape[0]):
                if is_over(extents[f], line_coords[line], coords[k], shape):
                    for z in range(shape[last]):
                        ahead = (coords[k, last] - z) % shape[last]
                        if not inside[k]:
                            depths_left[num, z] = min(depths_left[num, z], ahead)
                        else:
                            least_left[num, z] = max(least_left[num, z], ahead + 1)
                            if depths_left[num, z] < least_left[num, z]:
                                depths_left[num, z] = 0
            for z in range(shape[last]):
                if depths_left[num, z] > 0:
                    still[f, line] = live[f, line]
                    row_left[f, line] = num
                    num += 1
                    break
    return num
