"""Robust tabu search on mappings (Taillard 1991)."""

from __future__ import annotations

import numpy as np

from topoplace.errors import InputError
from topoplace.kernels import kernel
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray
from topoplace.mapping.local_search import chance
from topoplace.mapping.problem import MappingProblem

# ---- The compiled moves of robust tabu search, with the change of every swap kept as they go -----

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


# ---- Robust tabu search (Taillard 1991, "Robust taboo search for the quadratic assignment") ------

MAX_PLACES = 512
"""Places up to which the tables of all swaps are small and quick to go through."""


class Tabu:
    """A tabu search under way: the mapping it is at, and the best one it has seen.

    Any distances will do, symmetric or not. Places without a task hold padding, so that a move
    to a free place is a swap too.

    Parameters
    ----------
    problem
        The instance, of at most `MAX_PLACES` places; a router counts at most as many as tasks.
    routers
        Router of every task to start from, shape ``(num_tasks,)``.
    seed
        Of the random times for which moves are barred.

    Attributes
    ----------
    least
        Hop-bytes of the best mapping seen.

    Raises
    ------
    InputError
        If there are more places.
    """

    def __init__(self, problem: MappingProblem, routers: IntArray, seed: int = 0) -> None:
        size = num_places(problem)
        if size > MAX_PLACES:
            raise InputError(f"at most {MAX_PLACES} places for tabu search", value=size)
        num_tasks, graph = problem.num_tasks, problem.graph
        room = np.minimum(problem.capacity, num_tasks)
        self._router = np.repeat(np.arange(problem.machine.num_routers), room)
        dist = problem.machine.hops(self._router[:, None], self._router[None, :])
        flow = np.zeros((size, size), dtype=np.int64)
        np.add.at(flow, (graph.sources, graph.targets), graph.bytes)
        self._problem = (flow, np.ascontiguousarray(dist), self._router, num_tasks)
        # the generator's state must not be 0
        self._random = np.random.default_rng(seed).integers(1, 1 << 63, size=1, dtype=np.uint64)
        self._place = self._places_of(routers)
        self._best = self._place.copy()
        self._delta = np.zeros((size, size), dtype=np.int64)
        # barred in the past, each at its own time: what was never done becomes due one by one
        self._barred = -np.arange(size * size, dtype=np.int64).reshape(size, size)
        self._made = np.zeros(1, dtype=np.int64)
        all_changes(flow, dist, self._place, num_tasks, self._delta)
        self.cost = hop_bytes(problem, routers * problem.machine.nodes_per_router)
        self.least = self.cost

    @property
    def routers(self) -> IntArray:
        """Router of every task in the best mapping seen."""
        found: IntArray = self._router[self._best[: self._problem[3]]]
        return found

    @property
    def move_work(self) -> int:
        """Swaps looked at per move."""
        return self._problem[3] * len(self._place)

    def run(self, num_moves: int) -> None:
        """Make that many moves."""
        state = (self._place, self._best, self._delta, self._barred, self._made)
        cost, least = tabu_moves(
            self._problem, state, self.cost, self.least, num_moves, self._random
        )
        self.cost, self.least = int(cost), int(least)

    def _places_of(self, routers: IntArray) -> IntArray:
        """Return the place of every task, and of the padding, given the tasks' routers."""
        order = np.argsort(routers, kind="stable")
        at = routers[order]
        begin = np.searchsorted(self._router, at)
        nth = np.arange(len(at)) - np.searchsorted(at, at)
        taken = np.empty(len(at), dtype=np.int64)
        taken[order] = begin + nth
        free = np.setdiff1d(np.arange(len(self._router)), taken)
        return np.concatenate([taken, free])


def num_places(problem: MappingProblem) -> int:
    """Return the places that can be told apart: a router has no more than there are tasks."""
    return int(np.minimum(problem.capacity, problem.num_tasks).sum())
