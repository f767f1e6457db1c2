"""Compiled refinement of a bisection (Fiduccia and Mattheyses 1982), with sizes kept in a range."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from topoplace.kernels import kernel

PASSES = 6
PATIENCE, PATIENCE_SHARE = 60, 40
"""Moves without improvement that end a pass: the first, and vertices / the second."""


@kernel(inline="always")
def excess(filled, low, high):
    """Return by how much the size of side 0 is outside its range."""
    return max(0, low - filled, filled - high)


@kernel()
def cost_of(graph, side):
    """Return the weight between the sides plus the bias over side 1."""
    first, other, weight, bias, _ = graph
    total = np.int64(0)
    for v in range(side.shape[0]):
        if side[v] == 1:
            total += bias[v]
            for e in range(first[v], first[v + 1]):
                if side[other[e]] == 0:
                    total += weight[e]
    return total


@kernel()
def refine(graph, side, low, high):
    """Improve `side` in place by passes of moves, the best prefix of each pass being kept."""
    first, other, weight, _, size = graph
    num_vertices = side.shape[0]
    patience = PATIENCE + num_vertices // PATIENCE_SHARE
    gain = np.empty(num_vertices, dtype=np.int64)
    locked = np.empty(num_vertices, dtype=np.bool_)
    trail = np.empty(num_vertices, dtype=np.int64)
    for _ in range(PASSES):
        locked[:] = False
        filled = size[side == 0].sum()
        heaps = sorted_gains(graph, side, gain)
        begun = (excess(filled, low, high), np.int64(0))
        best, kept, moved, total = begun, 0, 0, np.int64(0)
        while moved - kept < patience:
            for heap in heaps:
                while len(heap) > 0 and (locked[heap[0][1]] or gain[heap[0][1]] != -heap[0][0]):
                    heappop(heap)
            v = next_vertex(heaps, size, filled, low, high)
            if v < 0:
                break
            locked[v] = True
            trail[moved] = v
            moved += 1
            filled += size[v] if side[v] == 1 else -size[v]
            total -= gain[v]
            side[v] = 1 - side[v]
            for e in range(first[v], first[v + 1]):
                u = other[e]
                if not locked[u]:
                    gain[u] += 2 * weight[e] if side[u] != side[v] else -2 * weight[e]
                    heappush(heaps[side[u]], (-gain[u], np.int64(u)))
            state = (excess(filled, low, high), total)
            if state < best:
                best, kept = state, moved
        for k in range(kept, moved):
            side[trail[k]] = 1 - side[trail[k]]
        if best == begun:
            break


@kernel()
def sorted_gains(graph, side, gain):
    """Fill in what moving each vertex saves; return the heaps of both sides, most saved first."""
    first, other, weight, bias, _ = graph
    heaps = ([(np.int64(0), np.int64(0))], [(np.int64(0), np.int64(0))])
    heaps[0].pop()
    heaps[1].pop()
    for v in range(side.shape[0]):
        gain[v] = bias[v] if side[v] == 1 else -bias[v]
        for e in range(first[v], first[v + 1]):
            gain[v] += weight[e] if side[other[e]] != side[v] else -weight[e]
        heappush(heaps[side[v]], (-gain[v], np.int64(v)))
    return heaps


@kernel(inline="always")
def next_vertex(heaps, size, filled, low, high):
    """Return the vertex to move: from the side that is too large, else that of most gain; or -1."""
    from_first = len(heaps[0]) > 0 and filled > low
    from_second = len(heaps[1]) > 0 and filled < high
    if not from_first and not from_second and low == high == filled:
        # in balance: a move away from it, which the next one makes good
        from_first, from_second = len(heaps[0]) > 0, len(heaps[1]) > 0
    if from_first and from_second:
        return heaps[0][0][1] if heaps[0][0] <= heaps[1][0] else heaps[1][0][1]
    if from_first:
        return heaps[0][0][1]
    if from_second:
        return heaps[1][0][1]
    return -1
