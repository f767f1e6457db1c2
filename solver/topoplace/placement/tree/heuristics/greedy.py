"""Greedy allocation: the least contended leaves first (Mishra 2020, Algorithm 1)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.cost import communication_ratio
from topoplace.placement.tree.heuristics.in_turn import fill, register_allocator
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.snapshot.tree_state import TreeRequest


@register_allocator("greedy", "leaves of the least communication ratio first (Mishra 2020)")
def greedy(
    occupancy: Occupancy, request: TreeRequest, rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Take leaves by communication ratio, increasing for an intensive job, else decreasing.

    Leaves of the same ratio are taken in the order of their description.
    """
    leaves = occupancy.leaves_that_fit(request.nodes)
    if leaves is None:
        return None
    sizes = occupancy.tree.nodes_per_leaf
    sign = 1 if request.intensive else -1

    def key(leaf: int) -> Fraction:
        counts = occupancy.comm[leaf], occupancy.busy[leaf], sizes[leaf]
        return sign * communication_ratio(*(int(count) for count in counts))

    order = sorted(leaves.tolist(), key=key)
    return occupancy.nodes_of(fill(occupancy, order, request.nodes))
