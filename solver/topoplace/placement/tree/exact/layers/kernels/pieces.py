"""The pieces that are left of a small layer of a grid for every set of cells taken out."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def pieces(rows, width):
    """Return the cells taken out and the pieces of every size for every set of cells.

    Returns
    -------
    Shape ``(2 ** cells, cells + 1)``: column 0 the cells taken out, column k the pieces of k cells.
    """
    cells = rows * width
    found = np.zeros((1 << cells, cells + 1), dtype=np.int8)
    stack = np.empty(cells, dtype=np.int64)
    for out in range(1 << cells):
        left = (1 << cells) - 1 - out
        num_left = 0
        for start in range(cells):
            if not left >> start & 1:
                continue
            left ^= 1 << start
            stack[0] = start
            size, top = 0, 1
            while top > 0:
                top -= 1
                cell = stack[top]
                size += 1
                r, c = cell // width, cell % width
                for other, there in (
                    (cell - width, r > 0),
                    (cell + width, r < rows - 1),
                    (cell - 1, c > 0),
                    (cell + 1, c < width - 1),
                ):
                    if there and left >> other & 1:
                        left ^= 1 << other
                        stack[top] = other
                        top += 1
            found[out, size] += 1
            num_left += size
        found[out, 0] = cells - num_left
    return found
