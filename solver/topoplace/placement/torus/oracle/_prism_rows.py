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
def prism_rows(shape, strides, wraps, origin, extents, with_links):
    """Return the routers of a prism, and after them its links, numbered on from the routers.

    Links are those of `machine.prism_links`, dimension by dimension.
    """
    dims = shape.shape[0]
    num_routers = 1
    for d in range(dims):
        num_routers *= shape[d]
    lengths = np.empty((dims + 1, dims), np.int64)  # of the links of each dimension, and routers
    size = 1
    for d in range(dims):
        size *= extents[d]
        for k in range(dims + 1):
            lengths[k, d] = extents[d]
    volume = size
    for d in range(dims if with_links else 0):
        if wraps[d] and extents[d] > 1 and 2 * (extents[d] - 1) >= shape[d]:
            lengths[d, d] = shape[d]
        else:
            lengths[d, d] = extents[d] - 1
        size += volume // extents[d] * lengths[d, d]
    out = np.empty(size, np.int64)
    at = box(shape, strides, origin, lengths[dims], 0, out, 0)
    for d in range(dims if with_links else 0):
        at = box(shape, strides, origin, lengths[d], (1 + d) * num_routers, out, at)
    return out


@kernel()
def leaves_prism(shape, strides, origin, extents, links):
    """Return which of a prism's links do not lie inside it."""
    num_routers = 1
    for d in range(shape.shape[0]):
        num_routers *= shape[d]
    outside = np.zeros(links.shape[0], np.bool_)
    for k in range(links.shape[0]):
        d = links[k] // num_routers
        at = links[k] % num_routers // strides[d] % shape[d]
        outside[k] = extents[d] < shape[d] and (at - origin[d]) % shape[d] >= extents[d] - 1
    return outside
