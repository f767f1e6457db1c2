"""Plots as inline SVG: gaps and times as strips of points, and the performance profile.

Places and texts are worked out here and written by `templates/plots.svg`: a few hundred bytes each
instead of the 3.5 MB of a plotting library, text stays text, and colours come from the page's style
sheet, so that they follow its light or dark theme.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from topoplace.report.text import gap_text
from topoplace.study.ranking import Row, certified_gap, performance_profile

NUM_COLOURS = 10
"""Colours of methods in the style sheet; further methods repeat them with dashed lines."""

_WIDTH, _LABELS, _MEDIANS = 900, 150, 90
_ROW, _TOP, _BOTTOM = 26, 8, 44
_PROFILE_HEIGHT, _PROFILE_MARGIN = 300, 48
_SPREAD = 7  # levels that the points of a strip are spread over, so that none hides another
_MOST_TITLED = 3000
_DASH = 9
_LEAST_SECONDS = 0.001


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: the place of a value from 0 to 1, the values named, what is measured."""

    at: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]
    title: str


@dataclass(frozen=True)
class Plot:
    """An axis, the pixels that it spans, and what is drawn of every method."""

    axis: Axis
    methods: list[Any]
    left: float
    right: float
    bottom: float
    width: float = _WIDTH
    top: float = _TOP

    @property
    def height(self) -> float:
        """The height of the plot, with the names below the axis."""
        return self.bottom + _BOTTOM

    def x(self, value: float) -> str:
        """Return the place of a value."""
        return f"{self.left + (self.right - self.left) * self.axis.at(value):.1f}"

    def y(self, share: float) -> float:
        """Return the height of a share of all."""
        return self.bottom - (self.bottom - self.top) * share


def gap_axis(gaps: Sequence[float]) -> Axis:
    """Return an axis for gaps: linear near 0, logarithmic beyond 0.1 %, so that 0 has a place."""
    ticks = [0.0, 0.001]
    while ticks[-1] < max(gaps, default=0.0):
        ticks.append(10 * ticks[-1])
    names = [f"{100 * tick:g} %" for tick in ticks]
    return _axis(lambda gap: math.asinh(gap / 0.001), ticks, names, "gap to the best bound")


def seconds_axis(values: Sequence[float]) -> Axis:
    """Return a logarithmic axis over whole decades; less than a millisecond lies at its start."""
    positive = [max(value, _LEAST_SECONDS) for value in values] or [_LEAST_SECONDS]
    low = math.floor(math.log10(min(positive)))
    high = max(low + 1, math.ceil(math.log10(max(positive))))
    ticks = [10.0**power for power in range(low, high + 1)]
    return _axis(math.log, ticks, [f"{tick:g}" for tick in ticks], "seconds")


def ratio_axis(ratios: Sequence[float]) -> Axis:
    """Return a logarithmic axis from 1 to the largest ratio, with a few round ticks."""
    largest = max([1.05, *ratios])
    if largest > 8:
        factor = 2.0 if largest <= 128 else 10.0 ** math.ceil(math.log10(largest) / 7)
        ticks = [factor**k for k in range(math.ceil(math.log(largest, factor) - 1e-9) + 1)]
    else:
        steps = (digit * 10.0**power for power in range(-3, 1) for digit in (1, 2, 5))
        step = next(step for step in steps if 5 * step >= (largest - 1) * (1 - 1e-9))
        ticks = [1 + k * step for k in range(math.ceil((largest - 1) / step - 1e-9) + 1)]
    title = "factor to the best objective, \N{GREEK SMALL LETTER TAU}"
    return _axis(math.log, ticks, [f"{tick:g}" for tick in ticks], title)


def _axis(
    stretched: Callable[[float], float], ticks: list[float], names: list[str], title: str
) -> Axis:
    low, high = stretched(ticks[0]), stretched(ticks[-1])

    def at(value: float) -> float:
        return (stretched(max(value, ticks[0])) - low) / (high - low)

    return Axis(at, tuple(zip(ticks, names, strict=True)), title)


def gap_strips(rows: Sequence[Row], methods: Sequence[str]) -> Plot | None:
    """Return the certified gaps of each method, of conforming answers only; None without any."""
    found = [row for row in rows if certified_gap(row) is not None]
    return _strips(found, methods, certified_gap, gap_axis, gap_text) if found else None


def time_strips(rows: Sequence[Row], methods: Sequence[str]) -> Plot:
    """Return the solving times of each method."""
    return _strips(rows, methods, lambda row: row.seconds, seconds_axis, _seconds_text)


def _strips(
    rows: Sequence[Row],
    methods: Sequence[str],
    value: Callable[[Row], float | None],
    axis: Callable[[Sequence[float]], Axis],
    text: Callable[[float], str],
) -> Plot:
    """Return a row of points per method, with a tick at the median and the median's value."""
    points = [(row, number) for row in rows if (number := value(row)) is not None]
    shown: list[dict[str, Any]] = []
    bottom = _TOP + _ROW * len(methods)
    plot = Plot(axis([x for _, x in points]), shown, _LABELS, _WIDTH - _MEDIANS, bottom)
    for idx, method in enumerate(methods):
        own = [(row, number) for row, number in points if row.method == method]
        middle = _TOP + _ROW * (idx + 0.5)
        drawn: dict[tuple[str, float], str] = {}  # what would hide another is left out
        for k, (row, number) in enumerate(own):
            spread = (k * 3 % _SPREAD - _SPREAD // 2) * 2.0 if len(own) > 1 else 0.0
            title = f"{row.instance}: {text(number)}" if len(points) <= _MOST_TITLED else ""
            drawn.setdefault((plot.x(number), middle + spread), title)
        median = statistics.median(number for _, number in own) if own else None
        shown.append(
            {
                "method": method,
                "middle": middle,
                "median": "none" if median is None else text(median),
                "at": None if median is None else plot.x(median),
                "points": [(*place, title) for place, title in drawn.items()],
            }
        )
    return plot


def profiles(rows: Sequence[Row], methods: Sequence[str]) -> Plot:
    """Return the performance profiles of methods by objective (Dolan and More 2002).

    The line of a method is at height p over tau if on a share p of its instances its objective is
    within a factor of tau of the best method's.
    """
    axis = ratio_axis([row.ratio for row in rows if row.ratio is not None])
    lines: list[tuple[str, str, str | None]] = []
    bottom = _PROFILE_HEIGHT - _BOTTOM
    plot = Plot(axis, lines, _PROFILE_MARGIN, _WIDTH - 20, bottom)
    paths = []
    for method in methods:
        path = f"M{plot.left:.1f} {bottom:.1f}"
        for tau, share in performance_profile([r.ratio for r in rows if r.method == method]):
            path += f"H{plot.x(tau)}V{plot.y(share):.1f}"
        paths.append(f"{path}H{plot.right}")
    for idx, (method, path) in enumerate(zip(methods, paths, strict=True)):
        lines.append((method, path, _in_turns(paths[:idx].count(path), paths.count(path))))
    return plot


def _in_turns(position: int, lines: int) -> str | None:
    """Return the style by which lines that coincide show in turns, one dash each."""
    if lines == 1:
        return None
    rest = _DASH * (lines - 1)
    return f"stroke-dasharray:{_DASH} {rest};stroke-dashoffset:{-_DASH * position}"


def _seconds_text(seconds: float) -> str:
    return f"{seconds:,.3g} s" if seconds >= _LEAST_SECONDS else f"< {_LEAST_SECONDS:g} s"
