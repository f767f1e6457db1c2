"""Plots as inline SVG: gaps and times as strips of points, and the performance profile.

Written by hand: a few hundred bytes each instead of the 3.5 MB of a plotting library, text stays
text, colours come from the page's style sheet, so that they follow its light or dark theme.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topoplace.report.page.markup import METHOD_COLOURS, Markup, element, join
from topoplace.report.text import gap_text
from topoplace.study.ranking import Row, certified_gap, performance_profile

_WIDTH, _LABELS, _MEDIANS = 900, 150, 90
_ROW, _TOP, _BOTTOM = 26, 8, 44
_PROFILE_HEIGHT, _PROFILE_MARGIN = 300, 48
_SPREAD = 7  # points of a strip stand on so many levels, lest they hide each other
_MOST_TITLED = 3000
_DASH = 9
_LEAST_SECONDS = 0.001


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
    ticks = [0.0, 0.001]
    while ticks[-1] < max(gaps, default=0.0):
        ticks.append(10 * ticks[-1])
    names = {tick: f"{100 * tick:g} %" for tick in ticks}
    return _axis(lambda gap: math.asinh(gap / 0.001), names, title)


def decades_axis(values: Sequence[float], title: str, least: float) -> Axis:
    """Return a logarithmic axis over whole decades; values below `least` lie at its start."""
    positive = [max(value, least) for value in values] or [least]
    low = math.floor(math.log10(min(positive)))
    high = max(low + 1, math.ceil(math.log10(max(positive))))
    ticks = [10.0**power for power in range(low, high + 1)]
    return _axis(math.log, {tick: f"{tick:g}" for tick in ticks}, title)


def ratio_axis(ratios: Sequence[float], title: str) -> Axis:
    """Return a logarithmic axis from 1 to the largest ratio, with a few round ticks."""
    largest = max([1.05, *ratios])
    ticks = [1.0]
    if largest > 8:
        factor = 2.0 if largest <= 128 else 10.0 ** math.ceil(math.log10(largest) / 7)
        while ticks[-1] < largest:
            ticks.append(ticks[-1] * factor)
    else:
        steps = (digit * 10.0**power for power in range(-3, 1) for digit in (1, 2, 5))
        step = next(step for step in steps if 5 * step >= (largest - 1) * (1 - 1e-9))
        ticks = [1 + k * step for k in range(math.ceil((largest - 1) / step - 1e-9) + 1)]
    return _axis(math.log, {tick: f"{tick:g}" for tick in ticks}, title)


def _axis(stretched: Callable[[float], float], ticks: dict[float, str], title: str) -> Axis:
    first, last = min(ticks), max(ticks)
    low, high = stretched(first), stretched(last)

    def at(value: float) -> float:
        return (stretched(max(value, first)) - low) / (high - low)

    return Axis(at, tuple(ticks.items()), title)


def gap_plot(rows: Sequence[Row], methods: Sequence[str]) -> Markup:
    """Return the distribution of certified gaps of each method, conforming answers only."""
    points = _points(rows, methods, certified_gap)
    if not any(points):
        return element("p", "None of the methods proved a bound.", class_="note")
    axis = gap_axis([gap for own in points for _, gap in own], "gap to the best bound")
    return _strips(methods, points, axis, gap_text)


def time_plot(rows: Sequence[Row], methods: Sequence[str]) -> Markup:
    """Return the distribution of solving times of each method."""
    points = _points(rows, methods, lambda row: row.seconds)
    seconds = [value for own in points for _, value in own]
    return _strips(methods, points, decades_axis(seconds, "seconds", _LEAST_SECONDS), _seconds_text)


def profile_plot(rows: Sequence[Row], methods: Sequence[str]) -> Markup:
    """Return the performance profiles of methods by objective (Dolan and More 2002).

    The line of a method is at height p over tau if on a share p of its instances its objective is
    within a factor of tau of the best method's.
    """
    ratios = {name: [row.ratio for row in rows if row.method == name] for name in methods}
    finite = [ratio for own in ratios.values() for ratio in own if ratio is not None]
    axis = ratio_axis(finite, "factor to the best objective, \N{GREEK SMALL LETTER TAU}")
    left, right = _PROFILE_MARGIN, _WIDTH - 20
    bottom = _PROFILE_HEIGHT - _BOTTOM

    def x(ratio: float) -> float:
        return left + (right - left) * axis.at(ratio)

    def y(share: float) -> float:
        return bottom - (bottom - _TOP) * share

    parts = [_grid(axis, left, right, bottom)]
    for percent in (0, 25, 50, 75, 100):
        at = y(percent / 100)
        parts.append(element("line", x1=left, x2=right, y1=at, y2=at, class_="grid"))
        label = element("text", f"{percent} %", x=left - 6, y=at + 4, text_anchor="end")
        parts.append(label)
    paths = []
    for method in methods:
        path = f"M{left:.1f} {y(0):.1f}"
        for tau, share in performance_profile(ratios[method]):
            path += f"H{x(tau):.1f}V{y(share):.1f}"
        paths.append(f"{path}H{right}")
    for colour, (method, path) in enumerate(zip(methods, paths, strict=True)):
        title = element("title", method)
        shared = _in_turns(paths[:colour].count(path), paths.count(path))
        parts.append(element("path", title, d=path, class_=_line(colour), style=shared))
    return _figure(_PROFILE_HEIGHT, f"performance profile of {len(methods)} methods", parts)


def legend(methods: Sequence[str]) -> Markup:
    """Return which line is which method's."""
    entries = []
    for colour, method in enumerate(methods):
        stroke = element("line", x1=1, x2=27, y1=6, y2=6, class_=_line(colour))
        key = element("svg", stroke, width=28, height=12, aria_hidden="true")
        entries.append(element("span", key, method))
    return element("p", *entries, class_="legend")


def _points(
    rows: Sequence[Row], methods: Sequence[str], value: Callable[[Row], float | None]
) -> list[list[tuple[str, float]]]:
    """Return per method what is plotted: a value, if any, and the name of each instance."""
    found = [[(row.instance, value(row)) for row in rows if row.method == name] for name in methods]
    return [[(name, number) for name, number in own if number is not None] for own in found]


def _strips(
    methods: Sequence[str],
    points: Sequence[Sequence[tuple[str, float]]],
    axis: Axis,
    text: Callable[[float], str],
) -> Markup:
    """Return a row of points per method, with a tick at the median and the median's value."""
    left, right = _LABELS, _WIDTH - _MEDIANS
    bottom = _TOP + _ROW * len(methods)
    titled = sum(map(len, points)) <= _MOST_TITLED
    parts = [_grid(axis, left, right, bottom)]
    for idx, (method, own) in enumerate(zip(methods, points, strict=True)):
        middle = _TOP + _ROW * (idx + 0.5)
        label = element("text", method, x=left - 12, y=middle + 4, text_anchor="end")
        parts.append(label)
        numbers = [number for _, number in own]
        told = text(statistics.median(numbers)) if numbers else "none"
        parts.append(element("text", told, x=right + 12, y=middle + 4, class_="median"))
        drawn: set[tuple[str, float]] = set()
        for k, (name, number) in enumerate(own):
            spread = (k * 3 % _SPREAD - _SPREAD // 2) * 2.0 if len(numbers) > 1 else 0.0
            place = f"{left + (right - left) * axis.at(number):.1f}", middle + spread
            if place in drawn:
                continue
            drawn.add(place)
            title = [element("title", f"{name}: {text(number)}")] if titled else []
            colour = f"dot m{idx % len(METHOD_COLOURS)}"
            parts.append(element("circle", *title, cx=place[0], cy=place[1], r=3.5, class_=colour))
        if numbers:
            at = f"{left + (right - left) * axis.at(statistics.median(numbers)):.1f}"
            tick = {"x1": at, "x2": at, "y1": middle - 11, "y2": middle + 11}
            parts.append(element("line", class_="tick", **tick))
    parts.append(element("text", "median", x=right + 12, y=bottom + 37, class_="median"))
    return _figure(bottom + _BOTTOM, f"{axis.title} of {len(methods)} methods", parts)


def _grid(axis: Axis, left: float, right: float, bottom: float) -> Markup:
    """Return the axis below a plot, with a line up from every tick."""
    parts = []
    for value, name in axis.ticks:
        at = f"{left + (right - left) * axis.at(value):.1f}"
        parts.append(element("line", x1=at, x2=at, y1=_TOP, y2=bottom, class_="grid"))
        parts.append(element("text", name, x=at, y=bottom + 18, text_anchor="middle"))
    middle = (left + right) / 2
    title = element(
        "text", axis.title, x=middle, y=bottom + 37, text_anchor="middle", class_="title"
    )
    return join(*parts, title)


def _figure(height: float, label: str, parts: Sequence[Markup]) -> Markup:
    box = f"0 0 {_WIDTH} {height:g}"
    return element("svg", *parts, viewBox=box, role="img", aria_label=label, class_="plot")


def _seconds_text(seconds: float) -> str:
    return f"{seconds:,.3g} s" if seconds >= _LEAST_SECONDS else f"< {_LEAST_SECONDS:g} s"


def _in_turns(position: int, lines: int) -> str | None:
    """Return the style by which lines that coincide show in turns, one dash each."""
    if lines == 1:
        return None
    rest = _DASH * (lines - 1)
    return f"stroke-dasharray:{_DASH} {rest};stroke-dashoffset:{-_DASH * position}"


def _line(colour: int) -> str:
    return f"line m{colour % len(METHOD_COLOURS)} dash{colour // len(METHOD_COLOURS) % 3}"
