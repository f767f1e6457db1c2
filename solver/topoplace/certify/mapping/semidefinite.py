"""Proof that an integer matrix is positive semidefinite ("Semidefinite matrices").

Floating point only guesses a factor R. What is left of the matrix without R R' is found exactly,
and a matrix whose diagonal outweighs its rows is positive semidefinite.
"""

from __future__ import annotations

import numpy as np

from topoplace.certify.integers import IntArray, largest, require_room, row_sums, square_of, whole
from topoplace.certify.report import RefusedError

LIMIT = 1 << 52

LARGEST_ENTRY = 1 << 60

STRIP = 512
"""Rows of the remainder that are formed at once."""


def require_semidefinite(matrix: IntArray, name: str) -> None:
    """Refuse a symmetric matrix unless it is proven to be positive semidefinite.

    Parameters
    ----------
    matrix
        Symmetric, shape ``(n, n)``; refused unless all entries are below 2^60, and those of the
        diagonal between 1 and 2^52.
    name
        What the matrix is, for the reason of a refusal.
    """
    require_room(largest(matrix), name, LARGEST_ENTRY)
    diagonal = np.diagonal(matrix)
    if int(diagonal.min()) <= 0 or int(diagonal.max()) >= LIMIT:
        raise RefusedError(f"{name}: a diagonal entry is not between 1 and 2^52")
    factor = _factor(matrix, diagonal)
    if factor is None:
        raise RefusedError(f"{name} is not positive semidefinite")
    for first in range(0, len(matrix), STRIP):
        rows = slice(first, first + STRIP)
        # entries below 2^60, and products of rows below 2^53
        rest = matrix[rows] - square_of(factor, rows, f"{name}: its factor")
        own = np.diagonal(rest, first)
        others = row_sums(np.abs(rest), f"{name}: what its factor leaves") - np.abs(own)
        if (own < others).any():
            raise RefusedError(f"{name}: what its factor leaves is not diagonally dominant")


def _factor(matrix: IntArray, diagonal: IntArray) -> IntArray | None:
    """Return a factor of the matrix less what rounding may cost, rounded; None if there is none."""
    roots = np.sqrt(diagonal.astype(np.float64))
    lowered = matrix.astype(np.float64)
    num = len(matrix)
    lowered.flat[:: num + 1] -= np.ceil((num * roots + roots.sum() + num**2) / 2)
    try:
        return whole(np.linalg.cholesky(lowered), 1 << 27)
    except np.linalg.LinAlgError:
        return None
