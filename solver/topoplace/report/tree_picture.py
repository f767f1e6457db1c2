"""The picture of an allocation on a tree: a cell per node, leaf by leaf."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.report.colours import (
    DOWN_COLOUR,
    FREE_COLOUR,
    RUNNING_COLOURS,
    job_colour,
    rgb,
)
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import write_bytes
from topoplace.snapshot.tree_state import TreeState, prepare_tree

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

_DPI = 110
_LEGEND_JOBS = 24
_BLOCK_COLUMNS = 120


def tree_figure(result: AllocationResult) -> Figure:
    """Return the figure of an allocation: a row of nodes for every leaf. Needs no window system.

    Leaves with more nodes than a row holds go on in the next row, shifted to the right.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - heavy
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    state = prepare_tree(result.instance)
    cells, ticks = leaf_cells(result, state)
    rows, columns = cells.shape[:2]
    height = min(22.0, 3 + 0.17 * rows)
    figure = Figure(figsize=(min(18.0, 5 + 0.22 * columns), height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.14, 1.2 / height, 0.84, 1 - 1.7 / height))
    axes.imshow(cells, aspect="auto", interpolation="nearest")
    axes.set_xticks(np.arange(-0.5, columns), minor=True)
    axes.set_yticks(np.arange(-0.5, rows), minor=True)
    axes.grid(which="minor", color="#b0b0b0", linewidth=0.5)
    axes.tick_params(which="minor", length=0)
    names = [switch.name for switch in state.tree.switches[: state.tree.num_leaves]]
    every = max(1, len(names) // 90)
    axes.set_yticks(ticks[::every], names[::every], fontsize=6)
    axes.set_xlabel("nodes of the leaf switch")
    figure.suptitle(_title(result), fontsize=12)
    figure.legend(handles=_handles(result), loc="lower center", ncols=8, fontsize=8, frameon=False)
    return figure


def write_tree_picture(result: AllocationResult, path: str | Path) -> None:
    """Write the figure of an allocation as a PNG file, all of it or nothing."""
    stream = io.BytesIO()
    tree_figure(result).savefig(stream, format="png", dpi=_DPI)
    write_bytes(path, stream.getvalue())


def leaf_cells(result: AllocationResult, state: TreeState) -> tuple[NDArray[np.float64], list[int]]:
    """Return the colour of every cell, and the row at which each leaf begins."""
    tree = state.tree
    per_leaf = tree.nodes_per_leaf
    columns = min(_BLOCK_COLUMNS, int(per_leaf.max()))
    rows_of = -(-per_leaf // columns)
    first = np.concatenate([[0], np.cumsum(rows_of)[:-1]])
    within = np.arange(tree.num_nodes) - np.searchsorted(tree.leaf_of_node, tree.leaf_of_node)
    row = first[tree.leaf_of_node] + within // columns
    cells = np.full((int(rows_of.sum()), columns, 3), 0.93)
    cells[row, within % columns] = _node_colours(result, state)
    return cells, first.tolist()


def _node_colours(result: AllocationResult, state: TreeState) -> NDArray[np.float64]:
    colours = np.tile(rgb(DOWN_COLOUR), (state.tree.num_nodes, 1))
    colours[state.free] = rgb(FREE_COLOUR)
    for idx, job in enumerate(state.running):
        colours[job.nodes] = rgb(RUNNING_COLOURS[idx % len(RUNNING_COLOURS)])
    numbers = {name: idx for idx, name in enumerate(state.tree.node_names)}
    for idx, allocation in enumerate(result.solution.allocations if result.solution else []):
        colours[[numbers[name] for name in allocation.nodes]] = job_colour(idx)
    return colours


def _handles(result: AllocationResult) -> list[Artist]:
    from matplotlib.patches import Patch  # noqa: PLC0415 - heavy

    entries = [("free", rgb(FREE_COLOUR)), ("running", rgb(RUNNING_COLOURS[0]))]
    entries.append(("down", rgb(DOWN_COLOUR)))
    allocations = result.solution.allocations if result.solution else []
    for idx, allocation in enumerate(allocations[:_LEGEND_JOBS]):
        entries.append((f"{allocation.request} ({len(allocation.nodes)})", job_colour(idx)))
    return [Patch(facecolor=colour, edgecolor="#888", label=name) for name, colour in entries]


def _title(result: AllocationResult) -> str:
    parts = [f"{result.instance.name}, {result.method}"]
    if result.solution is not None:
        cost = result.solution.cost
        parts.append(f"{result.objective} nodes started")
        parts.append(f"cost {cost.numerator / cost.denominator:,.4f}")
    level = result.levels[-1]
    parts.append(f"{level.status} ({level.proof})")
    return "   ".join(parts)
