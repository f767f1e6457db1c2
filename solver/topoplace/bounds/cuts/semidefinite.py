"""Whether an integer matrix is positive semidefinite, and the room the test needs."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.graph import IntArray

LARGEST = 1 << 52
"""Entries stay below: sums of products that are bounded by a diagonal entry are then exact."""


def margins(diagonal: IntArray) -> IntArray:
    """Return what the rounding of a Cholesky factor may cost in every row, by its diagonal."""
    roots = np.sqrt(np.maximum(diagonal, 0).astype(np.float64))
    num = len(diagonal)
    needed: IntArray = np.ceil((num * roots + roots.sum() + num * num) / 2).astype(np.int64)
    return needed


def is_semidefinite(matrix: IntArray) -> bool:
    """Tell whether the test of docs/proofs-graphs.md, "Semidefinite matrices", is passed."""
    diagonal = np.diag(matrix)
    if diagonal.min() <= 0 or diagonal.max() >= LARGEST:
        return False
    lowered = matrix.astype(np.float64)
    lowered[np.diag_indices_from(lowered)] -= margins(diagonal)
    try:
        factor = np.round(np.linalg.cholesky(lowered))
    except np.linalg.LinAlgError:
        return False
    if not (np.einsum("ij,ij->i", factor, factor) < LARGEST).all():
        return False
    left = matrix - (factor @ factor.T).astype(np.int64)
    return bool((2 * np.diag(left) >= np.abs(left).sum(axis=1)).all())
