"""The colours of pictures: jobs far apart in hue, everything else muted."""

from __future__ import annotations

import colorsys

import numpy as np
from numpy.typing import NDArray

from topoplace.report.cells import DOWN, FREE, RUNNING, SERVICE, CellMap

SERVICE_COLOUR = "#ffd400"
CLASS_COLOUR = "#d40000"
FREE_COLOUR = "#ffffff"
DOWN_COLOUR = "#3c3c3c"
RUNNING_COLOURS = ("#cfd3d8", "#bcc2ca", "#dcdfe3", "#aeb5bf")

# Distinct from each other, from the yellow of service and from the red of classes.
# fmt: off
_JOB_COLOURS = (
    "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf",
    "#8c564b", "#e377c2", "#000f9f", "#7fbf00", "#00664d",
    "#c51b8a", "#5b9bff", "#a65628", "#00d68f", "#6a00ff",
    "#ffa77a", "#0b5d6e", "#b8a5ff", "#4d7300", "#ff5fa2",
)
# fmt: on

RGB = tuple[float, float, float]


def rgb(text: str) -> RGB:
    """Return a ``#rrggbb`` colour as three numbers from 0 to 1."""
    red, green, blue = (int(text[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def job_colour(idx: int) -> RGB:
    """Return the colour of the job at a position of `CellMap.jobs`."""
    if idx < len(_JOB_COLOURS):
        return rgb(_JOB_COLOURS[idx])
    # The golden angle never repeats a hue; lightness alternates to part near neighbours.
    return colorsys.hls_to_rgb((0.55 + 0.618034 * idx) % 1, (0.35, 0.55, 0.7)[idx % 3], 0.65)


def cell_colours(cells: CellMap) -> NDArray[np.float64]:
    """Return the colour of every router, shape ``(*shape, 3)``."""
    fixed = {FREE: FREE_COLOUR, DOWN: DOWN_COLOUR, SERVICE: SERVICE_COLOUR}
    colours = np.ones((*cells.shape, 3))
    for code, text in fixed.items():
        colours[cells.codes == code] = rgb(text)
    greys = np.array([rgb(text) for text in RUNNING_COLOURS])
    running = cells.codes == RUNNING
    colours[running] = greys[cells.owner[running] % len(greys)]
    for idx in range(len(cells.jobs)):
        colours[cells.codes == idx] = job_colour(idx)
    return colours
