"""Pictures of mappings by layout: the pencils of a plane, and the load of links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.mapping.evaluate import link_loads
from topoplace.mapping.problem import MappingProblem
from topoplace.report.tiles import (
    FREE,
    RIM,
    UNUSABLE,
    colours_of,
    dimension_name,
    rgb,
    size_of,
    spread_ticks,
)
from topoplace.result.mapping import LayoutModel
from topoplace.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USED_COLOUR = rgb("#8fc4ee")
_IDLE = f"{RIM}55"
_BOX = 0.62  # of a router, in parts of the way to the next
_LEAST_NUMBERED = 10.0  # points of that way


def plane_of(problem: MappingProblem, nodes: IntArray, layout: LayoutModel) -> IntArray:
    """Return the plane to show: of those with most tasks the one with most routers skipped.

    Its routers are in rows across the pencils, shape ``(rows, columns)``; in one row on a machine
    of one dimension.
    """
    torus = problem.torus
    across, along = _directions(problem, layout)
    numbers = np.arange(torus.num_routers).reshape(torus.shape)
    for d, (start, extent) in enumerate(zip(layout.origin, _window(layout), strict=True)):
        wanted = (start + np.arange(min(extent, torus.shape[d]))) % torus.shape[d]
        numbers = np.take(numbers, wanted, axis=d)
    planes = numbers[None, None, :]
    if across >= 0:
        planes = np.moveaxis(numbers, [across, along], [-2, -1])
        planes = planes.reshape(-1, *planes.shape[-2:])
    num_used = np.isin(planes, problem.routers_of(nodes)).sum(axis=(1, 2))
    skipped = (~problem.whole_routers[planes]).sum(axis=(1, 2))
    found: IntArray = planes[int(np.lexsort((-skipped, -num_used))[0])]
    return found


def _directions(problem: MappingProblem, layout: LayoutModel) -> tuple[int, int]:
    """Return the dimensions of the rows, -1 if there is no other, and of the columns."""
    along = layout.pencil
    return next((d for d in range(problem.torus.num_dims) if d != along), -1), along


def _window(layout: LayoutModel) -> list[int]:
    """Return the extents of a layout's window, a staggered one's widened by one."""
    extents = list(layout.logical)
    extents[layout.pencil] = layout.depth
    if layout.stagger:
        folded = next(d for d, axis in enumerate(layout.axes) if axis >= 0)
        extents[folded] += folded != layout.pencil
    return extents


def draw_plane(
    axes: Axes, plane: IntArray, problem: MappingProblem, nodes: IntArray, layout: LayoutModel
) -> None:
    """Draw routers as Figure 7 of Enos 2014, the levels of each pencil in them, and their links.

    Routers without tasks have no level; the colour of a link is its load.
    """
    from matplotlib import colormaps  # noqa: PLC0415 - heavy
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - heavy
    from matplotlib.colors import Normalize  # noqa: PLC0415 - heavy

    loads = heaviest_loads(problem, nodes)
    across, along = _directions(problem, layout)
    rows, columns = plane.shape
    unit = min(size / n for size, n in zip(size_of(axes), (columns, rows), strict=True))
    row, column = np.mgrid[:rows, :columns]
    segments, values = [], []
    for dim, (down, right) in ((along, (0, 1)), (across, (1, 0))):
        if dim >= 0:
            inside = (row < rows - down) & (column < columns - right)
            ends = np.stack([column, row, column + right, row + down], axis=-1)[inside]
            segments.append(ends.reshape(-1, 2, 2))
            values.append(loads[dim, plane[inside]])
    links = LineCollection(
        list(np.concatenate(segments)),
        array=np.ma.masked_equal(np.concatenate(values), 0),
        cmap=colormaps["plasma"].with_extremes(bad=_IDLE),
        norm=Normalize(0, max(float(loads.max(initial=0)), 1e-9)),
        linewidths=unit / 6,
    )
    axes.add_collection(links)
    scale = axes.figure.colorbar(links, cax=axes.inset_axes((1.03, 0.1, 0.02, 0.8)))
    scale.outline.set_visible(False)
    scale.set_label("bytes over bandwidth,\nheavier direction")
    used = np.isin(plane, problem.routers_of(nodes))
    codes = np.where(used, 0, np.where(problem.capacity[plane] > 0, FREE, UNUSABLE))
    colours = colours_of(codes.ravel(), lambda _: USED_COLOUR)
    for fill in (axes.get_facecolor(), colours):  # free routers hide their links as well
        box: dict[str, Any] = {"marker": "s", "edgecolors": RIM, "linewidths": 0.5, "zorder": 3}
        axes.scatter(column, row, (_BOX * unit) ** 2, facecolors=fill, **box)
    levels = np.cumsum(used, axis=1)
    for at in np.argwhere(used) if unit > _LEAST_NUMBERED else []:
        text: dict[str, Any] = {"ha": "center", "va": "center", "color": "black", "zorder": 4}
        axes.text(at[1], at[0], str(levels[tuple(at)]), fontsize=min(8.0, unit / 2.4), **text)
    # Routers are numbered by their coordinates along and across the pencils.
    axes.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6), aspect="equal")
    where = problem.torus.coordinates[plane]
    ticks = spread_ticks(columns), spread_ticks(rows) if across >= 0 else []
    axes.set_xticks(ticks[0], where[0, ticks[0], along])
    axes.set_yticks(ticks[1], where[ticks[1], 0, across])
    axes.set_xlabel(dimension_name(along))
    axes.set_ylabel(dimension_name(across) if across >= 0 else "")
    fixed = (d for d in range(where.shape[-1]) if d not in (across, along))
    names = [f", {dimension_name(d)} = {where[0, 0, d]}" for d in fixed]
    axes.set_title(f"levels of the pencils{''.join(names)}")
    axes.spines[:].set_visible(False)


def draw_distribution(axes: Axes, loads: FloatArray) -> None:
    """Draw the loads of all links in use, per dimension, heaviest first."""
    for dim, values in enumerate(loads):
        used = np.sort(values[values > 0])[::-1]
        if len(used):
            places = np.arange(1, len(used) + 1)
            thick = 4.0 / (1 + dim)  # so that lines that coincide can be told apart
            name = f"along {dimension_name(dim)}"
            axes.step(places, used, where="post", label=name, linewidth=thick)
    axes.set_xlabel("links, heaviest first")
    axes.set_ylim(bottom=0)
    axes.set_title("load of the links in use, bytes over bandwidth")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.legend()


def heaviest_loads(problem: MappingProblem, nodes: IntArray) -> FloatArray:
    """Return bytes over bandwidth on every link, the heavier direction, (dims, routers)."""
    loads = link_loads(problem.torus, *problem.sent(nodes)).max(axis=0)
    heaviest: FloatArray = loads / np.asarray(problem.torus.bandwidth)[:, None]
    return heaviest
