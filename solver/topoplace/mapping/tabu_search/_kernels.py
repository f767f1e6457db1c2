"""The compiled moves of robust tabu search, with the change of every swap kept as they go."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.local_search._kernels import chance


@kernel()
def swap_change(flow, dist, place, i, j):
    """Return what exchanging the places of two tasks adds (zero diagonals)."""
    p, q = place[i], place[j]
    total = (flow[i, j] - flow[j, i]) * (dist[q, p] - dist[p, q])
    for k in range(place.shape[0]):
        if k not in (i, j):
            r = place[k]
            total += (flow[k, i] - flow[k, j]) * (dist[r, q] - dist[r, p])
            total += (flow[i, k] - flow[j, k]) * (dist[q, r] - dist[p, r])
    return total


@kernel()
def all_changes(flow, dist, place, num_tasks, delta):
    """Fill `delta[i, j]`, i < j and i < num_tasks, with the changes of all swaps."""
    for i in range(num_tasks):
        for j in range(i + 1, place.shape[0]):
            delta[i, j] = swap_change(flow, dist, place, i, j)


@kernel()
def update_changes(flow, dist, place, num_tasks, delta, u, v):
    """Bring `delta` up to date after tasks u and v have exchanged their places (Taillard 1991)."""
    size = place.shape[0]
    p, q = place[u], place[v]
    out = np.empty(size, dtype=np.int64)
    back = np.empty(size, dtype=np.int64)
    far = np.empty(size, dtype=np.int64)
    near = np.empty(size, dtype=np.int64)
    for k in range(size):
        r = place[k]
        out[k] = flow[u, k] - flow[v, k]
        back[k] = flow[k, u] - flow[k, v]
        far[k] = dist[q, r] - dist[p, r]
        near[k] = dist[r, q] - dist[r, p]
    for i in range(num_tasks):
        row = delta[i]
        a, b, c, d = out[i], far[i], back[i], near[i]
        for j in range(i + 1, size):
            row[j] += (a - out[j]) * (b - far[j]) + (c - back[j]) * (d - near[j])
    for k in range(size):
        for w in (u, v):
            i, j = min(w, k), max(w, k)
            if i < j and i < num_tasks:
                delta[i, j] = swap_change(flow, dist, place, i, j)


@kernel()
def tabu_moves(problem, state, cost, least, num_moves, random):
    """Make moves of robust tabu search (Taillard 1991, section 3.1); return cost and least cost.

    `problem` holds the dense flows and distances, the router of every place and the number of
    tasks that are more than padding; `state` the mapping, the best mapping, the changes of all
    swaps, the move until which a task may not return to a place, and the number of moves made.
    """
    flow, dist, router, num_tasks = problem
    place, best, delta, barred, made = state
    size = place.shape[0]
    patience = 5 * size * size
    for _ in range(num_moves):
        made[0] += 1
        now = made[0]
        chosen, first, second, wished = np.int64(0), -1, -1, False
        for i in range(num_tasks):
            p = place[i]
            for j in range(i + 1, size):
                q = place[j]
                if router[p] == router[q]:
                    continue
                value = delta[i, j]
                if first >= 0 and value >= chosen and wished:
                    continue
                until_i, until_j = barred[i, q], barred[j, p]
                aspired = cost + value < least or (
                    until_i < now - patience and until_j < now - patience
                )
                if not aspired and (wished or (until_i >= now and until_j >= now)):
                    continue
                if first < 0 or (aspired and not wished) or value < chosen:
                    chosen, first, second, wished = value, i, j, aspired
        if first < 0:
            continue
        p, q = place[first], place[second]
        place[first], place[second] = q, p
        cost += chosen
        barred[first, p] = now + np.int64(8 * size * chance(random) ** 3)
        barred[second, q] = now + np.int64(8 * size * chance(random) ** 3)
        if cost < least:
            least = cost
            best[:] = place
        update_changes(flow, dist, place, num_tasks, delta, first, second)
    return cost, least
