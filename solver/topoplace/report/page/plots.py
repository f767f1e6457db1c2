"""Plots as inline SVG: gaps and times as strips of points, and the performance profile.

Written by hand: a few hundred bytes each instead of the 3.5 MB of a plotting library, text stays
text, colours come from the page's style sheet, so that they follow its light or dark theme.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topoplace.report.page.axes import Axis, decades_axis, gap_axis, ratio_axis
from topoplace.report.page.markup import Markup, element, join
from topoplace.report.text import gap_text
from topoplace.study.ranking import Row, certified_gap, performance_profile

NUM_COLOURS = 10
"""Colours of methods in the style sheet; further methods repeat them with dashed lines."""

_WIDTH, _LABELS, _MEDIANS = 900, 150, 90
_ROW, _TOP, _BOTTOM = 26, 8, 44
_PROFILE_HEIGHT, _PROFILE_MARGIN = 300, 48
_SPREAD = 7  # points of a strip stand on so many levels, lest they hide each other
_MOST_TITLED = 3000
_DASH = 9
_LEAST_SECONDS = 0.001


@dataclass(frozen=True)
class Series:
    """What is plotted of a method: values with the instance of each, and its colour's number."""

    method: str
    colour: int
    points: tuple[tuple[str, float], ...]


def gap_plot(rows: Sequence[Row], methods: Sequence[str]) -> Markup:
    """Return the distribution of certified gaps of each method, conforming answers only."""
    series = _series(rows, methods, certified_gap)
    if not any(entry.points for entry in series):
        return element("p", "None of the methods proved a bound.", class_="note")
    axis = gap_axis(_values(series), "gap to the best bound")
    return _strips(series, axis, gap_text)


def time_plot(rows: Sequence[Row], methods: Sequence[str]) -> Markup:
    """Return the distribution of solving times of each method."""
    series = _series(rows, methods, lambda row: row.seconds)
    axis = decades_axis(_values(series), "seconds", _LEAST_SECONDS)
    return _strips(series, axis, _seconds_text)


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


def _series(
    rows: Sequence[Row], methods: Sequence[str], value: Callable[[Row], float | None]
) -> list[Series]:
    found = []
    for colour, method in enumerate(methods):
        own = ((row.instance, value(row)) for row in rows if row.method == method)
        points = tuple((name, number) for name, number in own if number is not None)
        found.append(Series(method, colour, points))
    return found


def _values(series: Sequence[Series]) -> list[float]:
    return [number for entry in series for _, number in entry.points]


def _strips(series: Sequence[Series], axis: Axis, text: Callable[[float], str]) -> Markup:
    """Return a row of points per method, with a tick at the median and the median's value."""
    left, right = _LABELS, _WIDTH - _MEDIANS
    bottom = _TOP + _ROW * len(series)
    titled = sum(len(entry.points) for entry in series) <= _MOST_TITLED
    parts = [_grid(axis, left, right, bottom)]
    for idx, entry in enumerate(series):
        middle = _TOP + _ROW * (idx + 0.5)
        label = element("text", entry.method, x=left - 12, y=middle + 4, text_anchor="end")
        parts.append(label)
        numbers = [number for _, number in entry.points]
        told = text(statistics.median(numbers)) if numbers else "none"
        parts.append(element("text", told, x=right + 12, y=middle + 4, class_="median"))
        drawn: set[tuple[str, float]] = set()
        for k, (name, number) in enumerate(entry.points):
            spread = (k * 3 % _SPREAD - _SPREAD // 2) * 2.0 if len(numbers) > 1 else 0.0
            place = f"{left + (right - left) * axis.at(number):.1f}", middle + spread
            if place in drawn:
                continue
            drawn.add(place)
            title = [element("title", f"{name}: {text(number)}")] if titled else []
            colour = f"dot m{entry.colour % NUM_COLOURS}"
            parts.append(element("circle", *title, cx=place[0], cy=place[1], r=3.5, class_=colour))
        if numbers:
            at = f"{left + (right - left) * axis.at(statistics.median(numbers)):.1f}"
            tick = {"x1": at, "x2": at, "y1": middle - 11, "y2": middle + 11}
            parts.append(element("line", class_="tick", **tick))
    parts.append(element("text", "median", x=right + 12, y=bottom + 37, class_="median"))
    return _figure(bottom + _BOTTOM, f"{axis.title} of {len(series)} methods", parts)


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
    return f"line m{colour % NUM_COLOURS} dash{colour // NUM_COLOURS % 3}"
