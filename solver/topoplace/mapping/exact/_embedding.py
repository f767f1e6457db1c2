"""Compiled search for a copy of one graph inside another, by backtracking.

Graphs are rows of partners, ``other[first[t]:first[t + 1]]``. Tasks are placed in a given order.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import heapq

import numpy as np

from topoplace.kernels import kernel


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
def two_coloured(first, other):
    """Tell whether all cycles of a graph are even."""
    n = first.shape[0] - 1
    colour = np.full(n, -1, dtype=np.int64)
    stack = np.empty(n, dtype=np.int64)
    for start in range(n):
        if colour[start] >= 0:
            continue
        stack[0], colour[start], height = start, 0, 1
        while height > 0:
            height -= 1
            at = stack[height]
            for e in range(first[at], first[at + 1]):
                if colour[other[e]] == colour[at]:
                    return False
                if colour[other[e]] < 0:
                    colour[other[e]] = 1 - colour[at]
                    stack[height] = other[e]
                    height += 1
    return True


@kernel()
def placing_order(first, other, root):
    """Return the vertices with partners: always one with the most partners before it, then nearest.

    Those with many placed partners have few routers left: mistakes show at once.
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
                    heapq.heappush(waiting, (-before[partner], steps + 1, partner))
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
    """Take a task off its router."""
    router = state.at[task]
    state.at[task], state.holder[router] = -1, -1
    for e in range(guest.first[task], guest.first[task + 1]):
        state.need[guest.other[e]] += 1
    for e in range(host.first[router], host.first[router + 1]):
        state.free[host.other[e]] += 1


@kernel()
def _has_room(guest, host, state, task):
    """Tell whether the partners still to be placed have room after a task was."""
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
    """Tell whether a router is free and next to all placed partners of a task."""
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
