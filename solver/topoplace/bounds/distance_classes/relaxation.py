"""The semidefinite relaxation, solved by alternating projections (ADMM) in closed form.

After de Klerk and Sotirov, "Exploiting group symmetry in semidefinite programming relaxations of
the quadratic assignment problem", Mathematical Programming 122 (2010), section 5. With entries
scaled by the square roots of valencies and multiplicities the map from classes to eigenspaces is
orthogonal, so that both halves of the constraints have a projection: entries are not negative
(one class per pair), and spaces are positive semidefinite with rows that add up to 0. The
multipliers of the second half are positive semidefinite as they are, whatever the accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topoplace import clock
from topoplace.bounds.distance_classes.scheme import FloatArray, Scheme
from topoplace.mapping.graph import IntArray

STEP = 1.6  # over-relaxation, as usual between 1.5 and 1.8
UNBALANCED = 5.0  # ratio of the residuals from which on the penalty is corrected
CORRECTION = 1.3
PENALTY = 20.0  # in units of the root mean square of the bytes; balanced later on


@dataclass(frozen=True)
class Multipliers:
    """Dual values, in bytes x hops.

    Attributes
    ----------
    strengths, directions
        Eigenvalues (not negative) and eigenvectors of the multiplier of every space but the
        first, shapes ``(spaces, places)`` and ``(spaces, places, places)``.
    rows
        Row multipliers of every class and place.
    value
        The bound they give, as a float.
    """

    strengths: FloatArray
    directions: FloatArray
    rows: FloatArray
    value: float


class Relaxation:
    """The relaxation for one byte matrix; `advance` improves it step by step.

    Parameters
    ----------
    scheme
        Of the machine's places.
    exchanged
        Bytes between tasks in both directions, silent tasks included, shape ``(places, places)``.
    """

    def __init__(self, scheme: Scheme, exchanged: IntArray) -> None:
        n = scheme.num_places
        self._eigenvalues = scheme.place_eigenvalues
        self._roots = np.sqrt(scheme.place_valencies)[:, None, None]
        self._spreads = np.sqrt(n * self._eigenvalues[0])
        self._turn = self._eigenvalues * self._roots[:, :, 0] / self._spreads
        self._unit = max(1.0, float(np.sqrt((exchanged.astype(np.float64) ** 2).mean())))
        bytes_ = exchanged / self._unit
        self._costs = scheme.place_hops[:, None, None] / 2 * bytes_ * self._roots
        self._point = np.broadcast_to(
            scheme.place_valencies[:, None, None] / n / self._roots, self._costs.shape
        ).copy()
        self._dual = np.zeros_like(self._costs)
        self._penalty = PENALTY
        self._mean = np.empty(0)
        self._negative = np.empty(0)
        self._vectors = np.empty(0)
        self._imbalance = 1.0
        self.error = np.inf

    def advance(self, steps: int, stop: float) -> None:
        """Take some steps, or one and as many as there is time for until `stop`.

        `error` is the larger relative residual after them.
        """
        if not 1 / UNBALANCED <= self._imbalance <= UNBALANCED:
            factor = CORRECTION if self._imbalance > 1 else 1 / CORRECTION
            self._penalty *= factor
            self._dual /= factor
        for _ in range(steps):
            entries = self._entries()
            mixed = STEP * entries + (1 - STEP) * self._point + self._dual
            before, self._point = self._point, self._spaces(mixed)
            self._dual = mixed - self._point
            if clock.now() >= stop:
                break
        primal = _norm(entries - self._point) / max(1.0, _norm(self._point))
        change = _norm(self._point - before) / max(1e-9, _norm(self._dual))
        self.error = max(primal, change)
        self._imbalance = primal / max(change, 1e-300)

    def _entries(self) -> FloatArray:
        """Return the nearest entries that are not negative; a task is of class 0 to itself."""
        entries: FloatArray = np.maximum(self._point - self._dual - self._costs / self._penalty, 0)
        entries[0] = 0
        diagonal = np.arange(entries.shape[1])
        entries[:, diagonal, diagonal] = 0
        entries[0, diagonal, diagonal] = 1
        return entries

    def _spaces(self, mixed: FloatArray) -> FloatArray:
        """Return the nearest positive semidefinite spaces, in terms of the classes again."""
        spaces = np.tensordot(self._turn.T, mixed, 1)
        spaces[0] = 1 / self._spreads[0]
        rest = spaces[1:]
        means = rest.mean(axis=2)
        # what the projection to rows that add up to 0 takes away is mean_i + mean_k
        self._mean = means - means.mean(axis=1, keepdims=True) / 2
        rest -= self._mean[:, :, None] + self._mean[:, None, :]
        values, self._vectors = np.linalg.eigh(rest)
        self._negative = np.minimum(values, 0)
        kept = self._vectors * np.maximum(values, 0)[:, None, :]
        spaces[1:] = kept @ self._vectors.transpose(0, 2, 1)
        turned: FloatArray = np.tensordot(self._turn, spaces, 1)
        return turned

    def multipliers(self) -> Multipliers:
        """Return the current dual values and the bound they give."""
        weight = self._penalty * self._unit / self._spreads[1:, None]
        reduced = self._unit * (self._costs + self._penalty * self._dual) / self._roots
        first = self._unit * self._penalty * np.tensordot(self._turn[:, 0], self._dual, 1)
        n = reduced.shape[1]
        least = reduced[1:].min(axis=0)
        np.fill_diagonal(least, np.diagonal(reduced[0]))
        return Multipliers(
            -self._negative * weight,
            self._vectors,
            -self._eigenvalues[:, 1:] @ (self._mean * weight),
            float(least.sum() - first.sum() / np.sqrt(n)),
        )


def _norm(array: FloatArray) -> float:
    return float(np.linalg.norm(array))
