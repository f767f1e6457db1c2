"""The machine in space: every router a cube, seen from one corner (Enos 2014, Figures 1 to 4)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism
from topoplace.report.cells import DOWN, FREE, RUNNING, SERVICE, CellMap
from topoplace.report.colours import CLASS_COLOUR, cell_colours, rgb

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D

ELEVATION, AZIMUTH = 24.0, -58.0

_SIZE = {FREE: 0.10, DOWN: 0.4, SERVICE: 0.5}
_FREE_DOT = "#9aa0a6"
_SHADE = (0.78, 0.9, 1.0)  # faces across x, y, z: light from above
# The two unit edges that span the face across each dimension.
_SPAN = {0: (1, 2), 1: (0, 2), 2: (0, 1)}
# The side of a cube that the viewer at this elevation and azimuth sees, per dimension.
_SEEN_SIDE = (1, 0, 1)


def draw_torus(axes: Axes3D, cells: CellMap) -> int:
    """Draw a 3-D machine as cubes and return how many faces were drawn.

    Started jobs are opaque, running ones a thin haze, free and service routers small cubes.
    Only the three sides that face the viewer are drawn, and only where nothing of the same job
    stands before them.
    """
    from mpl_toolkits.mplot3d.art3d import (  # noqa: PLC0415 - heavy
        Line3DCollection,
        Poly3DCollection,
    )

    colours = cell_colours(cells)
    colours[cells.codes == FREE] = rgb(_FREE_DOT)
    faces: list[NDArray[np.float64]] = []
    fills: list[NDArray[np.float64]] = []
    edges: list[NDArray[np.float64]] = []
    for dim in range(3):
        hidden = _behind_same(cells, dim)
        for alpha, where in (
            (1.0, (cells.codes >= 0) & ~hidden),
            (0.13, (cells.codes == RUNNING) & ~hidden),
        ):
            at = np.argwhere(where)
            faces.append(_faces(at, dim, 1.0))
            fills.append(_fill(colours[where], _SHADE[dim], alpha))
            edges.append(_fill(colours[where], 0.55, 0.7 if alpha == 1 else 0.04))
        for code, size in _SIZE.items():
            where = cells.codes == code
            faces.append(_faces(np.argwhere(where), dim, size))
            fills.append(_fill(colours[where], _SHADE[dim], 1.0))
            edges.append(_fill(colours[where], 0.7, 0.0))
    quads = np.concatenate(faces)
    axes.add_collection3d(
        Poly3DCollection(
            quads,
            facecolors=np.concatenate(fills),
            edgecolors=np.concatenate(edges),
            linewidths=0.25,
        )
    )
    axes.add_collection3d(
        Line3DCollection(
            _frame(np.zeros(3), np.array(cells.shape)), colors="#777777", linewidths=0.6
        )
    )
    if cells.special_block is not None:
        block = _block_frames(cells.special_block, cells.shape)
        axes.add_collection3d(Line3DCollection(block, colors=CLASS_COLOUR, linewidths=1.6))
    elif cells.special.any():
        centres = np.argwhere(cells.special) + 0.5
        axes.scatter(*centres.T, s=3, c=CLASS_COLOUR, depthshade=False)
    _dress(axes, cells.shape)
    return len(quads)


def _behind_same(cells: CellMap, dim: int) -> NDArray[np.bool_]:
    """Return which cells have a cell of the same owner right before the side that is seen."""
    step = 1 if _SEEN_SIDE[dim] else -1
    ahead = np.roll(cells.owner, -step, axis=dim)
    solid = np.roll((cells.codes >= 0) | (cells.codes == RUNNING), -step, axis=dim)
    same: NDArray[np.bool_] = (ahead == cells.owner) & solid
    last = [slice(None)] * 3
    last[dim] = slice(-1, None) if step == 1 else slice(0, 1)
    same[tuple(last)] = False  # nothing stands before the rim: the ring's other end is far away
    return same


def _faces(at: NDArray[np.int64], dim: int, size: float) -> NDArray[np.float64]:
    """Return the seen faces across one dimension of the cubes at some cells, ``(n, 4, 3)``."""
    low = at + (1 - size) / 2
    a, b = (np.eye(3)[k] * size for k in _SPAN[dim])
    start = low + np.eye(3)[dim] * size * _SEEN_SIDE[dim]
    corners: NDArray[np.float64] = np.stack([start, start + a, start + a + b, start + b], axis=1)
    return corners


def _fill(colours: NDArray[np.float64], shade: float, alpha: float) -> NDArray[np.float64]:
    return np.column_stack([colours * shade, np.full(len(colours), alpha)])


def _frame(low: NDArray[np.float64], high: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the twelve edges of a box."""
    lines = []
    for dim in range(3):
        for corner in np.ndindex(2, 2):
            ends = np.empty((2, 3))
            for k, side in zip(_SPAN[dim], corner, strict=True):
                ends[:, k] = (low, high)[side][k]
            ends[:, dim] = low[dim], high[dim]
            lines.append(ends)
    return lines


def _block_frames(block: Prism, shape: tuple[int, ...]) -> list[NDArray[np.float64]]:
    """Return the edges of a block, of each of its parts where it wraps."""
    spans = []
    for o, e, n in zip(block.origin, block.extents, shape, strict=True):
        spans.append([(o, o + e)] if o + e <= n else [(o, n), (0, o + e - n)])
    lines = []
    for part in itertools.product(*spans):
        ends = np.array(part, dtype=float)
        lines += _frame(ends[:, 0], ends[:, 1])
    return lines


def _dress(axes: Axes3D, shape: tuple[int, ...]) -> None:
    axes.view_init(elev=ELEVATION, azim=AZIMUTH)
    axes.set_proj_type("persp", focal_length=1.4)
    # A cube fills the panel at 1.12; longer machines stand out further on one side.
    axes.set_box_aspect(shape, zoom=1.12 * (min(shape) / max(shape)) ** 0.5)
    for dim, name in enumerate("xyz"):
        n = shape[dim]
        getattr(axes, f"set_{name}lim")(0, n)
        ticks = np.arange(0, n, max(1, -(-n // 6)))
        getattr(axes, f"set_{name}ticks")(ticks + 0.5, [str(t) for t in ticks], fontsize=7)
        getattr(axes, f"set_{name}label")(name, fontsize=9)
        getattr(axes, f"{name}axis").pane.set_visible(False)
    axes.grid(visible=False)
