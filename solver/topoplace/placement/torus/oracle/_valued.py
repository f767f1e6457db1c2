"""Compiled loops over all prisms of a machine whose values on later levels were listed once.

What a prism is worth there without prices does not depend on them: its shape with its idle nodes,
and the links to free routers outside it. Entries are those of `_minimal`; see `_kernels` for words.
"""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PLR0912, PLR0915 - a kernel is one loop nest over flat arrays

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.torus._kernels import add_slices, slice_sums
from topoplace.placement.torus.oracle._minimal import (
    _ELEVEN,
    add_up,
    admitted,
    entry_of,
    extent_of,
    running_sums,
    where_paid,
)


@kernel()
def list_valued(
    among, lines, row, depths, least, live, bases, coords, pad_strides, extents, sizes, wraps,
    box, face, signs, count_sat, free_sat, extent_value, idle_weight, bucket_of_count, most,
):  # fmt: skip
    """List the prisms that reach a size, with what they are worth on the later levels.

    Left out is one that holds another of the same size on the same line, one router shorter, that
    is worth no less on both levels. Parameters are those of `_kernels.scan`, without weights.
    Returns footprint and line of every pair that has entries, where its entries begin (nothing
    beyond `most` entries: too many), the entries, and by entry the value of its shape and its links
    to free routers.
    """
    n = depths.shape[1]
    max_count = bucket_of_count.shape[0] - 1
    wraps_last = wraps[wraps.shape[0] - 1]
    slices, cap = np.zeros(n, np.int64), np.zeros(n, np.int64)
    counts, sides = np.zeros(2 * n + 1, np.int64), np.zeros(2 * n + 1, np.int64)
    footprints, at = np.empty(1024, np.int32), np.empty(1024, np.int32)
    starts = np.zeros(1025, np.int64)
    entries = np.empty(4096, np.uint32)
    shapes, beside = np.empty(4096, np.int32), np.empty(4096, np.int32)
    num_pairs, num = 0, 0
    for f in among:
        for line in lines:
            if live[f, line] == 0:
                continue
            r, base = row[f, line], bases[line]
            slice_sums(count_sat, base, box[f], signs, slices)
            running_sums(slices, counts)
            if bucket_of_count[min(counts[n], max_count)] < 0:
                continue
            slices[:] = 0
            for d in range(face.shape[0]):
                if extents[f, d] == sizes[d]:
                    continue
                for step in (-1, extents[f, d]):
                    there = coords[line, d] + step
                    if not wraps[d] and (there < 0 or there >= sizes[d]):
                        continue
                    shift = (there % sizes[d] - coords[line, d]) * pad_strides[d]
                    add_slices(free_sat, base + shift, face[d, f], signs, signs.shape[0], slices)
            running_sums(slices, sides)
            slice_sums(free_sat, base, box[f], signs, cap)
            before, worths = num, extent_value[f]
            for z0 in range(n):
                deepest = depths[r, z0]
                shallowest = least[r, z0] if least.shape[0] > 0 else 1
                after = 0 if z0 + 1 == n and wraps_last else z0 + 1
                last = (-1, 0, 0)  # size and values of the one before, one router shorter
                for depth in range(shallowest, deepest + 1):
                    size, shape, side = valued(
                        z0, depth, n, wraps_last, counts, sides, cap, bucket_of_count, worths,
                        idle_weight,
                    )  # fmt: skip
                    if size < 0:
                        continue
                    kept = last[0] != size or shape > last[1] or side < last[2]
                    last = (size, shape, side)
                    if (
                        kept
                        and depth > 1
                        and after < n
                        and admitted(row, depths, least, f, line, after, depth - 1)
                    ):
                        inner = valued(
                            after, depth - 1, n, wraps_last, counts, sides, cap,
                            bucket_of_count, worths, idle_weight,
                        )  # fmt: skip
                        kept = inner[0] != size or shape > inner[1] or side < inner[2]
                    if not kept:
                        continue
                    if num == entries.shape[0]:
                        entries = np.concatenate((entries, np.empty(num, np.uint32)))
                        shapes = np.concatenate((shapes, np.empty(num, np.int32)))
                        beside = np.concatenate((beside, np.empty(num, np.int32)))
                    entries[num] = entry_of(z0, depth - 1, size, n, wraps_last)
                    shapes[num], beside[num] = shape, side
                    num += 1
            if num > most:
                return footprints[:0], at[:0], starts[:0], entries[:0], shapes[:0], beside[:0]
            if num > before:
                if num_pairs == at.shape[0]:
                    footprints = np.concatenate((footprints, np.empty(num_pairs, np.int32)))
                    at = np.concatenate((at, np.empty(num_pairs, np.int32)))
                    starts = np.concatenate((starts, np.empty(num_pairs, np.int64)))
                footprints[num_pairs], at[num_pairs] = f, line
                num_pairs += 1
                starts[num_pairs] = num
    return (
        footprints[:num_pairs].copy(),
        at[:num_pairs].copy(),
        starts[: num_pairs + 1].copy(),
        entries[:num].copy(),
        shapes[:num].copy(),
        beside[:num].copy(),
    )


@kernel(inline="always")
def valued(z0, depth, n, wraps_last, counts, sides, cap, bucket_of_count, worths, idle_weight):
    """Return the number of the size of a prism (negative: too small), and what it is worth."""
    nodes = counts[z0 + depth] - counts[z0]
    size = np.int64(bucket_of_count[min(nodes, bucket_of_count.shape[0] - 1)])
    side = sides[z0 + depth] - sides[z0]
    if depth < n:
        if wraps_last or z0 > 0:
            side += cap[z0 - 1 if z0 > 0 else n - 1]
        if wraps_last or z0 + depth < n:
            side += cap[(z0 + depth) % n]
    return size, worths[depth - 1] - idle_weight * nodes, side


@kernel()
def price_valued(
    footprints, at, starts, entries, shapes, beside, weight_of_shape, weight_beside,
    bases, slots, box, link, signs, price_sat, link_sats, link_last_sat, use_links, best, arg,
):  # fmt: skip
    """Find the best listed prism per slot and size, as `_minimal.price_minimal` does.

    What both share is written twice: a call with so many arrays takes as long as the rest.
    """
    n = price_sat.shape[1]
    num_lines = bases.shape[0]
    slices, on_links = np.zeros(n, np.int64), np.zeros(n, np.int64)
    before, upto = np.zeros((2, n), np.int64), np.zeros((4, n), np.int64)
    paid_before, paid_upto = before.ravel(), upto.ravel()
    for i in range(at.shape[0]):
        f, line = footprints[i], at[i]
        slot = slots[line]
        slice_sums(price_sat, bases[line], box[f], signs, slices)
        if use_links:
            for d in range(link_sats.shape[0]):
                add_slices(link_sats[d], bases[line], link[d, f], signs, signs.shape[0], slices)
            slice_sums(link_last_sat, bases[line], box[f], signs, on_links)
        add_up(slices, on_links, before, upto)
        highest = best[slot]
        for k in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
            entry = entries[k]
            size = np.uint64(entry & _ELEVEN)
            end, begin = where_paid(entry)
            worth = paid_before[begin] - paid_upto[end] + weight_of_shape * shapes[k]
            if weight_beside:
                worth -= weight_beside * beside[k]
            if worth > highest[size]:
                highest[size] = worth
                z0, past = extent_of(entry, n)
                arg[slot, size] = ((np.int64(f) * n + past) * num_lines + line) * n + z0
