"""Compiled loops over every prism of a machine.

A machine of shape (N_1, .., N_D) is seen as *lines*: the routers along its last dimension. A
*footprint* is the extents of a prism in all dimensions but the last. Sums over a footprint come
from periodic prefix sums over the first D-1 dimensions: with `sat[corner, z]` the prefix sum at a
corner, the sum of slice z is a signed sum over the footprint's 2^(D-1) corners, each read as one
contiguous row.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def slice_sums(sat, base, offsets, signs, out):
    """Write to `out[z]` the footprint sum of every slice of the line whose corner is `base`."""
    n = out.shape[0]
    for z in range(n):
        out[z] = 0
    for k in range(offsets.shape[0]):
        row = base + offsets[k]
        if signs[k] > 0:
            for z in range(n):
                out[z] += sat[row, z]
        else:
            for z in range(n):
                out[z] -= sat[row, z]


@numba.njit(cache=True, nogil=True)
def scan(
    lines,
    reach,
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
    side_weight,
    extent_value,
    idle_weight,
    bucket_of_count,
    stop_count,
    give_up,
    best,
    arg,
):
    """Find the best prism per slot and bucket over the given lines and all footprints.

    The value of a prism is `extent_value[footprint, depth-1] - idle_weight * count - price
    - side_weight * boundary`, with price the sum of router and link prices. A prism with `count`
    usable nodes enters bucket `bucket_of_count[count]` (negative: too few for any request).
    `best[slot, bucket]` and `arg[slot, bucket]` (the prism's code) are updated in place. Prisms
    deeper than the first to reach `stop_count` are skipped, and so are those deeper than one that
    costs more than `give_up`. `least[footprint, line, z0]`, where
    not empty, is the smallest depth admitted.
    """
    n = reach.shape[2]
    num_footprints = reach.shape[0]
    num_lines = bases.shape[0]
    count = np.zeros(n, np.int64)
    price = np.zeros(n, np.int64)
    part = np.zeros(n, np.int64)
    along = np.zeros(n, np.int64)
    cap = np.zeros(n, np.int64)
    max_count = bucket_of_count.shape[0] - 1
    has_least = least.shape[0] > 0
    wraps_last = wraps[wraps.shape[0] - 1]
    for f in range(num_footprints):
        for line in lines:
            if live[f, line] == 0:
                continue
            base = bases[line]
            slot = slots[line]
            slice_sums(count_sat, base, box[f], signs, count)
            there = 0
            for z in range(n):
                there += count[z]
            if bucket_of_count[min(there, max_count)] < 0:
                continue
            slice_sums(price_sat, base, box[f], signs, price)
            ring = 0
            if use_links:
                for d in range(link_sats.shape[0]):
                    slice_sums(link_sats[d], base, link[d, f], signs, part)
                    for z in range(n):
                        price[z] += part[z]
                slice_sums(link_last_sat, base, box[f], signs, along)
                for z in range(n):
                    ring += along[z]
            if side_weight != 0:
                for d in range(face.shape[0]):
                    if extents[f, d] == sizes[d]:
                        continue
                    for step in (-1, extents[f, d]):
                        at = coords[line, d] + step
                        if not wraps[d] and (at < 0 or at >= sizes[d]):
                            continue
                        shift = (at % sizes[d] - coords[line, d]) * pad_strides[d]
                        slice_sums(free_sat, base + shift, face[d, f], signs, part)
                        for z in range(n):
                            price[z] += side_weight * part[z]
                slice_sums(free_sat, base, box[f], signs, cap)
            for z0 in range(n):
                deepest = reach[f, line, z0]
                if deepest == 0:
                    continue
                shallowest = least[f, line, z0] if has_least else 1
                if shallowest > deepest:
                    continue
                nodes = 0
                paid = 0
                on_links = 0
                z = z0
                before = 0
                if side_weight != 0 and (wraps_last or z0 > 0):
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
                            if side_weight != 0 and depth < n:
                                value -= side_weight * before
                                if wraps_last or z0 + depth < n:
                                    value -= side_weight * cap[z]
                            if value > best[slot, bucket]:
                                best[slot, bucket] = value
                                arg[slot, bucket] = (
                                    ((np.int64(f) * num_lines + line) * n + z0) * n + depth - 1
                                )
                    if nodes >= stop_count or paid + on_links > give_up:
                        break


@numba.njit(cache=True, nogil=True)
def maximal_sets(words):
    """Mark the bit sets that are in no earlier set; sets come in order of falling size."""
    num, width = words.shape
    kept = np.ones(num, np.bool_)
    for i in range(num):
        for j in range(i):
            if not kept[j]:
                continue
            inside = True
            for w in range(width):
                if words[i, w] & ~words[j, w]:
                    inside = False
                    break
            if inside:
                kept[i] = False
                break
    return kept
