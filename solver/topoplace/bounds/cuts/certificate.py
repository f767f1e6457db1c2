"""From multipliers in floating point to a certificate whose matrices pass the integer test."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.bounds.cuts.descent import Floats
from topoplace.bounds.cuts.machine_cuts import MachineCuts
from topoplace.bounds.cuts.relaxation import Multipliers
from topoplace.bounds.cuts.semidefinite import LARGEST, is_semidefinite, margins
from topoplace.bounds.cuts.value import least_total
from topoplace.mapping.graph import IntArray
from topoplace.result.mapping import GAIN_BITS, CutLine, CutsCertificate

DIGITS = 49
"""Bits of the largest diagonal entry of L, scaled."""

DENSE = 200
"""Tasks up to which all eigenvalues are computed."""

NEAR = 1e-6
"""Relative error of the least eigenvalue of larger problems."""

ROOM = 1e-6
"""What is added to an eigenvalue, per layer, so that the test is passed."""

TRIALS = 12
"""Tests of one line, each with more added to the diagonal than the last."""


@dataclass(frozen=True)
class Guest:
    """A task graph as integers.

    Attributes
    ----------
    weights
        Bytes between all pairs of tasks, symmetric.
    unit
        What all bytes are multiples of.
    """

    weights: IntArray
    unit: int

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return len(self.weights)

    @cached_property
    def degrees(self) -> IntArray:
        """Bytes of every task with all others."""
        sums: IntArray = self.weights.sum(axis=1)
        return sums

    @cached_property
    def sparse(self) -> Any:
        """The weights as a sparse matrix of floats."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - heavy

        return csr_array(self.weights.astype(np.float64))

    @property
    def scale(self) -> int:
        """The scale of certificates; 0 if the bytes are too large for one."""
        return (1 << DIGITS) // int(self.degrees.max())

    @cached_property
    def laplacian(self) -> IntArray:
        """The Laplacian times the scale."""
        return self.scale * (np.diag(self.degrees) - self.weights)


def gains_of(cuts: MachineCuts) -> list[int] | None:
    """Return upper bounds on the kernels' eigenvalues beside ones, in 2^-GAIN_BITS; None if large.

    The factor of a certificate costs so much per square, times what `gain_per_square` says.
    """
    gains = []
    for kernel in cuts.kernels:
        num = len(kernel)
        centred = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
        highest = float(np.linalg.eigvalsh(centred)[-1]) if num > 1 else 0.0
        gain = int(highest * (1 + ROOM * num) * (1 << GAIN_BITS)) + 1 if num > 1 else 0
        if num > 1 and not _bounds_eigenvalues(kernel, gain):
            return None
        gains.append(gain)
    return gains


def _bounds_eigenvalues(kernel: IntArray, gain: int) -> bool:
    num = len(kernel)
    if num**2 * gain >= LARGEST or (num**2 * int(np.abs(kernel).max())) << GAIN_BITS >= LARGEST:
        return False
    centre = num * np.eye(num, dtype=np.int64) - 1
    matrix = gain * num**2 * np.eye(num, dtype=np.int64)
    matrix -= (centre @ kernel @ centre) << GAIN_BITS
    digits = int(np.diag(matrix).max()).bit_length()
    return digits < DIGITS and is_semidefinite(matrix << (DIGITS - digits))


def gain_per_square(cuts: MachineCuts, gains: list[int]) -> Fraction:
    """Return the largest part that a factor of length 1 can have in the sum of the cuts."""
    layers = [len(kernel) for kernel in cuts.kernels]
    every = int(np.prod(layers))
    largest = max(every // num * gain for num, gain in zip(layers, gains, strict=True))
    return Fraction(cuts.room * largest, 1 << GAIN_BITS)


class Rounding:
    """Rounds factors once, and lines for them one after the other, each of which is tested."""

    def __init__(self, guest: Guest, unit: float, factors: Floats) -> None:
        self.guest = guest
        self._digits = guest.scale * unit
        self.factors = np.array(
            [_balanced(row * self._digits**0.5) for row in factors], dtype=np.int64
        ).reshape(-1, guest.num_tasks)
        self._common = guest.laplacian + self.factors.T @ self.factors

    @property
    def fixed(self) -> Floats:
        """The factors as they are now, in the unit of the relaxation."""
        rows: Floats = self.factors / self._digits**0.5
        return rows

    def line(self, found: Multipliers, end: float) -> CutLine | None:
        """Return the line of multipliers; None if none passes the test before the time `end`."""
        prices = np.ceil(found.prices * self._digits).astype(np.int64)
        balance = int(np.ceil(found.balance * self._digits))
        matrix = self._common + balance
        matrix[np.diag_indices_from(matrix)] += prices
        lowest, error = self._least_eigenvalue(matrix, prices, balance)
        raised = margins(np.diag(matrix)) + int(np.ceil(-lowest))
        more = int(np.ceil(error))
        for _ in range(TRIALS):
            if clock.now() >= end:
                break
            raised += more
            tried = matrix.copy()
            tried[np.diag_indices_from(tried)] += raised
            if is_semidefinite(tried):
                return CutLine(prices=(prices + raised).tolist(), balance=balance)
            more *= 4
        return None

    def _least_eigenvalue(
        self, matrix: IntArray, prices: IntArray, balance: int
    ) -> tuple[float, float]:
        """Return about the least eigenvalue of the matrix of a line, and how wrong it may be."""
        highest = 2.0 * float(np.diag(matrix).max())
        if len(matrix) <= DENSE:
            return float(np.linalg.eigvalsh(matrix.astype(np.float64))[0]), 1e-12 * highest
        from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # noqa: PLC0415

        scale = self.guest.scale
        diagonal = prices + scale * self.guest.degrees

        def lowered(x: Floats) -> Floats:
            x = x.ravel()
            image = diagonal * x - scale * (self.guest.sparse @ x) + balance * x.sum()
            below: Floats = highest * x - image - self.factors.T @ (self.factors @ x)
            return below

        start = np.random.default_rng(0).standard_normal(len(matrix))
        operator = LinearOperator(matrix.shape, matvec=lowered, dtype=np.float64)
        try:
            found: Any = eigsh(operator, 1, which="LA", ncv=60, tol=NEAR, maxiter=20, v0=start)[0]
        except ArpackNoConvergence as stopped:
            found = stopped.eigenvalues
        return (highest - float(found[0]) if len(found) else 0.0), NEAR * highest

    def value(self, cuts: MachineCuts, gains: list[int], lines: list[CutLine]) -> int:
        """Return the hop-bytes that lines with the factors prove."""
        guest, scale = self.guest, self.guest.scale
        squares = sum(x * x for x in self.factors.ravel().tolist())
        paid = gain_per_square(cuts, gains) * squares if squares else Fraction(0)
        step = 0 if squares else 4 * scale * guest.unit
        total = least_total(cuts, [(-sum(x.prices), x.balance) for x in lines], paid, step)
        return guest.unit * max(0, -(-total // (8 * scale * guest.unit)))

    def certificate(
        self, cuts: MachineCuts, gains: list[int], lines: list[CutLine]
    ) -> CutsCertificate:
        """Return the certificate of lines with the factors."""
        factors = self.factors.tolist()
        return CutsCertificate(
            wrap=list(cuts.wrap),
            scale=self.guest.scale,
            lines=lines,
            factors=factors,
            gains=gains if factors else [],
        )


def _balanced(row: Floats) -> IntArray:
    """Return a row as integers that add up to 0, the entries nearest to the next one changed."""
    rounded = np.round(row)
    missing = -int(rounded.sum())
    step = 1 if missing > 0 else -1
    order = np.argsort(step * (rounded - row), kind="stable")
    rounded[order[: abs(missing)]] += step
    return rounded.astype(np.int64)
