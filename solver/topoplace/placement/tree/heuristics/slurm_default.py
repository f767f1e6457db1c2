"""Slurm's default on a tree: best fit below the lowest switch that fits (Mishra 2020, 3.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.heuristics.in_turn import fill, register_allocator
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.snapshot.tree_state import TreeRequest


@register_allocator(
    "default", "Slurm's own: below the lowest switch that fits, fullest leaves first"
)
def slurm_default(
    occupancy: Occupancy, request: TreeRequest, rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Take leaves by fewest free nodes; ranks are in node order, as Slurm lays them out."""
    leaves = occupancy.leaves_that_fit(request.nodes)
    if leaves is None:
        return None
    order = leaves[np.argsort(occupancy.free_per_leaf[leaves], kind="stable")]
    return np.sort(occupancy.nodes_of(fill(occupancy, order, request.nodes)))
