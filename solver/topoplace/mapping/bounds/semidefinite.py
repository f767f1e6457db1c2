"""Whether an integer matrix is positive semidefinite, and what its diagonal lacks for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.types import FloatArray, IntArray

LARGEST = 1 << 52
"""Entries stay below: sums of products that are bounded by a diagonal entry are then exact."""


def margins(diagonal: IntArray) -> IntArray:
    """Return what the rounding of a Cholesky factor may cost in every row, by its diagonal."""
    roots = np.sqrt(np.maximum(diagonal, 0).astype(np.float64))
    num = len(diagonal)
    needed: IntArray = np.ceil((num * roots + roots.sum() + num * num) / 2).astype(np.int64)
    return needed


def is_semidefinite(matrix: IntArray) -> bool:
    """Return whether the test of docs/proofs/graphs.md, "Semidefinite matrices", is passed."""
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


TRIALS = 12
"""Tests of one matrix, each with more added to the diagonal than the last."""

DENSE = 200
"""Rows up to which all eigenvalues are computed."""

NEAR = 1e-6
"""Relative error of the least eigenvalue of larger matrices."""

TEST_SECONDS = 1e-10
"""Estimate of the time of a test on a busy core, per cube of the rows."""


def test_seconds(num: int) -> float:
    """Return about how long the tests of one matrix take, two of them as a rule."""
    return 2 * TEST_SECONDS * num**3


def raised(
    matrix: IntArray, image: Callable[[FloatArray], FloatArray], end: float
) -> IntArray | None:
    """Return what a diagonal lacks for the test to be passed, and not much more.

    None if no trial passes it before the clock shows `end`. `image` multiplies vectors by the
    matrix.
    """
    try:
        highest = 2.0 * float(np.diag(matrix).max())
        lowest, error = lowest_eigenvalue(len(matrix), highest, image, end)
    except clock.OutOfTimeError:
        return None
    found = margins(np.diag(matrix)) + int(np.ceil(-lowest))
    more = int(np.ceil(error))
    for _ in range(TRIALS):
        if clock.now() >= end:
            break
        found += more
        tried = matrix.copy()
        tried[np.diag_indices_from(tried)] += found
        if is_semidefinite(tried):
            return found
        more *= 4
    return None


def lowest_eigenvalue(
    num: int,
    highest: float,
    image: Callable[[FloatArray], FloatArray],
    end: float,
    near: float = NEAR,
) -> tuple[float, float]:
    """Return about the least eigenvalue of a matrix, and how wrong it may be.

    Parameters
    ----------
    num, highest
        Rows of the matrix, and what no eigenvalue is above by more than a factor.
    image
        Multiplies vectors by the matrix.
    end
        When the time is over.
    near
        How wrong it may be, relative to `highest`, where not all eigenvalues are computed.

    Raises
    ------
    OutOfTimeError
        When the clock shows `end`.
    """
    if num <= DENSE:
        dense = np.array([image(row) for row in np.eye(num)])
        return float(np.linalg.eigvalsh(dense)[0]), 1e-12 * highest
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # noqa: PLC0415

    def lowered(x: FloatArray) -> FloatArray:
        clock.check(end)
        x = x.ravel()
        below: FloatArray = highest * x - image(x)
        return below

    start = np.random.default_rng(0).standard_normal(num)
    operator = LinearOperator((num, num), matvec=lowered, dtype=np.float64)
    try:
        found: Any = eigsh(operator, 1, which="LA", ncv=60, tol=near, maxiter=20, v0=start)[0]
    except ArpackNoConvergence as stopped:
        found = stopped.eigenvalues
    return (highest - float(found[0]) if len(found) else 0.0), near * highest
