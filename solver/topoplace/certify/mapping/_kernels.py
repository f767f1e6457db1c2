"""What assignments cost at least, compiled (docs/proofs/graphs.md, "Pairs" and "Trees")."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

FAR = np.int64(1) << 62
"""More than any sum of costs."""


@kernel()
def least_assignment(costs, num_rows, num_columns, prices):
    """Return the least cost of giving every row a column of its own, proven by prices of columns.

    `prices` are those of the columns, never positive, and 0 for columns that the best assignment
    leaves free. The bound holds for whatever prices of that kind: every row pays at least its
    cheapest column less its price, and all columns together return their prices.
    """
    owner = np.full(num_columns, -1, dtype=np.int64)
    away = np.empty(num_columns, dtype=np.int64)
    before = np.empty(num_columns, dtype=np.int64)
    done = np.empty(num_columns, dtype=np.bool_)
    dues = np.zeros(num_rows, dtype=np.int64)
    prices[:num_columns] = 0
    for new in range(num_rows):
        away[:] = FAR
        before[:] = -1
        done[:] = False
        row, paid, last = new, np.int64(0), -1
        while row >= 0:
            nearest, least = -1, FAR
            for c in range(num_columns):
                if done[c]:
                    continue
                way = paid + costs[row, c] - dues[row] - prices[c]
                if way < away[c]:
                    away[c], before[c] = way, last
                if away[c] < least or (away[c] == least and owner[c] < 0):
                    nearest, least = c, away[c]
            paid, last = least, nearest
            done[last] = True
            row = owner[last]
        dues[new] += paid
        for c in range(num_columns):
            if done[c] and owner[c] >= 0:
                dues[owner[c]] += paid - away[c]
                prices[c] -= paid - away[c]
        while before[last] >= 0:
            owner[last] = owner[before[last]]
            last = before[last]
        owner[last] = new
    total = np.int64(0)
    for c in range(num_columns):
        total += prices[c]
    for r in range(num_rows):
        least = FAR
        for c in range(num_columns):
            least = min(least, costs[r, c] - prices[c])
        total += least
    return total


@kernel()
def least_of_pairs(costs):
    """Return the least sum of ``costs[i, p, j, q]`` over tasks i, j and their places p, q.

    At least: for every i and p the other tasks have the places that are cheapest for these two.
    """
    num = costs.shape[0]
    of_others = np.empty((num, num), dtype=np.int64)
    of_task = np.empty((num, num), dtype=np.int64)
    prices = np.empty(num, dtype=np.int64)
    for i in range(num):
        for p in range(num):
            row = 0
            for j in range(num):
                if j == i:
                    continue
                column = 0
                for q in range(num):
                    if q != p:
                        of_others[row, column] = costs[i, p, j, q]
                        column += 1
                row += 1
            least = least_assignment(of_others, num - 1, num - 1, prices)
            of_task[i, p] = costs[i, p, i, p] + least
    return least_assignment(of_task, num, num, prices)


# ---- Trees of partial mappings -------------------------------------------------------------------

WRONG, SHORT, LONG = -1, -2, -3
"""Why a tree is refused: a branch that is none, an end that comes early, nodes that are left."""


@kernel()
def least_of_leaves(weights, distances, rooms, guests, hosts, nodes):
    """Return the least bound of all leaves on twice the cost, or why the tree is refused.

    Tasks i on r and j on s cost the sum over k of ``weights[k, i, j] * distances[k, r, s]``.
    """
    num_tasks, num_routers = weights.shape[1], distances.shape[1]
    place = np.full(num_tasks, -1, dtype=np.int64)
    room = rooms.copy()
    moved = np.zeros((num_tasks, 2), dtype=np.int64)  # task and router, level by level
    code = np.zeros(num_tasks + 1, dtype=np.int64)
    following = np.zeros(num_tasks + 1, dtype=np.int64)
    firsts = np.zeros((num_tasks + 1, max(num_tasks, num_routers)), dtype=np.int64)
    fixing = np.ones(max(len(guests), len(hosts)), dtype=np.bool_)
    least, at, depth, is_new = FAR, 0, 0, True
    while depth >= 0:
        if is_new:
            if at == len(nodes):
                return np.int64(SHORT)
            code[depth] = nodes[at]
            at += 1
            if code[depth] == 0:
                least = min(least, leaf_bound(weights, distances, place, room))
            elif not _is_branch(code[depth], place, room):
                return np.int64(WRONG)
            else:
                following[depth] = 0
                listed = hosts if code[depth] > 0 else guests
                _find_fixing(listed, place, code[depth] > 0, fixing)
                _find_firsts(listed, fixing, firsts[depth])
        is_new = False
        if code[depth] != 0:
            by_task = code[depth] > 0
            line = abs(code[depth]) - 1
            other = _next(by_task, following[depth], place, room, firsts[depth])
            if other >= 0:
                following[depth] = other + 1
                i, r = (line, other) if by_task else (other, line)
                moved[depth, 0], moved[depth, 1] = i, r
                place[i] = r
                room[r] -= 1
                depth += 1
                is_new = True
                continue
        depth -= 1
        if depth >= 0:
            place[moved[depth, 0]] = -1
            room[moved[depth, 1]] += 1
    return least if at == len(nodes) else np.int64(LONG)


@kernel()
def _is_branch(code, place, room):
    """Tell whether a task without router, or a router that must get a task, is named."""
    if code > 0:
        return code <= len(place) and place[code - 1] < 0
    return -code <= len(room) and room[-code - 1] > 0 and room.sum() == (place < 0).sum()


@kernel()
def _next(by_task, start, place, room, firsts):
    """Return the next router with room or task without router that is the first of its orbit."""
    for other in range(start, len(room) if by_task else len(place)):
        is_free = room[other] > 0 if by_task else place[other] < 0
        if is_free and firsts[other] == other:
            return other
    return -1


@kernel()
def _find_fixing(listed, place, of_routers, fixing):
    """Mark the permutations that leave in place all routers that are used, or all placed tasks."""
    for s in range(len(listed)):
        fixing[s] = True
        for i in range(len(place)):
            if place[i] >= 0:
                point = place[i] if of_routers else i
                if listed[s, point] != point:
                    fixing[s] = False


@kernel()
def _find_firsts(listed, fixing, firsts):
    """Set for every point the least one of the orbit that the marked permutations generate."""
    num = listed.shape[1]
    for p in range(num):
        firsts[p] = p
    for s in range(len(listed)):
        if fixing[s]:
            for p in range(num):
                one, other = p, listed[s, p]
                while firsts[one] != one:
                    one = firsts[one]
                while firsts[other] != other:
                    other = firsts[other]
                firsts[max(one, other)] = min(one, other)
    for p in range(num):
        firsts[p] = firsts[firsts[p]]


@kernel()
def leaf_bound(weights, distances, place, room):
    """Return what Gilmore and Lawler prove of twice the cost of mappings that go on from here."""
    num_kinds, num_tasks, num_routers = weights.shape[0], weights.shape[1], distances.shape[1]
    free = np.flatnonzero(place < 0)
    num = len(free)
    twice = np.int64(0)
    costs = np.zeros((num, num_routers), dtype=np.int64)
    for k in range(num_kinds):
        for i in range(num_tasks):
            if place[i] >= 0:
                for j in range(num_tasks):
                    if place[j] >= 0:
                        twice += weights[k, i, j] * distances[k, place[i], place[j]]
        for row in range(num):
            for j in range(num_tasks):
                if place[j] >= 0 and weights[k, free[row], j] > 0:
                    for r in range(num_routers):
                        way = distances[k, r, place[j]]
                        costs[row, r] += 2 * weights[k, free[row], j] * way
        sizes = np.empty((num, num), dtype=np.int64)
        for row in range(num):
            for column in range(num):
                sizes[row, column] = weights[k, free[row], free[column]]
            sizes[row] = -np.sort(-sizes[row])  # its own place in the list is a 0
        for r in range(num_routers):
            if room[r] > 0:
                ways = _nearest(distances[k, r], room, r, num)
                for row in range(num):
                    for column in range(len(ways)):
                        costs[row, r] += sizes[row, column] * ways[column]
    columns = np.empty((num, num * num_routers), dtype=np.int64)
    num_columns = 0
    for r in range(num_routers):
        for _ in range(min(room[r], num)):
            columns[:, num_columns] = costs[:, r]
            num_columns += 1
    prices = np.empty(num_columns, dtype=np.int64)
    return twice + least_assignment(columns, num, num_columns, prices)


@kernel()
def _nearest(ways, room, own, num):
    """Return the distances to the nearest other places, one fewer than there are tasks."""
    found = np.zeros(max(0, num - 1), dtype=np.int64)
    count = room[own] - 1
    for s in np.argsort(ways, kind="mergesort"):
        if s != own:
            for _ in range(room[s]):
                if count < len(found):
                    found[count] = ways[s]
                    count += 1
    return found
