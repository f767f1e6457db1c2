"""Robust tabu search on mappings (Taillard 1991)."""

from __future__ import annotations

import numpy as np

from topoplace.errors import InputError
from topoplace.kernels import kernel
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.local_search import chance, random_state, state_arrays
from topoplace.mapping.mapped import Keeper
from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray

# ---- The compiled moves of robust tabu search, with the change of every swap kept up to date -----

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.


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
    """Update `delta` after tasks u and v have exchanged their places (Taillard 1991)."""
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


# ---- Robust tabu search (Taillard 1991, "Robust taboo search for the quadratic assignment") ------

MAX_PLACES = 512
"""Places up to which the tables of all swaps are small and quick to scan."""


def num_places(problem: MappingProblem) -> int:
    """Return the number of places: a router has no more than there are tasks."""
    return int(np.minimum(problem.capacity, problem.num_tasks).sum())


CHUNK_WORK = 4_000_000
"""Swaps tried between two looks at the clock."""


def tabu(keeper: Keeper, routers: IntArray, seed: int, num_moves: int) -> None:
    """Offer the result of tabu search from a mapping by a number of moves, if there is time.

    Any distances will do. Places without a task hold padding, so that a move to a free place is a
    swap too. Raises `InputError` if there are more than `MAX_PLACES` places.
    """
    problem = keeper.problem
    tables, state = tabu_arrays(problem, routers)
    random = random_state(seed)
    cost = least = hop_bytes(problem, routers * problem.machine.nodes_per_router)
    chunk = max(1, CHUNK_WORK // len(state[0]) // problem.num_tasks)
    while num_moves > 0 and not keeper.done:
        moves = min(chunk, num_moves)
        cost, least = tabu_moves(tables, state, cost, least, moves, random)
        num_moves -= moves
        if keeper.least is None or least < keeper.least:
            _, best, *_ = state
            keeper.offer(tables[2][best[: problem.num_tasks]], "tabu")


def tabu_arrays(
    problem: MappingProblem, routers: IntArray
) -> tuple[tuple[IntArray, IntArray, IntArray, int], tuple[IntArray, ...]]:
    """Return the tables and the state that `tabu_moves` takes, for a mapping to start from."""
    size = num_places(problem)
    if size > MAX_PLACES:
        raise InputError(f"at most {MAX_PLACES} places for tabu search", value=size)
    num_tasks, graph = problem.num_tasks, problem.graph
    room = np.minimum(problem.capacity, num_tasks)
    router = np.repeat(np.arange(problem.machine.num_routers), room)
    dist = np.ascontiguousarray(problem.machine.hops(router[:, None], router[None, :]))
    flow = np.zeros((size, size), dtype=np.int64)
    np.add.at(flow, (graph.sources, graph.targets), graph.bytes)
    taken = state_arrays(problem, problem.pools.first[routers]).slot.astype(np.int64)
    place = np.concatenate([taken, np.setdiff1d(np.arange(size), taken)])
    delta = np.zeros((size, size), dtype=np.int64)
    all_changes(flow, dist, place, num_tasks, delta)
    # barred in the past, each at its own time: moves never made become due one by one
    barred = -np.arange(size * size, dtype=np.int64).reshape(size, size)
    made = np.zeros(1, dtype=np.int64)
    return (flow, dist, router, num_tasks), (place, place.copy(), delta, barred, made)
