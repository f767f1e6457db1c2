"""Small pictures of placements, allocations and mappings: a pixel per router or node.

Their background is the page's, so that they are light or dark as the page is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from topoplace.machine import Torus
from topoplace.mapping.problem import MappingProblem
from topoplace.report.cells import (
    DOWN,
    FREE,
    GREY_NAMES,
    NOTHING,
    NUM_FAR,
    RGB,
    RUNNING,
    UNUSABLE,
    allocation_cells,
    colour_of,
    colours_of,
    far_codes,
    far_colour,
    job_colour,
    palette_png,
    placement_cells,
)
from topoplace.report.page.markup import Markup, element
from topoplace.report.tiles import leaf_tiles, machine_tiles
from topoplace.result import PlacementResult
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.tree_state import TreeState
from topoplace.study.ranking import Row

if TYPE_CHECKING:
    from topoplace.study.case import AnyResult, State


@dataclass(frozen=True)
class Thumbnail:
    """A PNG image of so many pixels, to be shown enlarged."""

    png: bytes
    width: int
    height: int


def thumbnail(result: AnyResult, state: State) -> Thumbnail:
    """Return the small picture of a result and its instance.

    Of a torus or mesh the slices, of a tree a row of pixels per leaf, of a mapping how far the
    messages of every router go (see `far_codes`).
    """
    inked: Callable[[int], RGB] = job_colour
    if isinstance(state, MappingProblem):
        assert isinstance(result, MappingResult)
        machine = state.machine
        shape = machine.shape if isinstance(machine, Torus) else (machine.num_routers,)
        tiles, codes, inked = machine_tiles(shape), far_codes(result, state), far_colour
    elif isinstance(state, TreeState):
        assert isinstance(result, AllocationResult)
        tree = state.tree
        tiles = leaf_tiles([""] * tree.num_leaves, tree.nodes_per_leaf)
        codes = allocation_cells(result, state).codes
    else:
        assert isinstance(result, PlacementResult)
        tiles = machine_tiles(state.torus.shape)
        codes = placement_cells(result, state).codes
    canvas = tiles.fitted(4, 3)
    shown = np.append(codes, NOTHING)[canvas.numbers[canvas.gap_y :, canvas.gap_x :]]
    height, width = shown.shape
    pixels = np.rint(255 * colours_of(shown, inked)).astype(np.uint8)
    return Thumbnail(palette_png(pixels), width, height)


def picture_legend(rows: Sequence[Row]) -> Markup:
    """Return a line that says what the colours of the pictures of a comparison mean."""
    inked: Callable[[int], RGB] = job_colour
    greys, num_inked = [FREE, RUNNING, DOWN], 6
    inks = "jobs started, one colour each in all pictures of an instance"
    if rows[0].problem == "mapping":
        what = "A pixel is a router, coloured by the mean hops of its messages:"
        greys, inked, num_inked = [FREE, UNUSABLE], far_colour, NUM_FAR
        inks = "none to the machine's diameter, square-root scale"
    elif rows[0].problem == "placement":
        what = "A pixel is a router, a tile a slice of the machine:"
        greys.append(UNUSABLE)
    else:
        what = "A pixel is a node, a row of pixels a leaf switch:"

    def swatch(code: int) -> Markup:
        *mixed, opacity = colour_of(code, inked)
        parts = " ".join(str(round(255 * part)) for part in mixed)
        return element("i", class_="swatch", style=f"background:rgb({parts} / {opacity:g})")

    spans = [element("span", what), element("span", *map(swatch, range(num_inked)), inks)]
    spans += [element("span", swatch(code), GREY_NAMES[code]) for code in greys]
    return element("p", *spans, class_="legend")
