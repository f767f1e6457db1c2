"""What stands on every router or node, its colour, and flat pictures of it: tiles side by side.

A cell is a router or a node, exact, none hidden. A job has the colour of its rank by size in the
queue, whatever else starts. Everything else is one grey, more or less of it over the paper, so that
a picture without paper fits light and dark pages.
"""

from __future__ import annotations

import colorsys
import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import number_of
from topoplace.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RGB = tuple[float, float, float]

FREE, RUNNING, UNUSABLE, DOWN, NOTHING = -1, -2, -3, -4, -5
"""Codes of routers without a started job; `NOTHING` is where a picture has no router."""

GREY_NAMES = {FREE: "free", RUNNING: "running", UNUSABLE: "not usable", DOWN: "down"}
CLASS_COLOUR = "#e5342b"
GREY = "#6b7077"
_OPACITY = {FREE: 0.0, RUNNING: 0.32, UNUSABLE: 0.6, DOWN: 1.0}
_PALETTE, _SAME_BITS = 256, 0xF8F8F8F8
_NOTHING = (0.29, 0.50, 0.71, 0.5)
# Of middle lightness, for white and near-black paper, and none like the red of classes.
# fmt: off
_JOB_COLOURS = (
    "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf",
    "#a0624f", "#e377c2", "#4a5cff", "#8fbf00", "#0f8a6c",
    "#d12a94", "#6fb1ff", "#c58b3f", "#1fd69a", "#8250ff",
    "#ff9f80", "#2f8fa3", "#b8a5ff", "#6d8f1a", "#ff5fa2",
)
_FAR_COLOURS = (
    "#d5ecd4", "#aeddb0", "#7fc9ab", "#52b1b0", "#368fb5",
    "#3b6cb0", "#4f4fa8", "#6a329b", "#8d1f86", "#a3155f",
)
# fmt: on
NUM_FAR = len(_FAR_COLOURS)


def job_colour(rank: int) -> RGB:
    """Return the colour of a request by its rank by size in the queue."""
    if rank < len(_JOB_COLOURS):
        return rgb(_JOB_COLOURS[rank])
    # The golden angle never repeats a hue; lightness alternates to part near neighbours.
    return colorsys.hls_to_rgb((0.55 + 0.618034 * rank) % 1, (0.4, 0.55, 0.68)[rank % 3], 0.65)


def far_colour(code: int) -> RGB:
    """Return the colour of a router of a mapping, the darker the farther its messages go."""
    return rgb(_FAR_COLOURS[code])


def colour_of(
    code: int, inked: Callable[[int], RGB] = job_colour
) -> tuple[float, float, float, float]:
    """Return red, green, blue and opacity of a code; `inked` has the colours of codes from 0 on."""
    if code == NOTHING:
        return _NOTHING
    return (*inked(code), 1.0) if code >= 0 else (*rgb(GREY), _OPACITY[code])


def colours_of(codes: IntArray, inked: Callable[[int], RGB] = job_colour) -> FloatArray:
    """Return red, green, blue and opacity of every cell, shape ``(*codes.shape, 4)``."""
    kinds, where = np.unique(codes, return_inverse=True)
    table = [colour_of(int(code), inked) for code in kinds]
    return np.array(table).reshape(-1, 4)[where.reshape(codes.shape)]


def leaving_colour(share: float) -> tuple[float, float, float, float]:
    """Return the colour of a box of whose bytes a share leaves it: red, the more the stronger."""
    return (*rgb(CLASS_COLOUR), 0.6 * math.sqrt(share))


def rgb(text: str) -> RGB:
    """Return a ``#rrggbb`` colour as three numbers from 0 to 1."""
    red, green, blue = (int(text[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def palette_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of pixels, ``(height, width, 4)``, with a palette of 256 at most.

    Of more colours, the most frequent ones are kept, one of those that agree in their first bits;
    others become the nearest. Such a file has a third of the bytes of any other.
    """
    from PIL import Image  # noqa: PLC0415 - heavy
    from scipy.spatial import KDTree  # noqa: PLC0415 - heavy

    keys = np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    found, where, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    alike = found[order] & (_SAME_BITS if len(found) > _PALETTE else 0xFFFFFFFF)
    _, first = np.unique(alike, return_index=True)
    palette = found[order[np.sort(first)[:_PALETTE]]].view(np.uint8).reshape(-1, 4)
    _, nearest = KDTree(palette).query(found.view(np.uint8).reshape(-1, 4))
    image = Image.fromarray(nearest.astype(np.uint8)[where.reshape(keys.shape)])
    image.putpalette(palette.tobytes(), "RGBA")
    stream = io.BytesIO()
    image.save(stream, "png", optimize=True)
    return stream.getvalue()


@dataclass(frozen=True)
class Cells:
    """The routers of a torus or mapping, or the nodes of a tree, by what holds them.

    Attributes
    ----------
    codes
        Of a job, of how far the messages of a mapping's router go, or `FREE`, `RUNNING`,
        `UNUSABLE`, `DOWN`; shape ``torus.shape`` or ``(num,)``, as `owner` and `special`.
    owner
        Which job holds a router, started or running; -1 if none.
    special, special_name
        Whether the router is of a class that is not the default one; the names of such classes.
    jobs
        What a legend says of started jobs, by code: their rank by size in the queue, from 0 on.
    tasks
        Of a mapping, the tasks on routers.
    several
        Of hosts with several jobs, the codes of all of them.
    used
        Of hosts that are used in part, the share of what they have least of.
    inked
        The colours of codes from 0 on.
    """

    codes: IntArray
    owner: IntArray
    special: BoolArray
    special_name: str = ""
    jobs: Mapping[int, str] = field(default_factory=dict)
    tasks: Mapping[int, str] = field(default_factory=dict)
    several: Mapping[int, Sequence[int]] = field(default_factory=dict)
    used: Mapping[int, float] = field(default_factory=dict)
    inked: Callable[[int], RGB] = job_colour

    @property
    def colours(self) -> FloatArray:
        """Red, green, blue and opacity, shape ``(*codes.shape, 4)``."""
        return colours_of(self.codes, self.inked)


# ---- Tiles ---------------------------------------------------------------------------------------


RIM = "#8a8f96"
TEXT = 7.0
"""Points of the text of ticks and names."""

_AXIS_NAMES = "xyzuvw"
_MAX_SLICES = 400
_SPACE = 3
_ONE_ROW = 32  # routers
_MANY_SLICES = 48
HIGH = 7.0
"""Inches of a picture of many parts."""

_TASK_TEXTS = (8, 7, 6, 5)
CHARACTER, _LINE = 0.62, 1.25  # width and height in parts of the size of text
LEAST_LINED = 8.0  # points of a cell from which on lines part it from the next
_LEAST, LARGEST = 0.5, 40.0  # points of a cell
POINTS = 72


@dataclass(frozen=True)
class Tiles:
    """How a machine is laid out flat.

    Attributes
    ----------
    numbers
        Numbers of the routers or nodes, from 0 on, -1 for none; shape
        ``(num_tiles, height, width)``.
    names
        Names of the tiles, or empty.
    rows
        Whether tiles are rows with their names at the left, column by column; else row by row.
    across, up
        What is numbered below and at the left; `up` may be empty.
    """

    numbers: IntArray
    names: Sequence[str]
    rows: bool
    across: str
    up: str = ""

    def fitted(self, wide: float, high: float, text: float = 0.0) -> Canvas:
        """Return the tiles side by side, their cells as large as fit, with text of some size."""
        num, height, width = self.numbers.shape
        longest = max(map(len, self.names), default=0)
        above = 1.7 * text * (longest > 0 and not self.rows)
        named = CHARACTER * text * (longest + 2)
        left = named if self.rows else CHARACTER * text
        units = [
            min((wide / c - left) / (width + 0.5), (high / -(-num // c) - above) / height, LARGEST)
            for c in range(1, min(num, _MAX_SLICES) + 1)
            if c == 1 or wide / c > named
        ]
        columns, unit = int(np.argmax(units)) + 1, max([_LEAST, *units])
        gap_x = max(1, math.ceil(left / unit))
        if not self.rows:  # room for the name above
            gap_x = max(gap_x, math.ceil(CHARACTER * text * (longest + 1) / unit) - width)
        gap_y = 0 if self.rows else max(1, math.ceil(above / unit))
        rows = -(-num // columns)
        order = np.arange(rows * columns)
        if self.rows:
            order = order.reshape(columns, rows).T.ravel()
        padding = ((0, rows * columns - num), (gap_y, 0), (gap_x, 0))
        padded = np.pad(self.numbers, padding, constant_values=-1)[order]
        grid = padded.reshape(rows, columns, height + gap_y, width + gap_x).swapaxes(1, 2)
        numbers = grid.reshape(rows * (height + gap_y), -1)
        row, column = np.divmod(np.argsort(order)[:num], columns)
        corners = np.stack([row * (height + gap_y) + gap_y, column * (width + gap_x) + gap_x], 1)
        unit = min(wide / numbers.shape[1], high / numbers.shape[0])
        return Canvas(numbers, corners, unit)

    def height(self, wide: float, most: float) -> float:
        """Return the height in inches, at most `most` or 7 if there are many, for a given width."""
        if len(self.numbers) > _MANY_SLICES and not self.rows:
            most = max(most, HIGH)
        canvas = self.fitted(wide * POINTS, most * POINTS, TEXT)
        return min(canvas.unit, LARGEST) * len(canvas.numbers) / POINTS

    def draw(self, axes: Axes, cells: Cells) -> None:
        """Draw these cells (`draw_tiles`)."""
        draw_tiles(axes, self, cells)


@dataclass(frozen=True)
class Box:
    """Where a domain of a level is, in cells."""

    level: int
    domain: int
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class Canvas:
    """Tiles side by side, perhaps in boxes.

    Numbers of all cells; first row and column of each tile, size of a cell. Of boxes also the tiles
    themselves, the boxes, how many of their levels have names, and the size of all in cells.
    """

    numbers: IntArray
    corners: IntArray | FloatArray
    unit: float
    tiles: Sequence[IntArray] = ()
    boxes: Sequence[Box] = ()
    size: tuple[float, float] = (0.0, 0.0)
    named: int = 0


def machine_tiles(shape: tuple[int, ...], cell: str = "router") -> Tiles:
    """Return a machine as slices along two dimensions: the first to the right, the last upwards.

    Of four dimensions or more they are the two largest, which makes the fewest slices. The others
    number the slices (the y-slices of a 3-D torus). What has one dimension is a block of rows.
    """
    numbers, dims = np.arange(math.prod(shape)), range(len(shape))
    if len(shape) == 1:
        width = math.isqrt(2 * len(numbers) - 1) + 1 if len(numbers) > _ONE_ROW else len(numbers)
        rows = np.pad(numbers, (0, -len(numbers) % width), constant_values=-1)
        names = [str(first) for first in range(0, len(numbers), width)]
        return Tiles(rows.reshape(-1, 1, width), names, True, cell)
    right, up = dims[0], dims[-1]
    if len(shape) > _SPACE:  # of equal ones the first and the last
        right = max(dims, key=lambda dim: (shape[dim], -dim))
        up = max((dim for dim in dims if dim != right), key=lambda dim: (shape[dim], dim))
        right, up = min(right, up), max(right, up)
    others = [dim for dim in dims if dim not in (right, up)]
    slices = numbers.reshape(shape).transpose(*others, up, right)[..., ::-1, :]
    named = ",".join(map(dimension_name, others))
    names = [",".join(map(str, at)) for at in np.ndindex(slices.shape[:-2]) if at]
    if len(others) == 1:
        names = [f"{named} = {name}" for name in names]
    slices = slices.reshape(-1, *slices.shape[-2:])
    across = (
        dimension_name(right) if len(others) < 2 else f"{dimension_name(right)}; above: {named}"
    )
    return Tiles(slices, names, False, across, dimension_name(up))


def dimension_name(dim: int) -> str:
    """Return the name of a dimension: x, y, z, u, v, w, then d6 and so on."""
    return _AXIS_NAMES[dim] if dim < len(_AXIS_NAMES) else f"d{dim}"


def size_of(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of axes in points."""
    scale = POINTS / axes.figure.dpi
    return axes.bbox.width * scale, axes.bbox.height * scale


def draw_tiles(axes: Axes, tiles: Tiles, cells: Cells) -> None:
    """Draw tiles, 400 at most, with numbered axes.

    Thin lines part jobs and red ones surround special classes. The number of a job stands in each
    tile that has room; so do the tasks on a router.
    """
    num = len(tiles.numbers)
    if num > _MAX_SLICES and not tiles.rows:
        axes.set_title(f"the first {_MAX_SLICES} of {number_of(num, 'slice')}", loc="right")
        tiles = replace(tiles, numbers=tiles.numbers[:_MAX_SLICES])
    canvas = tiles.fitted(*size_of(axes), TEXT)
    numbers, unit = canvas.numbers, canvas.unit
    height, width = numbers.shape
    colours = np.append(cells.colours.reshape(-1, 4), np.zeros((1, 4)), axis=0)
    axes.imshow(colours[numbers], extent=(0, width, height, 0), interpolation="nearest")
    owner, special = (np.append(values, -1)[numbers] for values in (cells.owner, cells.special))
    _draw_lines(axes, numbers if unit > LEAST_LINED else numbers >= 0, RIM, 0.5)
    _draw_lines(axes, owner, axes.xaxis.label.get_color(), 0.35)
    _draw_lines(axes, special > 0, CLASS_COLOUR, 1.2)
    if cells.jobs:
        codes = np.append(cells.codes, -1)[tiles.numbers]
        for tile, corner in zip(codes, canvas.corners, strict=True):
            number_jobs(axes, tile, corner, unit, cells)
    places = {
        int(numbers[row, column]): (column + 0.5, row + 0.5)
        for row, column in np.argwhere(np.isin(numbers, list(cells.tasks)))
    }
    write_tasks(axes, places, unit, cells)
    _name_axes(axes, tiles, canvas)


def write_tasks(
    axes: Axes, places: Mapping[int, tuple[float, float]], unit: float, cells: Cells
) -> None:
    """Write the tasks on routers at the middles of their cells, where these have room."""
    if not cells.tasks or unit <= LEAST_LINED:
        return
    texts = {router: _fitting(names, unit) for router, names in cells.tasks.items()}
    size, colours = min(size for _, size in texts.values()), cells.colours.reshape(-1, 4)
    for router, (text, _) in texts.items():
        _write(axes, *places[router], text, colours[router], size)


def _draw_lines(axes: Axes, values: IntArray | BoolArray, colour: Any, width: float) -> None:
    """Draw lines between cells of different values, and at the rim around those above the least."""
    outside = int(values.min())
    lines = borders(np.pad(values.astype(np.int64), 1, constant_values=outside)) - 1
    add_lines(axes, lines, colour, width)


def add_lines(axes: Axes, lines: FloatArray, colour: Any, width: float) -> None:
    """Draw lines, ``(num, 2, 2)`` as x and y."""
    add_shapes(axes, list(lines), "none", colour, width, closed=False)


def add_shapes(
    axes: Axes, shapes: Sequence[Any], fill: Any, edge: Any, width: float, *, closed: bool = True
) -> None:
    """Draw polygons, or lines that are not closed, each given by its corners as x and y."""
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - heavy

    style: dict[str, Any] = {"facecolors": fill, "edgecolors": edge, "linewidths": width}
    drawn = PolyCollection(shapes, closed=closed, **style, clip_on=False)
    axes.add_collection(drawn, autolim=False)


def borders(values: IntArray) -> FloatArray:
    """Return the unit segments between cells of different values, ``(num, 2, 2)`` as x and y."""
    row, column = np.nonzero(values[:, 1:] != values[:, :-1])
    down = np.stack([[column + 1, row], [column + 1, row + 1]])
    row, column = np.nonzero(values[1:] != values[:-1])
    right = np.stack([[column, row + 1], [column + 1, row + 1]])
    lines: FloatArray = np.concatenate([down, right], axis=2).transpose(2, 0, 1)
    return lines.astype(np.float64)


def number_jobs(
    axes: Axes, tile: IntArray, corner: IntArray | FloatArray, unit: float, cells: Cells
) -> None:
    """Write the number of every job, in its largest part, where that has room."""
    for code in np.unique(tile[tile >= 0]):
        rows = _longest_run((tile == code).any(axis=1))
        middle = rows[len(rows) // 2]
        columns = _longest_run(tile[middle] == code)
        rows = rows[(tile[np.ix_(rows, columns)] == code).all(axis=1)]
        rows = next(r for r in _runs(rows) if middle in r)
        text = str(code + 1)
        if unit * len(columns) > TEXT * CHARACTER * len(text) and unit * len(rows) > TEXT:
            row, column = corner[0] + rows.mean() + 0.5, corner[1] + columns.mean() + 0.5
            _write(axes, column, row, text, np.array(cells.inked(code)), TEXT)


def _longest_run(marked: BoolArray) -> IntArray:
    """Return the longest row of neighbours among those marked."""
    return max(_runs(np.flatnonzero(marked)), key=len)


def _runs(at: IntArray) -> list[IntArray]:
    """Return ascending numbers as runs without gaps."""
    return np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)


def _write(axes: Axes, x: float, y: float, text: str, on: FloatArray, size: float) -> None:
    """Write on a colour, in black or white."""
    ink = "black" if on[:3] @ (0.30, 0.59, 0.11) > 0.55 else "white"
    axes.text(x, y, text, fontsize=size, color=ink, ha="center", va="center")


def _fitting(text: str, unit: float) -> tuple[str, float]:
    """Return a list of numbers as lines that fit into a cell, cut if need be, and their size."""
    for size in _TASK_TEXTS:
        per_line, most = int(unit / size / CHARACTER), int(unit / size / _LINE)
        if most and per_line >= max(map(len, text.split(","))):
            lines = textwrap.wrap(text.replace(",", ", "), per_line)
            if len(lines) <= most:
                return "\n".join(lines), size
            if size == _TASK_TEXTS[-1]:
                return "\n".join([*lines[: most - 1], "..."]), size
    return "", _TASK_TEXTS[-1]


def _name_axes(axes: Axes, tiles: Tiles, canvas: Canvas) -> None:
    """Number the cells below and at the left of all tiles, and name the tiles."""
    _, height, width = tiles.numbers.shape
    axes.set(xlabel=tiles.across, ylabel=tiles.up, aspect="equal")
    gap_y, gap_x = canvas.corners[0]
    axes.set_xlim(gap_x * (not tiles.rows), canvas.numbers.shape[1])
    axes.set_ylim(len(canvas.numbers), gap_y)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2, width=0.5, labelsize=TEXT, pad=1.5)
    tops, lefts = canvas.corners.T
    below = lefts[tops == tops.max()] if not tiles.rows else np.unique(lefts)
    across = [(left + t + 0.5, t) for left in below for t in spread_ticks(width)]
    up = [(top + height - t - 0.5, t) for top in np.unique(tops) for t in spread_ticks(height)]
    for axis, ticks in ((axes.xaxis, across), (axes.yaxis, [] if tiles.rows else up)):
        axis.set_ticks([at for at, _ in ticks], [str(name) for _, name in ticks])
    every = max(1, math.ceil(TEXT / canvas.unit)) if tiles.rows else 1
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": TEXT}
    style |= {"ha": "right", "va": "center"} if tiles.rows else {"va": "bottom"}
    for (top, left), name in list(zip(canvas.corners, tiles.names, strict=False))[::every]:
        at, off = ((left, top + 0.5), (-3, 0)) if tiles.rows else ((left, top), (0, 1))
        axes.annotate(name, at, off, **style)


def spread_ticks(num: int, most: int = 5) -> list[int]:
    """Return round numbers below `num`, from 0 on, no more than `most`."""
    steps = (digit * 10**power for power in range(9) for digit in (1, 2, 4, 5))
    return list(range(0, num, next(step for step in steps if step * most >= num)))
