"""Why requests wait on a tree, from the result alone (tori have explanations in the result)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from topoplace.result import Status
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.tree_state import TreeRequest, TreeState, prepare_tree

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def waiting_texts(result: AllocationResult) -> dict[str, str]:
    """Return by request why it waits, in the order of the queue; none without a solution."""
    if result.solution is None:
        return {}
    state = prepare_tree(result.instance)
    started = {own.request for own in result.solution.allocations}
    taken = {name for own in result.solution.allocations for name in own.nodes}
    left = state.free & np.array([name not in taken for name in state.tree.node_names], dtype=bool)
    most = _most_together(state, state.free)
    most_left = _most_together(state, left)
    proven = result.levels[0].status is Status.OPTIMAL

    def text(request: TreeRequest) -> str:
        if request.nodes > most(request):
            return _too_few(state, request, most)
        if request.nodes <= most_left(request):
            return f"{request.nodes:,} nodes wanted are still free, but {result.method} left it out"
        if proven:
            return "outbid: it fits alone, but the started jobs are worth as much or more"
        return "it fits alone, but not beside the started jobs"

    return {one.id: text(one) for one in state.requests if one.id not in started}


def _too_few(state: TreeState, request: TreeRequest, most: Callable[[TreeRequest], int]) -> str:
    free = int(state.free.sum())
    if request.nodes > free:
        return f"{request.nodes:,} nodes wanted, {free:,} free"
    return (
        f"no domain has {request.nodes:,} free nodes: the most with a common switch are "
        f"{most(request):,}"
    )


def _most_together(state: TreeState, free: BoolArray) -> Callable[[TreeRequest], int]:
    """Return what tells how many of some free nodes a request can have at most."""
    tree = state.tree
    per_leaf: IntArray = np.bincount(tree.leaf_of_node[free], minlength=tree.num_leaves)
    total = int(per_leaf.sum())
    together = max(int(per_leaf[list(switch.leaves)].sum()) for switch in tree.switches)
    return lambda request: together if request.intensive else total
