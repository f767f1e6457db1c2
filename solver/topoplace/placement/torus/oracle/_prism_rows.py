"""Compiled loops over the rows of a prism: its routers and links (see `rows`)."""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def box(shape, strides, origin, extents, base, out, at):
    """Write the routers of a box, plus a base, row-major from the origin; return where it ends."""
    last = shape.shape[0] - 1
    num_lines = 1
    for d in range(last):
        num_lines *= extents[d]
    for k in range(num_lines):
        rest, line = k, base
        for d in range(last - 1, -1, -1):
            line += (origin[d] + rest % extents[d]) % shape[d] * strides[d]
            rest //= extents[d]
        place = origin[last]
        for _ in range(extents[last]):
            out[at] = line + place * strides[last]
            at += 1
            place = place + 1 if place + 1 < shape[last] else 0
    return at


@kernel()
def rows_of_prisms(shape, strides, wraps, origins, extents, with_links):
    """Return the routers of prisms, each with its links after them, numbered on from the routers.

    Links are those of `machine.prism_links`, dimension by dimension. The rows of the k-th are
    ``rows[starts[k]:starts[k + 1]]``; returns `starts` and `rows`.
    """
    num, dims = origins.shape
    num_routers = 1
    for d in range(dims):
        num_routers *= shape[d]
    lengths = np.empty((num, dims + 1, dims), np.int64)  # of links of each dimension, and routers
    starts = np.zeros(num + 1, np.int64)
    for k in range(num):
        volume = 1
        for d in range(dims):
            volume *= extents[k, d]
            lengths[k, :, d] = extents[k, d]
        size = volume
        for d in range(dims if with_links[k] else 0):
            e = extents[k, d]
            ring = wraps[d] and e > 1 and 2 * (e - 1) >= shape[d]
            lengths[k, d, d] = shape[d] if ring else e - 1
            size += volume // e * lengths[k, d, d]
        starts[k + 1] = starts[k] + size
    rows = np.empty(starts[num], np.int64)
    for k in range(num):
        at = box(shape, strides, origins[k], lengths[k, dims], 0, rows, starts[k])
        for d in range(dims if with_links[k] else 0):
            at = box(shape, strides, origins[k], lengths[k, d], (1 + d) * num_routers, rows, at)
    return starts, rows


@kernel()
def links_outside(shape, strides, wraps, origins, extents, starts, rows):
    """Return the rows of prisms that are links which do not lie inside (see `rows_of_prisms`).

    That is so where a prism uses a whole ring and does not span it. The links of a prism may be
    those of several families, one after the other.
    """
    dims = shape.shape[0]
    num_routers = 1
    for d in range(dims):
        num_routers *= shape[d]
    outside = np.empty(rows.shape[0], np.int64)
    num = 0
    for k in range(origins.shape[0]):
        volume, is_inside = 1, True
        for d in range(dims):
            e = extents[k, d]
            volume *= e
            is_inside &= e == 1 or e == shape[d] or 2 * (e - 1) < shape[d] or not wraps[d]
        if is_inside:
            continue
        for i in range(starts[k] + volume, starts[k + 1]):
            link = (rows[i] - num_routers) % (dims * num_routers)
            d = link // num_routers
            at = link % num_routers // strides[d] % shape[d]
            e = extents[k, d]
            if e < shape[d] and (at - origins[k, d]) % shape[d] >= e - 1:
                outside[num] = rows[i]
                num += 1
    return outside[:num].copy()
