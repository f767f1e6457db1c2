"""The compiled recursion over regions of the machine and the tasks in them."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.halving._multilevel import bisect
from topoplace.mapping.local_search._kernels import distance


@kernel()
def descend(machine, guest, coordinates, rings, room, routers, random):
    """Return the router of every task; all go to `routers`, which are reordered.

    Regions are halved level by level. A task's place is, until its region is a single router,
    the middle of the region.
    """
    num_tasks = guest.first.shape[0] - 1
    tasks = np.arange(num_tasks)
    place = np.full(num_tasks, middle(coordinates, rings, routers), dtype=np.int64)
    local = np.full(num_tasks, -1, dtype=np.int64)
    # every region but the first is half of another one
    regions = np.empty((2 * routers.shape[0], 4), dtype=np.int64)
    regions[0] = np.array([0, routers.shape[0], 0, num_tasks])
    head, tail = 0, 1
    while head < tail:
        low, high, begin, end = regions[head]
        head += 1
        if begin == end:
            continue
        if high - low == 1:
            place[tasks[begin:end]] = routers[low]
            continue
        cut = low + split(coordinates, rings, room, routers[low:high])
        near, far = routers[low:cut], routers[cut:high]
        homes = (middle(coordinates, rings, near), middle(coordinates, rings, far))
        side = halves(
            machine,
            guest,
            place,
            local,
            tasks[begin:end],
            homes,
            max(0, end - begin - room[far].sum()),
            min(end - begin, room[near].sum()),
            random,
        )
        here = tasks[begin:end].copy()
        ahead, behind = begin, end
        for k in range(here.shape[0]):
            place[here[k]] = homes[side[k]]
            if side[k] == 0:
                tasks[ahead] = here[k]
                ahead += 1
            else:
                behind -= 1
                tasks[behind] = here[k]
        regions[tail] = np.array([low, cut, begin, ahead])
        regions[tail + 1] = np.array([cut, high, ahead, end])
        tail += 2
    return place


@kernel()
def unwrapped(values, ring):
    """Return coordinates counted from the end of the widest gap of a ring."""
    if ring == 0:
        return values
    taken = np.zeros(ring, dtype=np.bool_)
    for value in values:
        taken[value] = True
    widest, begin, gap = 0, 0, 0
    for at in range(2 * ring):
        if taken[at % ring]:
            if gap > widest:
                widest, begin = gap, at % ring
            gap = 0
        else:
            gap += 1
    return (values - begin) % ring


@kernel()
def middle(coordinates, rings, routers):
    """Return the router of a region that is nearest to the mean of their coordinates."""
    away = np.zeros(routers.shape[0])
    for d in range(rings.shape[0]):
        values = unwrapped(coordinates[routers, d], rings[d])
        away += np.abs(values - values.mean())
    return routers[away.argmin()]


@kernel()
def split(coordinates, rings, room, routers):
    """Order a region along its longest side; return how many routers its first half has.

    The cut lies between two planes of routers if one does near the middle.
    """
    longest = np.int64(-1)
    along = np.zeros(routers.shape[0], dtype=np.int64)
    for d in range(rings.shape[0]):
        values = unwrapped(coordinates[routers, d], rings[d])
        extent = values.max() - values.min()
        if extent > longest:
            longest, along = extent, values
    order = np.argsort(along, kind="mergesort")
    routers[:] = routers[order]
    along = along[order]
    total = room[routers].sum()
    best, cut, filled = np.inf, 1, 0
    for k in range(1, routers.shape[0]):
        filled += room[routers[k - 1]]
        off = abs(filled / total - 0.5)
        if along[k] == along[k - 1]:
            off += 0.17  # a ragged cut only where planes would leave less than a third
        if off < best:
            best, cut = off, k
    return cut


@kernel()
def halves(machine, guest, place, local, tasks, homes, low, high, random):
    """Return the half (0 or 1) of every task of a region, `low` to `high` of them in the first."""
    num_local = tasks.shape[0]
    if low == num_local:
        return np.zeros(num_local, dtype=np.int8)
    if high == 0:
        return np.ones(num_local, dtype=np.int8)
    apart = distance(machine, homes[0], homes[1])
    most = 0
    for k in range(num_local):
        local[tasks[k]] = k
        most += guest.first[tasks[k] + 1] - guest.first[tasks[k]]
    first = np.zeros(num_local + 1, dtype=np.int64)
    other = np.empty(most, dtype=np.int64)
    weight = np.empty(most, dtype=np.int64)
    bias = np.zeros(num_local, dtype=np.int64)
    count = 0
    for k in range(num_local):
        for e in range(guest.first[tasks[k]], guest.first[tasks[k] + 1]):
            partner = guest.other[e]
            if local[partner] >= 0:
                other[count] = local[partner]
                weight[count] = guest.weight[e] * apart
                count += 1
            else:
                at = place[partner]
                step = distance(machine, homes[1], at) - distance(machine, homes[0], at)
                bias[k] += guest.weight[e] * step
        first[k + 1] = count
    for k in range(num_local):
        local[tasks[k]] = -1
    return bisect(first, other[:count], weight[:count], bias, low, high, random)
