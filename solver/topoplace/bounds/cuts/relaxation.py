"""The semidefinite relaxation of all cuts together, by a low-rank method.

Every task gets a unit vector in a space of few dimensions; the scalar products stand for the
average over the cuts of whether two tasks are on the same side. Burer and Monteiro (2003) solve
semidefinite programs so, with an augmented Lagrangian for the constraints that are not
built in. Its multipliers are what certificates are made of: they prove what they prove, converged
or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.bounds.cuts.descent import Floats, Objective, descend

ROUNDS, STEPS = 15, 30
"""Updates of the multipliers, and steps of the quasi-Newton method between two of them."""

PENALTY = 30.0
"""Of eigenvalues, per task; that of the sum is a third of it per pair."""

SETTLED = 1e-5
"""Changes of eigenvalues of about 1 that are too small to go on for."""


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of a relaxation, so that L + V'V + diag(prices) + balance J is nearly >= 0.

    `factors` are the rows of V, orthogonal to ones; shape ``(number, num_tasks)``.
    """

    prices: Floats
    balance: float
    factors: Floats


@dataclass(frozen=True)
class Relaxation:
    """Minimise <L + F'F, Y> over Y >= 0 with ones on its diagonal and two limits.

    Attributes
    ----------
    laplacian
        L, sparse, with entries of about 1.
    spread
        Upper limit of the sum of all entries of Y.
    widest
        Upper limit of the eigenvalues of Y beside ones; None for no limit.
    fixed
        F; shape ``(number, num_tasks)``.
    rank
        Dimensions of the vectors.
    """

    laplacian: Any
    spread: float
    widest: float | None
    fixed: Floats
    rank: int

    def solve(self, stop: float) -> Multipliers:
        """Return multipliers after `ROUNDS` rounds, or when the clock reaches `stop`."""
        num = self.laplacian.shape[0]
        points = np.random.default_rng(0).standard_normal((num, self.rank))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        state = _State(np.zeros((self.rank, self.rank)), 1.0 / num)
        for _ in range(ROUNDS):
            points, settled = descend(self._objective(state), points, STEPS, stop)
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            before, state = state, self._updated(state, points)
            moved = float(np.abs(state.strengths - before.strengths).max())
            moved = max(moved, num * abs(state.balance - before.balance))
            if (settled and moved < SETTLED) or clock.now() >= stop:
                break
        total = points.sum(axis=0)
        slope = self._slope(points) + state.balance * total
        slope += (points - total / num) @ state.strengths
        prices = -np.einsum("ij,ij->i", points, slope)
        return Multipliers(prices, state.balance, self._factors(state, points - total / num))

    def _slope(self, points: Floats) -> Floats:
        slope: Floats = self.laplacian @ points
        if len(self.fixed):
            slope += self.fixed.T @ (self.fixed @ points)
        return slope

    def _updated(self, state: _State, points: Floats) -> _State:
        num, total = len(points), points.sum(axis=0)
        return _State(
            self._strengths(state, points, total)[0],
            max(0.0, state.balance + PENALTY / 3 / num**2 * (float(total @ total) - self.spread)),
        )

    def _strengths(self, state: _State, points: Floats, total: Floats) -> tuple[Floats, float]:
        """Return the multipliers of the limit of eigenvalues, and what it adds to the objective."""
        if self.widest is None:
            return state.strengths, 0.0
        num = len(points)
        excess = points.T @ points - np.outer(total, total) / num
        excess[np.diag_indices(self.rank)] -= self.widest
        values, vectors = np.linalg.eigh(state.strengths + PENALTY / num * excess)
        values = np.maximum(values, 0.0)
        return (vectors * values) @ vectors.T, float(values @ values) * num / (2 * PENALTY)

    def _factors(self, state: _State, centred: Floats) -> Floats:
        """Return V with V'V Y = the multiplier of the limit, where eigenvalues are at the limit."""
        if self.widest is None:
            return np.zeros((0, len(centred)))
        values, vectors = np.linalg.eigh(state.strengths)
        kept = values > 1e-9 * max(1e-9, values[-1])
        roots = np.sqrt(values[kept] / self.widest)
        return np.ascontiguousarray((centred @ (vectors[:, kept] * roots)).T)

    def _objective(self, state: _State) -> Objective:
        """Return the augmented Lagrangian of points before they are put on the sphere."""

        def objective(rows: Floats) -> tuple[float, Floats]:
            num = len(rows)
            penalty = PENALTY / 3 / num**2
            norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
            points = rows / norms
            total = points.sum(axis=0)
            slope = self._slope(points)
            value = float((points * slope).sum())
            strengths, more = self._strengths(state, points, total)
            if self.widest is not None:
                slope += (points - total / num) @ strengths
            balance = max(0.0, state.balance + penalty * (total @ total - self.spread))
            slope += balance * total
            value += more + balance**2 / (2 * penalty)
            slope -= np.einsum("ij,ij->i", points, slope)[:, None] * points
            return value, 2 * slope / norms

        return objective


@dataclass(frozen=True)
class _State:
    """The multipliers of the limits of eigenvalues and of the sum."""

    strengths: Floats
    balance: float
