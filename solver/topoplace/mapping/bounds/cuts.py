"""Bounds by the cuts of a machine, in integers with certificates."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.bounds.relaxation import Multipliers, Relaxation
from topoplace.mapping.bounds.star import nearest_places
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import (
    CUT_FACTORS,
    CUT_LAYERS,
    CUT_TASKS,
    GAIN_BITS,
    CutLine,
    CutsCertificate,
)
from topoplace.solving import Bound, stronger
from topoplace.types import FloatArray, IntArray

# ---- The cuts whose weighted sum is the hop distance, and how places limit tasks on their sides --


@dataclass(frozen=True)
class Cut:
    """Twice the weight of a cut, and the least and largest square of s that its places allow.

    `s` is the number of tasks on one side of it less that on the other.
    """

    weight: int
    least: int
    most: int


@dataclass(frozen=True)
class MachineCuts:
    """The cuts of a machine, closed in the dimensions `wrap`, with places on both sides.

    `spread` is an upper bound on the weighted sum of all squares of s, `room` the largest capacity
    of a router; per dimension `kernels` has the weighted sum of the cuts' outer products, as +1
    and -1 per used layer.
    """

    wrap: tuple[bool, ...]
    cuts: Counter[Cut]
    spread: int
    kernels: list[IntArray]
    room: int

    @property
    def weight(self) -> int:
        """Sum of all weights."""
        return sum(times * cut.weight for cut, times in self.cuts.items())

    @property
    def free(self) -> int:
        """Weighted sum of the largest squares of s."""
        return sum(times * cut.weight * cut.most for cut, times in self.cuts.items())


def machine_cuts(machine: Torus, capacity: IntArray, num_tasks: int) -> MachineCuts:
    """Return the cuts of a torus or mesh and the limits of `num_tasks` tasks on its places."""
    cuts: Counter[Cut] = Counter()
    kernels = []
    table = capacity.reshape(machine.shape)
    for d, wraps in enumerate(machine.wrap):
        layers = table.sum(axis=tuple(k for k in range(machine.num_dims) if k != d))
        weight, signs = _dimension_cuts(len(layers), wraps)
        near = np.where(signs > 0, layers, 0).sum(axis=1)
        far = layers.sum() - near
        kept = (near > 0) & (far > 0)
        used = signs[kept][:, layers > 0]
        kernels.append(weight * used.T @ used)
        for ends in zip(near[kept].tolist(), far[kept].tolist(), strict=True):
            cuts[Cut(weight, *_squares(*ends, num_tasks))] += 1
    found = MachineCuts(machine.wrap, cuts, 0, kernels, int(capacity.max()))
    apart = found.weight * num_tasks**2 - 4 * least_apart(machine, capacity, num_tasks)
    return replace(found, spread=min(found.free, apart))


def _dimension_cuts(size: int, wraps: bool) -> tuple[int, IntArray]:
    """Return twice the weight of the cuts of one dimension, and their sides, a row per cut."""
    if not wraps:
        steps = np.arange(size)
        return 2, np.where(steps < steps[1:, None], 1, -1)
    starts = np.arange(size // 2 if size % 2 == 0 else size if size > 1 else 0)
    ahead = (np.arange(size) - starts[:, None]) % size
    return 2 - size % 2, np.where(ahead < size // 2, 1, -1)


def _squares(near: int, far: int, num_tasks: int) -> tuple[int, int]:
    """Return the least and the largest square of s, given the places on the two sides."""
    low = 2 * max(0, num_tasks - far) - num_tasks
    high = 2 * min(num_tasks, near) - num_tasks
    ends = low * low, high * high
    return (num_tasks % 2 if low <= 0 <= high else min(ends)), max(ends)


def least_apart(machine: Torus, capacity: IntArray, num_tasks: int) -> int:
    """Return a lower bound on the sum of distances over ordered pairs of distinct tasks.

    No task is closer to all others than to the nearest places.
    """
    sums = [sum(row.tolist()) for row in nearest_places(machine, capacity, num_tasks - 1)]
    rooms = capacity[capacity > 0].tolist() if len(sums) > 1 else [num_tasks]
    apart, left = 0, num_tasks
    for total, room in sorted(zip(sums, rooms, strict=True)):
        apart += total * min(room, left)
        left -= min(room, left)
    return apart


# ---- Whether an integer matrix is positive semidefinite, and the margin the test needs -----------

LARGEST = 1 << 52
"""Entries stay below: sums of products that are bounded by a diagonal entry are then exact."""


def margins(diagonal: IntArray) -> IntArray:
    """Return the possible loss by rounding a Cholesky factor in every row, by its diagonal."""
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
    """Return what a diagonal needs to pass the test, and not much more.

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
    """Return an estimate of the least eigenvalue of a matrix, and its possible error.

    Parameters
    ----------
    num, highest
        Rows of the matrix, and an upper limit on eigenvalues, up to a factor.
    image
        Multiplies vectors by the matrix.
    end
        When the time is over.
    near
        The allowed error, relative to `highest`, where not all eigenvalues are computed.

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


# ---- What the integers of a certificate of cuts prove if its matrices are semidefinite -----------

Line = tuple[int, int]
"""Height at s = 0, and fall per square of s, of 4 x scale x the bytes over a cut."""


def least_total(cuts: MachineCuts, lines: Sequence[Line], paid: Fraction, step: int) -> Fraction:
    """Return the bound on 8 x scale x hop-bytes, after the cost `paid` of the factors.

    Each line is a lower bound for every cut, and so is 0. Without a price on squares of s a cut may
    be rounded up to a multiple of `step`, which is 4 x scale x the unit of bytes, unless it is 0.
    """
    best = Fraction(0)
    for price in {0, *(b for _, b in lines)}:
        total = Fraction(-price * cuts.spread)
        for cut, times in cuts.cuts.items():
            height = _least(lines, cut, price)
            total += (
                times * cut.weight * (height if price or not step else -(-height // step) * step)
            )
        best = max(best, total)
    return best - paid


def _least(lines: Sequence[Line], cut: Cut, price: int) -> Fraction:
    """Return the least of the highest line plus a price per square of s, in the range of a cut."""
    every = [*lines, (0, 0)]
    points = [Fraction(cut.least), Fraction(cut.most)]
    for (a, b), (c, d) in itertools.combinations(every, 2):
        if b != d and cut.least < Fraction(a - c, b - d) < cut.most:
            points.append(Fraction(a - c, b - d))
    return min(max(a - b * q for a, b in every) + price * q for q in points)


# ---- From multipliers in floating point to a certificate whose matrices pass the integer test ----

DIGITS = 49
"""Bits of the largest diagonal entry of L, scaled."""

ROOM = 1e-6
"""What is added to an eigenvalue, per layer, so that the test is passed."""


@dataclass(frozen=True)
class Guest:
    """A task graph: the bytes between all pairs of tasks, and their common divisor."""

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
    """Return bounds on the kernels' eigenvalues off the ones, in 2^-GAIN_BITS; None if large.

    They set, by `gain_per_square`, the cost of the squares of a certificate's factors.
    """
    gains = []
    for kernel in cuts.kernels:
        num, gain = len(kernel), 0
        if num > 1:
            centred = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
            highest = float(np.linalg.eigvalsh(centred)[-1])
            gain = int(highest * (1 + ROOM * num) * (1 << GAIN_BITS)) + 1
            if not _bounds_eigenvalues(kernel, gain):
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
    """Rounds factors once, and lines for them one after the other, and tests each line."""

    def __init__(self, guest: Guest, unit: float, factors: FloatArray) -> None:
        self.guest = guest
        self._digits = guest.scale * unit
        self.factors = np.array(
            [_balanced(row * self._digits**0.5) for row in factors], dtype=np.int64
        ).reshape(-1, guest.num_tasks)
        self._common = guest.laplacian + self.factors.T @ self.factors

    @property
    def fixed(self) -> FloatArray:
        """The factors as they are now, in the unit of the relaxation."""
        rows: FloatArray = self.factors / self._digits**0.5
        return rows

    def line(self, found: Multipliers, end: float) -> CutLine | None:
        """Return the line of multipliers; None if none passes the test before the time `end`."""
        prices = np.ceil(found.prices * self._digits).astype(np.int64)
        balance = int(np.ceil(found.balance * self._digits))
        matrix = self._common + balance
        matrix[np.diag_indices_from(matrix)] += prices
        scale = self.guest.scale
        diagonal = prices + scale * self.guest.degrees

        def image(x: FloatArray) -> FloatArray:
            plain = diagonal * x - scale * (self.guest.sparse @ x) + balance * x.sum()
            with_factors: FloatArray = plain + self.factors.T @ (self.factors @ x)
            return with_factors

        more = raised(matrix, image, end)
        return None if more is None else CutLine(prices=(prices + more).tolist(), balance=balance)

    def bound(self, cuts: MachineCuts, gains: list[int], lines: list[CutLine]) -> Bound:
        """Return the hop-bytes that lines with the factors prove."""
        guest, scale, factors = self.guest, self.guest.scale, self.factors.tolist()
        squares = sum(x * x for row in factors for x in row)
        paid = gain_per_square(cuts, gains) * squares if squares else Fraction(0)
        step = 0 if squares else 4 * scale * guest.unit
        total = least_total(cuts, [(-sum(x.prices), x.balance) for x in lines], paid, step)
        certificate = CutsCertificate(
            wrap=list(cuts.wrap),
            scale=scale,
            lines=lines,
            factors=factors,
            gains=gains if factors else [],
        )
        return Bound(guest.unit * max(0, -(-total // (8 * scale * guest.unit))), certificate)


def _balanced(row: FloatArray) -> IntArray:
    """Return a row as integers that add up to 0, the entries nearest to the next one changed."""
    rounded = np.round(row)
    missing = -int(rounded.sum())
    step = 1 if missing > 0 else -1
    order = np.argsort(step * (rounded - row), kind="stable")
    rounded[order[: abs(missing)]] += step
    return rounded.astype(np.int64)


# ---- The bound of a mapping problem by the cuts of its machine, within limits of time and size ---

RANK = 12
"""Dimensions of the vectors at least; more are slower and hardly better."""

MOST_LINES = 3
"""Limits of s for which lines are computed, where cuts differ in them."""


def cuts_bound(
    problem: MappingProblem, time_limit: float | None = None, target: int | None = None
) -> Bound | None:
    """Return the bound by the bytes over all cuts of the machine (docs/proofs/graphs.md, "Cuts").

    In bytes x hops; None if the machine is not a torus or mesh, the problem is too large or has no
    messages, nothing is proven, or there is no time. Parameters are those of `best_bound`.
    """
    end = clock.deadline(time_limit)
    machine, num = problem.machine.torus, problem.num_tasks
    if machine is None or not has_cuts(problem):
        return None
    reserved = test_seconds(num)
    if time_limit is not None and time_limit <= reserved:
        return None
    rows = problem.graph.exchanged
    if int(np.bincount(rows.owner, rows.weight).max()) >= 1 << 48:
        return None
    guest = Guest(rows.matrix(num), rows.unit)
    stop = end - reserved
    best: Bound | None = None
    # in a ring distances are shorter, but its cuts are all equivalent
    for host in [machine] if all(machine.wrap) else [machine, Torus(machine.shape)]:
        cuts = machine_cuts(host, problem.capacity, num)
        if cuts.cuts and not reached(best, target) and not (best and clock.now() >= stop):
            best = stronger(best, _Search(guest, cuts, stop, end).best(target))
    return best if best is not None and best.value > 0 else None


def has_cuts(problem: MappingProblem) -> bool:
    """Return whether the bound by cuts is available for a machine and a number of tasks."""
    machine = problem.machine.torus
    if machine is None or max(machine.shape) > CUT_LAYERS:
        return False
    return problem.graph.num_messages > 0 and problem.num_tasks <= CUT_TASKS


def reached(bound: Bound | None, target: int | None) -> bool:
    """Return whether a bound is high enough."""
    return bound is not None and target is not None and bound.value >= target


class _Search:
    """Relaxations of one problem up to a time, and the bounds they prove, up to a later one."""

    def __init__(self, guest: Guest, cuts: MachineCuts, stop: float, end: float) -> None:
        from scipy.sparse import diags_array  # noqa: PLC0415 - heavy

        self._guest, self._cuts, self._stop, self._end = guest, cuts, stop, end
        self._gains = gains_of(cuts)
        self._unit = max(1.0, float(guest.degrees.mean()))
        laplacian = diags_array(guest.degrees.astype(np.float64)) - guest.sparse
        self._laplacian = (laplacian / self._unit).tocsr()

    def best(self, target: int | None) -> Bound | None:
        """Return the best bound of one line for all cuts or several, with factors and without."""
        num = self._guest.num_tasks
        first = self._solved(
            np.zeros((0, num)), self._cuts.spread / self._cuts.weight, self._widest
        )
        bound = self._bound(Rounding(self._guest, self._unit, first.factors), [first])
        if not self._squares:
            return bound
        for factors in (first.factors, first.factors[:0])[: 1 + len(first.factors)]:
            if clock.now() >= self._stop or reached(bound, target):
                break
            rounding = Rounding(self._guest, self._unit, factors)
            lines = [self._solved(rounding.fixed, square, None) for square in self._squares]
            bound = stronger(bound, self._bound(rounding, lines))
        return bound

    @property
    def _widest(self) -> float | None:
        """Limit of eigenvalues of the relaxation; None if factors cost more than they gain."""
        if self._gains is None:
            return None
        num = self._guest.num_tasks
        limit = float(gain_per_square(self._cuts, self._gains)) / self._cuts.weight
        return limit if num > limit > 2 * num / CUT_FACTORS else None

    @property
    def _squares(self) -> list[int]:
        """Squares of s for which lines are useful: those of cuts, if the places limit them."""
        every = sorted({cut.most for cut in self._cuts.cuts})
        if len(every) < 2 or self._cuts.free > self._cuts.spread:
            return []
        chosen = np.linspace(0, len(every) - 1, min(MOST_LINES, len(every))).round().astype(int)
        return [every[k] for k in chosen]

    def _solved(self, fixed: FloatArray, spread: float, widest: float | None) -> Multipliers:
        num = self._guest.num_tasks
        rank = min(num, RANK if widest is None else max(RANK, int(num / widest) + 6))
        return Relaxation(self._laplacian, spread, widest, fixed, rank).solve(self._stop)

    def _bound(self, rounding: Rounding, found: list[Multipliers]) -> Bound | None:
        """Return the bound by the lines that pass the test; None if there are none."""
        tested = [rounding.line(one, self._end) for one in found]
        lines = [line for line in tested if line is not None]
        return rounding.bound(self._cuts, self._gains or [], lines) if lines else None
