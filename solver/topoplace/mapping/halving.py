"""Recursive bisection of a graph and of its places at once."""

from __future__ import annotations

import math
from heapq import heappop, heappush

import numpy as np

from topoplace import clock
from topoplace.kernels import kernel
from topoplace.machine import Network
from topoplace.mapping.graph import Rows
from topoplace.mapping.local_search import below, distance, machine_arrays, random_state
from topoplace.mapping.positions import compact_routers, positions
from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray

# ---- Compiled refinement of a bisection (Fiduccia and Mattheyses 1982), with sizes kept in a range

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.


SECONDS, SPARE = 3e-7, 4
"""Rough time of a bisection per task, message and level; it is a second construction if there is
this multiple of its time."""

PASSES = 6
PATIENCE, PATIENCE_SHARE = 60, 40
"""Moves without improvement that end a pass: the first, and vertices / the second."""


@kernel(inline="always")
def excess(filled, low, high):
    """Return by how much the size of side 0 is outside its range."""
    return max(0, low - filled, filled - high)


@kernel()
def cost_of(graph, side):
    """Return the weight between the sides plus the bias over side 1."""
    first, other, weight, bias, _ = graph
    total = np.int64(0)
    for v in range(side.shape[0]):
        if side[v] == 1:
            total += bias[v]
            for e in range(first[v], first[v + 1]):
                if side[other[e]] == 0:
                    total += weight[e]
    return total


@kernel()
def refine(graph, side, low, high):
    """Improve `side` in place by passes of moves, the best prefix of each pass being kept."""
    first, other, weight, _, size = graph
    num_vertices = side.shape[0]
    patience = PATIENCE + num_vertices // PATIENCE_SHARE
    gain = np.empty(num_vertices, dtype=np.int64)
    locked = np.empty(num_vertices, dtype=np.bool_)
    trail = np.empty(num_vertices, dtype=np.int64)
    for _ in range(PASSES):
        locked[:] = False
        filled = size[side == 0].sum()
        heaps = sorted_gains(graph, side, gain)
        begun = (excess(filled, low, high), np.int64(0))
        best, kept, moved, total = begun, 0, 0, np.int64(0)
        while moved - kept < patience:
            for heap in heaps:
                while len(heap) > 0 and (locked[heap[0][1]] or gain[heap[0][1]] != -heap[0][0]):
                    heappop(heap)
            v = next_vertex(heaps, size, filled, low, high)
            if v < 0:
                break
            locked[v] = True
            trail[moved] = v
            moved += 1
            filled += size[v] if side[v] == 1 else -size[v]
            total -= gain[v]
            side[v] = 1 - side[v]
            for e in range(first[v], first[v + 1]):
                u = other[e]
                if not locked[u]:
                    gain[u] += 2 * weight[e] if side[u] != side[v] else -2 * weight[e]
                    heappush(heaps[side[u]], (-gain[u], np.int64(u)))
            state = (excess(filled, low, high), total)
            if state < best:
                best, kept = state, moved
        for k in range(kept, moved):
            side[trail[k]] = 1 - side[trail[k]]
        if best == begun:
            break


@kernel()
def sorted_gains(graph, side, gain):
    """Fill in the gain of moving each vertex; return the heaps of both sides, most gain first."""
    first, other, weight, bias, _ = graph
    heaps = ([(np.int64(0), np.int64(0))], [(np.int64(0), np.int64(0))])
    heaps[0].pop()
    heaps[1].pop()
    for v in range(side.shape[0]):
        gain[v] = bias[v] if side[v] == 1 else -bias[v]
        for e in range(first[v], first[v + 1]):
            gain[v] += weight[e] if side[other[e]] != side[v] else -weight[e]
        heappush(heaps[side[v]], (-gain[v], np.int64(v)))
    return heaps


@kernel(inline="always")
def next_vertex(heaps, size, filled, low, high):
    """Return the vertex of largest gain, on the side that is too large; -1 if none may move."""
    from_first = len(heaps[0]) > 0 and filled > low
    from_second = len(heaps[1]) > 0 and filled < high
    if not from_first and not from_second and low == high == filled:
        # in balance: a move away from it, which the next one corrects
        from_first, from_second = len(heaps[0]) > 0, len(heaps[1]) > 0
    if from_first and from_second:
        return heaps[0][0][1] if heaps[0][0] <= heaps[1][0] else heaps[1][0][1]
    if from_first:
        return heaps[0][0][1]
    if from_second:
        return heaps[1][0][1]
    return -1


# ---- The compiled recursion over regions of the machine and the tasks in them --------------------


@kernel()
def descend(machine, guest, size, coordinates, rings, room, routers, random, state, work, plain):
    """Halve regions, level by level, until a number of tasks and messages were handled.

    It continues from `state`: the tasks in the order of regions, the place of each (until its
    region is a single router, the middle of the region; at first 0), marks of tasks, all -1, the
    regions, and the first one to halve and the end of their list. `routers` are reordered.

    Tasks take their `size` of the capacity of routers. If `plain`, they are halved in their order,
    no matter what they exchange.
    """
    tasks, place, local, regions, ends = state
    if ends[0] == 0:
        place += middle(coordinates, rings, routers)
    while work > 0 and ends[0] < ends[1]:
        tail = ends[1]
        low, high, begin, end = regions[ends[0]]
        ends[0] += 1
        work -= end - begin
        if begin == end:
            continue
        if high - low == 1:
            place[tasks[begin:end]] = routers[low]
            continue
        cut = low + split(coordinates, rings, room, routers[low:high])
        near, far = routers[low:cut], routers[cut:high]
        homes = (middle(coordinates, rings, near), middle(coordinates, rings, far))
        total = size[tasks[begin:end]].sum()
        least, most = max(0, total - room[far].sum()), min(total, room[near].sum())
        if plain:
            aim = int(total * (room[near].sum() / room[routers[low:high]].sum()))
            side = in_order(size, tasks[begin:end], max(least, min(most, aim)))
        else:
            own = tasks[begin:end]
            side = halves(machine, guest, size, place, local, own, homes, least, most, random)
            for task in own:
                work -= guest.first[task + 1] - guest.first[task]
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
        ends[1] += 2


@kernel()
def in_order(size, tasks, most):
    """Return the half of every task of a region: the first ones go to half 0, up to a size."""
    side = np.ones(tasks.shape[0], dtype=np.int8)
    filled = 0
    for k in range(tasks.shape[0]):
        if filled + size[tasks[k]] <= most:
            filled += size[tasks[k]]
            side[k] = 0
    return side


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
            off += 0.17  # an uneven cut only where planes would leave less than a third
        if off < best:
            best, cut = off, k
    return cut


@kernel()
def halves(machine, guest, size, place, local, tasks, homes, low, high, random):
    """Return the half of every task of a region: 0, of a size of `low` to `high`, or 1."""
    num_local = tasks.shape[0]
    if low == size[tasks].sum():
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
    return bisect(first, other[:count], weight[:count], bias, size[tasks], low, high, random)


# ---- Compiled multilevel bisection (Hendrickson and Leland 1995; Karypis and Kumar 1998) ---------


COARSE = 48
TRIALS = 6


@kernel()
def bisect(first, other, weight, bias, size, low, high, random):
    """Return a side, 0 or 1, for every vertex, a size of `low` to `high` on side 0.

    Minimised is the weight between the sides plus `bias` over side 1 (refined, not optimal).
    """
    graphs = [(first, other, weight, bias, size)]
    maps = [size]  # maps[level] leads from the vertices of a level to those of the next
    maps.pop()
    while graphs[-1][4].shape[0] > COARSE:
        graph = graphs[-1]
        heaviest = max(2 * size.max(), 3 * size.sum() // (2 * COARSE))
        coarse, count = matching(graph, heaviest, random)
        if count > 0.95 * graph[4].shape[0]:
            break
        maps.append(coarse)
        graphs.append(contract(graph, coarse, count))
    side = initial(graphs[-1], low, high, random)
    for level in range(len(maps) - 1, -1, -1):
        side = side[maps[level]]
        refine(graphs[level], side, low, high)
    return side


@kernel()
def initial(graph, low, high, random):
    """Return the best of some sides grown from one vertex each."""
    num_vertices = graph[4].shape[0]
    best = np.ones(num_vertices, dtype=np.int8)
    best_key = (np.int64(-1), np.int64(0))
    for _ in range(TRIALS):
        side = np.ones(num_vertices, dtype=np.int8)
        side[below(random, num_vertices)] = 0
        refine(graph, side, low, high)
        key = (excess(graph[4][side == 0].sum(), low, high), cost_of(graph, side))
        if best_key[0] < 0 or key < best_key:
            best_key, best = key, side
    return best


@kernel()
def matching(graph, heaviest, random):
    """Match vertices with heavy partners; return the coarse vertex of each and their number.

    Remaining vertices without a partner to match are matched with one another.
    """
    first, other, weight, _, size = graph
    num_vertices = size.shape[0]
    coarse = np.full(num_vertices, -1, dtype=np.int64)
    order = np.arange(num_vertices)
    for k in range(num_vertices - 1, 0, -1):
        swapped = below(random, k + 1)
        order[k], order[swapped] = order[swapped], order[k]
    count, lonely = 0, -1
    for v in order:
        if coarse[v] >= 0:
            continue
        best, partner = -1.0, -1
        for e in range(first[v], first[v + 1]):
            u = other[e]
            if coarse[u] < 0 and u != v and size[u] + size[v] <= heaviest:
                value = weight[e] / size[u]
                if value > best:
                    best, partner = value, u
        if partner < 0 and first[v] == first[v + 1]:
            if lonely >= 0 and size[lonely] + size[v] <= heaviest:
                coarse[v] = coarse[lonely]
                lonely = -1
                continue
            lonely = v
        coarse[v] = count
        if partner >= 0:
            coarse[partner] = count
        count += 1
    return coarse, count


@kernel()
def contract(graph, coarse, count):
    """Return the graph of the coarse vertices."""
    first, other, weight, bias, size = graph
    num_vertices = size.shape[0]
    new_size = np.zeros(count, dtype=np.int64)
    new_bias = np.zeros(count, dtype=np.int64)
    begins = np.zeros(count + 1, dtype=np.int64)
    for v in range(num_vertices):
        new_size[coarse[v]] += size[v]
        new_bias[coarse[v]] += bias[v]
        begins[coarse[v] + 1] += 1
    begins = begins.cumsum()
    members = np.empty(num_vertices, dtype=np.int64)
    ends = begins[:-1].copy()
    for v in range(num_vertices):
        members[ends[coarse[v]]] = v
        ends[coarse[v]] += 1
    new_first = np.zeros(count + 1, dtype=np.int64)
    new_other = np.empty(other.shape[0], dtype=np.int64)
    new_weight = np.empty(other.shape[0], dtype=np.int64)
    position = np.full(count, -1, dtype=np.int64)
    filled = 0
    for c in range(count):
        for k in range(begins[c], begins[c + 1]):
            v = members[k]
            for e in range(first[v], first[v + 1]):
                u = coarse[other[e]]
                if u == c:
                    continue
                if position[u] < new_first[c]:
                    position[u] = filled
                    new_other[filled] = u
                    new_weight[filled] = 0
                    filled += 1
                new_weight[position[u]] += weight[e]
        new_first[c + 1] = filled
    return new_first, new_other[:filled].copy(), new_weight[:filled].copy(), new_bias, new_size


# ---- Dual recursive bipartitioning: machine and graph are halved together ------------------------


HALVING_WORK = 1 << 19
"""Tasks and messages between two looks at the clock."""


def halve(
    network: Network,
    guest: Rows,
    size: IntArray,
    room: IntArray,
    routers: IntArray,
    seed: int,
    stop: float,
) -> IntArray:
    """Return the router of every task, with its size, by recursive bisection.

    Parameters
    ----------
    guest
        The bytes between tasks.
    size, room
        The size of every task, which it takes of its router's capacity, and the capacity of every
        router.
    routers
        Those to use.
    stop
        The time of the clock from which on the rest is halved in the order of tasks.
    """
    coordinates, rings = positions(network)
    machine = machine_arrays(network, room)
    random, routers = random_state(seed), routers.copy()
    num_tasks = len(size)
    # every region but the first is half of another one
    regions = np.empty((2 * len(routers), 4), dtype=np.int64)
    regions[0] = 0, len(routers), 0, num_tasks
    ends = np.array([0, 1])
    place, local = np.zeros(num_tasks, dtype=np.int64), np.full(num_tasks, -1, dtype=np.int64)
    state = np.arange(num_tasks), place, local, regions, ends
    while ends[0] < ends[1]:
        how = HALVING_WORK, clock.now() >= stop
        descend(machine, guest, size, coordinates, rings, room, routers, random, state, *how)
    return place


def halve_mapping(problem: MappingProblem, *, seed: int = 0, stop: float = math.inf) -> IntArray:
    """Return the router of every task by recursive bisection of machine and graph.

    The routers (a compact set, if there are more than needed) are cut across their longest side,
    and the tasks by multilevel Fiduccia-Mattheyses refinement, such that the bytes cut times the
    distance of the halves, and the bytes to tasks elsewhere times the distances to them, are least.
    The scheme is Pellegrini 1994, "Static mapping by dual recursive bipartitioning".

    Distances must be symmetric. When the clock shows `stop`, the rest is halved in the order of
    tasks.
    """
    size = np.ones(problem.num_tasks, dtype=np.int64)
    room, routers = np.minimum(problem.capacity, problem.num_tasks), compact_routers(problem)[0]
    return halve(problem.machine, problem.graph.exchanged, size, room, np.sort(routers), seed, stop)
