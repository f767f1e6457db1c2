"""Proof that an integer matrix is positive semidefinite ("Semidefinite matrices").

Floating point only guesses a factor R. What is left of the matrix without R R' is found exactly,
and a matrix whose diagonal outweighs its rows is positive semidefinite.
"""

from __future__ import annotations

import numpy as np

from topoplace.certify.mapping.instance import IntArray
from topoplace.certify.report import RefusedError

LIMIT = 1 << 52

STRIP = 512
"""Rows of the remainder that are formed at once."""


def require_semidefinite(matrix: IntArray, name: str) -> None:
    """Refuse a symmetric matrix unless it is proven to be positive semidefinite.

    Parameters
    ----------
    matrix
        Symmetric, with entries below 2^60; shape ``(n, n)``.
    name
        What the matrix is, for the reason of a refusal.
    """
    diagonal = np.diagonal(matrix)
    if int(diagonal.min()) <= 0 or int(diagonal.max()) >= LIMIT:
        raise RefusedError(f"{name}: a diagonal entry is not between 1 and 2^52")
    factor = _factor(matrix, diagonal)
    if factor is None:
        raise RefusedError(f"{name} is not positive semidefinite")
    # Entries are below 2^26, because in 64-bit integers every row's squares add up to less than
    # 2^52. By Cauchy and Schwarz so do the sizes of the products of any two rows, and of any
    # part of them: whatever the order in which a float product adds them, all sums are exact.
    whole = factor.astype(np.int64)
    if int(np.abs(whole).max()) >= 1 << 26 or int((whole * whole).sum(axis=1).max()) >= LIMIT:
        raise RefusedError(f"{name}: its factor is too large to be multiplied exactly")
    for first in range(0, len(matrix), STRIP):
        rows = slice(first, first + STRIP)
        rest = matrix[rows] - (factor[rows] @ factor.T).astype(np.int64)
        own = np.diagonal(rest, first).copy()
        # below 2^61 each, at most 2^12 of them: added up as floats with room to spare
        others = np.abs(rest).sum(axis=1, dtype=np.float64) - np.abs(own)
        if (own < 0).any() or (own < others * (1 + 1e-9)).any():
            raise RefusedError(f"{name}: what its factor leaves is not diagonally dominant")


def _factor(matrix: IntArray, diagonal: IntArray) -> np.ndarray | None:
    """Return a factor of the matrix less what rounding may cost, rounded; None if there is none."""
    roots = np.sqrt(diagonal.astype(np.float64))
    lowered = matrix.astype(np.float64)
    num = len(matrix)
    lowered.flat[:: num + 1] -= np.ceil((num * roots + roots.sum() + num**2) / 2)
    try:
        factor = np.rint(np.linalg.cholesky(lowered))
    except np.linalg.LinAlgError:
        return None
    return factor if np.isfinite(factor).all() else None
