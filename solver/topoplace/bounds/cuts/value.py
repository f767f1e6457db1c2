"""What integers of a certificate of cuts prove, given that its matrices are semidefinite."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from topoplace.bounds.cuts.machine_cuts import MachineCuts

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
