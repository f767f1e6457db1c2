"""A bound on the bytes over any cut of a graph whose sides are about even, in integers.

It is the relaxation of bisection to unit vectors, with triangle inequalities: two tasks are on
different sides of a cut only if any third one is apart from one of them (docs/proofs/objects.md,
"Cuts").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from topoplace import clock
from topoplace.mapping.bounds._bisection_kernels import gaps, mix, violated
from topoplace.mapping.bounds.semidefinite import lowest_eigenvalue, raised, test_seconds
from topoplace.mapping.graph import Rows
from topoplace.result.certificate import packed, unpacked
from topoplace.result.mapping import MOST_TRIANGLES, Bisection, Triangles
from topoplace.types import FloatArray, IntArray

RANK, ROUNDS, SWEEPS, PACE = 24, 60, 6, 20
"""Dimensions of the vectors, rounds in which they are turned, and sweeps of a round. After `PACE`
rounds the steps of the balance are half as long, so that they come to rest where it has a kink."""

SCALE_BITS = 49
"""Bits of the largest entry of a certificate's matrix."""

STEPS, TURNS = 400, 18
"""Steps of the amounts of triangles, and sweeps of the vectors before each."""

WORK, LONG = 200_000, 1e5
"""Steps times tasks where there is no time limit, or one of more seconds than any."""

LOOK, LIST, GAIN, IDLE = 25, 10, 1e-3, 3
"""Steps between two values of the bound, and between two lists of triangles that are violated; and
the part by which a value has to rise from one look to the next. After `IDLE` looks without such a
rise the search ends."""

STEP, HALVED, MOMENTUM = 0.05, 60, 0.8
"""The first step's length, in bytes of a task; after how many steps it is half as long; and the
momentum of the gaps of the step before."""

PART = 0.8
"""Part of the time that steps may take; the test has the rest."""

LEAST_GAP, NEW_PER_TASK = 0.1, 4
"""Gap above which triangles are listed, and how many are added at a time, per task."""

LISTED = 300_000
"""Triangles looked at when some are added."""

COARSE = 1e-3
"""Relative error of the least eigenvalue where multipliers are compared."""

AMOUNTS_BITS = 58
"""Bits of the sum of all amounts."""

AMOUNT_BITS = 16
"""Significant bits of amounts: more would hardly raise bounds."""


class _Weights(NamedTuple):
    """Symmetric weights by row, as `Rows`, but they may be of any sign."""

    first: IntArray
    other: IntArray
    weight: FloatArray
    matrix: Any

    @property
    def degrees(self) -> FloatArray:
        """Return the sum of every row."""
        sums: FloatArray = self.matrix.sum(axis=1)
        return sums


@dataclass(frozen=True)
class _Dual:
    """Prices of tasks and of the square of s, and amounts of triangles, in bytes.

    `corners` has the middle and the ends of every triangle.
    """

    prices: FloatArray
    balance: float
    corners: IntArray
    amount: FloatArray


def bisection(
    rows: Rows, loads: IntArray, most: int, *, seed: int = 0, stop: float
) -> Bisection | None:
    """Return the multipliers of a bound on the bytes over any cut; None if there are none in time.

    Parameters
    ----------
    rows
        The bytes between tasks, each pair listed at both ends.
    loads
        Of every task, not all 0.
    most
        The difference in load of the sides of cuts for which the bound is best.
    seed
        Of the vectors that the relaxation starts at.
    stop
        The time of the clock at which it has to end.
    """
    now, early = clock.now(), stop - test_seconds(len(loads))
    if now >= early:
        return None
    dual = _Relaxation(rows, loads, float(most), seed, now + PART * (early - now)).best()
    return _rounded(rows, loads, dual, stop)


def height(bisected: Bisection, num: int, uneven: int) -> int:
    """Return 4 x scale x the bytes over any cut whose sides differ in load by no more."""
    paid: int = sum(unpacked(bisected.prices, num, "prices").tolist())
    return -paid - bisected.balance * uneven**2


class _Relaxation:
    """The relaxation of one graph, its triangles, and the best multipliers so far."""

    def __init__(self, rows: Rows, loads: IntArray, most: float, seed: int, stop: float) -> None:
        num = len(loads)
        self._num, self._stop, self._mean = num, stop, float(loads.mean())
        weights = csr_array((rows.weight.astype(float), rows.other, rows.first), (num, num))
        self._unit = max(1.0, float(weights.sum()) / num)
        self._plain = _weights(weights / self._unit)
        self._loads = loads / self._mean
        self._most = most / self._mean
        self._limit = max(self._most, 0.01 * math.sqrt(num))
        vectors = np.random.default_rng(seed).standard_normal((num, RANK))
        self._vectors = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        self._balance = 2.0 / num
        self._corners = np.zeros((0, 3), dtype=np.int64)
        self._amount = np.zeros(0)
        self._gap = np.zeros(0)

    def best(self) -> _Dual:
        """Return the best multipliers found, without triangles or with them."""
        for k in range(ROUNDS):
            self._turn(self._plain, SWEEPS, 1 / (1 + k / PACE))
            if clock.now() >= self._stop:
                break
        best = self._dual(self._plain)
        try:
            before = reached = self._value(self._plain, best)
            idle = 0
            most = STEPS if self._stop - clock.now() < LONG else WORK // self._num
            for step in range(min(STEPS, max(2 * LOOK, most))):
                clock.check(self._stop)
                if step % LIST == 0:
                    self._list()
                    if not len(self._amount):
                        break
                weights = self._with_triangles()
                shorter = 1 + step / HALVED
                self._turn(weights, TURNS, 0.5 / shorter)
                if step % LOOK == LOOK - 1:
                    found = self._dual(weights)
                    value = self._value(weights, found)
                    if value > reached:
                        best, reached = found, value
                    idle = 0 if value > before + GAIN * abs(before) else idle + 1
                    if idle == IDLE:
                        break
                    before = value
                self._step(STEP / shorter)
        except clock.OutOfTimeError:
            pass
        return best

    def _turn(self, weights: _Weights, sweeps: int, pace: float) -> None:
        """Turn the vectors to their best directions, then move the balance towards even sides."""
        loads, vectors = self._loads, self._vectors
        mix(*weights[:3], loads, self._balance, vectors, loads @ vectors, sweeps)
        length = float(np.linalg.norm(loads @ vectors))
        self._balance *= min(2.0, max(0.5, length / self._limit)) ** pace

    def _dual(self, weights: _Weights) -> _Dual:
        """Return the multipliers of the vectors, once these have converged."""
        loads, vectors = self._loads, self._vectors.copy()
        mix(*weights[:3], loads, self._balance, vectors, loads @ vectors, 4 * SWEEPS)
        pull = weights.degrees[:, None] * vectors - weights.matrix @ vectors
        pull += self._balance * loads[:, None] * (loads @ vectors)
        unit = self._unit
        return _Dual(
            -unit * (pull * vectors).sum(axis=1),
            self._balance * unit / self._mean**2,
            self._corners,
            self._amount * unit,
        )

    def _value(self, weights: _Weights, dual: _Dual) -> float:
        """Return about four times the bytes over the cuts in question that multipliers prove."""
        unit, loads = self._unit, self._loads * self._mean
        diagonal = unit * weights.degrees + dual.prices

        def image(x: FloatArray) -> FloatArray:
            found: FloatArray = diagonal * x - unit * (weights.matrix @ x)
            return found + dual.balance * loads * (loads @ x)

        highest = 2.0 * float((diagonal + dual.balance * loads**2).max())
        lowest, _ = lowest_eigenvalue(self._num, highest, image, self._stop, COARSE)
        lifted = float(dual.prices.sum()) + self._num * max(0.0, -lowest)
        return -lifted - dual.balance * (self._most * self._mean) ** 2

    def _with_triangles(self) -> _Weights:
        """Return the weights with the amounts moved from two sides of triangles to the third."""
        moved = moved_weights(self._corners, self._amount, self._num)
        return _weights(self._plain.matrix + moved)

    def _step(self, length: float) -> None:
        """Raise the amounts of violated triangles, and lower those of others."""
        found = gaps(self._vectors, self._corners)
        self._gap = MOMENTUM * self._gap + (1 - MOMENTUM) * found
        self._amount = np.maximum(0.0, self._amount + length * self._gap)

    def _list(self) -> None:
        """Drop triangles without effect, and add the most violated ones."""
        num = self._num
        kept = (self._amount > 0) | (self._gap > -LEAST_GAP / 2)
        corners, amount, gap = self._corners[kept], self._amount[kept], self._gap[kept]
        sides = csr_array((np.ones(len(corners)), (corners[:, 1], corners[:, 2])), (num, num))
        near = _weights(abs(self._plain.matrix) + sides + sides.T)
        room, least = np.zeros((LISTED, 3), dtype=np.int64), LEAST_GAP
        own = np.zeros(LISTED)
        while True:
            count = violated(near.first, near.other, self._vectors, least, room, own)
            if count <= LISTED:
                break
            least *= 1.5
        order = np.argsort(-own[:count], kind="stable")
        listed = room[:count][order]
        listed = listed[~np.isin(_keys(listed, num), _keys(corners, num))]
        listed = listed[: min(NEW_PER_TASK * num, MOST_TRIANGLES - len(corners))]
        self._corners = np.concatenate([corners, listed])
        self._amount = np.concatenate([amount, np.zeros(len(listed))])
        self._gap = np.concatenate([gap, np.zeros(len(listed))])


def _weights(matrix: Any) -> _Weights:
    """Return weights from a sparse matrix."""
    matrix.sort_indices()
    first, other = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    return _Weights(first, other, matrix.data, matrix)


def _keys(corners: IntArray, num: int) -> IntArray:
    """Return a number for every triangle, different ones for different ones."""
    keys: IntArray = (corners[:, 0] * num + corners[:, 1]) * num + corners[:, 2]
    return keys


def moved_weights(corners: IntArray, amount: FloatArray | IntArray, num: int) -> Any:
    """Return the change of weights by triangles: less at their middle, more between their ends."""
    middle, one, other = corners.T
    at = np.concatenate([middle, middle, one])
    to = np.concatenate([one, other, other])
    half = csr_array((np.concatenate([-amount, -amount, amount]), (at, to)), (num, num))
    return half + half.T


def _rounded(rows: Rows, loads: IntArray, dual: _Dual, stop: float) -> Bisection | None:
    """Return multipliers in integers whose matrix is semidefinite; None if there is no time."""
    num, each = len(loads), np.arange(len(loads))
    prices, balance = dual.prices, dual.balance
    degree = np.bincount(rows.owner, weights=rows.weight.astype(float), minlength=num)
    entry = max(float(degree.max()), float(np.abs(prices).max()), balance * float(loads.max()) ** 2)
    if not entry < 1 << SCALE_BITS:
        return None
    scale = 1 << SCALE_BITS - math.ceil(math.log2(max(entry, 1.0)))
    whole, lifted = round(scale * balance), np.ceil(scale * prices).astype(np.int64)
    corners, amount = _whole_amounts(dual, scale)
    moved = moved_weights(corners, amount, num)
    weights = scale * csr_array((rows.weight, rows.other, rows.first), (num, num)) + moved
    matrix = -weights.toarray()
    matrix[each, each] = lifted - matrix.sum(axis=1)
    matrix += whole * np.outer(loads, loads)
    floats, heavy = weights.astype(float), loads.astype(float)
    diagonal = floats.sum(axis=1) + lifted

    def image(x: FloatArray) -> FloatArray:
        found: FloatArray = diagonal * x - floats @ x + whole * heavy * (heavy @ x)
        return found

    more = raised(matrix, image, stop)
    if more is None:
        return None
    triangles = None
    if len(amount):
        triangles = Triangles(number=len(amount), corners=packed(corners), amounts=packed(amount))
    return Bisection(
        scale=scale,
        balance=whole,
        prices=packed(lifted + more),
        triangles=triangles,
    )


def _whole_amounts(dual: _Dual, scale: int) -> tuple[IntArray, IntArray]:
    """Return the triangles with amounts, in order, and these in whole numbers of few digits."""
    if not len(dual.amount):
        return dual.corners, np.zeros(0, dtype=np.int64)
    largest = math.ceil(scale * float(dual.amount.max()))
    step = 1 << max(0, largest.bit_length() - AMOUNT_BITS)
    amount = step * np.floor(scale * dual.amount / step).astype(np.int64)
    order = np.lexsort(dual.corners.T[::-1])
    order = order[amount[order] > 0]
    return dual.corners[order], amount[order]
