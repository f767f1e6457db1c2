"""Where all that requests need is a number of nodes: the first prices, and sets that fit.

Prices at which a search begins are the optimum of a linear program over the number of nodes, the
relaxation of a knapsack (docs/proofs/dragonfly.md); sets of requests are the knapsack's.
"""

from __future__ import annotations

import numpy as np

from topoplace.packing.problem import PackingProblem, Subproblem
from topoplace.types import FloatArray, IntArray


def first_prices(
    problem: PackingProblem, sub: Subproblem, nodes: IntArray, left: IntArray, need: IntArray | None
) -> tuple[FloatArray, tuple[float, ...]]:
    """Return prices at which a subproblem of the first two levels begins: all nodes have one.

    Parameters
    ----------
    nodes
        Of every request, shape ``(num_requests,)``.
    left
        How many nodes are free by row, of the first rows.
    need
        What every request costs at least on the second level; None on the first.
    """
    may = [q for q in range(len(problem.names)) if q not in sub.excluded]
    values, own = np.asarray(problem.values)[may], nodes[may]
    prices = np.zeros(problem.num_rows)
    price, factors = _of_nodes(values, own, int(left.sum()), None if need is None else need[may])
    prices[: len(left)] = price
    return prices, factors


def _of_nodes(
    values: IntArray, nodes: IntArray, room: int, need: IntArray | None
) -> tuple[float, tuple[float, ...]]:
    """Return the price of a node, and on the second level the factor of the first."""
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


def knapsack(values: IntArray, nodes: IntArray, room: int) -> list[int]:
    """Return which requests have the most value together, of those whose nodes fit into a room."""
    best, takes = np.zeros(room + 1, dtype=np.int64), np.zeros((len(nodes), room + 1), dtype=bool)
    for k, (value, n) in enumerate(zip(values.tolist(), nodes.tolist(), strict=True)):
        more = best[: max(0, room + 1 - n)] + value
        takes[k, n:] = more > best[n:]
        best[n:] = np.maximum(best[n:], more)
    found = []
    for k in reversed(range(len(nodes))):
        if takes[k, room]:
            found.append(k)
            room -= int(nodes[k])
    return found
