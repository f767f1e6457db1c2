"""Compiled assignment of rows to columns by shortest augmenting paths, with dual values."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

NEVER = np.int64(1) << 62
"""Cost of a pair that may not be."""


@kernel()
def assign(cost, kind, num_rows, num_columns, work):
    """Assign every row to a column of its own at least cost (Jonker and Volgenant 1987).

    The cost of row i in column c is ``cost[i, kind[c]]``. Leaves in `work` the dual values:
    ``cost - u - v`` is never negative, v is never positive, and 0 for columns left free.

    Returns
    -------
    int
        The least cost, or `NEVER` if there is no assignment.
    """
    row_of, u, v = work.row_of, work.u, work.v
    row_of[:num_columns] = -1
    v[:num_columns] = 0
    for i in range(num_rows):
        at, least = -1, NEVER
        for c in range(num_columns):
            value = cost[i, kind[c]]
            # among equally cheap columns a free one saves a search
            if value < least or (value == least and at >= 0 and row_of[at] >= 0 > row_of[c]):
                at, least = c, value
        if least == NEVER:
            return NEVER
        u[i] = least
        work.late[i] = row_of[at] >= 0
        if not work.late[i]:
            row_of[at] = i
    for i in range(num_rows):
        if work.late[i] and not _augment(cost, kind, num_columns, i, work):
            return NEVER
    total = np.int64(0)
    for c in range(num_columns):
        if row_of[c] >= 0:
            total += cost[row_of[c], kind[c]]
    return total


@kernel()
def _augment(cost, kind, num_columns, start, work):
    """Give row `start` a column along the cheapest alternating path; tell whether there is one."""
    row_of, u, v = work.row_of, work.u, work.v
    length, before, scanned = work.length, work.before, work.scanned
    length[:num_columns] = NEVER
    scanned[:num_columns] = 0
    row, reached, last = start, np.int64(0), -1
    while True:
        end, least = -1, NEVER
        for c in range(num_columns):
            if scanned[c]:
                continue
            value = cost[row, kind[c]]
            if value != NEVER:
                value += reached - u[row] - v[c]
                if value < length[c]:
                    length[c], before[c] = value, last
            if length[c] < least:
                end, least = c, length[c]
        if end < 0:
            return False
        reached, last = least, end
        if row_of[end] < 0:
            break
        scanned[end] = 1
        row = row_of[end]
    u[start] += reached
    for c in range(num_columns):
        if scanned[c]:
            u[row_of[c]] += reached - length[c]
            v[c] -= reached - length[c]
    while before[last] >= 0:
        row_of[last] = row_of[before[last]]
        last = before[last]
    row_of[last] = start
    return True
