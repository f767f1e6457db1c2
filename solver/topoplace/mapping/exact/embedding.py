"""Whether a graph fits a machine with every message on one link."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, kron
from scipy.sparse.csgraph import connected_components

from topoplace import clock
from topoplace.kernels import kernel
from topoplace.mapping.graph import Rows, rows_of
from topoplace.mapping.local_search import torus_neighbours
from topoplace.mapping.problem import MappingProblem
from topoplace.types import FloatArray, IntArray

# ---- Compiled search for a copy of one graph inside another, by backtracking ---------------------
# Graphs are rows of partners, ``other[first[t]:first[t + 1]]``. Tasks are placed in a given order.

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.


@kernel()
def distances(first, other, start):
    """Return the distance of every vertex from one; -1 for those not connected to it."""
    n = first.shape[0] - 1
    found = np.full(n, -1, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    queue[0], found[start] = start, 0
    head, tail = 0, 1
    while head < tail:
        at = queue[head]
        head += 1
        for e in range(first[at], first[at + 1]):
            if found[other[e]] < 0:
                found[other[e]] = found[at] + 1
                queue[tail] = other[e]
                tail += 1
    return found


@kernel()
def placing_order(first, other, root):
    """Return the vertices with partners: always one with the most partners before it, then nearest.

    Those with many placed partners have few possible routers: mistakes show at once.
    """
    n = first.shape[0] - 1
    degree = first[1:] - first[:-1]
    order = np.empty(n, dtype=np.int64)
    placed = np.zeros(n, dtype=np.bool_)
    before = np.zeros(n, dtype=np.int64)
    starts = np.concatenate((np.array([root]), np.argsort(-degree)))
    count = 0
    for start in starts:
        if placed[start] or degree[start] == 0:
            continue
        waiting = [(np.int64(0), np.int64(0), start)]
        while len(waiting) > 0:
            _, steps, task = heapq.heappop(waiting)
            if placed[task]:
                continue
            placed[task] = True
            order[count] = task
            count += 1
            for e in range(first[task], first[task + 1]):
                partner = other[e]
                if not placed[partner]:
                    before[partner] += 1
                    heapq.heappush(waiting, (-before[partner], steps + 1, np.int64(partner)))
    return order[:count]


@kernel()
def place_all(guest, host, order, start, reach, noise, state, max_nodes):
    """Place the tasks in order, the first one on router `start`.

    Task t goes only to routers r with ``reach.router[r] <= reach.task[t]``. Returns the nodes
    tried, negative if `max_nodes` ended the search; ``state.at`` holds the routers if it was
    successful, and only -1 if not.
    """
    num_tasks = order.shape[0]
    depth, nodes = 0, 0
    state.num_choices[0], state.next[0], state.choice[0, 0] = 1, 0, start
    while depth >= 0:
        goal = _next_choice(state, depth)
        if goal < 0:
            depth -= 1
            if depth >= 0:
                _take_back(guest, host, state, order[depth])
            continue
        nodes += 1
        if nodes > max_nodes:
            for d in range(depth - 1, -1, -1):
                _take_back(guest, host, state, order[d])
            return -nodes
        task = order[depth]
        _put(guest, host, state, task, goal)
        if not _has_room(guest, host, state, task):
            _take_back(guest, host, state, task)
            continue
        depth += 1
        if depth == num_tasks:
            return nodes
        _list_choices(guest, host, state, order[depth], depth, reach, noise)
    return nodes


@kernel(inline="always")
def _next_choice(state, depth):
    """Return the next router to try at a depth, -1 if there is none."""
    k = state.next[depth]
    state.next[depth] = k + 1
    if state.num_choices[depth] >= 0:
        return state.choice[depth, k] if k < state.num_choices[depth] else -1
    while k < state.holder.shape[0]:  # a new component may start anywhere
        if state.holder[k] < 0:
            state.next[depth] = k + 1
            return k
        k += 1
    state.next[depth] = k
    return -1


@kernel(inline="always")
def _put(guest, host, state, task, router):
    """Put a task on a router."""
    state.at[task], state.holder[router] = router, task
    for e in range(guest.first[task], guest.first[task + 1]):
        state.need[guest.other[e]] -= 1
    for e in range(host.first[router], host.first[router + 1]):
        state.free[host.other[e]] -= 1


@kernel(inline="always")
def _take_back(guest, host, state, task):
    """Remove a task from its router."""
    router = state.at[task]
    state.at[task], state.holder[router] = -1, -1
    for e in range(guest.first[task], guest.first[task + 1]):
        state.need[guest.other[e]] += 1
    for e in range(host.first[router], host.first[router + 1]):
        state.free[host.other[e]] += 1


@kernel()
def _has_room(guest, host, state, task):
    """Return whether the unplaced partners of a placed task still have routers."""
    router = state.at[task]
    if state.need[task] > state.free[router]:
        return False
    for e in range(host.first[router], host.first[router + 1]):
        holder = state.holder[host.other[e]]
        if holder >= 0 and state.need[holder] > state.free[host.other[e]]:
            return False
    for e in range(guest.first[task], guest.first[task + 1]):
        partner = guest.other[e]
        if state.at[partner] < 0:
            possible = False
            for f in range(host.first[router], host.first[router + 1]):
                if _may_take(guest, host, state, partner, host.other[f]):
                    possible = True
                    break
            if not possible:
                return False
    return True


@kernel()
def _may_take(guest, host, state, task, router):
    """Return whether a router is free and next to all placed partners of a task."""
    if state.holder[router] >= 0 or state.free[router] < state.need[task]:
        return False
    for e in range(guest.first[task], guest.first[task + 1]):
        there = state.at[guest.other[e]]
        if there >= 0:
            linked = False
            for f in range(host.first[router], host.first[router + 1]):
                if host.other[f] == there:
                    linked = True
                    break
            if not linked:
                return False
    return True


@kernel()
def _list_choices(guest, host, state, task, depth, reach, noise):
    """List the routers that a task may take, those with the fewest free neighbours first."""
    state.next[depth] = 0
    anchor = -1
    for e in range(guest.first[task], guest.first[task + 1]):
        there = state.at[guest.other[e]]
        if there >= 0 and (anchor < 0 or state.free[there] < state.free[anchor]):
            anchor = there
    if anchor < 0:
        state.num_choices[depth] = -1
        return
    count = 0
    for e in range(host.first[anchor], host.first[anchor + 1]):
        router = host.other[e]
        if reach.router[router] > reach.task[task]:
            continue
        if _may_take(guest, host, state, task, router):
            rank = np.float64(state.free[router])
            if noise > 0.0:
                rank += noise * np.random.random()
            k = count
            while k > 0 and state.rank[k - 1] > rank:
                state.rank[k] = state.rank[k - 1]
                state.choice[depth, k] = state.choice[depth, k - 1]
                k -= 1
            state.rank[k], state.choice[depth, k] = rank, router
            count += 1
    state.num_choices[depth] = count


@kernel()
def seed_noise(seed):
    """Seed the generator that breaks ties."""
    np.random.seed(seed)


# ---- Embeddings of dilation 1: every message over exactly one link, for any labelling ------------
# Where no router has two places, such a mapping has the least possible hop-bytes, the sum of all
# bytes (docs/proofs/graphs.md, "Embedding").

MAX_NODES = 20_000_000
"""Most placements tried in all."""

NODES_PER_TASK, FEWEST_NODES = 4, 2_000
"""Placements tried from one start before another one is, doubled from round to round."""

MOST_NODES = 1 << 18
"""Most placements from one start, to keep to a time limit."""

CENTRE_STEPS = 1 << 24
"""About how many tasks are visited to find a central one."""

FAR = 1 << 40
"""The distance of two unconnected vertices."""


class _State(NamedTuple):
    """Where tasks are, and the choices still to try."""

    at: IntArray
    holder: IntArray
    need: IntArray
    free: IntArray
    choice: IntArray
    num_choices: IntArray
    next: IntArray
    rank: FloatArray


class _Reach(NamedTuple):
    """Distances from the first task and from its router: a path of messages is one of links."""

    task: IntArray
    router: IntArray


def find_embedding(
    problem: MappingProblem,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    max_nodes: int = MAX_NODES,
) -> IntArray | None:
    """Look for a mapping with one task per router and every message over one link.

    Tasks are placed next to their placed partners, those with the most first, on routers with
    few free neighbours. A task is not placed where a partner of it would have no router left or
    where a shortest path of messages to the first task would be shorter than one of links. The
    search begins again, with ties broken at random, when it makes no progress.

    Returns the router of every task; None if there is none, or none was found within the time
    limit and `max_nodes` placements.
    """
    stop = clock.deadline(time_limit)
    usable = np.flatnonzero(problem.capacity)
    guest = problem.graph.exchanged
    if problem.num_tasks > len(usable):
        return None
    host = _links(problem, usable)
    if not _may_fit(guest, host):
        return None
    found = np.full(guest.size, -1, dtype=np.int64)
    if len(guest.other):
        placed = _search(guest, host, _starts(problem, usable), seed, stop, max_nodes)
        if placed is None:
            return None
        found = placed
    silent = np.flatnonzero(found < 0)
    rest = np.setdiff1d(np.arange(len(usable)), found)
    found[silent] = rest[: len(silent)]
    return usable[found]


def _links(problem: MappingProblem, usable: IntArray) -> Rows:
    """Return the usable routers, numbered from 0, and the links between them."""
    machine = problem.machine
    if machine.torus is not None:
        near, _ = torus_neighbours(machine.torus)
        tails, heads = np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()
    else:
        each = np.arange(machine.num_routers)
        near = machine.hops(each[:, None], each) == 1
        tails, heads = np.nonzero(near & near.T)
    place = np.full(machine.num_routers, -1)
    place[usable] = np.arange(len(usable))
    tails, heads = place[tails], place[heads]
    kept = (tails >= 0) & (heads >= 0) & (tails != heads)
    return rows_of(len(usable), tails[kept], heads[kept], np.ones(kept.sum(), dtype=np.int64))


def _starts(problem: MappingProblem, usable: IntArray) -> IntArray:
    """Return routers for the first task: one is enough if all are equivalent."""
    machine = problem.machine
    alike = machine.is_transitive and len(usable) == machine.num_routers
    return np.arange(1 if alike else len(usable))


def _may_fit(guest: Rows, host: Rows) -> bool:
    """Test degrees and, on a machine of two colours, the colours of the graph."""
    tasks, routers = np.sort(guest.degree)[::-1], np.sort(host.degree)[::-1]
    if (tasks > routers[: len(tasks)]).any():
        return False
    return _two_coloured(guest) or not _two_coloured(host)


def _two_coloured(graph: Rows) -> bool:
    """Return whether all cycles are even: each component is two in the graph's double cover."""
    shape = (graph.size, graph.size)
    rows = csr_array((np.ones(len(graph.other)), graph.other, graph.first), shape=shape)
    cover = kron(rows, np.array([[0, 1], [1, 0]]))
    components = connected_components(rows, directed=False, return_labels=False)
    return bool(connected_components(cover, directed=False, return_labels=False) == 2 * components)


def _distances(graph: Rows, start: int) -> IntArray:
    """Return the distances from a vertex, `FAR` where there is no path."""
    found = distances(graph.first, graph.other, start)
    return np.where(found < 0, FAR, found).astype(np.int64)


def _search(
    guest: Rows, host: Rows, starts: IntArray, seed: int, stop: float, max_nodes: int
) -> IntArray | None:
    """Try starts in rounds; return the place of every task that has partners."""
    state = _state(guest, host)
    rng = np.random.default_rng(seed)
    seed_noise(seed)
    active = np.flatnonzero(guest.degree)
    share = max(FEWEST_NODES, NODES_PER_TASK * len(active))
    left, rounds = max_nodes, 0
    while left > 0:
        root = _central(guest, active) if rounds == 0 else int(rng.choice(active))
        order = placing_order(guest.first, guest.other, root)
        from_root = _distances(guest, root)
        within = _ball_sizes(from_root, guest.size)
        ended = True
        for start in starts.tolist():
            if left <= 0 or clock.now() >= stop:
                return None
            reach = _Reach(from_root, _distances(host, start))
            if (within > _ball_sizes(reach.router, guest.size)).any():
                continue
            noise = 0.5 if rounds else 0.0
            nodes = place_all(guest, host, order, start, reach, noise, state, min(share, left))
            if state.at[root] >= 0:
                return state.at.copy()
            left -= abs(nodes)
            ended &= nodes >= 0
        if ended:
            return None  # every start was searched to its end
        rounds += 1
        share = min(2 * share, MOST_NODES)
    return None


def _ball_sizes(found: IntArray, most: int) -> IntArray:
    """Return how many vertices lie within 0, 1, ... steps, without unreachable ones."""
    sizes: IntArray = np.cumsum(np.bincount(np.minimum(found, most), minlength=most + 1)[:most])
    return sizes


def _central(guest: Rows, active: IntArray) -> int:
    """Return the task with the most others near it: fewest routers can take it."""
    some = active[:: -(-len(active) * guest.size // CENTRE_STEPS)]
    reached = [int(_distances(guest, task).sum()) for task in some.tolist()]
    return int(some[int(np.argmin(reached))])


def _state(guest: Rows, host: Rows) -> _State:
    width = max(1, int(host.degree.max()))
    return _State(
        at=np.full(guest.size, -1, dtype=np.int64),
        holder=np.full(host.size, -1, dtype=np.int64),
        need=guest.degree.astype(np.int64),
        free=host.degree.astype(np.int64),
        choice=np.zeros((guest.size, width), dtype=np.int64),
        num_choices=np.zeros(guest.size, dtype=np.int64),
        next=np.zeros(guest.size, dtype=np.int64),
        rank=np.zeros(width),
    )
