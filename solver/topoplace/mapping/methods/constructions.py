"""Mappings made in one go from the shape of a grid, or of a graph part by part."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray, VirtualGrid
from topoplace.mapping.growing import grow_mapping
from topoplace.mapping.halving import halve_mapping
from topoplace.mapping.layouts import rank_layouts
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.methods.orders import (
    INVALID,
    cheapest_prism,
    cut_bytes,
    cut_hops,
    part_of_tasks,
    spread_over_nodes,
)
from topoplace.mapping.pencils.network import leftmost_selection
from topoplace.mapping.pencils.search import layout_model, nodes_of, search_pencils
from topoplace.mapping.pencils.space import (
    WindowTables,
    admissible_layouts,
    deepening,
    no_room,
    window_at,
)
from topoplace.mapping.positions import symmetric
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register

# ---- Topology-aware blocks: the grid laid over a prism of routers like one box over another ------


@register(
    "mapping", "blocks", "equal boxes of the grid on a full prism of routers", needs_grid=True
)
def map_blocks(problem: MappingProblem, options: Options) -> Outcome:
    """Cut the grid into equal boxes and lay them over a prism (Bhatele 2008, section 3).

    Every virtual dimension goes along one dimension of the machine, one part per router. Of all
    assignments of dimensions and all prisms of wholly usable routers it takes those of least
    hop-bytes.

    Raises
    ------
    InputError
        If the grid has more dimensions than the machine, or no prism of usable routers has room.
    """
    del options
    grid, torus = problem.grid, problem.torus
    assert grid is not None
    if grid.num_dims > torus.num_dims:
        raise InputError(
            f"a grid of at most the machine's {torus.num_dims} dimensions for blocks; pencils "
            "map others",
            field="shape",
            value=list(grid.shape),
        )
    ways = list(itertools.permutations(range(torus.num_dims), grid.num_dims))
    found = cheapest_prism(problem, [_costs(problem, dims) for dims in ways])
    if found is None:
        raise InputError(
            "a full prism of usable routers with room for equal blocks of the grid; pencils "
            "work around unusable routers",
            field="nodes",
        )
    dims, prism = ways[found[0]], found[1]
    parts = part_of_tasks(grid, [prism.extents[d] for d in dims])
    cells = np.zeros((grid.num_tasks, torus.num_dims), dtype=np.int64)
    cells[:, dims] = parts
    place = (cells + np.asarray(prism.origin)) % np.asarray(torus.shape)
    return outcome_of(spread_over_nodes(problem, place @ np.asarray(torus.strides)))


def _costs(problem: MappingProblem, dims: tuple[int, ...]) -> IntArray:
    """Return the hop-bytes on a prism for all its extents, virtual dimension v along `dims[v]`."""
    grid, torus = problem.grid, problem.torus
    assert grid is not None
    ones = (1,) * torus.num_dims
    total = np.zeros(ones, dtype=np.int64)
    largest = np.ones(ones, dtype=np.int64)
    valid = np.ones(ones, dtype=bool)
    for n, periodic, price, d in zip(grid.shape, grid.periodic, cut_bytes(grid), dims, strict=True):
        along = (*ones[:d], torus.shape[d], *ones[d + 1 :])
        hops = cut_hops(torus, d, periodic, n).reshape(along)
        extents = np.arange(1, torus.shape[d] + 1).reshape(along)
        total = total + price * hops
        largest = largest * -(-n // extents)
        valid = valid & (hops != INVALID)
    room = problem.tasks_per_node * torus.nodes_per_router
    return np.where(valid & (largest <= room), total, INVALID)


# ---- A two-dimensional grid folded onto a three-dimensional machine ------------------------------


@dataclass(frozen=True)
class Fold:
    """How the grid lies: one virtual dimension flat, the other folded over layers.

    Attributes
    ----------
    folded
        The virtual dimension that is folded (0 or 1).
    flat, along, layers
        Machine dimensions: of the virtual dimension that is not folded, of the folded one within
        a layer, and of the stack of layers.
    """

    folded: int
    flat: int
    along: int
    layers: int


@register("mapping", "fold-2d", "a 2D grid folded over the layers of a full prism", needs_grid=True)
def map_fold_2d(problem: MappingProblem, options: Options) -> Outcome:
    """Fold a 2D grid onto a prism of usable routers (Bhatele 2008, section 3).

    One dimension of the grid goes along one of the machine; the other is split between the two
    others, its direction reversed from layer to layer so that parts on both sides of a fold are
    one hop apart. Of all foldings and prisms it takes those of least hop-bytes.

    Raises
    ------
    InputError
        If the grid has not two dimensions, the machine fewer than three, or no prism of usable
        routers has room.
    """
    del options
    grid, torus = problem.grid, problem.torus
    assert grid is not None
    if grid.num_dims != 2:
        raise InputError("a grid of two dimensions to fold", field="shape", value=list(grid.shape))
    if torus.num_dims < 3:
        raise InputError(
            "a machine of at least three dimensions to fold onto",
            field="machine",
            value=torus.text,
        )
    ways = [
        Fold(folded, *dims)
        for folded in (0, 1)
        for dims in itertools.permutations(range(torus.num_dims), 3)
    ]
    found = cheapest_prism(problem, [_fold_costs(problem, way) for way in ways])
    if found is None:
        raise InputError(
            "a full prism of usable routers with room for the folded grid; pencils work around "
            "unusable routers",
            field="nodes",
        )
    way, prism = ways[found[0]], found[1]
    cells = folded_cells(grid, way, prism.extents)
    place = (cells + np.asarray(prism.origin)) % np.asarray(torus.shape)
    return outcome_of(spread_over_nodes(problem, place @ np.asarray(torus.strides)))


def folded_cells(
    grid: VirtualGrid, way: Fold, extents: tuple[int, ...], reverse: bool = True
) -> IntArray:
    """Return the place of every task in the prism, shape ``(num_tasks, machine dimensions)``.

    Without `reverse` every layer starts again at the same side: the grid is cut into layers,
    which is how the hop counts of Bhatele 2008, Table 4, come out.
    """
    long = extents[way.along]
    counts = [extents[way.flat]] * 2
    counts[way.folded] = long * extents[way.layers]
    parts = part_of_tasks(grid, counts)
    layer, at = np.divmod(parts[:, way.folded], long)
    cells = np.zeros((grid.num_tasks, len(extents)), dtype=np.int64)
    cells[:, way.flat] = parts[:, 1 - way.folded]
    cells[:, way.along] = np.where(layer % 2 == 1, long - 1 - at, at) if reverse else at
    cells[:, way.layers] = layer
    return cells


def _fold_costs(problem: MappingProblem, way: Fold) -> IntArray:
    """Return the hop-bytes on a prism for all its extents (1 beyond the three dimensions)."""
    grid, torus = problem.grid, problem.torus
    assert grid is not None
    prices = cut_bytes(grid)

    def axis(d: int, values: IntArray) -> IntArray:
        return values.reshape([-1 if e == d else 1 for e in range(torus.num_dims)])

    flat, folded = grid.shape[1 - way.folded], grid.shape[way.folded]
    across = axis(way.flat, cut_hops(torus, way.flat, grid.periodic[1 - way.folded], flat))
    width, long, high = (
        axis(d, np.arange(1, torus.shape[d] + 1)) for d in (way.flat, way.along, way.layers)
    )
    hops = long * high - 1
    if grid.periodic[way.folded]:
        # an even number of layers ends above the start, an odd one at the far side
        hops = hops + _away(torus.shape[way.layers], torus.wrap[way.layers], high - 1)
        aside = _away(torus.shape[way.along], torus.wrap[way.along], long - 1)
        hops = hops + np.where(high % 2 == 1, aside, 0)
    room = problem.tasks_per_node * torus.nodes_per_router
    box = -(-flat // width) * -(-folded // (long * high))
    valid = (across != INVALID) & (long * high <= folded) & (box <= room)
    return np.where(valid, prices[1 - way.folded] * across + prices[way.folded] * hops, INVALID)


def _away(ring: int, wraps: bool, steps: IntArray) -> IntArray:
    return np.minimum(steps, ring - steps) if wraps else steps


# ---- Topaware: the best-ranked layout, and the leftmost usable routers of every pencil -----------


@register(
    "mapping", "topaware", "best-ranked layout, leftmost routers of every pencil", needs_grid=True
)
def map_topaware(problem: MappingProblem, options: Options) -> Outcome:
    """Lay the best-ranked layout that fits into the first window it fits (Enos 2014 IV.B).

    Layouts and window depths are those of `search_pencils`; windows are scanned in order of the
    routers they begin at.

    Raises
    ------
    InputError
        If the grid has no admissible layout, or no window has room for one.
    """
    assert problem.grid is not None
    torus, pencil = problem.torus, problem.torus.num_dims - 1
    found = admissible_layouts(problem, options.max_depth)
    ranked = rank_layouts(found, problem.grid, torus, problem.tasks_per_node)
    layouts = [entry.layout for entry in ranked]
    tables = WindowTables(torus, problem.whole_routers, pencil)
    for depths in deepening(layouts, pencil, torus.shape[pencil], options.max_depth):
        for layout, depth in zip(layouts, depths, strict=True):
            begins = np.flatnonzero(tables.fits(layout.extents, depth))
            if not len(begins):
                continue
            origin = torus.coords(int(begins[0]))
            window = window_at(torus, problem.whole_routers, layout.extents, pencil, origin, depth)
            nodes = nodes_of(problem, layout, pencil, window, leftmost_selection(window))
            return outcome_of(nodes, layout_model(layout, pencil, origin, depth))
    raise no_room(problem)


# ---- Pencil placement with exact selection: the default method for grids -------------------------

DEFAULT_SECONDS = 30.0
"""Time limit where none is given: where no window is nearly free of holes, the search is long."""


@register("mapping", "pencils", "best layout, window and routers of every pencil", needs_grid=True)
def map_pencils(problem: MappingProblem, options: Options) -> Outcome:
    """Return a best pencil placement of all admissible layouts in all windows.

    Raises
    ------
    InputError
        If the grid has no admissible layout, or no window has room for one.
    """
    if options.time_limit is None:
        options = replace(options, time_limit=DEFAULT_SECONDS)
    return search_pencils(problem, options)


# ---- Greedy construction of a mapping of any graph -----------------------------------------------


@register("mapping", "greedy", "the most connected task next to its placed partners")
def map_greedy(problem: MappingProblem, options: Options) -> Outcome:
    """Place task after task, the one with most bytes to those placed (`grow_mapping`)."""
    del options
    return outcome_of(spread_over_nodes(problem, grow_mapping(symmetric(problem))))


# ---- Recursive bisection of any graph and any machine --------------------------------------------

TRIALS = 4
"""Bisections tried, each from other random matchings."""


@register("mapping", "bisection", "machine and graph halved together, again and again")
def map_bisection(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best of some recursive bisections (`halve_mapping`)."""
    halved = symmetric(problem)
    found = (
        spread_over_nodes(problem, halve_mapping(halved, seed=options.seed * TRIALS + trial))
        for trial in range(TRIALS)
    )
    return outcome_of(min(found, key=lambda nodes: hop_bytes(problem, nodes)))
