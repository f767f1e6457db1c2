"""Bounds from pairs of assignments: a semidefinite relaxation by splitting, in integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace import clock
from topoplace.mapping.bounds.assignment import Orbits, assignment_of, orbits_of
from topoplace.mapping.bounds.semidefinite import is_semidefinite
from topoplace.mapping.bounds.splitting import Splitting, least_of_pairs
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Fraction as FractionModel
from topoplace.result.certificate import packed
from topoplace.result.mapping import PairsCertificate
from topoplace.solving import Bound
from topoplace.types import FloatArray, IntArray

# ---- From multipliers to a certificate (docs/proofs/graphs.md, "Pairs") ------------------------

PRECISION = 6_000
"""Units of twice the least cost per pair of task and place: rounding costs some 10^-4 of it."""

ROUNDING = 2e-4
"""Share of the bound that rounding costs at most, roughly."""

LARGEST = 1 << 31
"""Scaled costs stay below it."""

ROOM = 1 << 62
"""The checker's numbers stay below it."""

MARGIN = 1e-5
"""First share of the largest entry that is taken from the least eigenvalue for rounding."""

TRIES = 8
"""Scales and margins tried before there is no certificate."""

EVERY = 20
"""Steps between two evaluations of the bound."""

STEPS, WORK = 400, 1e11
"""Most steps, and without a time limit most cubes of rows of all blocks that steps cost."""

RESERVE = 4
"""The time of a certificate, in steps."""

SETTLED = 2e-4
"""Share of the bound that these steps must add to go on."""

MAX_BLOCK = 1_225
"""Largest matrix whose eigenvalues are taken at every step."""


def pairs_bound(
    problem: MappingProblem, time_limit: float | None = None, target: int | None = None
) -> Bound | None:
    """Return the bound by pairs of assignments, in bytes x hops, of a problem of few places.

    It ends when `target` is reached, when the time is over, when the bound settles or, without a
    time limit, after a fixed amount of work. None if the problem is too large, or there was no
    time.
    """
    stop = clock.deadline(time_limit)
    assignment = assignment_of(problem)
    if assignment is None or not assignment.flows.any() or not assignment.distances.any():
        return None
    orbits = orbits_of(assignment)
    sizes = [len(space.orbits) * assignment.num for space in orbits.spaces]
    if max(sizes) > MAX_BLOCK:
        return None
    steps = STEPS
    if time_limit is None:
        steps = max(EVERY, min(steps, int(WORK / sum(float(size) ** 3 for size in sizes))))
    found = best_pairs(Splitting(assignment, orbits), stop, steps, target)
    if found is None:
        return None
    unit = assignment.unit
    return Bound(unit * max(0, math.ceil(found.twice / (2 * unit))), found.certificate)


@dataclass(frozen=True)
class Proven:
    """A certificate, and its lower bound on twice the cost of any assignment."""

    twice: Fraction
    certificate: PairsCertificate


def best_pairs(
    splitting: Splitting, stop: float, steps: int, target: int | None = None
) -> Proven | None:
    """Return the certificate of the best multipliers met; None if there are none in time."""
    best, slowest, before = 0.0, 0.0, 0.0
    kept: FloatArray | None = None
    goal = math.inf if target is None else 2 * (target - splitting.assignment.unit)
    for step in range(1, steps + 1):
        began = clock.now()
        if began + RESERVE * slowest >= stop:
            break
        try:
            splitting.step()
            value = splitting.value() if step % EVERY == 0 or step == steps else None
        except np.linalg.LinAlgError:  # LAPACK fails, now and then, where nothing is left to do
            break
        if value is not None:
            if value > best:
                best, kept = value, splitting.multipliers.copy()
            done = best * (1 - ROUNDING) > goal
            settled = step > 4 * EVERY and abs(value - before) <= SETTLED * best
            before = value
            if done or settled:
                break
        slowest = max(slowest, clock.now() - began)
    return None if kept is None else certified(splitting, kept, best)


def certified(splitting: Splitting, multipliers: FloatArray, value: float) -> Proven | None:
    """Return multipliers as a certificate, given their approximate bound; None if it fails."""
    assignment, num = splitting.assignment, splitting.assignment.num
    ratio = min(PRECISION * num**2 / value, LARGEST / splitting.most)
    for _ in range(TRIES):
        scale = (
            Fraction(round(ratio * 1024), 1024) if ratio >= 1 else Fraction(1, math.ceil(1 / ratio))
        )
        wanted = (splitting.costs + multipliers) * (splitting.most * float(scale))
        costs = _symmetric(np.rint(wanted).astype(np.int64), splitting.orbits)
        rest = assignment.pairs() * scale.numerator // scale.denominator - costs
        least = _least(splitting, rest)
        if least is not None and 8 * num**2 * int(np.abs(costs).max()) < ROOM:
            return _written(splitting.orbits, costs, least, scale)
        ratio /= 4
    return None


def _written(orbits: Orbits, costs: IntArray, least: int, scale: Fraction) -> Proven:
    num = len(costs)
    rows, columns = np.triu_indices(num)
    certificate = PairsCertificate(
        scale=FractionModel.of(scale),
        mirrors=[mirror.tolist() for mirror in orbits.mirrors],
        least=least,
        costs=packed(costs[rows, :, columns, :][:, orbits.firsts]),
    )
    pairs = least_of_pairs(costs[:, orbits.firsts], orbits)
    return Proven((pairs + least * num) / scale, certificate)


def _symmetric(costs: IntArray, orbits: Orbits) -> IntArray:
    """Return costs of all pairs of assignments, where those that must be equal are made equal.

    `costs` are those of the first places of orbits.
    """
    num = costs.shape[-1]
    images = orbits.images
    label = (images[:, :, None] * num + images[:, None, :]).min(axis=0)

    whole = np.empty((num, num, num, num), dtype=np.int64)
    own, own_second = np.divmod(np.minimum(label, label.T), num)
    own = np.searchsorted(orbits.firsts, own)
    at, second = np.divmod(label, num)
    at = np.searchsorted(orbits.firsts, at)
    for i in range(num):
        whole[i, :, i] = costs[i, own, i, own_second]
        for j in range(i + 1, num):
            whole[i, :, j] = costs[i, at, j, second]
            whole[j, :, i] = whole[i, :, j].T
    return whole


def _least(splitting: Splitting, rest: IntArray) -> int | None:
    """Return the checker's lower bound on the eigenvalues of the rest of the costs.

    None if numbers become too large for that, or LAPACK does not find it.
    """
    orbits, num = splitting.orbits, len(rest)
    blocks = splitting.to_blocks(rest[:, orbits.firsts].astype(np.float64))
    try:
        found = min(float(np.linalg.eigvalsh(block)[0]) for block in blocks)
    except np.linalg.LinAlgError:
        return None
    if 32 * num**4 * (int(np.abs(rest).max()) + abs(found) + 1) >= ROOM:
        return None
    centred = _centred(_centred(rest).transpose(2, 3, 0, 1))
    other = int(np.abs(rest).max()) + 1
    for digit in range(TRIES):
        least = math.floor(found - (1 << 2 * digit) * max(1.0, MARGIN * other))
        if all(map(is_semidefinite, _blocks(centred, least, other, orbits))):
            return least
    return None


def _blocks(centred: IntArray, least: int, other: int, orbits: Orbits) -> Iterator[IntArray]:
    """Yield the blocks of the rest that have to be semidefinite (docs/proofs/graphs.md, "Pairs").

    Off the functions whose rows and columns have the same sum, every eigenvalue is `other`.
    """
    num = len(centred)
    each = np.arange(num)
    tasks, places = np.indices((num, num))
    matrix = centred - 2 * num**2 * (least + other)
    matrix[each, :, each, :] += num**3 * (least + other)
    matrix[:, each, :, each] += num**3 * (least + other)
    matrix[tasks, places, tasks, places] -= num**4 * least
    for space in orbits.spaces:
        rows = orbits.firsts[space.orbits]
        block = matrix[:, rows] @ space.waves.T * orbits.sizes[space.orbits][:, None, None]
        block = block.reshape(num * len(rows), -1)
        room = max(0, 49 - int(np.abs(block).max()).bit_length())
        yield block << room


def _centred(rest: IntArray) -> IntArray:
    """Return the rest projected to such functions of its last two indices, times num^2."""
    num = rest.shape[-1]
    rows, columns = rest.sum(axis=3, keepdims=True), rest.sum(axis=2, keepdims=True)
    every = rows.sum(axis=2, keepdims=True)
    found: IntArray = num**2 * rest - num * (rows + columns) + 2 * every
    return found
