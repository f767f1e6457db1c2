"""The best price of a task for a family: the bound is concave and piecewise linear in it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from topoplace.bounds.blocks.averages import Family
from topoplace.mapping.graph import IntArray

MAX_ROUNDS = 60
LARGEST = 1 << 62


def best_slope(psi: IntArray, num_tasks: int, family: Family) -> Fraction:
    """Return a slope L that makes `emitted` large; every slope is valid, so floats search.

    Newton's method on the tangents of both ends of a bracket; the breakpoints are slopes of
    psi, so the last one is rounded to a small denominator.
    """
    top = int(family.capacities[-1])
    part = psi[: top + 1].astype(float)
    sizes = np.arange(top + 1, dtype=float)
    weights = family.counts / family.num_tilings

    def tangent(slope: float) -> tuple[float, float]:
        """Return value and derivative of ``L n + average F_L`` (to be made small)."""
        worth = part - slope * sizes
        best = np.maximum.accumulate(worth)
        new = np.flatnonzero(worth == best)
        at = new[np.searchsorted(new, family.capacities, side="right") - 1]
        value = slope * num_tasks + float(weights @ worth[at])
        return value, num_tasks - float(weights @ sizes[at])

    high = float((part[1:] / sizes[1:]).max()) if top else 0.0
    low = 0.0
    low_value, low_rise = tangent(low)
    high_value, high_rise = tangent(high + 1)
    high += 1
    best = low
    for _ in range(MAX_ROUNDS):
        if low_rise >= 0 or high_rise <= 0:
            best = low if low_rise >= 0 else high
            break
        best = (high_value - low_value + low_rise * low - high_rise * high) / (low_rise - high_rise)
        value, rise = tangent(best)
        floor = low_value + low_rise * (best - low)
        if value <= floor + 1e-9 * max(1.0, abs(value)):
            break
        if rise < 0:
            low, low_value, low_rise = best, value, rise
        else:
            high, high_value, high_rise = best, value, rise
    return _simple(best, psi, top)


def _simple(slope: float, psi: IntArray, top: int) -> Fraction:
    """Return a fraction close to a slope that keeps `emitted` within 64 bits."""
    largest = max(1, int(psi[: top + 1].max()), top)
    room = LARGEST // (4 * largest * max(1, top))
    exact = Fraction(slope).limit_denominator(max(1, min(top, room)))
    return max(Fraction(0), exact)


def emitted(psi: IntArray, total: int, num_tasks: int, family: Family, slope: Fraction) -> Fraction:
    """Return S: what leaves the boxes of a family at least, on average over its tilings."""
    top = int(family.capacities[-1])
    p, q = slope.numerator, slope.denominator
    worth = q * psi[: top + 1] - p * np.arange(top + 1, dtype=np.int64)
    best = np.maximum.accumulate(worth)[family.capacities]
    inside = sum(c * f for c, f in zip(family.counts.tolist(), best.tolist(), strict=True))
    return total - slope * num_tasks - Fraction(inside, q * family.num_tilings)
