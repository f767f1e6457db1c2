"""What stands on every router or node, and in which colour: the same in all pictures.

A job has the colour of its rank by size in the queue, whatever else starts. Everything else is one
grey, more or less of it over the paper, so that a picture without paper fits light and dark pages.
"""

from __future__ import annotations

import colorsys
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace.types import BoolArray, FloatArray, IntArray

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
    inked
        The colours of codes from 0 on.
    """

    codes: IntArray
    owner: IntArray
    special: BoolArray
    special_name: str = ""
    jobs: Mapping[int, str] = field(default_factory=dict)
    tasks: Mapping[int, str] = field(default_factory=dict)
    inked: Callable[[int], RGB] = job_colour

    @property
    def colours(self) -> FloatArray:
        """Red, green, blue and opacity, shape ``(*codes.shape, 4)``."""
        return colours_of(self.codes, self.inked)
