"""Random nodes: free nodes drawn anywhere, as a baseline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.heuristics.in_turn import register_allocator
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.snapshot.tree_state import TreeRequest


@register_allocator("random", "nodes anywhere (by seed)")
def random_nodes(
    occupancy: Occupancy, request: TreeRequest, rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Draw nodes below the switch with the most free ones; ranks are in the order drawn."""
    leaves = occupancy.widest_leaves()
    free = np.flatnonzero(occupancy.free & np.isin(occupancy.tree.leaf_of_node, leaves))
    if len(free) < request.nodes:
        return None
    return rng.choice(free, size=request.nodes, replace=False)
