"""Compiled multilevel bisection (Hendrickson and Leland 1995; Karypis and Kumar 1998)."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.halving._refinement import cost_of, excess, refine
from topoplace.mapping.local_search._kernels import below

COARSE = 48
TRIALS = 6


@kernel()
def bisect(first, other, weight, bias, low, high, random):
    """Return a side, 0 or 1, for every vertex, `low` to `high` of them on side 0.

    Minimised is the weight between the sides plus `bias` over side 1 (refined, not optimal).
    """
    size = np.ones(first.shape[0] - 1, dtype=np.int64)
    graphs = [(first, other, weight, bias, size)]
    maps = [size]  # maps[level] leads from the vertices of a level to those of the next
    maps.pop()
    while graphs[-1][4].shape[0] > COARSE:
        graph = graphs[-1]
        heaviest = max(2, 3 * size.shape[0] // (2 * COARSE))
        coarse, count = matching(graph, heaviest, random)
        if count > 0.95 * graph[4].shape[0]:
            break
        maps.append(coarse)
        graphs.append(contract(graph, coarse, count))
    side = initial(graphs[-1], low, high, random)
    for level in range(len(maps) - 1, -1, -1):
        side = side[maps[level]]
        refine(graphs[level], side, low, high)
    return side


@kernel()
def initial(graph, low, high, random):
    """Return the best of some sides grown from one vertex each."""
    num_vertices = graph[4].shape[0]
    best = np.ones(num_vertices, dtype=np.int8)
    best_key = (np.int64(-1), np.int64(0))
    for _ in range(TRIALS):
        side = np.ones(num_vertices, dtype=np.int8)
        side[below(random, num_vertices)] = 0
        refine(graph, side, low, high)
        key = (excess(graph[4][side == 0].sum(), low, high), cost_of(graph, side))
        if best_key[0] < 0 or key < best_key:
            best_key, best = key, side
    return best


@kernel()
def matching(graph, heaviest, random):
    """Match vertices with heavy partners; return the coarse vertex of each and their number.

    Vertices left over that have no partner to match are matched with one another.
    """
    first, other, weight, _, size = graph
    num_vertices = size.shape[0]
    coarse = np.full(num_vertices, -1, dtype=np.int64)
    order = np.arange(num_vertices)
    for k in range(num_vertices - 1, 0, -1):
        swapped = below(random, k + 1)
        order[k], order[swapped] = order[swapped], order[k]
    count, lonely = 0, -1
    for v in order:
        if coarse[v] >= 0:
            continue
        best, partner = -1.0, -1
        for e in range(first[v], first[v + 1]):
            u = other[e]
            if coarse[u] < 0 and u != v and size[u] + size[v] <= heaviest:
                value = weight[e] / size[u]
                if value > best:
                    best, partner = value, u
        if partner < 0 and first[v] == first[v + 1]:
            if lonely >= 0 and size[lonely] + size[v] <= heaviest:
                coarse[v] = coarse[lonely]
                lonely = -1
                continue
            lonely = v
        coarse[v] = count
        if partner >= 0:
            coarse[partner] = count
        count += 1
    return coarse, count


@kernel()
def contract(graph, coarse, count):
    """Return the graph of the coarse vertices."""
    first, other, weight, bias, size = graph
    num_vertices = size.shape[0]
    new_size = np.zeros(count, dtype=np.int64)
    new_bias = np.zeros(count, dtype=np.int64)
    begins = np.zeros(count + 1, dtype=np.int64)
    for v in range(num_vertices):
        new_size[coarse[v]] += size[v]
        new_bias[coarse[v]] += bias[v]
        begins[coarse[v] + 1] += 1
    begins = begins.cumsum()
    members = np.empty(num_vertices, dtype=np.int64)
    ends = begins[:-1].copy()
    for v in range(num_vertices):
        members[ends[coarse[v]]] = v
        ends[coarse[v]] += 1
    new_first = np.zeros(count + 1, dtype=np.int64)
    new_other = np.empty(other.shape[0], dtype=np.int64)
    new_weight = np.empty(other.shape[0], dtype=np.int64)
    position = np.full(count, -1, dtype=np.int64)
    filled = 0
    for c in range(count):
        for k in range(begins[c], begins[c + 1]):
            v = members[k]
            for e in range(first[v], first[v + 1]):
                u = coarse[other[e]]
                if u == c:
                    continue
                if position[u] < new_first[c]:
                    position[u] = filled
                    new_other[filled] = u
                    new_weight[filled] = 0
                    filled += 1
                new_weight[position[u]] += weight[e]
        new_first[c + 1] = filled
    return new_first, new_other[:filled].copy(), new_weight[:filled].copy(), new_bias, new_size
