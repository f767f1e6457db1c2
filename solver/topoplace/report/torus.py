"""The picture of a placement: the machine in space beside its slices, and a legend."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from topoplace.report.cells import DOWN, FREE, RUNNING, SERVICE, CellMap, cell_map
from topoplace.report.colours import (
    CLASS_COLOUR,
    DOWN_COLOUR,
    FREE_COLOUR,
    RUNNING_COLOURS,
    SERVICE_COLOUR,
    job_colour,
)
from topoplace.report.slices import draw_slices
from topoplace.report.text import gap_text
from topoplace.report.voxels import draw_torus
from topoplace.result import PlacementResult
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

_LEGEND_JOBS = 28
_DPI = 110


def placement_figure(result: PlacementResult, state: SnapshotState) -> Figure:
    """Return the figure of a placement.

    A 3-D machine has two panels, the torus in space and its y-slices; any other has the slices
    only. No window system is needed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - heavy
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    cells = cell_map(result, state)
    spatial = len(cells.shape) == 3
    figure = Figure(figsize=(19, 10.5) if spatial else (12, 10))
    FigureCanvasAgg(figure)
    if spatial:
        from mpl_toolkits.mplot3d import Axes3D  # noqa: F401, PLC0415 - registers the projection

        draw_torus(figure.add_axes((-0.01, 0.14, 0.45, 0.80), projection="3d"), cells)
    draw_slices(
        figure.add_axes((0.46, 0.15, 0.53, 0.78) if spatial else (0.03, 0.15, 0.94, 0.76)), cells
    )
    handles = legend_handles(cells)
    figure.legend(
        handles=handles,
        loc="lower center",
        ncols=7 if spatial else 5,
        fontsize=8,
        frameon=False,
        columnspacing=1.6,
        handlelength=1.2,
    )
    figure.suptitle(title(result), fontsize=13, y=0.985)
    return figure


def write_picture(result: PlacementResult, state: SnapshotState, path: str | Path) -> None:
    """Write the figure of a placement as a PNG file, all of it or nothing."""
    stream = io.BytesIO()
    placement_figure(result, state).savefig(stream, format="png", dpi=_DPI)
    write_bytes(path, stream.getvalue())


def title(result: PlacementResult) -> str:
    """Return the headline of a picture: what was placed, how well, and how sure that is."""
    parts = [f"{result.instance.name}, {result.method}: {result.status}"]
    if result.objective is not None:
        parts.append(f"objective {result.objective:,}")
    if result.bound is not None:
        parts.append(f"bound {result.bound:,}, gap {gap_text(result.gap)} ({result.proof})")
    if result.solution is not None:
        parts.append(f"{len(result.solution.placements)} of {len(result.instance.queue)} requests")
    return "   ".join(parts)


def legend_handles(cells: CellMap) -> list[Artist]:
    """Return the legend's entries: what a colour without number means, then the largest jobs."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - heavy
    from matplotlib.patches import Patch  # noqa: PLC0415 - heavy

    handles: list[Artist] = []
    for code, colour, name in (
        (FREE, FREE_COLOUR, "free"),
        (RUNNING, RUNNING_COLOURS[1], "running"),
        (SERVICE, SERVICE_COLOUR, "service"),
        (DOWN, DOWN_COLOUR, "down"),
    ):
        if (cells.codes == code).any():
            count = int(np.count_nonzero(cells.codes == code))
            handles.append(
                Patch(facecolor=colour, edgecolor="#888888", label=f"{name}: {count:,} routers")
            )
    if cells.special.any():
        handles.append(
            Line2D([], [], color=CLASS_COLOUR, linewidth=1.6, label=f"class {cells.special_name}")
        )
    for idx, job in enumerate(cells.jobs[:_LEGEND_JOBS]):
        shape = "" if job.prism is None else f", {'x'.join(map(str, job.prism.extents))}"
        handles.append(
            Patch(facecolor=job_colour(idx), label=f"{idx + 1}  {job.name}: {job.nodes:,}{shape}")
        )
    if len(cells.jobs) > _LEGEND_JOBS:
        more = len(cells.jobs) - _LEGEND_JOBS
        handles.append(Line2D([], [], linestyle="none", label=f"and {more} smaller jobs"))
    return handles
