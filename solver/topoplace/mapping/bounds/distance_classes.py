"""The semidefinite bound by distance classes (docs/proofs/graphs.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.machine import Torus
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import DistanceClassesCertificate
from topoplace.solving import Bound
from topoplace.types import FloatArray, IntArray

# ---- Distance classes of a torus, and the association scheme of its places -----------------------

Key = tuple[int, tuple[tuple[int, int], ...]]

FINE = 1 << 16
"""Scale of eigenvalues that are not integers; its effect on the bound is of second order."""


@dataclass(frozen=True)
class Scheme:
    """The scheme of a torus with the same number of places on every router.

    `classes` has the class of every coordinate difference (the router number of it), `hops` the
    distance of every class. Classes of places are: a place itself, the others of its router (if
    there are any), and the router classes except the first. Spaces are the eigenspaces, that of
    constant vectors first; entry (d, j) of `eigenvalues` is the real eigenvalue of space d summed
    over class j, the same as Q_dj (the scheme is its own dual).
    """

    shape: tuple[int, ...]
    per_router: int
    classes: IntArray
    hops: IntArray
    eigenvalues: FloatArray

    @property
    def num_places(self) -> int:
        """Places of all routers."""
        return len(self.classes) * self.per_router

    @cached_property
    def valencies(self) -> IntArray:
        """Routers in every router class, seen from one router."""
        return np.bincount(self.classes)

    @property
    def place_classes(self) -> IntArray:
        """Router class of every class of places; that of a place itself and its router is 0."""
        every = np.arange(len(self.hops))
        return every if self.per_router == 1 else np.concatenate(([0], every))

    @cached_property
    def place_valencies(self) -> FloatArray:
        """Places in every class of places, seen from one place."""
        valencies = self.per_router * self.valencies[self.place_classes].astype(np.float64)
        valencies[0] = 1
        if self.per_router > 1:
            valencies[1] -= 1
        return valencies

    @cached_property
    def place_eigenvalues(self) -> FloatArray:
        """Q of the places: a row per class, a column per space."""
        if self.per_router == 1:
            return self.eigenvalues
        inside = np.zeros(len(self.place_classes))
        inside[:2] = self.num_places - len(self.classes), -len(self.classes)
        return np.column_stack((self.eigenvalues[self.place_classes], inside))

    def filters(self) -> list[list[int]]:
        """Return integers that make every space but the first (see `DistanceClassesCertificate`).

        They are the eigenvalues if all of these are integers, and rounded ones else.
        """
        whole = np.abs(self.eigenvalues - np.round(self.eigenvalues)).max() < 1e-9
        rounded = np.round(self.eigenvalues * (1 if whole else FINE)).astype(np.int64)
        found = [[0, *column] for column in rounded.T[1:].tolist()]
        if self.per_router > 1:
            found.append([self.per_router, -1, *[0] * (len(self.hops) - 1)])
        return found


def scheme_of(shape: tuple[int, ...], per_router: int) -> Scheme:
    """Return the scheme of the coarsest classes this module knows.

    A ring of 4 is the product of two of 2, and equal factors may be exchanged: the more
    symmetry, the fewer classes, and the bound is the same.
    """
    torus = Torus(shape)
    keys = [_key(x, shape) for x in torus.coordinates.tolist()]
    known = sorted(set(keys), key=lambda key: (key[0] + sum(step for _, step in key[1]), key))
    number = {key: k for k, key in enumerate(known)}
    classes = np.array([number[key] for key in keys], dtype=np.int64)
    first = np.array([keys.index(key) for key in known])
    sums = [
        np.fft.fftn((classes == j).reshape(shape).astype(np.float64)).real.ravel()[first]
        for j in range(len(known))
    ]
    hops = torus.distances_from(0)[first]
    return Scheme(shape, per_router, classes, hops, np.column_stack(sums))


def _key(difference: list[int], shape: tuple[int, ...]) -> Key:
    """Return what a coordinate difference has in common with its class."""
    folded = [(n, min(x, n - x)) for x, n in zip(difference, shape, strict=True)]
    bits = sum(step for n, step in folded if n in (2, 4))
    return bits, tuple(sorted((n, step) for n, step in folded if n not in (2, 4)))


# ---- The torus that contains a machine's routers, and the least costs of its distance classes ----

MAX_PLACES = 256


def host_of(problem: MappingProblem) -> tuple[Scheme, IntArray] | None:
    """Return a torus for a torus or mesh, and the router of it that every router is.

    A torus is its own host; lines become rings in which their routers have the same distances. The
    scheme has the machine's least distance in every class; None if the host has more than
    `MAX_PLACES` places.
    """
    per_router, machine = int(problem.capacity.max()), problem.machine.torus
    if machine is None:
        return None
    sides = zip(machine.shape, machine.wrap, strict=True)
    shape = tuple(n if wraps or n < 3 else 2 * n - 2 for n, wraps in sides)
    if math.prod(shape) == 1 or math.prod(shape) * per_router > MAX_PLACES:
        return None
    return _costed(problem, scheme_of(shape, per_router))


def _costed(problem: MappingProblem, scheme: Scheme) -> tuple[Scheme, IntArray]:
    """Return the scheme with the machine's distances, and where its routers lie in it."""
    host, sizes = Torus(scheme.shape), problem.torus.shape
    grid = np.indices(sizes, dtype=np.int64).reshape(len(sizes), -1).T
    routers: IntArray = grid @ np.array(host.strides)
    used = np.flatnonzero(problem.capacity)
    hops = problem.machine.hops(used[:, None], used[None, :])
    between = _classes(scheme, routers[used])
    least = np.full(len(scheme.hops), hops.max())
    np.minimum.at(least, between, hops)
    least[0] = 0
    return replace(scheme, hops=least), routers


def _classes(scheme: Scheme, routers: IntArray) -> IntArray:
    """Return the classes of all pairs of host routers."""
    host = Torus(scheme.shape)
    coords = host.coordinates[routers]
    steps = (coords[None, :] - coords[:, None]) % np.array(host.shape)
    found: IntArray = scheme.classes[steps @ np.array(host.strides)]
    return found


# ---- The semidefinite relaxation, solved by alternating projections (ADMM) in closed form --------
# After de Klerk and Sotirov, "Exploiting group symmetry in semidefinite programming relaxations of
# the quadratic assignment problem", Mathematical Programming 122 (2010), section 5. With entries
# scaled by the square roots of valencies and multiplicities the map from classes to eigenspaces is
# orthogonal, so that both halves of the constraints have a projection: entries are not negative
# (one class per pair), and spaces are positive semidefinite with rows that add up to 0. The
# multipliers of the second half are always positive semidefinite, at any accuracy.

STEP = 1.6  # over-relaxation, as usual between 1.5 and 1.8
UNBALANCED = 5.0  # ratio of the residuals from which on the penalty is corrected
CORRECTION = 1.3
PENALTY = 20.0  # in units of the root mean square of the bytes; balanced later on


@dataclass(frozen=True)
class Multipliers:
    """Dual values, in bytes x hops, and the bound they give.

    `strengths` and `directions` are the eigenvalues (not negative) and eigenvectors of the
    multiplier of every space except the first, shapes ``(spaces, places)`` and ``(spaces, places,
    places)``; `rows` the row multipliers of every class and place.
    """

    strengths: FloatArray
    directions: FloatArray
    rows: FloatArray
    value: float


class Relaxation:
    """The relaxation for the places of a scheme; `advance` improves it step by step.

    `exchanged` are the bytes between tasks in both directions, silent tasks included, shape
    ``(places, places)``.
    """

    def __init__(self, scheme: Scheme, exchanged: IntArray) -> None:
        n = scheme.num_places
        self._eigenvalues = scheme.place_eigenvalues
        self._roots = np.sqrt(scheme.place_valencies)[:, None, None]
        self._spreads = np.sqrt(n * self._eigenvalues[0])
        self._turn = self._eigenvalues * self._roots[:, :, 0] / self._spreads
        self._unit = max(1.0, float(np.sqrt((exchanged.astype(np.float64) ** 2).mean())))
        bytes_ = exchanged / self._unit
        hops = scheme.hops[scheme.place_classes].astype(np.float64)
        self._costs = hops[:, None, None] / 2 * bytes_ * self._roots
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
        """Take some steps, fewer if `stop` comes first, but at least one.

        Sets `error` to the larger of the two relative residuals.
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
        # the projection to rows that add up to 0 subtracts mean_i + mean_k
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


# ---- From multipliers in floating point to a certificate of integers, and its bound --------------

Exact = NDArray[np.object_]

BITS = 26
"""Digits of the largest entry of a factor: its square, added up over places, fits 64 bits."""

DROPPED = 1e-13
"""Eigenvalues this small against the largest are rounding errors."""


def certificate_of(
    scheme: Scheme, routers: IntArray, found: Multipliers
) -> DistanceClassesCertificate:
    """Return the multipliers as integers (docs/proofs/graphs.md, "Distance classes").

    Any integers prove something; these prove what the multipliers do, except for rounding.
    """
    filters = scheme.filters()
    squares = [_square(scheme, f) for f in filters]
    gains = np.array([sum(q[:2]) for q in squares]) / scheme.place_eigenvalues[0, 1:]
    roots = np.sqrt(2 * found.strengths / gains[:, None])
    highest = float(np.abs(found.directions * roots[:, None, :]).max(initial=0))
    scale = max(1, int((2**BITS / highest) ** 2)) if highest else 1
    shown = found.strengths > DROPPED * found.strengths.max(initial=0)
    factors = [
        np.round(vectors[:, kept] * root[kept] * scale**0.5).astype(np.int64).T.tolist()
        for vectors, root, kept in zip(found.directions, roots, shown, strict=True)
    ]
    # the row of the place itself multiplies a constant: leave it out
    rows = found.rows[0 if scheme.per_router == 1 else 1 :]
    return DistanceClassesCertificate(
        shape=list(scheme.shape),
        routers=routers.tolist(),
        classes=scheme.classes.tolist(),
        scale=scale,
        filters=filters,
        factors=factors,
        rows=[[round(2 * scale * x) for x in row] for row in rows.tolist()],
    )


def _square(scheme: Scheme, values: list[int]) -> list[int]:
    """Return a filter's square, the filter as a circulant of routers with all their places.

    ``own I + B x J`` squared is ``own^2 I + (2 own B + places B^2) x J``.
    """
    own = values[0]
    every = _classes(scheme, np.arange(len(scheme.classes)))
    matrix = np.array(values[1:], dtype=object)[every]
    first = np.unique(scheme.classes, return_index=True)[1]
    routers = 2 * own * matrix[0] + scheme.per_router * (matrix[0] @ matrix)
    return [own * own, *routers[first].tolist()]


def proven(scheme: Scheme, exchanged: IntArray, certificate: DistanceClassesCertificate) -> int:
    """Return what a certificate proves of twice `scale` times the hop-bytes, exactly."""
    c, n = scheme.per_router, scheme.num_places
    upper = np.triu_indices(n, 1)
    squares = [_square(scheme, f) for f in certificate.filters]
    total: int = 0
    grams = []
    for square, factor in zip(squares, certificate.factors, strict=True):
        columns = np.array(factor, dtype=np.int64).reshape(-1, n)
        gram = (columns.T @ columns).astype(object)
        total -= (square[0] + square[1]) * gram.trace()
        grams.append(gram[upper])
    least: Exact | None = None
    for d in range(len(scheme.hops)):
        rows = np.array(certificate.rows[d], dtype=object)
        sums = int(rows.sum())
        total += 2 * c * int(scheme.valencies[d]) * sums
        if d == 0:
            total -= 2 * sums
            if c == 1:
                continue
        weights = exchanged[upper].astype(object) * (certificate.scale * int(scheme.hops[d]))
        weights -= rows[upper[0]] + rows[upper[1]]
        for square, gram in zip(squares, grams, strict=True):
            if square[1 + d]:
                weights -= square[1 + d] * gram
        least = weights if least is None else np.minimum(least, weights)
    return total if least is None else total + 2 * int(least.sum())


# ---- The bound of a mapping problem by distance classes, within limits of time and size ----------

MAX_STEPS = 2000
WORK = 3e10
"""Work without a time limit, in places^3 x spaces x steps; about 40 s on one core."""

LEAST_STEPS = 200
ROUND = 25
CONVERGED = 1e-12

PATIENCE = 100
SETTLED = 1e-3
SLOW = 2e-6
"""Once its error is below `SETTLED`, a bound must gain this share in `PATIENCE` steps."""

SAFE = 0.1
"""Share of the unit that is reserved for rounding multipliers to integers."""

ROUNDING_SECONDS = 3e-7
"""Upper estimate of the time the certificate takes, per square of places x spaces."""

LARGEST = 1 << 46
"""Total bytes from which on factors would be too large for their digits."""


def distance_classes_bound(
    problem: MappingProblem, time_limit: float | None = None, target: int | None = None
) -> Bound | None:
    """Return the semidefinite bound, reduced by the distance classes of a torus.

    In bytes x hops; None if the machine has no small host (see `host_of`; giving every router of it
    as many places as the largest only adds mappings), or there is no time. Parameters are those of
    `best_bound`.
    """
    stop = clock.deadline(time_limit)
    found = host_of(problem) if 0 < problem.graph.total_bytes < LARGEST else None
    if found is None:
        return None
    scheme, routers = found
    rows = problem.graph.exchanged
    matrix = rows.matrix(scheme.num_places)
    num, spaces = scheme.num_places, len(scheme.hops)
    steps = MAX_STEPS
    if time_limit is None:
        affordable = int(WORK / (num**3 * spaces))
        if affordable < LEAST_STEPS:
            return None
        steps = min(steps, affordable)
    else:
        stop -= ROUNDING_SECONDS * (num * spaces) ** 2
        if clock.now() >= stop:
            return None
    multipliers = _solve(Relaxation(scheme, matrix), steps, stop, target, rows.unit)
    certificate = certificate_of(scheme, routers, multipliers)
    value = -(-proven(scheme, matrix, certificate) // (2 * certificate.scale * rows.unit))
    return Bound(rows.unit * max(0, value), certificate)


def _solve(
    relaxation: Relaxation, steps: int, stop: float, target: int | None, unit: int
) -> Multipliers:
    """Return the best multipliers of a number of steps, up to the time `stop`."""
    best: Multipliers | None = None
    earlier = -math.inf
    for step in range(0, steps, ROUND):
        relaxation.advance(ROUND, stop)
        current = relaxation.multipliers()
        if best is None or current.value > best.value:
            best = current
        # rounded up to the next multiple of the unit it cannot become more
        reached = target is not None and best.value > target - (1 - SAFE) * unit
        if reached or clock.now() >= stop or relaxation.error < CONVERGED:
            break
        if step % PATIENCE == 0:
            if relaxation.error < SETTLED and best.value - earlier < SLOW * abs(best.value):
                break
            earlier = best.value
    assert best is not None
    return best
