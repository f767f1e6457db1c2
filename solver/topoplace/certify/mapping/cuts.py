"""What a certificate of cuts proves (docs/proofs-graphs.md, "Cuts")."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from topoplace.certify.integers import (
    IntArray,
    largest,
    product,
    require_room,
    row_sums,
    times,
    total,
)
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.mapping.semidefinite import LIMIT, require_semidefinite
from topoplace.certify.mapping.sides import Cut, Sides, sides_of
from topoplace.certify.mapping.volumes import Volumes, mutual_volumes
from topoplace.certify.report import RefusedError
from topoplace.result.mapping import CUT_TASKS, GAIN_BITS, CutLine, CutsCertificate

LARGEST_FACTOR = 1 << 26

Line = tuple[int, int]
"""Height at s = 0 and fall per square of s, in 1 / (4 scale) bytes over a cut."""


def cuts_value(instance: Instance, certificate: CutsCertificate) -> int:
    """Return the hop-bytes that a certificate of cuts proves of any mapping."""
    if not 2 <= instance.num_tasks <= CUT_TASKS:
        raise RefusedError(f"{instance.num_tasks} tasks, 2 to {CUT_TASKS} are checked")
    sides = sides_of(instance, tuple(certificate.wrap))
    volumes = mutual_volumes(instance)
    factors = _factors(instance.num_tasks, certificate.factors)
    laplacian = _laplacian(volumes, certificate.scale)
    common = laplacian + product(factors.T, factors, "the products of factors")
    lines = []
    for k, line in enumerate(certificate.lines):
        require_semidefinite(_matrix(common, line), f"the matrix of line {k}")
        lines.append((-sum(line.prices), line.balance))
    squares = sum(x * x for x in factors.ravel().tolist())
    paid = squares * _gain(instance, sides, certificate.gains) if squares else Fraction(0)
    proven = _priced(sides, lines)
    if not squares:
        proven = max(proven, _rounded(sides, lines, 4 * certificate.scale * volumes.unit))
    return volumes.rounded_up(math.ceil(proven - paid), 8 * certificate.scale)


def _factors(num_tasks: int, rows: list[list[int]]) -> IntArray:
    if any(len(row) != num_tasks or sum(row) for row in rows):
        raise RefusedError(f"a factor does not have {num_tasks} entries that add up to 0")
    if any(abs(x) >= LARGEST_FACTOR for row in rows for x in row):
        raise RefusedError(f"a factor has an entry beyond {LARGEST_FACTOR}")
    return np.array(rows, dtype=np.int64).reshape(-1, num_tasks)


def _laplacian(volumes: Volumes, scale: int) -> IntArray:
    """Return the Laplacian of the bytes between tasks, times the scale."""
    what = "the bytes of a task"
    degrees = [total(volumes.of(task), what) for task in range(volumes.num_tasks)]
    require_room(scale * max(degrees), f"scale times {what}", LIMIT)
    laplacian = np.diag(np.array(degrees, dtype=np.int64))
    laplacian[volumes.tasks, volumes.partners] -= volumes.sizes
    return times(laplacian, scale, f"scale times {what}")


def _matrix(common: IntArray, line: CutLine) -> IntArray:
    num = len(common)
    if len(line.prices) != num:
        raise RefusedError(f"{len(line.prices)} prices for {num} tasks")
    require_room(max(*map(abs, line.prices), line.balance), "a price or a balance", LIMIT)
    require_room(largest(common) + 2 * LIMIT, "the matrix of a line")
    return common + np.diag(np.array(line.prices, dtype=np.int64)) + line.balance


def _gain(instance: Instance, sides: Sides, gains: list[int]) -> Fraction:
    """Return what the square of a factor's entry costs at most, all cuts together."""
    if len(gains) != len(sides.kernels):
        raise RefusedError(f"{len(gains)} gains for {len(sides.kernels)} dimensions")
    routers = math.prod(map(len, sides.kernels))
    most = 0
    for d, (kernel, gain) in enumerate(zip(sides.kernels, gains, strict=True)):
        if len(kernel) > 1:
            _check_gain(kernel, gain, f"the gain of dimension {d}, {gain},")
            most = max(most, routers // len(kernel) * gain)
    return Fraction(int(instance.capacity.max()) * most, 1 << GAIN_BITS)


def _check_gain(kernel: IntArray, gain: int, name: str) -> None:
    """Check that no eigenvalue of a kernel beside ones is above its gain."""
    num = len(kernel)
    what = "the kernel of a dimension"
    # the kernel between vectors less their means, times num^2 to stay an integer: no entry is
    # larger than 4 num^2 times the largest of the kernel
    require_room(4 * num**2 * largest(kernel), what, LIMIT)
    sums = row_sums(kernel, what)
    centred = times(kernel, num, what) - sums[:, None] - sums
    centred = times(centred, num, what) + total(sums, what)
    require_room(num**2 * gain, name, LIMIT)
    matrix = num**2 * gain * np.eye(num, dtype=np.int64) - times(centred, 1 << GAIN_BITS, what)
    # a positive multiple leaves less of it to rounding
    room = max(0, 49 - largest(matrix).bit_length())
    require_semidefinite(times(matrix, 1 << room, name), name)


def _rounded(sides: Sides, lines: list[Line], step: int) -> Fraction:
    """Return the sum over cuts, each at its worst s and rounded up to whole units of bytes."""
    total = 0
    for cut in sides.cuts:
        height = max(0, *(a - b * cut.most for a, b in lines))
        total += cut.weight * step * -(-height // step)
    return Fraction(total)


def _priced(sides: Sides, lines: list[Line]) -> Fraction:
    """Return the best sum over cuts with a price on squares of s, whose sum is limited."""
    best = Fraction(0)
    for price in {0, *(b for _, b in lines)}:
        known: dict[Cut, Fraction] = {}
        for cut in sides.cuts:
            if cut not in known:
                known[cut] = cut.weight * _least(lines, cut, price)
        best = max(best, sum(known[cut] for cut in sides.cuts) - Fraction(price * sides.spread))
    return best


def _least(lines: list[Line], cut: Cut, price: int) -> Fraction:
    """Return the least of price x q and the highest line at q, q between the squares of a cut.

    That is convex and bends only where two lines cross.
    """
    heights = {*lines, (0, 0)}
    crossings = (
        Fraction(a - c, b - d) for (a, b), (c, d) in itertools.combinations(heights, 2) if b != d
    )
    inside = {Fraction(cut.least), Fraction(cut.most)}
    inside |= {q for q in crossings if cut.least < q < cut.most}
    return min(price * q + max(a - b * q for a, b in heights) for q in inside)
