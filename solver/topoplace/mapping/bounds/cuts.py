"""Bounds by the cuts of a machine: relaxation and descent."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray
from topoplace.result.mapping import STAR_ROUTERS

# ---- Whether an integer matrix is positive semidefinite, and the room the test needs -------------

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


# ---- What integers of a certificate of cuts prove, given that its matrices are semidefinite ------

Line = tuple[int, int]
"""Height at s = 0, and fall per square of s, of 4 x scale x the bytes over a cut."""


def least_total(cuts: MachineCuts, lines: Sequence[Line], paid: Fraction, step: int) -> Fraction:
    """Return what is proven of 8 x scale x hop-bytes.

    Parameters
    ----------
    cuts
        The cuts.
    lines
        Each a lower bound for every cut; 0 is another.
    paid
        What the factors cost in all.
    step
        4 x scale x the unit of bytes, if a cut may be rounded up to a multiple of it; else 0.
    """
    groups = Counter(zip(cuts.weights, cuts.least, cuts.most, strict=True))
    rounded = Fraction(0)
    for (weight, _, most), times in groups.items():
        height = max(0, *(a - b * most for a, b in lines))
        rounded += times * weight * (-(-height // step) * step if step else height)
    priced = (
        sum(
            (times * weight * _least(lines, low, high, price))
            for (weight, low, high), times in groups.items()
        )
        - price * cuts.spread
        for _, price in lines
    )
    return max(rounded, *priced) - paid


def _least(lines: Sequence[Line], low: int, high: int, price: int) -> Fraction:
    """Return the least of the highest line plus a price per square of s, between two squares."""
    every = [*lines, (0, 0)]
    points = [Fraction(low), Fraction(high)]
    for (a, b), (c, d) in itertools.combinations(every, 2):
        if b != d and low < Fraction(a - c, b - d) < high:
            points.append(Fraction(a - c, b - d))
    return min(max(a - b * q for a, b in every) + price * q for q in points)


# ---- The cuts whose weighted sum is the hop distance, and what the places let tasks do to them ---


@dataclass(frozen=True)
class MachineCuts:
    """The cuts of a machine that its places do not keep all tasks on one side of.

    A cut has its weight twice, to stay an integer, and `s` is the number of tasks on one side of it
    less that on the other.

    Attributes
    ----------
    wrap
        Which dimensions are rings.
    weights
        Twice the weight of every cut.
    least, most
        Least and largest square of s that the capacities allow, per cut.
    spread
        Upper bound on the weighted sum of all squares of s.
    kernels
        Per dimension the weighted sum of the cuts' outer products, as +1 and -1 per used layer.
    room
        Largest capacity of a router.
    """

    wrap: tuple[bool, ...]
    weights: list[int]
    least: list[int]
    most: list[int]
    spread: int
    kernels: list[IntArray]
    room: int

    @property
    def weight(self) -> int:
        """Sum of all weights."""
        return sum(self.weights)


def machine_cuts(machine: Torus, capacity: IntArray, num_tasks: int) -> MachineCuts:
    """Return the cuts of a torus or mesh and the limits of `num_tasks` tasks on its places."""
    weights: list[int] = []
    least: list[int] = []
    most: list[int] = []
    kernels = []
    table = capacity.reshape(machine.shape)
    for d, wraps in enumerate(machine.wrap):
        layers = table.sum(axis=tuple(k for k in range(machine.num_dims) if k != d))
        weight, signs = _dimension_cuts(len(layers), wraps)
        near = np.where(signs > 0, layers, 0).sum(axis=1)
        far = layers.sum() - near
        kept = signs[(near > 0) & (far > 0)]
        used = kept[:, layers > 0]
        kernels.append(weight * used.T @ used)
        weights += [weight] * len(kept)
        for row in kept:
            inside = int(layers[row > 0].sum())
            low, high = _squares(inside, int(layers.sum()) - inside, num_tasks)
            least.append(low)
            most.append(high)
    free = sum(w * m for w, m in zip(weights, most, strict=True))
    apart = sum(weights) * num_tasks**2 - 4 * least_apart(machine, capacity, num_tasks)
    return MachineCuts(
        machine.wrap, weights, least, most, min(free, apart), kernels, int(capacity.max())
    )


def _dimension_cuts(size: int, wraps: bool) -> tuple[int, IntArray]:
    """Return twice the weight of the cuts of one dimension, and their sides, a row per cut."""
    if not wraps:
        steps = np.arange(size)
        return 2, np.where(steps < steps[1:, None], 1, -1)
    starts = np.arange(size // 2 if size % 2 == 0 else size if size > 1 else 0)
    ahead = (np.arange(size) - starts[:, None]) % size
    return 2 - size % 2, np.where(ahead < size // 2, 1, -1)


def _squares(near: int, far: int, num_tasks: int) -> tuple[int, int]:
    """Return the least and the largest square of s with so many places on the two sides."""
    low = 2 * max(0, num_tasks - far) - num_tasks
    high = 2 * min(num_tasks, near) - num_tasks
    ends = low * low, high * high
    return (num_tasks % 2 if low <= 0 <= high else min(ends)), max(ends)


def least_apart(machine: Torus, capacity: IntArray, num_tasks: int) -> int:
    """Return a lower bound on the sum of distances over ordered pairs of distinct tasks.

    No task is closer to all others than to the nearest places; on a large machine the places are
    those of a full torus.
    """
    routers = np.flatnonzero(capacity)
    if len(routers) > STAR_ROUTERS:
        machine = Torus(machine.shape)
        row = machine.distances_from(0)
        full = np.full(machine.num_routers, capacity.max())
        return num_tasks * int(_nearest(row[None], full, num_tasks)[0])
    sums = np.empty(len(routers), dtype=np.int64)
    rows = np.empty((min(256, len(routers)), len(routers)), dtype=np.int64)
    for first in range(0, len(routers), len(rows)):
        some = routers[first : first + len(rows)]
        hops = machine.hops(some[:, None], routers[None, :])
        sums[first : first + len(some)] = _nearest(hops, capacity[routers], num_tasks)
    order = np.argsort(sums, kind="stable")
    room = capacity[routers][order]
    before = np.cumsum(room) - room
    return int((sums[order] * np.clip(num_tasks - before, 0, room)).sum())


def _nearest(hops: IntArray, capacity: IntArray, num_tasks: int) -> IntArray:
    """Return per row the sum of the `num_tasks` least distances, its own place's 0 included."""
    order = np.argsort(hops, axis=1, kind="stable")
    room = capacity[order]
    before = np.cumsum(room, axis=1) - room
    taken = np.clip(num_tasks - before, 0, room)
    sums: IntArray = (np.take_along_axis(hops, order, axis=1) * taken).sum(axis=1)
    return sums


# ---- The semidefinite relaxation of all cuts together, by a low-rank method ----------------------
# Every task gets a unit vector in a space of few dimensions; the scalar products stand for the
# average over the cuts of whether two tasks are on the same side. Burer and Monteiro (2003) solve
# semidefinite programs so, with an augmented Lagrangian for the constraints that are not
# built in. Its multipliers are what certificates are made of: they prove what they prove, converged
# or not.

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


# ---- A quasi-Newton method for small smooth problems (L-BFGS, Nocedal 1980) ----------------------
# scipy's spends most of its time on waking threads for vectors of this length: on busy cores it is
# ten times slower.

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]

MEMORY = 10
ENOUGH = 1e-4
"""Share of the fall that the slope promises, which a step must reach."""

SHORTENINGS = 20

DESCENT_SETTLED = 1e-10
"""Share of the value that a step must promise."""


def descend(objective: Objective, start: Floats, steps: int, stop: float) -> tuple[Floats, bool]:
    """Return a better point, and whether it was found in fewer steps than allowed.

    The method ends after so many steps, when nothing helps, or when the clock is at `stop`.

    Parameters
    ----------
    objective
        Returns a value and its gradient.
    start
        The first point, of any shape.
    """
    point = start
    value, slope = objective(point)
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
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


def _direction(slope: Floats, pairs: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Return minus the slope, bent by what the last steps say of the curvature."""
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
