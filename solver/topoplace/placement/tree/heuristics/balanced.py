"""Balanced allocation: powers of two on every leaf (Mishra 2020, Algorithm 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.heuristics.in_turn import fill, register_allocator
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.snapshot.tree_state import TreeRequest


@register_allocator("balanced", "powers of two on every leaf, emptiest leaves first (Mishra 2020)")
def balanced(
    occupancy: Occupancy, request: TreeRequest, rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Take halved shares of the request on the emptiest leaves, and what lacks on the fullest.

    A compute-intensive job takes the fullest leaves first. Leaves with as many free nodes come
    in the order of their description.
    """
    leaves = occupancy.leaves_that_fit(request.nodes)
    if leaves is None:
        return None
    free = occupancy.free_per_leaf[leaves]
    if request.intensive:
        order = np.argsort(-free, kind="stable")
        counts = balanced_counts(free[order].tolist(), request.nodes)
        takes = [(int(leaves[order[at]]), count) for at, count in counts]
    else:
        order = leaves[np.argsort(free, kind="stable")]
        takes = fill(occupancy, order, request.nodes)
    return occupancy.nodes_of(takes)


def balanced_counts(free: list[int], num_nodes: int) -> list[tuple[int, int]]:
    """Return what Algorithm 2 takes, in order, as (place of the leaf in `free`, nodes).

    The share is halved, rounding down, for good: as printed, it starts from the request itself,
    so that shares are powers of two only if the request is.

    Parameters
    ----------
    free
        Free nodes of the leaves, descending, no zeros; enough for `num_nodes`.
    """
    takes = []
    left = list(free)
    share = num_nodes
    for at, there in enumerate(free):
        while share > there:
            share //= 2
        takes.append((at, min(share, num_nodes)))
        left[at] -= takes[-1][1]
        num_nodes -= takes[-1][1]
    for at in reversed(range(len(free))):
        takes.append((at, min(left[at], num_nodes)))
        num_nodes -= takes[-1][1]
    return [(at, count) for at, count in takes if count]
