"""Small pictures of placements, allocations and mappings: a pixel per router or node.

Their background is the page's, so that they are light or dark as the page is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.report.cells import (
    DOWN,
    FREE,
    GREY_NAMES,
    NOTHING,
    NUM_FAR,
    RGB,
    RUNNING,
    UNUSABLE,
    cells_of,
    colour_of,
    colours_of,
    far_colour,
    job_colour,
    palette_png,
)
from topoplace.report.tiles import tiles_of

if TYPE_CHECKING:
    from topoplace.study.case import AnyResult, State

_SHOWN_PIXELS = 300


@dataclass(frozen=True)
class Thumbnail:
    """A PNG image of so many pixels, to be shown enlarged."""

    png: bytes
    width: int
    height: int

    @property
    def scale(self) -> int:
        """By how much to enlarge it."""
        return max(1, _SHOWN_PIXELS // max(self.width, self.height))


def thumbnail(result: AnyResult, state: State) -> Thumbnail:
    """Return the small picture of a result and its instance.

    Of a torus or mesh the slices, of a tree a row of pixels per leaf, of a mapping how far the
    messages of every router go.
    """
    cells = cells_of(result, state)
    canvas = tiles_of(state).fitted(4, 3)
    codes = np.append(cells.codes, NOTHING)[canvas.numbers[canvas.gap_y :, canvas.gap_x :]]
    pixels = np.rint(255 * colours_of(codes, cells.inked)).astype(np.uint8)
    return Thumbnail(palette_png(pixels), *codes.shape[::-1])


def picture_legend(problem: str) -> dict[str, Any]:
    """Return what the colours of the pictures of a problem mean: colours for CSS, and texts."""
    inked: Callable[[int], RGB] = job_colour
    greys, num_inked = [FREE, RUNNING, DOWN], 6
    inks = "jobs started, one colour each in all pictures of an instance"
    if problem == "mapping":
        what = "A pixel is a router, coloured by the mean hops of its messages:"
        greys, inked, num_inked = [FREE, UNUSABLE], far_colour, NUM_FAR
        inks = "none to the machine's diameter, square-root scale"
    elif problem == "placement":
        what = "A pixel is a router, a tile a slice of the machine:"
        greys.append(UNUSABLE)
    else:
        what = "A pixel is a node, a row of pixels a leaf switch:"

    def swatch(code: int) -> str:
        *mixed, opacity = colour_of(code, inked)
        return f"rgb({' '.join(str(round(255 * part)) for part in mixed)} / {opacity:g})"

    entries = [([swatch(code) for code in range(num_inked)], inks)]
    entries += [([swatch(code)], GREY_NAMES[code]) for code in greys]
    return {"what": what, "entries": entries}
