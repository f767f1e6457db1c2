"""Compiled loops over the minimal prisms of a machine (see `groups`, and `_kernels` for words).

An entry is a number of 32 bits: from the highest, 11 and 10 for where in `upto` and in `before` the
prism finds what it pays (`add_up`), 11 for the number of the size.
"""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PLR0912, PLR0915 - a kernel is one loop nest over flat arrays

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.torus._kernels import add_slices, slice_sums

LONGEST = 1 << 9
"""Largest last dimension, for the bits of an entry."""

MOST_SIZES = 1 << 11
"""Largest number of sizes, likewise."""

_UPTO, _BEFORE = np.uint32(21), np.uint32(11)  # where the parts of an entry begin
_TEN, _ELEVEN = np.uint32((1 << 10) - 1), np.uint32((1 << 11) - 1)  # so many bits


@kernel(inline="always")
def entry_of(z0, past, size, n, wraps_last):
    """Return the entry of a prism that begins at z0 and reaches `past` routers past it."""
    table = n if wraps_last and 2 * past >= n else 0  # does it use the whole ring of last links?
    return ((z0 + past + 2 * table) << 21) | ((z0 + table) << 11) | size


@kernel(inline="always")
def where_paid(entry):
    """Return where in `upto` and `before` an entry finds what it pays, as unsigned indices."""
    return np.uint64(entry >> _UPTO), np.uint64((entry >> _BEFORE) & _TEN)


@kernel()
def extent_of(entry, n):
    """Return where the prism of an entry begins and how far it reaches past that."""
    upto, before = where_paid(entry)
    table = n if np.int64(before) >= n else 0
    z0 = np.int64(before) - table
    return z0, np.int64(upto) - 2 * table - z0


@kernel()
def running_sums(values, out):
    """Write to `out[z]` the sum of the first z values, which are repeated once."""
    n = values.shape[0]
    total = 0
    out[0] = 0
    for z in range(2 * n):
        total += values[z if z < n else z - n]
        out[z + 1] = total


@kernel()
def admitted(row, depths, least, f, line, z0, depth):
    """Return whether a prism is among those of the tables."""
    r = row[f, line]
    if depth > depths[r, z0]:
        return False
    return least.shape[0] == 0 or depth >= least[r, z0]


@kernel()
def list_minimal(
    among, lines, row, depths, least, live, bases, box, signs, smaller, ahead, count_sat, sizes,
    wraps_last, most,
):  # fmt: skip
    """List the prisms that reach a size and have no smaller one inside that does.

    Only footprints `among` all and some `lines` are looked at; `smaller` and `ahead` are those of
    `Footprints`. Returns footprint and line of every pair that has entries, where its entries
    begin (nothing beyond `most` entries: too many), and the entries.
    """
    n = depths.shape[1]
    heads = smaller.shape[1]
    slices = np.zeros(n, np.int64)
    counts = np.zeros(2 * n + 1, np.int64)
    inside = np.zeros((2 * heads, 2 * n + 1), np.int64)
    their_f = np.full(2 * heads, -1, np.int64)
    their_line = np.full(2 * heads, -1, np.int64)
    footprints = np.empty(1024, np.int32)
    at = np.empty(1024, np.int32)
    starts = np.zeros(1025, np.int64)
    entries = np.empty(4096, np.uint32)
    num_pairs, num = 0, 0
    for f in among:
        for line in lines:
            if live[f, line] == 0:
                continue
            r = row[f, line]
            slice_sums(count_sat, bases[line], box[f], signs, slices)
            running_sums(slices, counts)
            enough = False
            for z0 in range(n):
                if counts[z0 + depths[r, z0]] - counts[z0] >= sizes[0]:
                    enough = True
                    break
            if not enough:
                continue
            for d in range(heads):
                for side in range(2):
                    them = smaller[f, d]
                    there = line if side == 0 else ahead[line, d]
                    k = 2 * d + side
                    their_f[k] = -1
                    if them >= 0 and there >= 0:
                        their_f[k], their_line[k] = them, there
                        slice_sums(count_sat, bases[there], box[them], signs, slices)
                        running_sums(slices, inside[k])
            before = num
            for z0 in range(n):
                deepest = depths[r, z0]
                depth = least[r, z0] if least.shape[0] > 0 else 1
                if depth > deepest:
                    continue
                k = 0
                while k < sizes.shape[0]:
                    if counts[z0 + deepest] - counts[z0] < sizes[k]:
                        break
                    while counts[z0 + depth] - counts[z0] < sizes[k]:
                        depth += 1
                    nodes = counts[z0 + depth] - counts[z0]
                    while k < sizes.shape[0] and nodes >= sizes[k]:
                        k += 1
                    size = sizes[k - 1]
                    after = 0 if z0 + 1 == n and wraps_last else z0 + 1
                    if (
                        depth > 1
                        and after < n
                        and counts[z0 + depth] - counts[z0 + 1] >= size
                        and admitted(row, depths, least, f, line, after, depth - 1)
                    ):
                        continue
                    smallest = True
                    for i in range(2 * heads):
                        if (
                            their_f[i] >= 0
                            and inside[i, z0 + depth] - inside[i, z0] >= size
                            and admitted(row, depths, least, their_f[i], their_line[i], z0, depth)
                        ):
                            smallest = False
                            break
                    if smallest:
                        if num == entries.shape[0]:
                            entries = np.concatenate((entries, np.empty(num, np.uint32)))
                        entries[num] = entry_of(z0, depth - 1, k - 1, n, wraps_last)
                        num += 1
            if num > most:
                return footprints[:0], at[:0], starts[:0], entries[:0]
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
    )


@kernel()
def add_up(slices, on_links, before, upto):
    """Write two tables of what prisms over a footprint pay, from slices and the links after them.

    A prism that begins at z and reaches `past` routers past it pays
    ``upto[0, z + past] - before[0, z]``, rows being read on into the next, and one that uses the
    whole ring of last links ``upto[2, z + past] - before[1, z]``.
    """
    n = slices.shape[0]
    total, ring = 0, 0
    for z in range(n):
        total += slices[z]
        ring += on_links[z]
    total += ring
    paid, along = 0, 0
    for z in range(n):  # in one loop: to read what was just written takes three times as long
        before[0, z] = paid + along
        before[1, z] = paid
        paid += slices[z]
        upto[0, z] = paid + along
        upto[1, z] = paid + along + total
        upto[2, z] = paid + ring
        upto[3, z] = paid + total
        along += on_links[z]


@kernel()
def price_minimal(
    footprints, at, starts, entries, bases, slots, box, link, signs,
    price_sat, link_sats, link_last_sat, use_links, best, arg,
):  # fmt: skip
    """Find the cheapest listed prism per slot and size.

    `best[slot, k]`, the price taken negative, and `arg[slot, k]`, the prism's code, are updated
    in place.
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
            worth = paid_before[begin] - paid_upto[end]
            if worth > highest[size]:
                highest[size] = worth
                z0, past = extent_of(entry, n)
                arg[slot, size] = ((np.int64(f) * n + past) * num_lines + line) * n + z0


@kernel()
def those_within(footprints, at, starts, entries, row, depths):
    """Return the listed prisms that are free in a `Reach`, as `list_minimal` returns them."""
    n = depths.shape[1]
    kept_footprints, kept_at = np.empty_like(footprints), np.empty_like(at)
    kept_starts, kept = np.zeros_like(starts), np.empty_like(entries)
    num_pairs, num = 0, 0
    for i in range(at.shape[0]):
        r = row[footprints[i], at[i]]
        if r == 0:
            continue
        num_before = num
        for k in range(starts[i], starts[i + 1]):
            z0, past = extent_of(entries[k], n)
            if past < depths[r, z0]:
                kept[num] = entries[k]
                num += 1
        if num > num_before:
            kept_footprints[num_pairs], kept_at[num_pairs] = footprints[i], at[i]
            num_pairs += 1
            kept_starts[num_pairs] = num
    return (
        kept_footprints[:num_pairs].copy(),
        kept_at[:num_pairs].copy(),
        kept_starts[: num_pairs + 1].copy(),
        kept[:num].copy(),
    )
