"""Compiled choice of the jobs that an annealing step takes out of a placement (see `_refill`)."""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.exact._boxes import below, prisms_meet, uniform


@kernel()
def push_in(shape, strides, first, extents, waste, values, form_of, origin_of, q, dropped, rng):
    """Choose a prism for a request and mark the jobs in its way; return (form, origin).

    The prism is one of a few random ones: that in whose way least stands.
    """
    form = first[q] + below(rng, first[q + 1] - first[q])
    size = waste.shape[1]
    lowest, chosen = np.inf, -1
    found = 0
    for _ in range(60):
        r = below(rng, size)
        if waste[form, r] == 0:
            continue
        cost = 0.0
        for p in range(values.shape[0]):
            if (
                form_of[p] >= 0
                and p != q
                and prisms_meet(shape, strides, r, extents[form], origin_of[p], extents[form_of[p]])
            ):
                cost += values[p]
        cost *= 0.7 + 0.6 * uniform(rng)
        if cost < lowest:
            lowest, chosen = cost, r
        found += 1
        if found == 12:
            break
    if chosen < 0:
        return -1, -1
    for p in range(values.shape[0]):
        if form_of[p] >= 0 and (
            p == q
            or prisms_meet(shape, strides, chosen, extents[form], origin_of[p], extents[form_of[p]])
        ):
            dropped[p] = 1
    return form, chosen


@kernel()
def drop_some(
    shape, strides, wraps, size, extents, form_of, origin_of, near, num, keys, dropped, rng
):
    """Mark some started jobs: those nearest to a random router, or any."""
    centre = below(rng, size)
    for p in range(form_of.shape[0]):
        keys[p] = np.inf
        if form_of[p] < 0:
            continue
        keys[p] = uniform(rng)
        if near:
            for d in range(shape.shape[0]):
                n = shape[d]
                e = extents[form_of[p], d]
                gap = (centre // strides[d] - origin_of[p] // strides[d]) % n
                if gap >= e:
                    keys[p] += min(gap - e + 1, n - gap) if wraps[d] else gap - e + 1
    for _ in range(num):
        p = int(np.argmin(keys))
        if keys[p] < np.inf:
            dropped[p] = 1
            keys[p] = np.inf
