"""Compiled moves of tasks between routers, with the change of hop-bytes kept as they go.

All kernels work on the arrays of `state`: any machine whose distance is a sum over tables, any
symmetric graph.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import math

import numpy as np

from topoplace.kernels import kernel

WALK_TRIES = 4


@kernel(inline="always")
def draw(random):
    """Return the next 53 random bits of an xorshift64* generator, whose state is `random[0]`."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return (x * np.uint64(2685821657736338717)) >> np.uint64(11)


@kernel(inline="always")
def below(random, n):
    """Return a random integer from 0 to n - 1 (n at most 2^21: the bias is below 2^-31)."""
    return np.int64(draw(random) % np.uint64(n))


@kernel(inline="always")
def chance(random):
    """Return a random number from 0 up to 1."""
    return np.float64(draw(random)) / 9007199254740992.0


@kernel(inline="always")
def distance(machine, a, b):
    """Return the distance of two routers."""
    total = 0
    for d in range(machine.left.shape[1]):
        total += machine.table[machine.left[a, d] + machine.right[b, d]]
    return total


@kernel()
def total_cost(machine, guest, router):
    """Return the hop-bytes of a mapping, given the router of every task."""
    total = 0
    for t in range(router.shape[0]):
        for e in range(guest.first[t], guest.first[t + 1]):
            if guest.other[e] < t:
                total += guest.weight[e] * distance(machine, router[t], router[guest.other[e]])
    return total


@kernel(inline="always")
def change(machine, guest, router, task, goal, without):
    """Return what moving a task to a router adds, its messages with task `without` left out."""
    here = router[task]
    total = 0
    for e in range(guest.first[task], guest.first[task + 1]):
        u = guest.other[e]
        if u != without:
            at = router[u]
            step = distance(machine, goal, at) - distance(machine, here, at)
            total += guest.weight[e] * step
    return total


@kernel(inline="always")
def move(state, task, goal):
    """Move a task to a router that has a free place."""
    here = state.router[task]
    last = state.base[here] + state.load[here] - 1
    moved = state.occupant[last]
    state.occupant[state.place[task]] = moved
    state.place[moved] = state.place[task]
    state.load[here] -= 1
    free = state.base[goal] + state.load[goal]
    state.occupant[free] = task
    state.place[task] = free
    state.router[task] = goal
    state.load[goal] += 1


@kernel(inline="always")
def swap(state, task, other):
    """Exchange the routers of two tasks."""
    a, b = state.place[task], state.place[other]
    state.occupant[a], state.occupant[b] = other, task
    state.place[task], state.place[other] = b, a
    here = state.router[task]
    state.router[task] = state.router[other]
    state.router[other] = here


@kernel(inline="always")
def near_partner(machine, guest, state, task, random, wander):
    """Return a router for a task: a partner's, or one close to it, or (rarely) any; -1 if none."""
    here = state.router[task]
    count = guest.first[task + 1] - guest.first[task]
    if count == 0 or chance(random) < wander:
        goal = machine.usable[below(random, machine.usable.shape[0])]
        return goal if goal != here else -1
    partner = guest.other[guest.first[task] + below(random, count)]
    goal = state.router[partner]
    if goal != here and state.room[goal] > 1 and draw(random) & np.uint64(1):
        return goal
    for _ in range(WALK_TRIES):
        goal = machine.near[goal, below(random, machine.num_near[goal])]
        if goal != here and state.room[goal] > 0:
            return goal
    return -1


@kernel()
def anneal(machine, guest, state, random, temperature, num_moves, wander):
    """Try random moves and swaps, accepted as Metropolis has it; return the total change.

    Temperature 0 accepts no worsening. A share `wander` of the moves goes to any router. Every
    accepted move is made in `state`.
    """
    num_tasks = state.router.shape[0]
    total = 0
    for _ in range(num_moves):
        task = below(random, num_tasks)
        goal = near_partner(machine, guest, state, task, random, wander)
        if goal < 0:
            continue
        here = state.router[task]
        load = state.load[goal]
        to_free = load < state.room[goal] and (load == 0 or draw(random) & np.uint64(1))
        other = -1
        if not to_free:
            other = state.occupant[state.base[goal] + below(random, load)]
        # swapped tasks keep their distance from one another
        delta = change(machine, guest, state.router, task, goal, other)
        if other >= 0:
            delta += change(machine, guest, state.router, other, here, task)
        if delta > 0 and (
            temperature <= 0.0
            or delta > 40.0 * temperature
            or chance(random) >= math.exp(-delta / temperature)
        ):
            continue
        if other >= 0:
            swap(state, task, other)
        else:
            move(state, task, goal)
        total += delta
    return total
