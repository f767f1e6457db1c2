"""Axes of plots: where a value lies, and which values are named."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A horizontal axis from 0 to 1.

    Attributes
    ----------
    at
        Position of a value.
    ticks
        Values named, and their names.
    title
        What is measured.
    """

    at: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]
    title: str


def gap_axis(gaps: Sequence[float], title: str) -> Axis:
    """Return an axis for gaps: linear near 0, logarithmic beyond 0.1 %, so that 0 has a place."""
    ticks = [0.0, 0.001, 0.01, 0.1, 1.0]
    while ticks[-1] < max(gaps, default=0.0):
        ticks.append(10 * ticks[-1])
    while len(ticks) > 2 and ticks[-2] > max(gaps, default=0.0):
        ticks.pop()

    def stretched(gap: float) -> float:
        return math.asinh(gap / 0.001)

    return Axis(
        lambda gap: stretched(gap) / stretched(ticks[-1]),
        tuple((tick, f"{100 * tick:g} %") for tick in ticks),
        title,
    )


def decades_axis(values: Sequence[float], title: str, least: float) -> Axis:
    """Return a logarithmic axis over whole decades; values below `least` lie at its start."""
    positive = [max(value, least) for value in values] or [least]
    low = math.floor(math.log10(min(positive)))
    high = max(low + 1, math.ceil(math.log10(max(positive))))
    return Axis(
        lambda value: (math.log10(max(value, 10.0**low)) - low) / (high - low),
        tuple((10.0**power, f"{10.0**power:g}") for power in range(low, high + 1)),
        title,
    )


def ratio_axis(ratios: Sequence[float], title: str) -> Axis:
    """Return a logarithmic axis from 1 to the largest ratio, with a few round ticks."""
    largest = max([1.05, *ratios])
    if largest > 8:
        factor = 2.0 if largest <= 128 else 10.0 ** math.ceil(math.log10(largest) / 7)
        ticks = [1.0]
        while ticks[-1] < largest:
            ticks.append(ticks[-1] * factor)
    else:
        step = _round_up((largest - 1) / 5)
        ticks = [1 + k * step for k in range(math.ceil((largest - 1) / step - 1e-9) + 1)]
    end = math.log(ticks[-1])
    return Axis(
        lambda ratio: math.log(ratio) / end, tuple((tick, f"{tick:g}") for tick in ticks), title
    )


def _round_up(value: float) -> float:
    """Return the next number of the form 1, 2 or 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= value * (1 - 1e-9))
