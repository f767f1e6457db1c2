"""Greedy growth: the most connected task next to its placed partners."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.local_search import distance, machine_arrays
from topoplace.mapping.positions import compact_routers
from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.


FEWEST_CANDIDATES = 24


@kernel()
def grow(machine, guest, seeds, outward, room, everywhere):  # noqa: PLR0912 - one loop nest
    """Return the router of every task.

    `seeds` are all tasks, `outward` all usable routers, each in order of preference; `everywhere`
    says whether to look at all free routers.
    """
    num_tasks = seeds.shape[0]
    router = np.full(num_tasks, -1, dtype=np.int64)
    attached = np.zeros(num_tasks, dtype=np.int64)
    free = room.copy()
    seen = np.zeros(room.shape[0], dtype=np.int32)
    queue = np.empty(room.shape[0], dtype=np.int32)
    waiting = [(np.int64(0), np.int64(-1))]
    waiting.pop()
    next_seed, next_router = 0, 0
    for count in range(1, num_tasks + 1):
        task = np.int64(-1)
        while task < 0:
            if len(waiting) > 0:
                bytes_, candidate = heappop(waiting)
                if router[candidate] < 0 and attached[candidate] == -bytes_:
                    task = candidate
            else:
                if router[seeds[next_seed]] < 0:
                    task = seeds[next_seed]
                next_seed += 1
        while free[outward[next_router]] == 0:
            next_router += 1
        goal = -1
        if attached[task] > 0:
            if everywhere:
                goal = cheapest(machine, guest, router, free, task, outward[next_router:])
            else:
                goal = cheapest_near(machine, guest, router, free, task, seen, queue, count)
        if goal < 0:
            goal = outward[next_router]
        router[task] = goal
        free[goal] -= 1
        for e in range(guest.first[task], guest.first[task + 1]):
            other = guest.other[e]
            if router[other] < 0:
                attached[other] += guest.weight[e]
                heappush(waiting, (-attached[other], np.int64(other)))
    return router


@kernel()
def cheapest(machine, guest, router, free, task, candidates):
    """Return the first of the free candidates where a task costs least."""
    best, goal = np.int64(0), -1
    for candidate in candidates:
        if free[candidate] == 0:
            continue
        cost = np.int64(0)
        for e in range(guest.first[task], guest.first[task + 1]):
            at = router[guest.other[e]]
            if at >= 0:
                cost += guest.weight[e] * distance(machine, candidate, at)
                if goal >= 0 and cost >= best:
                    break
        if goal < 0 or cost < best:
            best, goal = cost, candidate
    return goal


@kernel()
def cheapest_near(machine, guest, router, free, task, seen, queue, stamp):
    """Return the cheapest free router near the heaviest partner; -1 if none is free."""
    heaviest, start = np.int64(-1), -1
    for e in range(guest.first[task], guest.first[task + 1]):
        if router[guest.other[e]] >= 0 and guest.weight[e] > heaviest:
            heaviest, start = guest.weight[e], router[guest.other[e]]
    queue[0] = start
    seen[start] = stamp
    head, tail, found = 0, 1, 0
    while head < tail and found < FEWEST_CANDIDATES:
        at = queue[head]
        head += 1
        found += free[at] > 0
        for k in range(machine.num_near[at]):
            beside = machine.near[at, k]
            if seen[beside] != stamp:
                seen[beside] = stamp
                queue[tail] = beside
                tail += 1
    return cheapest(machine, guest, router, free, task, queue[:head])


# ---- Greedy construction of a mapping (Bhatele 2009, automatic mapping framework) ----------------

MOST_LOOKS = 200_000_000
"""Distances computed at most when all free routers are looked at for every task."""


def grow_mapping(problem: MappingProblem) -> IntArray:
    """Return the router of every task: the most connected task next, where it costs least.

    The first task is the one with most bytes, and goes to the middle of the usable routers. Each
    next one is that with most bytes to tasks that are placed; of the free routers (on large
    machines: of those nearest to its heaviest partner) it gets the one that adds the fewest
    hop-bytes, of equal ones that nearest to the middle.

    Distances must be symmetric.
    """
    machine = machine_arrays(problem.machine, problem.capacity)
    guest = problem.graph.exchanged
    volume = np.zeros(problem.num_tasks, dtype=np.int64)
    np.add.at(volume, guest.owner, guest.weight)
    seeds = np.argsort(-volume, kind="stable")
    usable = np.flatnonzero(problem.capacity)
    _, centre = compact_routers(problem)
    outward = usable[np.argsort(problem.machine.distances_from(centre)[usable], kind="stable")]
    everywhere = len(usable) * len(guest.other) <= MOST_LOOKS
    room = np.minimum(problem.capacity, problem.num_tasks)
    return np.asarray(grow(machine, guest, seeds, outward, room, everywhere), dtype=np.int64)
