"""Boxes of thresholds in a heap by the cost of their low corners, cut by nogoods."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.tree.exact.cutting.kernels.corners import members, no_less

DONE, OPEN, FULL = 0, 1, 2
"""No box is cheaper than the cost to beat; the cheapest is under no nogood; no room for parts."""

_ALL = 1 << 62


@kernel()
def push(heap, cost, num, box):
    """Add a box to a heap of so many."""
    at = num
    heap[at] = box
    while at:
        parent = (at - 1) // 2
        if cost[heap[parent]] <= cost[heap[at]]:
            break
        heap[parent], heap[at] = heap[at], heap[parent]
        at = parent


@kernel()
def pop(heap, cost, num):
    """Remove the cheapest box of a heap of so many and return it."""
    first = heap[0]
    heap[0] = heap[num - 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= num - 1:
            return first
        if child + 1 < num - 1 and cost[heap[child + 1]] < cost[heap[child]]:
            child += 1
        if cost[heap[at]] <= cost[heap[child]]:
            return first
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@kernel()
def best_cut(nogoods, sets, values, prices, low, high):
    """Return the nogood above a low corner outside of which the box costs most, -1 if none is."""
    found = -1
    most = -1
    for c in members(no_less(sets, len(nogoods), low)):
        least = _ALL
        for n in range(len(low)):
            if nogoods[c, n] < high[n]:
                least = min(least, prices[n] * (values[nogoods[c, n] + 1] - values[low[n]]))
        if least > most:
            most = least
            found = c
    return found


@kernel()
def cut_boxes(lows, highs, cost, heap, size, nogoods, sets, values, prices, to_beat):
    """Cut the cheapest boxes until one is under no nogood, which stays on the heap.

    Parameters
    ----------
    nogoods, sets
        Vectors, and in which sets of `corners` they are.
    size
        Boxes on the heap and slots ever used; updated.

    Returns
    -------
    `DONE`, `OPEN` (the box is `heap[0]`, its highs what is affordable) or `FULL`.
    """
    num_steps = len(prices)
    order = np.empty(num_steps, dtype=np.int64)
    dearer = np.empty(num_steps, dtype=np.int64)
    while True:
        if size[0] == 0 or cost[heap[0]] >= to_beat:
            return DONE
        if size[1] + num_steps > len(cost):
            return FULL
        box = heap[0]
        low, high = lows[box], highs[box]
        spare = to_beat - 1 - cost[box]
        for n in range(num_steps):
            while high[n] > low[n] and prices[n] * (values[high[n]] - values[low[n]]) > spare:
                high[n] -= 1
        nogood = best_cut(nogoods, sets, values, prices, low, high)
        if nogood < 0:
            return OPEN
        pop(heap, cost, size[0])
        size[0] -= 1
        # The part that is cut first is the largest: let it be the dearest.
        parts = 0
        for n in range(num_steps):
            if nogoods[nogood, n] < high[n]:
                dearer[n] = prices[n] * (values[nogoods[nogood, n] + 1] - values[low[n]])
                at = parts
                while at and dearer[order[at - 1]] < dearer[n]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = n
                parts += 1
        for i in range(parts):
            n = order[i]
            if dearer[n] <= spare:
                part = size[1]
                lows[part] = low
                highs[part] = high
                lows[part, n] = nogoods[nogood, n] + 1
                cost[part] = cost[box] + dearer[n]
                push(heap, cost, size[0], part)
                size[0] += 1
                size[1] += 1
            high[n] = nogoods[nogood, n]
