"""Fewest domains: as few leaves as possible, the last one a best fit.

The rule of topology-aware scheduling in Kubernetes batch queues, with leaf switches as domains.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.heuristics.in_turn import register_allocator
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.snapshot.tree_state import TreeRequest


@register_allocator("fewest-domains", "as few leaves as possible, the last one a best fit")
def fewest_domains(
    occupancy: Occupancy, request: TreeRequest, rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Take the emptiest leaves whole until one can hold the rest; the fullest that can takes it.

    Leaves with as many free nodes come in the order of their description.
    """
    leaves = occupancy.leaves_that_fit(request.nodes)
    if leaves is None:
        return None
    free = occupancy.free_per_leaf[leaves]
    order = np.argsort(-free, kind="stable")
    whole = int(np.searchsorted(np.cumsum(free[order]), request.nodes))
    takes = [(int(leaves[at]), int(free[at])) for at in order[:whole]]
    rest = request.nodes - sum(count for _, count in takes)
    others = np.sort(order[whole:])
    holds = others[free[others] >= rest]
    takes.append((int(leaves[holds[np.argmin(free[holds])]]), rest))
    return occupancy.nodes_of(takes)
