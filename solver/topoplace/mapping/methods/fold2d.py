"""A two-dimensional grid folded onto a three-dimensional machine."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.methods._boxes import (
    INVALID,
    cheapest_prism,
    cut_bytes,
    cut_hops,
    part_of_tasks,
    spread_over_nodes,
)
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


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
    found = cheapest_prism(problem, [_costs(problem, way) for way in ways])
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


def _costs(problem: MappingProblem, way: Fold) -> IntArray:
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
