"""Pictures of results of all three problems, by matplotlib, without a window system.

`draw` draws what matters most into any Axes; `write_figure` writes a PNG file with all there is to
see. What stands where is in `cells`; `tiles`, `voxels` and `mapping_plane` draw it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.errors import number_of
from topoplace.machine import Torus
from topoplace.mapping.objects.problem import ObjectsProblem
from topoplace.mapping.problem import MappingProblem
from topoplace.report import mapping_plane as pencils
from topoplace.report.answer import started_names
from topoplace.report.cells import (
    CLASS_COLOUR,
    GREY_NAMES,
    NUM_FAR,
    Cells,
    cells_of,
    colour_of,
    far_colour,
    job_colour,
    palette_png,
)
from topoplace.report.repack import before_and_after, plan_lines
from topoplace.report.summary import AnyResult, headline, layout_text
from topoplace.report.tiles import RIM, draw_tiles, tiles_height, tiles_of
from topoplace.report.voxels import draw_torus
from topoplace.result.mapping import MappingResult, MappingSolution
from topoplace.result.objects import ObjectsResult
from topoplace.result.repack import RepackResult
from topoplace.snapshot.files import write_bytes
from topoplace.snapshot.state import SnapshotState
from topoplace.study import case
from topoplace.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 900 / 96
"""Inches of a figure; 900 pixels of a page or notebook show its text of 8 points as such."""

_DPI = 160
_MARGIN, _AXIS, _ROW, _LOADS_HEIGHT, _SPACE_HEIGHT = 0.42, 0.45, 0.165, 1.6, 5.1
_WIDE, _MOST_HEIGHT, _TREE_HEIGHT = WIDTH - 1.3 * _MARGIN, 4.6, 7.0
_MOST_ENTRIES, _LEGEND_COLUMNS, _LEGEND_WIDTH = 27, 3, 2.7
_SPACE_DIMS = 3
_HALF_TEXT = 19  # characters


@dataclass(frozen=True)
class _Picture:
    """The essential picture of a result: how to draw it, its height in inches, its legend.

    Beside it, a full figure has a torus in space, or the loads of all links of a mapping.
    """

    draw: Callable[[Axes], None]
    height: float
    entries: list[Artist]
    space: Cells | None = None
    loads: FloatArray | None = None


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
        picture = _picture_of(result)
        if axes is None:
            essential = replace(picture, space=None, loads=None)
            return _assembled(essential, 0.1, new_figure).axes[0]
        ink = rcParams["text.color"]
        axes.tick_params(colors=ink)
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
            text.set(fontsize=8, color=ink)
        picture.draw(axes)
    return axes


def write_figure(result: AnyResult, path: str | Path, *, dark: bool = False) -> None:
    """Write the full picture of a result as a PNG file, all of it or nothing.

    A placement on a 3-D machine is shown in space as well, a mapping with the load of its links.
    """
    write_bytes(path, figure_png(result, dark=dark))


def figure_png(result: AnyResult, *, dark: bool = False) -> bytes:
    """Return the full picture of a result as the bytes of a PNG file."""
    if isinstance(result, RepackResult):
        before, after = before_and_after(result)
        heads = [*title(result)[:1], "before"], ["after", *plan_lines(result)[:1]]
        views = zip((before, after), heads, strict=True)
        figures = [full_figure(view, dark=dark, head=head) for view, head in views]
    else:
        figures = [full_figure(result, dark=dark)]
    return png_of(*figures)


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


def full_figure(
    result: AnyResult,
    *,
    dark: bool = False,
    head: Sequence[str] | None = None,
    essential: bool = False,
) -> Figure:
    """Return the figure that `write_figure` writes, below some lines, by default its `title`.

    Of several below each other, the `essential` part is enough.
    """
    with styled(dark):
        picture = _picture_of(result)
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
    lines, solution = [headline(result)], result.solution
    if solution is None:
        return lines
    if isinstance(result, ObjectsResult):
        return [*lines, f"hop-bytes {result.objective:,}"]
    if isinstance(result, RepackResult):
        return [*lines, *plan_lines(result)[:1]]
    if not isinstance(result, MappingResult):
        started = len(started_names(result))
        return [*lines, f"{started} of {number_of(len(result.instance.queue), 'request')} started"]
    layout = "" if solution.layout is None else f"; {layout_text(solution.layout)}"
    return [*lines, f"hop-bytes {result.objective:,}{layout}"]


def _picture_of(result: AnyResult) -> _Picture:
    if isinstance(result, RepackResult):
        return _picture_of(before_and_after(result)[1])
    state = case.state_of(result)
    if isinstance(state, MappingProblem | ObjectsProblem):
        assert isinstance(result, MappingResult | ObjectsResult)
        return _mapping(result, state)
    cells = cells_of(result, state)
    unit = "router" if isinstance(state, SnapshotState) else "node"
    return _flat(state, cells, _jobs(cells, unit))


def _flat(state: case.State, cells: Cells, entries: list[Artist]) -> _Picture:
    """Return all routers or nodes side by side, and those of a torus with jobs in space as well."""
    tiles = tiles_of(state)
    on_torus = isinstance(state, SnapshotState | MappingProblem)
    solid = isinstance(state, SnapshotState) and cells.codes.ndim == _SPACE_DIMS
    return _Picture(
        partial(draw_tiles, tiles=tiles, cells=cells),
        tiles_height(tiles, _WIDE, _MOST_HEIGHT if on_torus else _TREE_HEIGHT),
        entries,
        space=cells if solid else None,
    )


def _mapping(
    result: MappingResult | ObjectsResult, own: MappingProblem | ObjectsProblem
) -> _Picture:
    """Return a plane of pencils if there is a layout, else all routers with their tasks."""
    problem = own.plain if isinstance(own, ObjectsProblem) else own
    cells = cells_of(result, problem)
    solution, greys = result.solution, _greys(cells, "router")
    if solution is None:
        return _flat(problem, cells, greys)
    nodes = np.asarray(solution.nodes, dtype=np.int64)
    layout = solution.layout if isinstance(solution, MappingSolution) else None
    if layout is None:
        picture = _flat(problem, cells, _hops(cells, problem) + greys)
    else:
        plane = pencils.plane_of(problem, nodes, layout)
        rows, columns = plane.shape
        used = f"holds tasks: {number_of(int(np.count_nonzero(cells.codes >= 0)), 'router')}"
        picture = _Picture(
            partial(pencils.draw_plane, plane=plane, problem=problem, nodes=nodes, layout=layout),
            min(_MOST_HEIGHT, _WIDE * rows / columns, 0.5 * rows),
            [_entry(used, pencils.USED_COLOUR), *greys],
        )
    on_torus = isinstance(problem.machine, Torus)
    return replace(picture, loads=pencils.heaviest_loads(own, nodes) if on_torus else None)


def _jobs(cells: Cells, unit: str) -> list[Artist]:
    """Return a legend: greys and classes, the largest jobs, how many more."""
    entries = _greys(cells, unit)
    if cells.special.any():
        entries.append(_entry(f"class {cells.special_name}", "none", CLASS_COLOUR))
    if cells.jobs:
        entries.append(_entry("started, numbered by size:"))
    room = _MOST_ENTRIES - len(entries)
    shown = list(cells.jobs.items())[: room if len(cells.jobs) <= room else room - 1]
    entries += [_entry(f"{code + 1}  {text}", job_colour(code)) for code, text in shown]
    if len(shown) < len(cells.jobs):
        entries.append(_entry(f"and {len(cells.jobs) - len(shown):,} more"))
    return entries


def _hops(cells: Cells, problem: MappingProblem) -> list[Artist]:
    """Return what the colours of a mapping's routers mean."""
    diameter = max(1, problem.machine.diameter)
    entries = []
    for code in np.unique(cells.codes[cells.codes >= 0]).tolist():
        near, far = (diameter * (k / NUM_FAR) ** 2 for k in (code, code + 1))
        entries.append(_entry(f"mean hops {near:.2g} to {far:.2g}", far_colour(code)))
    return entries


def _greys(cells: Cells, unit: str) -> list[Artist]:
    counts = {code: np.count_nonzero(cells.codes == code) for code in GREY_NAMES}
    return [
        _entry(f"{GREY_NAMES[code]}: {number_of(int(count), unit)}", colour_of(code))
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
    picture: _Picture, top: float, new_figure: Callable[..., Figure] | None = None
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
    picture.draw(_panel(figure, _MARGIN, low, _WIDE, picture.height))
    if picture.loads is not None:
        box = _MARGIN + 0.3, _AXIS, WIDTH - 2 * _MARGIN - 0.3, _LOADS_HEIGHT
        pencils.draw_distribution(_panel(figure, *box), picture.loads)
    return figure


def _entry(text: str, colour: Any = "none", rim: str | None = None) -> Artist:
    """Return what a legend shows of a colour and its meaning; what is too long lacks its middle."""
    from matplotlib.patches import Patch  # noqa: PLC0415 - heavy

    if len(text) > 2 * _HALF_TEXT:
        text = f"{text[:_HALF_TEXT]}\N{HORIZONTAL ELLIPSIS}{text[-_HALF_TEXT:]}"
    rim = rim or ("none" if colour == "none" else RIM)
    return Patch(facecolor=colour, edgecolor=rim, linewidth=0.5 if rim == RIM else 1.3, label=text)
