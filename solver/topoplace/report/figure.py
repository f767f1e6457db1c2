"""Pictures of results of all three problems, by matplotlib, without a window system.

`draw` draws what matters most into any Axes; `write_figure` writes a PNG file with all there is to
see. What stands where is in `cells`; `tiles`, `voxels` and `mapping_plane` draw it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Torus, format_node_set
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.report.answer import started_names
from topoplace.report.cells import (
    CLASS_COLOUR,
    GREY_NAMES,
    NUM_FAR,
    Cells,
    IntArray,
    allocation_cells,
    colour_of,
    colours_of,
    far_codes,
    far_colour,
    job_colour,
    palette_png,
    placement_cells,
)
from topoplace.report.mapping_plane import (
    USED_COLOUR,
    draw_distribution,
    draw_plane,
    heaviest_loads,
    plane_of,
)
from topoplace.report.summary import AnyResult, headline, layout_text
from topoplace.report.tiles import RIM, draw_tiles, leaf_tiles, machine_tiles, tiles_height
from topoplace.report.voxels import draw_torus
from topoplace.result import PlacementResult
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import prepare
from topoplace.snapshot.files import write_bytes
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.tree_state import prepare_tree

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 900 / 96
"""Inches of a figure; 900 pixels of a page or notebook show its text of 8 points as such."""

_DPI = 160
_INK = ("#1c2024", "#e6e8eb")
_PAPER = ("#ffffff", "#15171a")
_RULE = ("#d9dce1", "#34383d")
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
    loads: NDArray[np.float64] | None = None


def draw(
    result: AnyResult,
    axes: Axes | None = None,
    *,
    dark: bool = False,
    new_figure: Callable[..., Figure] | None = None,
) -> Axes:
    """Draw the essential picture of a result.

    Parameters
    ----------
    result
        Of a placement: the slices of the machine are drawn. Of an allocation: the nodes of every
        leaf switch. Of a mapping: a plane of pencils, or the tasks on every router.
    axes
        Where to; if None, a new `Figure` as wide as a notebook, with a legend.
    dark
        Whether what is behind the picture is dark.
    new_figure
        Makes a figure of a `figsize`; by default one that pyplot does not know of.

    Raises
    ------
    InputError
        If the instance inside is not valid.
    """
    with _styled(dark):
        picture = _picture_of(result)
        if axes is None:
            essential = replace(picture, space=None, loads=None)
            return _assembled(essential, 0.1, new_figure).axes[0]
        axes.tick_params(colors=_INK[dark])
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
            text.set(fontsize=8, color=_INK[dark])
        picture.draw(axes)
    return axes


def write_figure(result: AnyResult, path: str | Path, *, dark: bool = False) -> None:
    """Write the full picture of a result as a PNG file, all of it or nothing.

    A placement on a 3-D machine is shown in space as well, a mapping with the load of its links.
    """
    write_bytes(path, figure_png(result, dark=dark))


def figure_png(result: AnyResult, *, dark: bool = False) -> bytes:
    """Return the full picture of a result as the bytes of a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - heavy

    figure = full_figure(result, dark=dark)
    figure.dpi = _DPI
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    return palette_png(np.asarray(canvas.buffer_rgba()))  # type: ignore[no-untyped-call]


def full_figure(result: AnyResult, *, dark: bool = False) -> Figure:
    """Return the figure that `write_figure` writes."""
    with _styled(dark):
        picture = _picture_of(result)
        head = [part for line in title(result) for part in textwrap.wrap(line, 130)]
        figure = _assembled(picture, 0.15 + 0.18 * len(head))
        high = 1 - 0.1 / figure.get_figheight()
        figure.text(0.02, high, "\n".join(head), va="top", fontsize=9)
    return figure


def title(result: AnyResult) -> list[str]:
    """Return lines that say what is proven, and how much starts or how tasks are mapped."""
    lines, solution = [headline(result)], result.solution
    if solution is None:
        return lines
    if not isinstance(result, MappingResult):
        started = len(started_names(result))
        return [*lines, f"{started} of {len(result.instance.queue)} requests start"]
    layout = "" if solution.layout is None else f"; {layout_text(solution.layout)}"
    return [*lines, f"hop-bytes {result.objective:,}{layout}"]


def job_entries(cells: Cells, unit: str) -> list[Artist]:
    """Return a legend: greys and classes, the largest jobs, how many more."""
    entries = _greys(cells.codes, unit)
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


def _picture_of(result: AnyResult) -> _Picture:
    if isinstance(result, MappingResult):
        return _mapping(result, prepare_mapping(result.instance))
    if isinstance(result, AllocationResult):
        tree = prepare_tree(result.instance)
        cells = allocation_cells(result, tree)
        names = [switch.name for switch in tree.tree.switches[: tree.tree.num_leaves]]
        tiles, unit, most = leaf_tiles(names, tree.tree.nodes_per_leaf), "nodes", _TREE_HEIGHT
    else:
        assert isinstance(result, PlacementResult)
        cells = placement_cells(result, prepare(resolve_machine(result.instance)))
        tiles, unit, most = machine_tiles(cells.codes.shape), "routers", _MOST_HEIGHT
    colours = colours_of(cells.codes.ravel())
    return _Picture(
        lambda axes: draw_tiles(axes, tiles, colours, cells=cells),
        tiles_height(tiles, _WIDE, most),
        job_entries(cells, unit),
        cells if cells.codes.ndim == _SPACE_DIMS else None,
    )


def _mapping(result: MappingResult, problem: MappingProblem) -> _Picture:
    """Return a plane of pencils if there is a layout, else all routers with their tasks."""
    machine, solution = problem.machine, result.solution
    shape = machine.shape if isinstance(machine, Torus) else (machine.num_routers,)
    codes = far_codes(result, problem)
    nodes = np.asarray([] if solution is None else solution.nodes, dtype=np.int64)
    loads = heaviest_loads(problem, nodes) if len(nodes) and isinstance(machine, Torus) else None
    if solution is not None and solution.layout is not None:
        plane = plane_of(problem, nodes, solution.layout)
        rows, columns = plane.routers.shape
        used = f"holds tasks: {np.count_nonzero(codes >= 0):,} routers"
        return _Picture(
            lambda axes: draw_plane(axes, plane, problem, nodes),
            min(_MOST_HEIGHT, _WIDE * rows / columns, 0.5 * rows),
            [_entry(used, USED_COLOUR), *_greys(codes, "routers")],
            loads=loads,
        )
    routers = problem.routers_of(nodes)
    order = np.argsort(routers, kind="stable")
    held, first = np.unique(routers[order], return_index=True)
    names = map(format_node_set, np.split(order, first[1:]))
    tasks = dict(zip(held.tolist(), names, strict=True))
    diameter = max(1, machine.diameter)
    kinds = [
        _entry(f"mean hops {near:.2g} to {far:.2g}", far_colour(code))
        for code in np.unique(codes[codes >= 0]).tolist()
        for near, far in [[diameter * (k / NUM_FAR) ** 2 for k in (code, code + 1)]]
    ]
    tiles, colours = machine_tiles(shape), colours_of(codes, far_colour)
    return _Picture(
        lambda axes: draw_tiles(axes, tiles, colours, tasks=tasks),
        tiles_height(tiles, _WIDE, _MOST_HEIGHT),
        [*kinds, *_greys(codes, "routers")],
        loads=loads,
    )


def _greys(codes: IntArray, unit: str) -> list[Artist]:
    counts = {code: np.count_nonzero(codes == code) for code in GREY_NAMES}
    return [
        _entry(f"{GREY_NAMES[code]}: {count:,} {unit}", colour_of(code))
        for code, count in counts.items()
        if count
    ]


def _styled(dark: bool) -> AbstractContextManager[None]:
    from matplotlib import rc_context  # noqa: PLC0415 - heavy

    style: dict[Any, Any] = {"grid.linewidth": 0.6, "legend.frameon": False, "legend.borderpad": 0}
    style |= {"legend.labelspacing": 0.3, "legend.handlelength": 1.4}
    for value, names in (
        (_INK[dark], ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")),
        (_PAPER[dark], ("figure.facecolor", "axes.facecolor")),
        (_RULE[dark], ("axes.edgecolor", "grid.color")),
        (8, ("axes.labelsize", "axes.titlesize", "legend.fontsize")),
        (7, ("xtick.labelsize", "ytick.labelsize")),
    ):
        style |= dict.fromkeys(names, value)
    return rc_context(style)


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
        draw_distribution(_panel(figure, *box), picture.loads)
    return figure


def _entry(text: str, colour: Any = "none", rim: str | None = None) -> Artist:
    """Return what a legend shows of a colour and its meaning; what is too long lacks its middle."""
    from matplotlib.patches import Patch  # noqa: PLC0415 - heavy

    if len(text) > 2 * _HALF_TEXT:
        text = f"{text[:_HALF_TEXT]}\N{HORIZONTAL ELLIPSIS}{text[-_HALF_TEXT:]}"
    rim = rim or ("none" if colour == "none" else RIM)
    return Patch(facecolor=colour, edgecolor=rim, linewidth=0.5 if rim == RIM else 1.3, label=text)
