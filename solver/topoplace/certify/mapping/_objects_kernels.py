"""The checker's own way through all mappings of a few objects."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def branch(torus, origin, goals, used, tails, heads):
    """Return how many links there are on the routes from a router to others, each counted once.

    `torus` has sizes, strides and wraps by dimension. Goals below 0 are left out. `used` has a mark
    for every link and way, the last one the mark in use; `tails` and `heads` get the links' ends.
    """
    sizes, strides, wraps = torus
    used[-1] += 1
    links = 0
    for goal in goals:
        at = origin
        for d in range(sizes.shape[0] if goal >= 0 else 0):
            here, there = at // strides[d] % sizes[d], goal // strides[d] % sizes[d]
            ahead = there - here
            if wraps[d]:
                ahead %= sizes[d]
                if 2 * ahead > sizes[d]:
                    ahead -= sizes[d]
            step = 1 if ahead > 0 else -1
            for _ in range(abs(ahead)):
                new = (here + step) % sizes[d]
                to = at + (new - here) * strides[d]
                link = 2 * (d * (used.shape[0] // (2 * sizes.shape[0])) + at) + (step > 0)
                if used[link] != used[-1]:
                    used[link] = used[-1]
                    tails[links], heads[links] = at, to
                    links += 1
                at, here = to, new
    return links


@kernel()
def copies(hops, places):
    """Return the hops from the first of some places to all others, each place once; -1 is none."""
    total = np.int64(0)
    for k in range(1 if places[0] >= 0 else places.shape[0], places.shape[0]):
        if places[k] >= 0 and not (places[1:k] == places[k]).any():
            total += hops[places[0], places[k]]
    return total


@kernel()
def tree_bytes(hops, trees, place, routers):
    """Return what trees cost, as far as their objects have a place."""
    torus, begins, members, sizes, by_node, used, tails, heads = trees
    total = np.int64(0)
    for t in range(sizes.shape[0]):
        if by_node[t]:
            total += sizes[t] * copies(hops, place[members[begins[t] : begins[t + 1]]])
            continue
        at = np.full(begins[t + 1] - begins[t], -1, dtype=np.int64)
        for k in range(at.shape[0]):
            p = place[members[begins[t] + k]]
            at[k] = routers[p] if p >= 0 else -1
        if at[0] >= 0:
            total += sizes[t] * branch(torus, at[0], at[1:], used, tails, heads)
    return total


@kernel()
def walk(hops, bytes_, trees, routers, loads, room, allowed, moves, order, limit, most):
    """Return the steps it takes to see that no mapping costs less than a limit.

    -1 if one does, -2 after `most` steps. Objects are placed in `order`. A step is a place for an
    object from where the way goes on: what is placed costs, together with the cheapest place of
    every other object beside it, less than the limit. `trees` are a torus, where the objects of
    every tree begin, all of these, roots first, the bytes, and what `branch` needs beside;
    `routers` are those of places; `moves` has the places that objects may leave, or -1, and how
    many may.
    """
    stay, may = moves
    num, places = loads.shape[0], room.shape[0]
    place = np.full(num, -1, dtype=np.int64)
    used = np.zeros(places, dtype=np.int64)
    steps, k = np.int64(0), 0
    while k >= 0:
        one = order[k]
        if place[one] >= 0:
            used[place[one]] -= loads[one]
            may += place[one] != stay[one]
        place[one] += 1
        if place[one] == places:
            place[one] = -1
            k -= 1
            continue
        used[place[one]] += loads[one]
        may -= place[one] != stay[one]
        if may < 0 or not allowed[one, place[one]] or used[place[one]] > room[place[one]]:
            continue
        cost = least_cost(hops, bytes_, loads, room, allowed, (stay, may), order, place, used, k)
        if cost < limit and cost + tree_bytes(hops, trees, place, routers) < limit:
            steps += 1
            if k + 1 == num:
                return np.int64(-1)
            if steps > most:
                return np.int64(-2)
            k += 1
    return steps


@kernel()
def least_cost(hops, bytes_, loads, room, allowed, moves, order, place, used, last):
    """Return what the objects up to `last` cost, and every other one beside them by itself.

    More than any cost if one of these has no place left. Of those others only so many may leave
    their places: who has none left there, and then who gains most.
    """
    stay, may = moves
    total, gains = np.int64(0), np.zeros(order.shape[0], dtype=np.int64)
    for i in range(order.shape[0]):
        one = order[i]
        least, here = np.int64(1) << 62, np.int64(-1)
        for p in range(room.shape[0]):
            if i <= last:
                if p != place[one]:
                    continue
            elif not allowed[one, p] or used[p] + loads[one] > room[p]:
                continue
            cost = np.int64(0)
            for j in range(min(i, last + 1)):
                cost += bytes_[one, order[j]] * hops[p, place[order[j]]]
            if i > last and p == stay[one]:
                here = cost
            least = min(least, cost)
        if least == np.int64(1) << 62:
            return least
        if i > last:
            may -= here < 0
            gains[i] = here - least if here >= 0 else 0
        total += least + gains[i]
    if may < 0:
        return np.int64(1) << 62
    for _ in range(min(may, gains.shape[0])):
        total -= gains.max()
        gains[gains.argmax()] = 0
    return total
