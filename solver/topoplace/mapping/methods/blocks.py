"""Topology-aware blocks: the grid laid over a prism of routers like one box over another."""

from __future__ import annotations

import itertools

import numpy as np

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
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
