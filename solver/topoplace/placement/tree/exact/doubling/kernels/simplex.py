"""A dense primal simplex method for many small programs that begin with a unit basis."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

OPTIMAL, STOPPED = 0, 1

_DEAR = -1e-7
_PIVOT = 1e-9
_MOST_PIVOTS = 2000


@kernel(fastmath=True)
def _enter(rows, costs, sides, row, column, num):
    """Let a column, of so many, enter the basis in the place of a row's."""
    own = rows[row]
    scale = 1.0 / own[column]
    for j in range(num):
        own[j] *= scale
    sides[row] *= scale
    for i in range(len(rows)):
        factor = rows[i, column]
        if i != row and factor != 0.0:
            other = rows[i]
            for j in range(num):
                other[j] -= factor * own[j]
            other[column] = 0.0
            sides[i] -= factor * sides[row]
    factor = costs[column]
    for j in range(num):
        costs[j] -= factor * own[j]
    costs[column] = 0.0


@kernel()
def minimised(rows, costs, sides, basis, num):
    """Solve a program in place: rows and sides in terms of the basis, costs reduced.

    Parameters
    ----------
    rows, costs
        Shape ``(m, n)`` and ``(n,)``. The columns of the basis are those of the unit matrix, and
        cost 0 once reduced.
    sides
        Shape ``(m, 2)``, none below 0: right hand sides made unequal, which decide between rows,
        and the true ones.
    basis
        Shape ``(m,)``: the column of every row.
    num
        How many columns there are yet.

    Returns
    -------
    `OPTIMAL` or, after very many pivots, `STOPPED`.
    """
    for _ in range(_MOST_PIVOTS):
        column = np.argmin(costs[:num])
        if costs[column] > _DEAR:
            return OPTIMAL
        row = -1
        least = np.inf
        for i in range(len(rows)):
            if rows[i, column] > _PIVOT:
                ratio = sides[i, 0] / rows[i, column]
                if ratio < least:
                    least = ratio
                    row = i
        if row < 0:
            return STOPPED
        _enter(rows, costs, sides, row, column, num)
        basis[row] = column
    return STOPPED
