"""Small pictures of placements, allocations and mappings: a pixel per router or node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Torus
from topoplace.mapping.problem import MappingProblem
from topoplace.report.cells import cell_map
from topoplace.report.colours import DOWN_COLOUR, FREE_COLOUR, cell_colours, rgb
from topoplace.report.page.png import TRANSPARENT, palette_png
from topoplace.report.slices import as_slices, num_columns
from topoplace.report.tree_picture import leaf_cells
from topoplace.result import PlacementResult
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.tree_state import TreeState

if TYPE_CHECKING:
    from topoplace.study.case import AnyResult, State

FAR_COLOURS = (
    "#d5ecd4", "#aeddb0", "#7fc9ab", "#52b1b0", "#368fb5", "#3b6cb0", "#4a4a9c", "#5a2a83",
    "#6d0f63", "#5c0035",
)  # fmt: skip
"""Colours of routers by the mean hops of their messages, from none to the machine's diameter."""


@dataclass(frozen=True)
class Thumbnail:
    """A PNG image of so many pixels, to be shown enlarged."""

    png: bytes
    width: int
    height: int


def thumbnail(result: AnyResult, state: State) -> Thumbnail:
    """Return the small picture of a result and its instance."""
    if isinstance(result, PlacementResult):
        assert isinstance(state, SnapshotState)
        return placement_thumbnail(result, state)
    if isinstance(result, AllocationResult):
        assert isinstance(state, TreeState)
        return allocation_thumbnail(result, state)
    assert isinstance(state, MappingProblem)
    return mapping_thumbnail(result, state)


def placement_thumbnail(result: PlacementResult, state: SnapshotState) -> Thumbnail:
    """Return the slices of a torus or mesh (see `draw_slices`), a pixel per router."""
    return _sliced(cell_colours(cell_map(result, state)))


def allocation_thumbnail(result: AllocationResult, state: TreeState) -> Thumbnail:
    """Return the nodes of a tree, a row of pixels per leaf, the rows folded into columns."""
    leaves, _ = leaf_cells(result, state)
    rows, width = leaves.shape[:2]
    columns = _columns_of_pixels(rows, width)
    height = -(-rows // columns)
    filled = np.pad(
        leaves, ((0, height * columns - rows), (0, 0), (0, 0)), constant_values=TRANSPARENT
    )
    return _mosaic(filled.reshape(columns, height, width, 3), columns)


def mapping_thumbnail(result: MappingResult, problem: MappingProblem) -> Thumbnail:
    """Return how far the messages of every router go, a pixel per router.

    The colour of a router with tasks is the mean over the bytes it sends and receives of the hops
    they take, on a square-root scale up to the machine's diameter, so that pictures of one machine
    compare; others are free or not usable.
    """
    machine = problem.machine
    colours = np.tile(rgb(DOWN_COLOUR), (machine.num_routers, 1))
    colours[problem.capacity > 0] = rgb(FREE_COLOUR)
    if result.solution is not None:
        routers = problem.routers_of(np.asarray(result.solution.nodes, dtype=np.int64))
        used = np.unique(routers)
        share = np.sqrt(_mean_hops(problem, routers)[used] / max(1, machine.diameter))
        far = np.array([rgb(text) for text in FAR_COLOURS])
        colours[used] = far[np.minimum(share * len(far), len(far) - 1).astype(int)]
    if isinstance(machine, Torus):
        return _sliced(colours.reshape(*machine.shape, 3))
    width = math.isqrt(machine.num_routers - 1) + 1
    height = -(-machine.num_routers // width)
    missing = height * width - machine.num_routers
    square = np.pad(colours, ((0, missing), (0, 0)), constant_values=TRANSPARENT)
    return _mosaic(square.reshape(1, height, width, 3), 1)


def _mean_hops(problem: MappingProblem, routers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean hops of the bytes that every router sends and receives; 0 if none."""
    graph, num = problem.graph, problem.machine.num_routers
    ends = routers[graph.sources], routers[graph.targets]
    hops = problem.machine.hops(*ends)
    total, weighted = np.zeros(num), np.zeros(num)
    for end in ends:
        total += np.bincount(end, graph.bytes, num)
        weighted += np.bincount(end, graph.bytes * hops.astype(float), num)
    return np.divide(weighted, total, out=np.zeros(num), where=total > 0)


def _sliced(colours: NDArray[np.float64]) -> Thumbnail:
    """Return the slices of a machine's colours, ``(*shape, 3)``, side by side."""
    slices = as_slices(colours, tail=1)
    num, width, height = slices.shape[:3]
    return _mosaic(slices.transpose(0, 2, 1, 3)[:, ::-1], num_columns(num, width, height))


def _columns_of_pixels(rows: int, width: int) -> int:
    """Return into how many columns rows of pixels are folded for a picture about 4 to 3."""
    return max(1, min(rows, round(math.sqrt(rows * 4 / 3 / (width + 1)))))


def _mosaic(tiles: NDArray[np.float64], columns: int) -> Thumbnail:
    """Return tiles, ``(num, height, width, 3)``, in rows of `columns`, a pixel apart."""
    num, height, width = tiles.shape[:3]
    rows = -(-num // columns)
    shape = (rows * (height + 1) - 1, columns * (width + 1) - 1, 3)
    picture = np.full(shape, TRANSPARENT)
    for k, tile in enumerate(tiles):
        top, left = k // columns * (height + 1), k % columns * (width + 1)
        picture[top : top + height, left : left + width] = tile
    return Thumbnail(palette_png(picture), shape[1], shape[0])
