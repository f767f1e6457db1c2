"""Flat pictures of machines of domains: boxes within boxes, and a square for every host."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.machine.hierarchy import Hierarchy
from topoplace.report.tiles import (
    CHARACTER,
    HIGH,
    LARGEST,
    LEAST_LINED,
    POINTS,
    RIM,
    TEXT,
    Box,
    Canvas,
    Cells,
    add_lines,
    add_shapes,
    borders,
    colours_of,
    leaving_colour,
    number_jobs,
    size_of,
    write_tasks,
)
from topoplace.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAD, _LABEL = 3.0, 9.5  # points between boxes, and of the line that names one
_SHRINK = 0.97
_LEAST_NAMED = 4  # characters
_LEAST_SHARE = 0.75  # of the size of squares without names, which names may cost
_MOST_COLUMNS = 40  # tried
_FULL = 0.6  # of the columns that there is room for, so that all rows are full
_ALMOST = 1.001
_LEAST_FILLED = 0.1  # of a host, so that it is seen
_OBLONG = 0.08  # more height is accepted for boxes that are half as oblong


@dataclass(frozen=True)
class _Shape:
    """How the boxes of a level and those below are filled: columns of each level, top first."""

    columns: tuple[int, ...]
    width: float
    height: float


_Known = dict[tuple[int, float], _Shape | None]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Domains within domains, as boxes.

    Attributes
    ----------
    levels
        What boxes and squares are called, top first.
    names
        By level of boxes, top first, the name of every domain.
    domain_of
        By level of boxes the domain of every host, shape ``(num_levels, num_hosts)``.
    shares
        By level, of domains of which something leaves, which share of all of it: a box is the
        redder, and says so.
    """

    levels: Sequence[str]
    names: Sequence[Sequence[str]]
    domain_of: IntArray
    shares: Sequence[Mapping[int, float]] = field(default=())

    @cached_property
    def _inside(self) -> list[list[list[int]]]:
        """By level of boxes and domain what is inside: domains, at last hosts; a root first."""
        found = []
        above = np.zeros((1, self.domain_of.shape[1]), dtype=np.int64)
        rows = [*above, *self.domain_of, np.arange(self.domain_of.shape[1])]
        for upper, lower in itertools.pairwise(rows):
            own: list[list[int]] = [[] for _ in range(int(upper.max(initial=0)) + 1)]
            for parent, child in dict.fromkeys(zip(upper.tolist(), lower.tolist(), strict=True)):
                own[parent].append(child)
            found.append(own)
        return found

    def fitted(self, wide: float, high: float, text: float = 0.0) -> Canvas:
        """Return the boxes with squares as large as fit; without text, all in whole squares."""
        named = len(self.names) if text else 0
        best = self._largest(wide, high, 0, text)
        for num in range(named, 0, -1):  # the names of upper levels matter most
            found = self._largest(wide, high, num, text)
            if found[0] >= _LEAST_SHARE * min(best[0], 2 * LEAST_LINED):
                canvas = self._laid_out(*found, num, text)
                room = min(box.width for box in canvas.boxes if box.level == num - 1) * found[0]
                if room > _LEAST_NAMED * CHARACTER * text:
                    return canvas
        return self._laid_out(*best, 0, text)

    def _largest(self, wide: float, high: float, named: int, text: float) -> tuple[float, _Shape]:
        """Return the size of a square and the columns of each level that just fit."""
        unit = min(LARGEST, wide)
        while True:
            shape = self._shape(0, wide / unit * _ALMOST, named, unit, text, {})
            if shape is not None and shape.height * unit <= high * _ALMOST:
                return unit, shape
            unit *= _SHRINK
            if named and unit < 1:
                return 0.0, _Shape((), 0, 0)  # no room for names

    def _gaps(self, depth: int, unit: float, text: float) -> tuple[float, float, float]:
        """Return the rim of boxes, the gap between them, and the height of a name, in squares.

        Without text, boxes have gaps alone, larger ones on upper levels.
        """
        if text:
            pad = min(1.0, _PAD / unit)
            return pad, pad, _LABEL / unit
        return 0.0, float(len(self.names) - depth), 0.0

    def _shape(
        self, depth: int, wide: float, named: int, unit: float, text: float, known: _Known
    ) -> _Shape | None:
        """Return how to fill a box at some depth, the lowest of those that are not too wide."""
        key = depth, round(wide, 3)
        if key in known:
            return known[key]
        most = max(map(len, self._inside[depth]))
        pad, gap, label = self._gaps(depth, unit, text)
        best, least = None, (0.0, 0.0)
        if depth == len(self.names):
            limit = min(most, int(wide + 1e-9))
            if limit:
                full = (k for k in range(limit, 0, -1) if most % k == 0 and k >= _FULL * limit)
                columns = next(full, -(-most // -(-most // limit)))
                best = _Shape((columns,), columns, -(-most // columns))
        else:
            tried = np.unique(np.linspace(1, most, min(most, _MOST_COLUMNS)).astype(int))
            for columns in tried.tolist():
                own = (wide + gap) / columns - gap - 2 * pad
                child = self._shape(depth + 1, own, named, unit, text, known) if own > 0 else None
                if child is None:
                    break
                rows, head = -(-most // columns), 2 * pad + label * (depth < named)
                height = rows * (child.height + head + gap) - gap
                width = columns * (child.width + 2 * pad + gap) - gap
                cost = height * (1 + _OBLONG * abs(math.log2(child.height / child.width)))
                if best is None or (cost, width) < least:
                    least = cost, width
                    best = _Shape((columns, *child.columns), width, height)
        known[key] = best
        return best

    def _laid_out(self, unit: float, shape: _Shape, named: int, text: float) -> Canvas:
        """Return where each box and each square is; boxes of a level are equally wide."""
        widths = [float(shape.columns[-1])]
        for depth in range(len(self.names) - 1, -1, -1):
            pad, gap, _ = self._gaps(depth, unit, text)
            widths.insert(0, shape.columns[depth] * (widths[0] + 2 * pad + gap) - gap)
        boxes: list[Box] = []
        tiles: list[IntArray] = []
        corners: list[tuple[float, float]] = []

        def place(depth: int, domain: int, x: float, y: float) -> float:
            """Place what is inside a box, and return where it ends below."""
            inside, columns = self._inside[depth][domain], shape.columns[depth]
            if depth == len(self.names):
                rows = -(-len(inside) // columns)
                tile = np.pad(inside, (0, rows * columns - len(inside)), constant_values=-1)
                tiles.append(tile.reshape(rows, columns))
                corners.append((y, x))
                return y + rows
            pad, gap, label = self._gaps(depth, unit, text)
            head, low = label * (depth < named), y
            wide = widths[depth + 1] + 2 * pad
            for idx, child in enumerate(inside):
                if idx % columns == 0:
                    top = low + gap * (idx > 0)
                left = x + idx % columns * (wide + gap)
                end = place(depth + 1, child, left + pad, top + pad + head) + pad
                boxes.append(Box(depth, child, left, top, wide, end - top))
                low = max(low, end)
            return low

        size = widths[0], place(0, 0, 0.0, 0.0)
        at = np.array(corners)
        if text:
            return Canvas(
                np.zeros((0, 0), dtype=np.int64), at, unit, tiles, boxes[::-1], size, named
            )
        numbers = np.full((round(size[1]), round(size[0])), -1)
        for tile, (top, left) in zip(tiles, np.rint(at).astype(int).tolist(), strict=True):
            numbers[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
        return Canvas(numbers, at, unit, tiles, boxes[::-1], size)

    # ---- Drawing

    def height(self, wide: float, most: float) -> float:
        """Return the height in inches, at most `most` or 7, for a given width in inches."""
        canvas = self.fitted(wide * POINTS, max(most, HIGH) * POINTS, TEXT)
        return canvas.unit * canvas.size[1] / POINTS

    def draw(self, axes: Axes, cells: Cells) -> None:
        """Draw boxes with their names, and hosts with the numbers of jobs or with tasks."""
        canvas = self.fitted(*size_of(axes), TEXT)
        self._draw_boxes(axes, canvas)
        _draw_squares(axes, canvas, cells)
        codes, owner, lines = np.append(cells.codes, -1), np.append(cells.owner, -1), []
        codes[list(cells.several)] = -1
        for tile, at in zip(canvas.tiles, canvas.corners, strict=True):
            lines.append(borders(np.pad(owner[tile], 1, constant_values=-1)) - 1 + at[::-1])
            if cells.jobs:
                number_jobs(axes, codes[tile], at, canvas.unit, cells)
        add_lines(axes, np.concatenate(lines), axes.xaxis.label.get_color(), 0.35)
        places = {
            int(host): (left + column + 0.5, top + row + 0.5)
            for tile, (top, left) in zip(canvas.tiles, canvas.corners, strict=True)
            for (row, column), host in np.ndenumerate(tile)
        }
        write_tasks(axes, places, canvas.unit, cells)
        axes.set(xlim=(0, canvas.size[0]), ylim=(canvas.size[1], 0), aspect="equal")
        axes.set(xticks=[], yticks=[])
        axes.set_xlabel(self._key(cells), loc="left")  # it may be wider than the machine
        axes.spines[:].set_visible(False)

    def _key(self, cells: Cells) -> str:
        """Return what boxes and squares are."""
        boxes = " > ".join(self.levels[:-1])
        parts = [f"boxes: {boxes}"] * bool(boxes) + [f"squares: {self.levels[-1]}"]
        parts += ["%: of the bytes of a box, those that leave it"] * bool(self.shares)
        parts += ["stripes: several jobs"] * bool(cells.several)
        parts += ["filled: the share in use"] * bool(cells.used)
        return "; ".join(parts)

    def _draw_boxes(self, axes: Axes, canvas: Canvas) -> None:
        """Draw every box, those inside others over these."""
        paper, unit = np.array(axes.get_facecolor()), canvas.unit
        shapes, fills = [], []
        for box in canvas.boxes:
            share = self.shares[box.level].get(box.domain) if self.shares else None
            *red, part = leaving_colour(share or 0.0)
            fills.append(paper + part * (np.array([*red, 1.0]) - paper))
            ends = [(box.left, box.top), (box.left + box.width, box.top + box.height)]
            shapes.append([(ends[i][0], ends[j][1]) for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))])
            if box.level < canvas.named:
                room = int((box.width * unit - _PAD) / TEXT / CHARACTER)
                text = _label(self.names[box.level][box.domain], share, room)
                at = box.left + _PAD / unit, box.top + (_LABEL + _PAD) / 2 / unit
                axes.text(*at, text, fontsize=TEXT, va="center")
        add_shapes(axes, shapes, fills, RIM, 0.6)


def _label(name: str, share: float | None, room: int) -> str:
    """Return the name of a box and the share that leaves it, in `room` characters, or nothing.

    The name comes first, at least its end: names of one level often begin alike.
    """
    out = "" if share is None else f" {100 * share:.2g} %"
    left = room - len(out)
    if left < min(_LEAST_NAMED, len(name)):
        out, left = "", room
    if len(name) > left:
        name = f"\N{HORIZONTAL ELLIPSIS}{name[2 - left :]}" if left >= _LEAST_NAMED else ""
    return name + out


def _draw_squares(axes: Axes, canvas: Canvas, cells: Cells) -> None:
    """Draw all hosts, those of several jobs in stripes, and lines between large ones.

    What a host has in use fills it from below.
    """
    low = np.zeros((len(cells.codes), 2))
    for tile, (top, left) in zip(canvas.tiles, canvas.corners, strict=True):
        row, column = np.nonzero(tile >= 0)
        low[tile[row, column]] = np.stack([left + column, top + row], axis=1)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    heights = np.ones(len(low))
    heights[list(cells.used)] = np.maximum(list(cells.used.values()), _LEAST_FILLED)
    stripes = [
        (host, low[host] + (k / len(codes), 0), code, len(codes))
        for host, codes in cells.several.items()
        for k, code in enumerate(codes)
    ]
    parts = [
        _filled(corner + square * (1 / num, 1), heights[host], low[host, 1] + 1)
        for host, corner, _, num in stripes
    ]
    striped = colours_of(np.array([code for *_, code, _ in stripes], dtype=np.int64), cells.inked)
    whole, colours = low[:, None, :] + square, cells.colours
    paper, none = np.full((len(low), 4), axes.get_facecolor()), np.zeros((len(low), 4))
    colours[list(cells.several)] = 0
    filled = _filled(whole, heights[:, None], low[:, 1:] + 1)
    width = 0.5 if canvas.unit > LEAST_LINED else 0.25 if canvas.unit > LEAST_LINED / 2 else 0.0
    for shapes, fill, edge in (
        (whole, paper, "none"),
        (filled, colours, "none"),
        (parts, striped, "none"),
        (whole, none, RIM),
    ):
        add_shapes(axes, list(shapes), fill, edge, width)


def _filled(corners: FloatArray, heights: Any, bottom: Any) -> FloatArray:
    """Return squares of which only a share of the height is left, at the bottom."""
    return np.stack([corners[..., 0], bottom + (corners[..., 1] - bottom) * heights], axis=-1)


def numbered_boxes(levels: Sequence[str], *domain_of: IntArray) -> Boxes:
    """Return domains that have numbers as boxes: the domain of every cell, by level, top first."""
    own = zip(levels[:-1], domain_of, strict=True)
    names = [[f"{name} {k}" for k in range(int(of.max()) + 1)] for name, of in own]
    return Boxes(levels, names, np.stack(domain_of))


def domain_boxes(machine: Hierarchy, shares: Sequence[Mapping[int, float]] = ()) -> Boxes:
    """Return the domains of a tree or hierarchy as boxes around its hosts."""
    return Boxes(machine.levels, machine.own_names, machine.domain_of[:-1], shares)
