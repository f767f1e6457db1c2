"""One plane of a mapped machine: its pencils, and the load of its links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.mapping.evaluate import link_loads
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.report.colours import FREE_COLOUR, SERVICE_COLOUR
from topoplace.result.mapping import LayoutModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

USED_COLOUR = "#a9d3f5"
_MOST_NUMBERED = 26


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
    fixed
        Coordinates of the plane, shown in its title.
    tasks
        Tasks on every router of the machine.
    """

    routers: IntArray
    across: int
    along: int
    fixed: tuple[int, ...]
    tasks: IntArray


def plane_of(problem: MappingProblem, nodes: IntArray, layout: LayoutModel | None) -> Plane:
    """Return the plane to show: of those with most tasks the one with most routers skipped."""
    torus = problem.torus
    along = layout.pencil if layout else torus.num_dims - 1
    across = next((d for d in range(torus.num_dims) if d != along), -1)
    tasks = np.bincount(problem.routers_of(nodes), minlength=torus.num_routers)
    numbers = np.arange(torus.num_routers).reshape(torus.shape)
    if layout:
        for d, (start, extent) in enumerate(zip(layout.origin, _window(layout), strict=True)):
            wanted = (start + np.arange(min(extent, torus.shape[d]))) % torus.shape[d]
            numbers = np.take(numbers, wanted, axis=d)
    planes = np.moveaxis(numbers, [max(across, 0), along], [-2, -1]) if across >= 0 else numbers
    planes = planes.reshape(-1, *planes.shape[-2:]) if across >= 0 else planes.reshape(1, 1, -1)
    whole = problem.whole_routers
    used = (tasks[planes] > 0).sum(axis=(1, 2))
    skipped = (~whole[planes]).sum(axis=(1, 2))
    best = int(np.lexsort((-skipped, -used))[0])
    return Plane(planes[best], across, along, torus.coords(int(planes[best][0, 0])), tasks)


def _window(layout: LayoutModel) -> list[int]:
    """Return the extents of a layout's window, a staggered one's widened by one."""
    extents = list(layout.logical)
    extents[layout.pencil] = layout.depth
    if layout.stagger:
        folded = next(d for d, axis in enumerate(layout.axes) if axis >= 0)
        extents[folded] += folded != layout.pencil
    return extents


def draw_pencils(axes: Axes, plane: Plane, problem: MappingProblem, numbered: bool) -> None:
    """Draw the routers as Figure 7 of Enos 2014: the levels of each pencil, skipped ones marked.

    With `numbered` a router shows its level in its pencil, else how many tasks it holds.
    """
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - heavy

    rows, columns = plane.routers.shape
    usable = problem.capacity > 0
    size = max(4.0, min(11.0, 260 / max(rows, columns)))
    for row in range(rows):
        level = 0
        for column in range(columns):
            router = plane.routers[row, column]
            count = int(plane.tasks[router])
            level += count > 0
            colour = USED_COLOUR if count else FREE_COLOUR if usable[router] else SERVICE_COLOUR
            axes.add_patch(
                Rectangle((column - 0.45, row - 0.45), 0.9, 0.9, facecolor=colour, edgecolor="#888")
            )
            if count and max(rows, columns) <= _MOST_NUMBERED:
                text = str(level if numbered else count)
                axes.text(column, row, text, ha="center", va="center", fontsize=size)
    _frame(axes, plane)


def draw_loads(axes: Axes, plane: Plane, loads: NDArray[np.float64], norm: Normalize) -> None:
    """Draw the links inside the plane, coloured by their load."""
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - heavy

    rows, columns = plane.routers.shape
    segments, values = [], []
    for dim, step in ((plane.along, (0, 1)), (plane.across, (1, 0))):
        if dim < 0:
            continue
        for row in range(rows - step[0]):
            for column in range(columns - step[1]):
                segments.append([(column, row), (column + step[1], row + step[0])])
                values.append(loads[dim, plane.routers[row, column]])
    lines = LineCollection(segments, array=np.array(values), cmap="inferno_r", norm=norm)
    lines.set_linewidth(3.0)
    axes.add_collection(lines)
    axes.plot(
        np.tile(np.arange(columns), rows),
        np.repeat(np.arange(rows), columns),
        "o",
        color="#555555",
        markersize=2.5,
    )
    _frame(axes, plane)


def heaviest_loads(problem: MappingProblem, nodes: IntArray) -> NDArray[np.float64]:
    """Return bytes over bandwidth on every link, the heavier direction, (dims, routers)."""
    routers, graph = problem.routers_of(nodes), problem.graph
    loads = link_loads(
        problem.torus, routers[graph.sources], routers[graph.targets], graph.bytes
    ).max(axis=0)
    heaviest: NDArray[np.float64] = loads / np.asarray(problem.torus.bandwidth)[:, None]
    return heaviest


def _frame(axes: Axes, plane: Plane) -> None:
    rows, columns = plane.routers.shape
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(f"dimension {plane.along + 1}")
    if plane.across >= 0:
        axes.set_ylabel(f"dimension {plane.across + 1}")
