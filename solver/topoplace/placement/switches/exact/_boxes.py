"""Boxes of thresholds in a heap by the cost of their low corners, cut by impossible thresholds.

Vectors that are compared with many others are kept in sets of bits: per step and value there is a
set of the vectors that are no less there; those of the last value are empty. The vectors that are
no less than a given one everywhere are the intersection of one set per step.
"""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

DONE, OPEN, FULL, PAUSED = 0, 1, 2, 3
"""No box is cheaper than the cost to beat; the cheapest is under no nogood; no room for parts; so
many boxes have been cut that it is time for a look at the clock."""

_ALL = 1 << 62
_BIT = np.uint64(1)
_NONE = np.uint64(0)


# ---- Many vectors compared with one --------------------------------------------------------------


@kernel()
def mark(sets, number, at):
    """Put a vector into its sets, of shape ``(num_steps, num_values, num_words)``."""
    bit = _BIT << np.uint64(number % 64)
    for n in range(len(at)):
        for v in range(at[n] + 1):
            sets[n, v, number // 64] |= bit


@kernel()
def no_less(sets, num, at):
    """Return the set of the first `num` vectors that are nowhere below a vector."""
    last = sets.shape[1] - 1
    found = sets[0, min(at[0], last), : (num + 63) // 64].copy()
    for n in range(1, len(at)):
        own = sets[n, min(at[n], last)]
        for w in range(len(found)):
            found[w] &= own[w]
    return found


@kernel()
def _no_more(sets, num, at, free):
    """Return the set of the first `num` vectors nowhere above a vector except in a step."""
    above = np.zeros((num + 63) // 64, dtype=np.uint64)
    last = sets.shape[1] - 1
    for n in range(len(at)):
        if n != free:
            own = sets[n, min(at[n] + 1, last)]
            for w in range(len(above)):
                above[w] |= own[w]
    if num % 64:
        above[-1] |= ~((_BIT << np.uint64(num % 64)) - _BIT)
    return ~above


@kernel()
def below(sets, num, at):
    """Tell whether one of the first `num` vectors is nowhere above a vector."""
    return (_no_more(sets, num, at, -1) != _NONE).any()


@kernel()
def members(words):
    """Return the numbers in a set."""
    found = np.empty(64 * len(words), dtype=np.int64)
    num = 0
    for w in range(len(words)):
        word = words[w]
        at = 64 * w
        while word != _NONE:
            if word & _BIT:
                found[num] = at
                num += 1
            word >>= _BIT
            at += 1
    return found[:num]


@kernel()
def ceiling(corners, sets, at, step, top):
    """Return the largest value of a step, up to `top`, with none of some vectors below `at`."""
    for c in members(_no_more(sets, len(corners), at, step)):
        top = min(top, corners[c, step] - 1)
    return top


# ---- Boxes -----------------------------------------------------------------------------------


@kernel()
def push(heap, cost, num, box):
    """Add a box to a heap of `num` boxes."""
    at = num
    heap[at] = box
    while at:
        parent = (at - 1) // 2
        if cost[heap[parent]] <= cost[heap[at]]:
            break
        heap[parent], heap[at] = heap[at], heap[parent]
        at = parent


@kernel()
def _pop(heap, cost, num):
    """Remove the cheapest box of a heap of `num` boxes."""
    heap[0] = heap[num - 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= num - 1:
            return
        if child + 1 < num - 1 and cost[heap[child + 1]] < cost[heap[child]]:
            child += 1
        if cost[heap[at]] <= cost[heap[child]]:
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@kernel()
def _dearer(low, n, value, values, prices, after):
    """Return the cost of a step at a value above a low corner, with the steps alike above it."""
    total = 0
    while n >= 0 and low[n] < value:
        total += prices[n] * (values[value] - values[low[n]])
        n = after[n]
    return total


@kernel()
def _descend(high, n, before):
    """Lower the highs of the steps alike before a step to its own."""
    while before[n] >= 0 and high[before[n]] > high[n]:
        high[before[n]] = high[n]
        n = before[n]


@kernel()
def _best_cut(nogoods, sets, values, prices, after, low, high):
    """Return the nogood above a low corner with the highest cost of the box outside it, or -1."""
    found = -1
    most = -1
    for c in members(no_less(sets, len(nogoods), low)):
        least = _ALL
        for n in range(len(low)):
            if nogoods[c, n] < high[n]:
                least = min(least, _dearer(low, n, nogoods[c, n] + 1, values, prices, after))
        if least > most:
            most = least
            found = c
    return found


@kernel()
def cut_boxes(lows, highs, cost, heap, size, nogoods, sets, values, prices, chain, to_beat, most):
    """Cut the cheapest boxes until one is under no nogood, which stays on the heap.

    Return `DONE`, `OPEN` (the box is `heap[0]`, its highs what is affordable), `FULL` or, after so
    many boxes, `PAUSED`.

    Parameters
    ----------
    size
        Boxes on the heap and slots ever used; updated.
    chain
        Per step, the steps alike before and after it, or -1; thresholds ascend along them.
    """
    num_steps = len(prices)
    before, after = chain[0], chain[1]
    order = np.empty(num_steps, dtype=np.int64)
    dearer = np.empty(num_steps, dtype=np.int64)
    for cut in range(most + 1):
        if size[0] == 0 or cost[heap[0]] >= to_beat:
            return DONE
        if cut == most:
            return PAUSED
        if size[1] + num_steps > len(cost):
            return FULL
        box = heap[0]
        low, high = lows[box], highs[box]
        spare = to_beat - 1 - cost[box]
        for n in range(num_steps - 1, -1, -1):
            while high[n] > low[n] and _dearer(low, n, high[n], values, prices, after) > spare:
                high[n] -= 1
            _descend(high, n, before)
        nogood = _best_cut(nogoods, sets, values, prices, after, low, high)
        if nogood < 0:
            return OPEN
        _pop(heap, cost, size[0])
        size[0] -= 1
        # The part that is cut first is the largest: let it be the most expensive.
        parts = 0
        for n in range(num_steps):
            if nogoods[nogood, n] < high[n]:
                dearer[n] = _dearer(low, n, nogoods[nogood, n] + 1, values, prices, after)
                at = parts
                while at and dearer[order[at - 1]] < dearer[n]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = n
                parts += 1
        for i in range(parts):
            n = order[i]
            value = nogoods[nogood, n] + 1
            if dearer[n] <= spare and value <= high[n]:
                part = size[1]
                lows[part] = low
                highs[part] = high
                m = n
                while m >= 0 and lows[part, m] < value:
                    lows[part, m] = value
                    m = after[m]
                cost[part] = cost[box] + dearer[n]
                push(heap, cost, size[0], part)
                size[0] += 1
                size[1] += 1
            high[n] = min(high[n], value - 1)
            _descend(high, n, before)
    return PAUSED
