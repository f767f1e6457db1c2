"""The machine as flat maps: exact, every router visible."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topoplace.report.cells import CellMap
from topoplace.report.colours import CLASS_COLOUR, cell_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AXIS_NAMES = "xyzuvw"
_MAX_SLICES = 400


def dimension_name(dim: int) -> str:
    """Return the name of a dimension: x, y, z, u, v, w, then d6 and so on."""
    return _AXIS_NAMES[dim] if dim < len(_AXIS_NAMES) else f"d{dim}"


def draw_slices(axes: Axes, cells: CellMap) -> int:
    """Draw a machine as a mosaic of slices and return how many there are.

    Every slice shows the first dimension to the right and the last upwards; the dimensions
    between number the slices (the y-slices of a 3-D torus). One- and two-dimensional machines
    are a single map. Thin lines part jobs, red ones surround the nodes of special classes, and
    the number of a job in the legend stands in each of its slices. At most 400 slices are drawn.
    """
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - heavy

    codes = as_slices(cells.codes)
    colours = as_slices(cell_colours(cells), tail=1)
    owner = as_slices(cells.owner)
    special = as_slices(cells.special)
    middle = cells.shape[1:-1]
    all_slices, width, height = (int(n) for n in codes.shape)
    num = min(all_slices, _MAX_SLICES)
    columns = num_columns(num, width, height)
    rows = math.ceil(num / columns)
    pitch_x, pitch_y = width + max(1.0, 0.08 * width), height + max(2.0, 0.12 * height)
    job_lines: list[NDArray[np.float64]] = []
    class_lines: list[NDArray[np.float64]] = []
    frames = []
    for k in range(num):
        left, low = (k % columns) * pitch_x, (rows - 1 - k // columns) * pitch_y
        axes.imshow(
            colours[k].transpose(1, 0, 2),
            extent=(left, left + width, low, low + height),
            origin="lower",
            interpolation="nearest",
        )
        corner = np.array([left, low])
        job_lines += [line + corner for line in _borders(owner[k])]
        class_lines += [line + corner for line in _borders(special[k].astype(np.int64), rim=True)]
        frames.append(corner + np.array([(0, 0), (width, 0), (width, height), (0, height), (0, 0)]))
        if num > 1:
            axes.text(left, low + height + 0.3, _label(k, middle), fontsize=7, va="bottom")
        _number_jobs(axes, codes[k], corner, len(cells.jobs))
    axes.add_collection(LineCollection(frames, colors="#888888", linewidths=0.6))
    axes.add_collection(LineCollection(job_lines, colors="#303030", linewidths=0.5))
    axes.add_collection(LineCollection(class_lines, colors=CLASS_COLOUR, linewidths=1.2))
    axes.set_xlim(-0.5, columns * pitch_x)
    axes.set_ylim(-0.5, rows * pitch_y + 0.5)
    axes.set_aspect("equal" if height > 1 else "auto")
    axes.set_axis_off()
    upwards = f", {dimension_name(len(cells.shape) - 1)} upwards" if height > 1 else ""
    cut = f"; the first {num} of {all_slices} slices" if num < all_slices else ""
    axes.set_title(f"{dimension_name(0)} to the right{upwards}{cut}", fontsize=9, loc="left")
    return num


def as_slices(values: NDArray[Any], tail: int = 0) -> NDArray[Any]:
    """Return an array as ``(num_slices, first, last, *tail)``."""
    num_dims = values.ndim - tail
    if num_dims == 1:
        values = values[:, None]
        num_dims = 2
    moved = np.moveaxis(values, 0, num_dims - 2)
    return moved.reshape(-1, *moved.shape[num_dims - 2 :])


def num_columns(num: int, width: int, height: int) -> int:
    """Return how many slices stand in a row so that the mosaic is about 4 to 3."""
    return max(1, min(num, round(math.sqrt(num * 4 / 3 * (height + 3) / (width + 1)))))


def _label(k: int, middle: tuple[int, ...]) -> str:
    at = np.unravel_index(k, middle)
    return ", ".join(f"{dimension_name(d + 1)} = {c}" for d, c in enumerate(at))


def _borders(values: NDArray[np.int64], *, rim: bool = False) -> list[NDArray[np.float64]]:
    """Return the segments between cells of different values; with `rim`, 0 lies all around."""
    if rim:
        return [line - 1 for line in _borders(np.pad(values, 1))]
    segments = []
    for x, y in np.argwhere(values[1:, :] != values[:-1, :]):
        segments.append(np.array([(x + 1, y), (x + 1, y + 1)], dtype=float))
    for x, y in np.argwhere(values[:, 1:] != values[:, :-1]):
        segments.append(np.array([(x, y + 1), (x + 1, y + 1)], dtype=float))
    return segments


def _number_jobs(
    axes: Axes, codes: NDArray[np.int64], corner: NDArray[np.float64], num_jobs: int
) -> None:
    for job in range(num_jobs):
        inside = np.argwhere(codes == job)
        if len(inside) < 0.01 * codes.size or not len(inside):
            continue
        # The cell nearest to the middle: a job that wraps has its mean outside itself.
        middle = inside[np.abs(inside - np.median(inside, axis=0)).sum(axis=1).argmin()]
        x, y = corner + middle + 0.5
        axes.text(x, y, str(job + 1), fontsize=5.5, color="white", ha="center", va="center")
