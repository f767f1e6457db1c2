"""The fewest leaves of a grid of cells, row by row and cell by cell.

What is kept of the cells so far is the frontier: per column its last cell, as a *symbol* (a class
and, where that counts, the cells of its piece so far), and whether the cell put last and the one
that comes next in the frontier are linked by a cell that is not in it any more.
"""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

TOO_MANY = -1
"""The frontiers are more than there is room for."""

_RING = 8
"""Cells of the smallest piece with a hole, whose ends may be joined unnoticed."""


@kernel()
def _put(keys, costs, used, num, key, cost):
    """Keep the least cost of a frontier in a hash table; return how many there are now."""
    mask = len(keys) - 1
    at = (key * 0x9E3779B97F4A7C1 >> 17) & mask
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) & mask
    if keys[at] < 0:
        keys[at] = key
        costs[at] = cost
        used[num] = at
        return num + 1
    costs[at] = min(costs[at], cost)
    return num


@kernel()
def _joined(classes, c, k, leftmost, topmost, frontier, linked):
    """Return how many cells a piece has with one more cell of a class, 0 if it may not be there.

    Parameters
    ----------
    c, k
        Column and class of the cell.
    leftmost, topmost
        Whether no cell is before it in its row, and whether none is above it.

    Returns
    -------
    The cells, and whether the cells before and above are of the piece.
    """
    size, before, above = 1, False, False
    if not leftmost:
        other = classes.of_symbol[frontier[c - 1]]
        before = other == k and classes.bonded[1, k]
        if not before and not classes.pairs[1, other, k]:
            return 0, before, above
        if before:
            size += classes.size[frontier[c - 1]]
    if not topmost:
        other = classes.of_symbol[frontier[c]]
        above = other == k and classes.bonded[0, k]
        if not above and not classes.pairs[0, other, k]:
            return 0, before, above
        if above and not (before and linked):
            more = classes.size[frontier[c]]
            if before and classes.cells[k] >= _RING:  # they may be one piece
                size = max(size, 1 + more)
            else:
                size += more
    if size > classes.cells[k]:
        return 0, before, above
    return size, before, above


@kernel()
def _next(classes, c, k, size, before, above, frontier):
    """Put a cell into a frontier, and the size of its piece into all cells of it that are there.

    Returns
    -------
    Whether the cell is linked with the next one of the frontier.
    """
    symbol = classes.first[k] + (size - 1 if classes.counted[k] else 0)
    frontier[c] = symbol
    if before:
        p = c - 1
        while p >= 0 and classes.of_symbol[frontier[p]] == k:
            frontier[p] = symbol
            p -= 1
    linked = False
    if above and classes.bonded[1, k]:
        p = c + 1
        while p < len(frontier) and classes.of_symbol[frontier[p]] == k:
            frontier[p] = symbol
            linked = True
            p += 1
    return linked


@kernel()
def fewest(rows, width, classes, budget, most):
    """Return the least cost of a grid of cells, each in a class.

    Cells of a class that are beside each other along a dim in which it is `bonded` are in one
    piece, which has no more than so many cells. Cells that are not in one piece are beside each
    other only if `pairs` allows it.

    Parameters
    ----------
    rows, width
        Cells of dims 0 and 1.
    classes
        A `Classes`.
    budget
        Costs above it are not told apart.
    most
        Frontiers that there is room for.

    Returns
    -------
    The cost, ``budget + 1`` if it is above the budget, `TOO_MANY` if it is not known.
    """
    num_symbols = len(classes.of_symbol)
    room = 1
    while room < 2 * most:
        room *= 2
    keys, costs = np.full(room, -1, dtype=np.int64), np.empty(room, dtype=np.int64)
    new_keys, new_costs = keys.copy(), costs.copy()
    used, new_used = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    frontier, trial = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
    rest = np.zeros(rows + 1, dtype=np.int64)  # the least that so many rows cost
    cheapest = classes.cost.min()
    rest[:] = np.arange(rows + 1) * width * cheapest
    num = _put(keys, costs, used, 0, 0, 0)
    for r in range(rows):
        for c in range(width):
            new_num = 0
            least = rest[rows - r - 1] + (width - c - 1) * cheapest
            for i in range(num):
                at = used[i]
                key, cost = keys[at], costs[at]
                keys[at] = -1
                linked = key & 1 == 1
                code = key >> 1
                for p in range(width):
                    frontier[p] = code % num_symbols
                    code //= num_symbols
                for k in range(len(classes.cells)):
                    now = cost + classes.cost[k]
                    if now + least > budget:
                        continue
                    size, before, above = _joined(classes, c, k, c == 0, r == 0, frontier, linked)
                    if size == 0:
                        continue
                    trial[:] = frontier
                    link = _next(classes, c, k, size, before, above, trial)
                    code = 0
                    for p in range(width - 1, -1, -1):
                        code = code * num_symbols + trial[p]
                    code = 2 * code + link
                    if new_num >= most:
                        return TOO_MANY
                    new_num = _put(new_keys, new_costs, new_used, new_num, code, now)
            keys, new_keys = new_keys, keys
            costs, new_costs = new_costs, costs
            used, new_used = new_used, used
            num = new_num
            if num == 0:
                return budget + 1
        rest[r + 1] = costs[used[:num]].min()
        for n in range(r + 2, rows + 1):
            for m in range(1, r + 2):
                rest[n] = max(rest[n], rest[m] + rest[n - m])
    return rest[rows]
