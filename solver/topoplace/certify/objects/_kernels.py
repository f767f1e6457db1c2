"""The checker's own way through all mappings of a few objects."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def walk(hops, bytes_, loads, room, allowed, order, limit, most):
    """Return the steps it takes to see that no mapping costs less than a limit.

    -1 if one does, -2 after `most` steps. Objects are placed in `order`. A step is a place for an
    object from where the way goes on: what is placed costs, together with the cheapest place of
    every other object beside it, less than the limit.
    """
    num, places = loads.shape[0], room.shape[0]
    place = np.full(num, -1, dtype=np.int64)
    used = np.zeros(places, dtype=np.int64)
    steps, k = np.int64(0), 0
    while k >= 0:
        one = order[k]
        if place[one] >= 0:
            used[place[one]] -= loads[one]
        place[one] += 1
        if place[one] == places:
            place[one] = -1
            k -= 1
            continue
        used[place[one]] += loads[one]
        if not allowed[one, place[one]] or used[place[one]] > room[place[one]]:
            continue
        if least_cost(hops, bytes_, loads, room, allowed, order, place, used, k) < limit:
            steps += 1
            if k + 1 == num:
                return np.int64(-1)
            if steps > most:
                return np.int64(-2)
            k += 1
    return steps


@kernel()
def least_cost(hops, bytes_, loads, room, allowed, order, place, used, last):
    """Return what the objects up to `last` cost, and every other one beside them by itself.

    More than any cost if one of these has no place left.
    """
    total = np.int64(0)
    for i in range(order.shape[0]):
        one = order[i]
        least = np.int64(1) << 62
        for p in range(room.shape[0]):
            if i <= last:
                if p != place[one]:
                    continue
            elif not allowed[one, p] or used[p] + loads[one] > room[p]:
                continue
            cost = np.int64(0)
            for j in range(min(i, last + 1)):
                cost += bytes_[one, order[j]] * hops[p, place[order[j]]]
            least = min(least, cost)
        if least == np.int64(1) << 62:
            return least
        total += least
    return total
