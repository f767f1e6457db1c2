"""Pictures of results of all problems, by matplotlib, without a window system.

`draw` draws what matters most into any Axes; `write_figure` writes a PNG file with all there is to
see. What stands where is in `tiles`, which draws it flat, as `mapping_plane` does for mappings.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.errors import number_of
from topoplace.report import mapping_plane as pencils
from topoplace.report.summary import headline
from topoplace.report.tiles import (
    CLASS_COLOUR,
    DOWN,
    GREY,
    GREY_NAMES,
    RIM,
    RUNNING,
    UNUSABLE,
    Cells,
    borders,
    colour_of,
    job_colour,
    palette_png,
    rgb,
    spread_ticks,
)
from topoplace.report.view import AnyResult, Picture, View, view_of
from topoplace.shown import work
from topoplace.snapshot.files import write_bytes
from topoplace.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d import Axes3D

WIDTH = 900 / 96
"""Inches of a figure; 900 pixels of a page or notebook show its text of 8 points as such."""

_DPI = 160
_MARGIN, _AXIS, _ROW, _LOADS_HEIGHT, _SPACE_HEIGHT = 0.42, 0.45, 0.165, 1.6, 5.1
WIDE, MOST_HEIGHT = WIDTH - 1.3 * _MARGIN, 4.6
_MOST_ENTRIES, _LEGEND_COLUMNS, _LEGEND_WIDTH = 27, 3, 2.7
_HALF_TEXT = 19  # characters


def draw(
    result: AnyResult,
    axes: Axes | None = None,
    *,
    dark: bool = False,
    new_figure: Callable[..., Figure] | None = None,
) -> Axes:
    """Draw the essential picture of a result: slices, leaf switches, a plane of pencils or tasks.

    Without axes, in a new figure as wide as a notebook, with a legend; `new_figure` makes it of a
    `figsize`, by default one that pyplot does not know of.
    """
    from matplotlib import rcParams  # noqa: PLC0415 - heavy

    with styled(dark):
        picture = picture_of(view_of(result))
        if axes is None:
            essential = replace(picture, space=None, loads=None)
            return _assembled(essential, 0.1, new_figure).axes[0]
        ink = rcParams["text.color"]
        axes.tick_params(colors=ink)
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
            text.set(fontsize=8, color=ink)
        picture.draw(axes)
    return axes


def plot(result: AnyResult, ax: Axes | None = None, *, dark: bool = False) -> Axes:
    """Draw the essential picture of a result into `ax`, or into a new figure of pyplot."""
    if ax is not None:
        return draw(result, ax, dark=dark)
    import matplotlib.pyplot as plt  # noqa: PLC0415 - heavy

    return draw(result, dark=dark, new_figure=plt.figure)


def write_figure(found: Any, path: str | Path, *, dark: bool = False, svg: bool = False) -> None:
    """Write the full picture of what was found as a PNG or SVG file, all of it or nothing.

    A placement on a 3-D machine is shown in space as well, a mapping with the load of its links.
    """
    figures = work("figures", found)(found, dark=dark)
    write_bytes(path, svg_of(*figures) if svg else png_of(*figures))


def figures_of(result: AnyResult, *, dark: bool = False) -> list[Figure]:
    """Return the full picture of a result, one above the other."""
    own = view_of(result).figures()
    return [full_figure(one, dark=dark, head=head) for one, head in own]


def png_of(*figures: Figure) -> bytes:
    """Return figures, one above the other, as the bytes of a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - heavy

    pixels = []
    for figure in figures:
        figure.dpi = _DPI
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels.append(np.asarray(canvas.buffer_rgba()))  # type: ignore[no-untyped-call]
    return palette_png(np.concatenate(pixels))


def svg_of(*figures: Figure) -> bytes:
    """Return figures, one above the other, as an SVG file, in which text stays text."""
    parts, top, width = [], 0.0, max(72 * figure.get_figwidth() for figure in figures)
    with styled(dark=False):  # how SVG is written
        for figure in figures:
            figure.dpi = _DPI
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata={"Date": None})
            head, rest = stream.getvalue().partition("<svg")[2].split(">", 1)
            head = head.replace('pt"', '"')  # its units are those of what is around it
            parts.append(f'<svg y="{top:g}"{head}>{rest}')
            top += 72 * figure.get_figheight()
    size = f'viewBox="0 0 {width:g} {top:g}" width="{width:g}pt" height="{top:g}pt"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, "<title>topoplace</title>", *parts, "</svg>\n"]).encode()


def full_figure(
    result: AnyResult,
    *,
    dark: bool = False,
    head: Sequence[str] | None = None,
    essential: bool = False,
) -> Figure:
    """Return the figure of a result, below some lines, by default its `title`.

    Of several below each other, the `essential` part is enough.
    """
    with styled(dark):
        picture = picture_of(view_of(result))
        if essential:
            picture = replace(picture, space=None, loads=None)
        lines = title(result) if head is None else head
        head = [part for line in lines for part in textwrap.wrap(line, 130)]
        figure = _assembled(picture, 0.15 + 0.18 * len(head))
        high = 1 - 0.1 / figure.get_figheight()
        figure.text(0.02, high, "\n".join(head), va="top", fontsize=9)
    return figure


def title(result: AnyResult) -> list[str]:
    """Return lines that say what is proven, and how much starts or how tasks are mapped."""
    lines = [headline(result)]
    return lines if result.solution is None else [*lines, *view_of(result).title()]


def picture_of(view: View) -> Picture:
    """Return the essential picture of a result."""
    own = view.picture()
    if own is not None:
        return own
    # before and after a plan there are no levels, and not all that has a colour starts
    jobs = "started" if view.result.levels else "in the plan"
    return flat(view, jobs_of(view.cells, view.cell, jobs))


def flat(view: View, entries: list[Artist]) -> Picture:
    """Return all cells side by side, and those of a torus with jobs in space as well."""
    tiles, cells = view.tiles, view.cells
    return Picture(
        partial(tiles.draw, cells=cells),
        tiles.height(WIDE, view.height),
        entries,
        space=cells if view.has_space else None,
    )


def jobs_of(cells: Cells, unit: str, jobs: str) -> list[Artist]:
    """Return a legend: greys and classes, the largest jobs, called so, how many more."""
    entries = greys_of(cells, unit)
    if cells.special.any():
        entries.append(entry(f"class {cells.special_name}", "none", CLASS_COLOUR))
    if cells.jobs:
        entries.append(entry(f"{jobs}, numbered by size:"))
    room = _MOST_ENTRIES - len(entries)
    shown = list(cells.jobs.items())[: room if len(cells.jobs) <= room else room - 1]
    entries += [entry(f"{code + 1}  {text}", job_colour(code)) for code, text in shown]
    if len(shown) < len(cells.jobs):
        entries.append(entry(f"and {len(cells.jobs) - len(shown):,} more"))
    return entries


def greys_of(cells: Cells, unit: str) -> list[Artist]:
    """Return what the greys of a picture mean, and how many cells have them."""
    counts = {code: np.count_nonzero(cells.codes == code) for code in GREY_NAMES}
    return [
        entry(f"{GREY_NAMES[code]}: {number_of(int(count), unit)}", colour_of(code))
        for code, count in counts.items()
        if count
    ]


def styled(dark: bool) -> AbstractContextManager[None]:
    """Return a block in which matplotlib draws for a light or a dark page."""
    from matplotlib import rc_context  # noqa: PLC0415 - heavy

    name = "dark" if dark else "light"
    return rc_context(fname=Path(__file__).parent / "styles" / f"{name}.mplstyle")


def _panel(
    figure: Figure, left: float, low: float, width: float, height: float, **kind: Any
) -> Any:
    """Return new axes at a place in inches."""
    wide, high = figure.get_size_inches()
    return figure.add_axes((left / wide, low / high, width / wide, height / high), **kind)


def _assembled(
    picture: Picture, top: float, new_figure: Callable[..., Figure] | None = None
) -> Figure:
    """Return a figure with everything a picture has, above each other, below `top` inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    space, entries = picture.space, picture.entries
    loads = _LOADS_HEIGHT + 2 * _AXIS if picture.loads is not None else 0.0
    low = loads + _AXIS + (0 if space else 0.1 + _ROW * -(-len(entries) // _LEGEND_COLUMNS))
    main = low + picture.height
    high = main + (_SPACE_HEIGHT + 0.2 if space else 0.2) + top
    figure = (new_figure or Figure)(figsize=(WIDTH, high))
    if space:
        box = -0.2, main + 0.55, WIDTH - _LEGEND_WIDTH + 0.1, _SPACE_HEIGHT - 0.35
        draw_torus(_panel(figure, *box, projection="3d"), space)
        at = 1 - _LEGEND_WIDTH / WIDTH, (main + _SPACE_HEIGHT) / high
        figure.legend(handles=entries, loc="upper left", bbox_to_anchor=at)
    else:
        at = _MARGIN / WIDTH, loads / high
        figure.legend(handles=entries, loc="lower left", bbox_to_anchor=at, ncols=_LEGEND_COLUMNS)
    main_panel = _panel(figure, _MARGIN, low, WIDE, picture.height)
    main_panel.set_anchor("W")  # so that narrow screens show it
    picture.draw(main_panel)
    if picture.loads is not None:
        box = _MARGIN + 0.3, _AXIS, WIDTH - 2 * _MARGIN - 0.3, _LOADS_HEIGHT
        pencils.draw_distribution(_panel(figure, *box), picture.loads)
    return figure


def entry(text: str, colour: Any = "none", rim: str | None = None) -> Artist:
    """Return what a legend shows of a colour and its meaning; what is too long lacks its middle."""
    from matplotlib.patches import Patch  # noqa: PLC0415 - heavy

    if len(text) > 2 * _HALF_TEXT:
        text = f"{text[:_HALF_TEXT]}\N{HORIZONTAL ELLIPSIS}{text[-_HALF_TEXT:]}"
    rim = rim or ("none" if colour == "none" else RIM)
    return Patch(facecolor=colour, edgecolor=rim, linewidth=0.5 if rim == RIM else 1.3, label=text)


# ---- The machine in space: routers as cubes, seen from a corner (Enos 2014, Figures 1 to 4) ------


ELEVATION, AZIMUTH = 24.0, -58.0
_VIEWER = np.array([0.484, -0.775, 0.407])  # the direction to the viewer

_SIZE = {DOWN: 0.55, UNUSABLE: 0.4}
_RUNNING_OPACITY = 0.22
_SHADE = (0.78, 0.9, 1.0)  # faces across x, y, z: light from above
# The two dimensions along the face across each dimension, and the side of a cube that is seen.
_SPAN = ((1, 2), (0, 2), (0, 1))
_SEEN_SIDE = (1, 0, 1)
_NEARER = 0.4  # lines lie before the faces they bound, by so many routers; twice around classes


def draw_torus(axes: Axes3D, cells: Cells) -> None:
    """Draw a 3-D machine as cubes.

    Started jobs are opaque, running ones a haze with edges, service and down routers small cubes,
    and what is free is empty. Only the sides that face the viewer are drawn, of jobs where no job
    stands before them.
    """
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # noqa: PLC0415 - heavy

    codes, colours, none = cells.codes, cells.colours, np.zeros(4)
    hazy = codes == RUNNING
    colours[hazy, 3] = _RUNNING_OPACITY
    special = np.where(cells.special, 0, -1)
    parts: list[tuple[FloatArray, FloatArray, FloatArray, float]] = []  # quads, fill, edge, width
    for dim in range(3):
        shaded = colours * (*[_SHADE[dim]] * 3, 1)
        for code, size in _SIZE.items():
            where = codes == code
            parts.append((_faces(np.argwhere(where), dim, size), shaded[where], none, 0))
        before = _before(codes, dim)
        for where, grid, ink in (
            (hazy & (before < 0) & (before != RUNNING), 0.0, (*rgb(GREY), 0.75)),
            ((codes >= 0) & (before < 0), 0.35, (0.1, 0.1, 0.1, 0.9)),
        ):
            faint = shaded[where] * (0.6, 0.6, 0.6, grid)
            parts.append((_faces(np.argwhere(where), dim, 1.0), shaded[where], faint, 0.25))
            lines = _outlines(np.where(where, cells.owner, -1), dim)
            parts.append((lines, none, np.array(ink), 0.5))
        lines = _outlines(np.where(_before(special, dim) < 0, special, -1), dim)
        red = np.array((*rgb(CLASS_COLOUR), 1.0))
        parts.append((lines + _NEARER * _VIEWER, none, red, 1.3))

    axes.add_collection3d(
        Poly3DCollection(
            np.concatenate([quads for quads, *_ in parts]),
            facecolors=np.concatenate([np.broadcast_to(f, (len(q), 4)) for q, f, _, _ in parts]),
            edgecolors=np.concatenate([np.broadcast_to(e, (len(q), 4)) for q, _, e, _ in parts]),
            linewidths=np.concatenate([np.full(len(q), width) for q, *_, width in parts]),
            clip_on=False,
        )
    )
    axes.view_init(elev=ELEVATION, azim=AZIMUTH)
    axes.set_proj_type("persp", focal_length=1.4)
    shape = codes.shape
    axes.set_box_aspect(shape, zoom=1.15 * (min(shape) / max(shape)) ** 0.15)  # fills the panel
    for dim, name in enumerate("xyz"):
        ticks = spread_ticks(shape[dim])
        axes.set(**{f"{name}lim": (0, shape[dim])})
        axis = getattr(axes, f"{name}axis")
        axis.set_ticks([t + 0.5 for t in ticks], [str(t) for t in ticks])
        axis.set_tick_params(labelsize=7, pad=-1)
        axis.set_label_text(name, fontsize=8)
        axis.labelpad = -4
        axis.pane.set(facecolor="none", edgecolor="none")


def _before(codes: IntArray, dim: int) -> IntArray:
    """Return what stands right before the seen side of every cell; before the rim nothing, -1."""
    step = 1 if _SEEN_SIDE[dim] else -1
    before: IntArray = np.roll(codes, -step, axis=dim)
    np.moveaxis(before, dim, 0)[-1 if step == 1 else 0] = -1
    return before


def _faces(at: IntArray, dim: int, size: float) -> FloatArray:
    """Return the seen faces across one dimension of the cubes at some cells, ``(n, 4, 3)``."""
    low = at + (1 - size) / 2
    a, b = (np.eye(3)[k] * size for k in _SPAN[dim])
    start = low + np.eye(3)[dim] * size * _SEEN_SIDE[dim]
    corners: FloatArray = np.stack([start, start + a, start + a + b, start + b], axis=1)
    return corners


def _outlines(owner: IntArray, dim: int) -> FloatArray:
    """Return the edges of what has one owner on the seen faces across a dimension.

    They are quads without area, ``(n, 4, 3)``, so that they are sorted by depth with the faces.
    """
    lines = []
    for level, layer in enumerate(np.moveaxis(owner, dim, 0)):
        flat = borders(np.pad(layer, 1, constant_values=-1)) - 1  # (n, 2, 2): second, first axis
        line = np.empty((len(flat), 2, 3))
        line[..., _SPAN[dim][1]], line[..., _SPAN[dim][0]] = flat[..., 0], flat[..., 1]
        line[..., dim] = level + _SEEN_SIDE[dim]
        lines.append(line)
    ends = np.concatenate(lines)[:, [0, 1, 1, 0]]
    return ends + _NEARER * _VIEWER
