"""Pictures of mappings by layout: the pencils of a plane, and the load of links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topoplace.mapping.evaluate import link_loads
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.report.cells import FREE, UNUSABLE, colours_of, rgb
from topoplace.report.tiles import RIM, dimension_name, size_of, spread_ticks
from topoplace.result.mapping import LayoutModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USED_COLOUR = rgb("#8fc4ee")
_IDLE = f"{RIM}55"
_BOX = 0.62  # of a router, in parts of the way to the next
_LEAST_NUMBERED = 10.0  # points of that way


@dataclass(frozen=True)
class Plane:
    """A plane of routers: rows across the pencils, columns along them.

    Attributes
    ----------
    routers
        Router numbers, shape ``(rows, columns)``.
    across, along
        Machine dimensions of the rows and of the columns (`across` is -1 on a machine of one
        dimension).
    coordinates
        Of its routers, shape ``(rows, columns, num_dims)``.
    used
        Which routers of the machine hold tasks.
    """

    routers: IntArray
    across: int
    along: int
    coordinates: IntArray
    used: NDArray[np.bool_]


def plane_of(problem: MappingProblem, nodes: IntArray, layout: LayoutModel) -> Plane:
    """Return the plane to show: of those with most tasks the one with most routers skipped."""
    torus, along = problem.torus, layout.pencil
    across = next((d for d in range(torus.num_dims) if d != along), -1)
    used = np.bincount(problem.routers_of(nodes), minlength=torus.num_routers) > 0
    numbers = np.arange(torus.num_routers).reshape(torus.shape)
    for d, (start, extent) in enumerate(zip(layout.origin, _window(layout), strict=True)):
        wanted = (start + np.arange(min(extent, torus.shape[d]))) % torus.shape[d]
        numbers = np.take(numbers, wanted, axis=d)
    planes = numbers[None, None, :]
    if across >= 0:
        planes = np.moveaxis(numbers, [across, along], [-2, -1])
        planes = planes.reshape(-1, *planes.shape[-2:])
    num_used = used[planes].sum(axis=(1, 2))
    skipped = (~problem.whole_routers[planes]).sum(axis=(1, 2))
    routers = planes[int(np.lexsort((-skipped, -num_used))[0])]
    return Plane(routers, across, along, torus.coordinates[routers], used)


def _window(layout: LayoutModel) -> list[int]:
    """Return the extents of a layout's window, a staggered one's widened by one."""
    extents = list(layout.logical)
    extents[layout.pencil] = layout.depth
    if layout.stagger:
        folded = next(d for d, axis in enumerate(layout.axes) if axis >= 0)
        extents[folded] += folded != layout.pencil
    return extents


def draw_plane(axes: Axes, plane: Plane, problem: MappingProblem, nodes: IntArray) -> None:
    """Draw routers as Figure 7 of Enos 2014, the levels of each pencil in them, and their links.

    Routers without tasks have no level; the colour of a link is its load.
    """
    from matplotlib import colormaps  # noqa: PLC0415 - heavy
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - heavy
    from matplotlib.colors import Normalize  # noqa: PLC0415 - heavy

    loads = heaviest_loads(problem, nodes)
    rows, columns = plane.routers.shape
    unit = min(size / n for size, n in zip(size_of(axes), (columns, rows), strict=True))
    row, column = np.mgrid[:rows, :columns]
    segments, values = [], []
    for dim, (down, right) in ((plane.along, (0, 1)), (plane.across, (1, 0))):
        if dim >= 0:
            inside = (row < rows - down) & (column < columns - right)
            ends = np.stack([column, row, column + right, row + down], axis=-1)[inside]
            segments.append(ends.reshape(-1, 2, 2))
            values.append(loads[dim, plane.routers[inside]])
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
    scale.set_label("bytes over bandwidth of links, heavier direction")
    used = plane.used[plane.routers]
    codes = np.where(problem.capacity[plane.routers] > 0, FREE, UNUSABLE)
    colours = colours_of(np.where(used, 0, codes), lambda _: USED_COLOUR).reshape(-1, 4)
    for fill in (axes.get_facecolor(), colours):  # free routers hide their links as well
        box: dict[str, Any] = {"marker": "s", "edgecolors": RIM, "linewidths": 0.5, "zorder": 3}
        axes.scatter(column, row, (_BOX * unit) ** 2, facecolors=fill, **box)
    levels = np.cumsum(used, axis=1)
    for at in np.argwhere(used) if unit > _LEAST_NUMBERED else []:
        text: dict[str, Any] = {"ha": "center", "va": "center", "color": "black", "zorder": 4}
        axes.text(at[1], at[0], str(levels[tuple(at)]), fontsize=min(8.0, unit / 2.4), **text)
    _name_axes(axes, plane)


def draw_distribution(axes: Axes, loads: NDArray[np.float64]) -> None:
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


def heaviest_loads(problem: MappingProblem, nodes: IntArray) -> NDArray[np.float64]:
    """Return bytes over bandwidth on every link, the heavier direction, (dims, routers)."""
    routers, graph = problem.routers_of(nodes), problem.graph
    loads = link_loads(
        problem.torus, routers[graph.sources], routers[graph.targets], graph.bytes
    ).max(axis=0)
    heaviest: NDArray[np.float64] = loads / np.asarray(problem.torus.bandwidth)[:, None]
    return heaviest


def _name_axes(axes: Axes, plane: Plane) -> None:
    """Number the routers by their coordinates along and across the pencils."""
    rows, columns = plane.routers.shape
    axes.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6), aspect="equal")
    right, down = spread_ticks(columns), spread_ticks(rows) if plane.across >= 0 else []
    axes.set_xticks(right, plane.coordinates[0, right, plane.along])
    axes.set_yticks(down, plane.coordinates[down, 0, plane.across])
    axes.set_xlabel(dimension_name(plane.along))
    axes.set_ylabel(dimension_name(plane.across) if plane.across >= 0 else "")
    fixed = (d for d in range(plane.coordinates.shape[-1]) if d not in (plane.across, plane.along))
    where = [f", {dimension_name(d)} = {plane.coordinates[0, 0, d]}" for d in fixed]
    axes.set_title(f"levels of the pencils{''.join(where)}")
    axes.spines[:].set_visible(False)
