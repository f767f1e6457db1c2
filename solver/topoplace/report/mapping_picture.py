"""The picture of a mapping: a plane of pencils, the load of its links, and all links' loads."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from topoplace.mapping.problem import prepare_mapping
from topoplace.report.colours import FREE_COLOUR, SERVICE_COLOUR
from topoplace.report.mapping_plane import (
    USED_COLOUR,
    draw_loads,
    draw_pencils,
    heaviest_loads,
    plane_of,
)
from topoplace.report.summary import layout_text
from topoplace.report.text import gap_text
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

_DPI = 110


def mapping_figure(result: MappingResult) -> Figure:
    """Return the figure of a mapping that was found. No window system is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - heavy
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - heavy
    from matplotlib.colors import Normalize  # noqa: PLC0415 - heavy
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy
    from matplotlib.patches import Patch  # noqa: PLC0415 - heavy

    figure = Figure(figsize=(18, 7.5))
    FigureCanvasAgg(figure)
    figure.suptitle(_title(result), fontsize=13)
    solution = result.solution
    if solution is None:
        return figure
    problem = prepare_mapping(result.instance)
    nodes = np.asarray(solution.nodes, dtype=np.int64)
    plane = plane_of(problem, nodes, solution.layout)
    loads = heaviest_loads(problem, nodes)
    left, middle, right = (
        figure.add_axes(box)
        for box in ((0.03, 0.12, 0.30, 0.74), (0.36, 0.12, 0.30, 0.74), (0.74, 0.16, 0.24, 0.68))
    )
    numbered = solution.layout is not None
    draw_pencils(left, plane, problem, numbered)
    left.set_title(
        f"plane through {','.join(map(str, plane.fixed))}: "
        + ("levels of the pencils" if numbered else "tasks per router"),
        fontsize=10,
    )
    left.legend(
        handles=[
            Patch(facecolor=colour, edgecolor="#888", label=name)
            for colour, name in (
                (USED_COLOUR, "holds tasks"),
                (FREE_COLOUR, "free"),
                (SERVICE_COLOUR, "not usable"),
            )
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.06),
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    norm = Normalize(0, max(float(loads.max(initial=0)), 1e-9))
    draw_loads(middle, plane, loads, norm)
    middle.set_title("its links: bytes over bandwidth, heavier direction", fontsize=10)
    figure.colorbar(ScalarMappable(norm, "inferno_r"), ax=middle, shrink=0.6, pad=0.02)
    _draw_distribution(right, loads)
    if solution.layout is not None:
        figure.text(0.5, 0.02, layout_text(solution.layout), ha="center", fontsize=10)
    return figure


def write_mapping_picture(result: MappingResult, path: str | Path) -> None:
    """Write the figure of a mapping as a PNG file, all of it or nothing."""
    stream = io.BytesIO()
    mapping_figure(result).savefig(stream, format="png", dpi=_DPI)
    write_bytes(path, stream.getvalue())


def _draw_distribution(axes: Axes, loads: NDArray[np.float64]) -> None:
    """Draw the loads of all links in use, per dimension, heaviest first."""
    for dim, values in enumerate(loads):
        used = np.sort(values[values > 0])[::-1]
        if len(used):
            axes.step(np.arange(1, len(used) + 1), used, where="post", label=f"dimension {dim + 1}")
    axes.set_xlabel("links, heaviest first")
    axes.set_ylabel("bytes over bandwidth")
    axes.set_ylim(bottom=0)
    axes.set_title("link loads in use", fontsize=10)
    axes.legend(fontsize=9)
    axes.grid(alpha=0.3)


def _title(result: MappingResult) -> str:
    parts = [f"{result.instance.name}, {result.method}: {result.status}"]
    if result.objective is not None:
        parts.append(f"hop-bytes {result.objective:,}")
    if result.bound is not None:
        parts.append(f"bound {result.bound:,}, gap {gap_text(result.gap)} ({result.proof})")
    return "   ".join(parts)
