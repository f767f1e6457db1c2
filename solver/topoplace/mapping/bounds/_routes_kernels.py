"""Trees of shortest paths from many tasks, and what they send over pairs, compiled."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from topoplace.kernels import kernel

NUMBER_BITS = 22
"""Bits of the number of a task in an entry of the heap; its distance is above them."""


@kernel()
def worth_of(shells, inside):
    """Return what a load comes to at least, times its distances from any router."""
    steps, rooms = shells
    total = 0.0
    for j in range(rooms.shape[0]):
        if inside <= rooms[j]:
            break
        total += float(steps[j]) * (inside - rooms[j])
    return total


@kernel()
def plant(graph, loads, shells, roots, most, enough, columns, begins, held, reached):
    """Grow a tree from every root up to the size of most value per length.

    `graph` has the rows of pairs, the number of every entry's pair, and by pair its length. Trees
    have no more than `most` tasks; those of less value per length than `enough` are left out, and
    all after the last one that fits. By root, from `begins`, `columns` get the pairs of a tree and
    what goes over each, `held` its load; `reached` is the best value per length. Returns the number
    of roots that were tried.
    """
    first, other, pair, length = graph
    pairs, amounts = columns
    num = first.shape[0] - 1
    away, seen, order = np.full(num, -1), np.empty(num, np.int64), np.empty(most, np.int64)
    above, over, below = np.empty(num, np.int64), np.empty(num, np.int64), np.zeros(num, np.int64)
    closed = np.zeros(num, np.bool_)
    mask = (np.int64(1) << NUMBER_BITS) - 1
    heap = [np.int64(0)]
    for k in range(roots.shape[0]):
        if begins[k] + most > pairs.shape[0]:
            return k
        root = roots[k]
        heap.clear()
        heappush(heap, root)
        away[root], above[root], seen[0] = 0, -1, root
        count, num_seen, inside, cost, best, end = 0, 1, 0, 0.0, 0.0, 0
        while len(heap) > 0 and count < most and (end == 0 or 2 * count < 3 * end + 16):
            task = heappop(heap) & mask
            if closed[task]:
                continue
            closed[task] = True
            order[count] = task
            count += 1
            inside += loads[task]
            cost += float(loads[task]) * away[task]
            value = worth_of(shells, inside)
            if value > best * cost:
                best, end, held[k] = value / cost, count, inside
            for e in range(first[task], first[task + 1]):
                to, new = other[e], away[task] + length[pair[e]]
                fresh = away[to] < 0
                if fresh or new < away[to]:
                    away[to], above[to], over[to] = new, task, pair[e]
                    heappush(heap, (new << NUMBER_BITS) | to)
                    if fresh:
                        seen[num_seen] = to
                        num_seen += 1
                elif new == away[to] and task < above[to]:
                    above[to], over[to] = task, pair[e]
        reached[k], begins[k + 1] = best, begins[k]
        if best > 0.0 and best >= enough:
            begins[k + 1] += end - 1
            for j in range(end - 1, 0, -1):
                task, at = order[j], begins[k] + j - 1
                below[task] += loads[task]
                below[above[task]] += below[task]
                pairs[at], amounts[at] = over[task], below[task]
        for j in range(num_seen):
            away[seen[j]], closed[seen[j]], below[seen[j]] = -1, False, 0
    return roots.shape[0]


@kernel()
def pack(begins, pairs, amounts, worth, weight, sends, price, rounds):
    """Improve how often trees are sent, and the prices of pairs, by primal-dual steps.

    Wanted is the most that trees are `worth`, no pair above its weight (Chambolle and Pock 2011,
    with steps by rows and columns). Returns the sum over all steps of how often trees are sent.
    """
    num = begins.shape[0] - 1
    stride, drop = np.zeros(num), np.zeros(weight.shape[0])
    for t in range(num):
        for e in range(begins[t], begins[t + 1]):
            share = amounts[e] / weight[pairs[e]]
            stride[t] += share
            drop[pairs[e]] += share / worth[t]
    used, summed = np.zeros(weight.shape[0]), np.zeros(num)
    for _ in range(rounds):
        used[:] = 0.0
        for t in range(num):
            cost = 0.0
            for e in range(begins[t], begins[t + 1]):
                cost += amounts[e] / weight[pairs[e]] * price[pairs[e]]
            new = max(0.0, sends[t] + (1.0 - cost / worth[t]) / stride[t])
            ahead = 2.0 * new - sends[t]
            sends[t] = new
            summed[t] += new
            for e in range(begins[t], begins[t + 1]):
                used[pairs[e]] += amounts[e] / weight[pairs[e]] * ahead
        for p in range(weight.shape[0]):
            price[p] = max(0.0, price[p] + (used[p] - 1.0) / drop[p]) if drop[p] > 0.0 else 0.0
    return summed
