"""Compiled scan for the largest job that one free prism holds."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def most_usable(order, most, per_router, area, rows, depths, sums, bases, box, signs):
    """Return the most usable nodes in a prism of the largest depth at its origin.

    Tables are those of `placement.torus.footprints`; `order` lists the footprints by `most`, the
    largest number of nodes each may hold, descending.
    """
    num_lines, n = bases.shape[0], depths.shape[1]
    best = np.int64(0)
    for f in order:
        if most[f] <= best:
            break
        for line in range(num_lines):
            r = rows[f, line]
            if r == 0:
                continue
            for z in range(n):
                depth = np.int64(depths[r, z])
                if depth * area[f] * per_router <= best:
                    continue
                usable = np.int64(0)
                for k in range(signs.shape[0]):
                    row = sums[bases[line] + box[f, k]]
                    usable += signs[k] * (row[z + depth] - row[z])
                best = max(best, usable)
    return best
