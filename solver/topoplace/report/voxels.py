"""The machine in space: every router a cube, seen from one corner (Enos 2014, Figures 1 to 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace.report.cells import CLASS_COLOUR, DOWN, GREY, RUNNING, UNUSABLE, Cells, rgb
from topoplace.report.tiles import borders, spread_ticks
from topoplace.types import FloatArray, IntArray

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D

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
