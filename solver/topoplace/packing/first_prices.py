"""Prices at which a search begins where all that requests need is a number of nodes.

They are the optimum of a linear program over the number of nodes (docs/proofs/dragonfly.md).
"""

from __future__ import annotations

import numpy as np

from topoplace.types import IntArray


def of_nodes(
    values: IntArray, nodes: IntArray, room: int, need: IntArray | None = None
) -> tuple[float, tuple[float, ...]]:
    """Return the price of a node, and on a second level the factor of the first.

    Parameters
    ----------
    values, nodes
        Of every request, shape ``(num_requests,)``.
    room
        How many nodes are free.
    need
        What every request costs at least on the second level; None on the first.
    """
    each = values / nodes

    def last(order: IntArray) -> int | None:
        beyond = np.flatnonzero(nodes[order].cumsum() > room)
        return int(order[beyond[0]]) if len(beyond) else None

    dearest = last(np.argsort(-each, kind="stable"))
    worth = 0.0 if dearest is None else float(each[dearest])
    if need is None:
        return worth, ()
    costliest = last(np.lexsort((need / nodes, -each)))
    share = 0.0 if costliest is None else float(need[costliest] / nodes[costliest])
    above = values - worth * nodes
    needed = (need - share * nodes)[above != 0] / above[above != 0]
    factor = max(share / worth if worth else 0.0, needed.max(initial=0.0))
    return max(0.0, factor * worth - share), (factor,)
