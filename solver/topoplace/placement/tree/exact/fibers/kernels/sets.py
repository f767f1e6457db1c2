"""The components of all sets of corners of a small cube, or of cells of any small graph."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def components_of_sets(near, most):
    """Return, per set of cells, how many components of every size it has and the cells apart.

    Parameters
    ----------
    near
        Per cell the set of its neighbours, as bits.
    most
        Cells of the box.

    Returns
    -------
    Shape ``(2^most, most + 1)``; at 0 the number of cells neither in the set nor next to it.
    """
    found = np.zeros((1 << most, most + 1), dtype=np.int8)
    for cells in range(1 << most):
        around = cells
        for c in range(most):
            if cells >> c & 1:
                around |= near[c]
        apart = 0
        for c in range(most):
            if not around >> c & 1:
                apart += 1
        found[cells, 0] = apart
        rest = cells
        while rest:
            part = rest & -rest
            grown = part
            while True:
                for c in range(most):
                    if part >> c & 1:
                        grown |= near[c] & cells
                if grown == part:
                    break
                part = grown
            size = 0
            for c in range(most):
                if part >> c & 1:
                    size += 1
            found[cells, size] += 1
            rest &= ~part
    return found
