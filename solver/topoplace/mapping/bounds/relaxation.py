"""The semidefinite relaxation of all cuts of a machine, by a low-rank method."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.types import FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]

# ---- The semidefinite relaxation of all cuts together, by a low-rank method ----------------------
# Every task gets a unit vector in a space of few dimensions; the scalar products stand for the
# average over the cuts of whether two tasks are on the same side. Burer and Monteiro (2003) solve
# semidefinite programs so, with an augmented Lagrangian for the constraints that are not
# built in. Certificates are made from its multipliers, which are valid, converged or not.

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

    prices: FloatArray
    balance: float
    factors: FloatArray


@dataclass(frozen=True)
class Relaxation:
    """Minimise <L + F'F, Y> over Y >= 0 with ones on its diagonal and two limits.

    `laplacian` is L, sparse with entries of about 1, `fixed` F, shape ``(number, num_tasks)``. The
    sum of all entries of Y is at most `spread`, its eigenvalues off the vector of ones at most
    `widest`, None for no limit; the vectors have `rank` dimensions.
    """

    laplacian: Any
    spread: float
    widest: float | None
    fixed: FloatArray
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

    def _slope(self, points: FloatArray) -> FloatArray:
        slope: FloatArray = self.laplacian @ points
        if len(self.fixed):
            slope += self.fixed.T @ (self.fixed @ points)
        return slope

    def _updated(self, state: _State, points: FloatArray) -> _State:
        total = points.sum(axis=0)
        balance = self._balance(state, total, len(points))
        return _State(self._strengths(state, points, total)[0], balance)

    def _balance(self, state: _State, total: FloatArray, num: int) -> float:
        """Return the multiplier of the limit of the sum."""
        over = float(total @ total) - self.spread
        return max(0.0, state.balance + PENALTY / 3 / num**2 * over)

    def _strengths(
        self, state: _State, points: FloatArray, total: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return the multipliers of the limit of eigenvalues, and their part of the objective."""
        if self.widest is None:
            return state.strengths, 0.0
        num = len(points)
        excess = points.T @ points - np.outer(total, total) / num
        excess[np.diag_indices(self.rank)] -= self.widest
        values, vectors = np.linalg.eigh(state.strengths + PENALTY / num * excess)
        values = np.maximum(values, 0.0)
        return (vectors * values) @ vectors.T, float(values @ values) * num / (2 * PENALTY)

    def _factors(self, state: _State, centred: FloatArray) -> FloatArray:
        """Return V with V'V Y = the multiplier of the limit, where eigenvalues are at the limit."""
        if self.widest is None:
            return np.zeros((0, len(centred)))
        values, vectors = np.linalg.eigh(state.strengths)
        kept = values > 1e-9 * max(1e-9, values[-1])
        roots = np.sqrt(values[kept] / self.widest)
        return np.ascontiguousarray((centred @ (vectors[:, kept] * roots)).T)

    def _objective(self, state: _State) -> Objective:
        """Return the augmented Lagrangian of points before they are put on the sphere."""

        def objective(rows: FloatArray) -> tuple[float, FloatArray]:
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
            balance = self._balance(state, total, num)
            slope += balance * total
            value += more + balance**2 / (2 * penalty)
            slope -= np.einsum("ij,ij->i", points, slope)[:, None] * points
            return value, 2 * slope / norms

        return objective


@dataclass(frozen=True)
class _State:
    """The multipliers of the limits of eigenvalues and of the sum."""

    strengths: FloatArray
    balance: float


# ---- A quasi-Newton method for small smooth problems (L-BFGS, Nocedal 1980) ----------------------
# scipy's method spends most of its time on waking threads for vectors of this length: on busy cores
# it is ten times slower.

MEMORY = 10
ENOUGH = 1e-4
"""Share of the descent predicted by the slope that a step must reach."""

SHORTENINGS = 20

DESCENT_SETTLED = 1e-10
"""Share of the value that the predicted descent of a step must have."""


def descend(
    objective: Objective, start: FloatArray, steps: int, stop: float
) -> tuple[FloatArray, bool]:
    """Return a better point, and whether it was found in fewer steps than allowed.

    `objective` returns a value and its gradient. The method ends after a number of steps, when no
    step helps, or when the clock is at `stop`.
    """
    point = start
    value, slope = objective(point)
    pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=MEMORY)
    for _ in range(steps):
        if clock.now() >= stop:
            break
        direction = _direction(slope, pairs)
        promised = float((direction * slope).sum())
        if promised >= 0:
            pairs.clear()
            direction, promised = -slope, -float((slope * slope).sum())
        if -promised <= DESCENT_SETTLED * abs(value):
            return point, True
        length = 1.0 if pairs else 1 / np.sqrt(-promised)
        for _ in range(SHORTENINGS):
            moved = length * direction
            new_value, new_slope = objective(point + moved)
            if new_value <= value + ENOUGH * length * promised:
                break
            length /= 3
        else:
            return point, True
        change = new_slope - slope
        product = float((moved * change).sum())
        if product > 0:
            pairs.append((moved, change, product))
        point, value, slope = point + moved, new_value, new_slope
    return point, False


def _direction(slope: FloatArray, pairs: deque[tuple[FloatArray, FloatArray, float]]) -> FloatArray:
    """Return minus the slope, corrected by the curvature along the last steps."""
    direction = -slope
    shares = []
    for moved, change, product in reversed(pairs):
        share = float((moved * direction).sum()) / product
        shares.append(share)
        direction = direction - share * change
    if pairs:
        _, change, product = pairs[-1]
        direction = direction * (product / float((change * change).sum()))
    for (moved, change, product), share in zip(pairs, reversed(shares), strict=True):
        direction = direction + moved * (share - float((change * direction).sum()) / product)
    return direction
