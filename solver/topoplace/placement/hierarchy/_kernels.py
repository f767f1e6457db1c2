"""The dynamic program over domains: tables of least cost, and the choices behind them.

A table has four dimensions, one per part of a request; parts that are missing have one state.
"""

from typing import NamedTuple

import numpy as np

from topoplace.kernels.compiling import kernel
from topoplace.types import IntArray

INFINITE = 1 << 60
NO_LEVEL = -9


class Tree(NamedTuple):
    """The nodes of a layout, children before their parents, and their rows.

    `first_child` and `first_cut` say where a node's children and rounded rows begin; a cut has
    resource (-1 counts units), the amount in the domain, `k`, and the row. `host` is the first host
    of a leaf, `pool` the row of a pool; -1 if there is none. `first_row` has by resource the row of
    host 0, or -1; `rooms` how many units of a kind every host holds, shape ``(num_hosts,
    num_kinds)``.
    """

    level: IntArray
    first_child: IntArray
    children: IntArray
    host: IntArray
    pool: IntArray
    first_cut: IntArray
    cuts: IntArray
    first_row: IntArray
    rooms: IntArray


class Asked(NamedTuple):
    """A shape with its units: all arrays have four parts.

    `together` has units that stay together by level from -1 on; `spread` and `least` a level and a
    number of units; `joint` the level on which a group is in one domain. `limit` has a level, and
    how many of its domains may be used: there is only one part then, and the third number of a
    state counts these domains.
    """

    units: IntArray
    kinds: IntArray
    takes: IntArray
    together: IntArray
    spread: IntArray
    least: IntArray
    group: IntArray
    joint: IntArray
    limit: IntArray


class Paid(NamedTuple):
    """The prices to pay, and the branches.

    `covers` has rows of node, parts as bits, and whether they use it; `whole` what a node costs
    besides, that an exclusive request has to itself or that it shares with no other of a name, -1
    where it may not be. The level of an exclusive request is `exclusive`. `step_at` has by node and
    part where `steps` has what so many units there cost besides, -1 for nothing.
    """

    prices: IntArray
    left: IntArray
    of_domain: IntArray
    stranded: int
    covers: IntArray
    whole: IntArray
    exclusive: int
    step_at: IntArray
    steps: IntArray


@kernel()
def sizes(tree, asked, left):
    """Return the states of every node and of every sum of its first children, by part."""
    num, edges = len(tree.level), len(tree.children)
    dims, summed = np.ones((num, 4), np.int64), np.ones((edges, 4), np.int64)
    for v in range(num):
        level = tree.level[v]
        for p in range(4):
            if asked.units[p] == 0:
                continue
            if tree.host[v] >= 0:
                most = asked.units[p]
                if tree.rooms[tree.host[v], asked.kinds[p]] == 0:
                    most = 0
                elif tree.pool[v] >= 0:
                    most = min(most, left[tree.pool[v]])
                else:
                    for r in range(len(tree.first_row)):
                        if asked.takes[p, r] > 0:
                            row = tree.first_row[r] + tree.host[v]
                            most = min(most, left[row] // asked.takes[p, r])
            else:
                below = asked.together[p, level + 2]
                total, full = 0, asked.units[p] // below
                for e in range(tree.first_child[v], tree.first_child[v + 1]):
                    total = min(full, total + dims[tree.children[e], p] - 1)
                    summed[e, p] = total + 1
                most = total * below
            dims[v, p] = most // asked.together[p, level + 1] + 1
        if asked.limit[0] != NO_LEVEL and level <= asked.limit[0]:
            total = 1 if dims[v, 3] > 1 else 0
            if level < asked.limit[0]:
                total = 0
                for e in range(tree.first_child[v], tree.first_child[v + 1]):
                    total = min(asked.limit[1], total + dims[tree.children[e], 2] - 1)
                    summed[e, 2] = total + 1
            dims[v, 2] = total + 1
    return dims, summed


@kernel()
def fill(tree, asked, paid, dims, starts, tables, summed, choice_starts, choices):
    """Fill in the tables of all nodes, and the child's state behind every sum.

    Parameters
    ----------
    dims, summed
        Of `sizes`.
    starts, choice_starts
        Where the table of a node, and the choices of an edge, begin.
    """
    size = 1
    for e in range(len(summed)):
        size = max(size, summed[e, 0] * summed[e, 1] * summed[e, 2] * summed[e, 3])
    one, other = np.empty(size, np.int64), np.empty(size, np.int64)
    have, units = np.ones(4, np.int64), np.zeros(4, np.int64)
    step = np.ones(4, np.int64)
    for v in range(len(tree.level)):
        level = tree.level[v]
        is_leaf = tree.host[v] >= 0
        if not is_leaf:
            have[:] = 1
            one[0] = 0
            for e in range(tree.first_child[v], tree.first_child[v + 1]):
                child = tree.children[e]
                count = summed[e, 0] * summed[e, 1] * summed[e, 2] * summed[e, 3]
                other[:count] = INFINITE
                first = choice_starts[e]
                join(
                    one, have, tables[starts[child] :], dims[child], other, summed[e],
                    choices[first : first + count],
                )  # fmt: skip
                have[:] = summed[e]
                one, other = other, one
        for p in range(4):
            step[p] = asked.together[p, level + 1]
            if not is_leaf:
                step[p] //= asked.together[p, level + 2]
        counts = level == asked.limit[0]
        if counts:
            step[2] = 0
        at = starts[v]
        for i0 in range(dims[v, 0]):
            for i1 in range(dims[v, 1]):
                for i2 in range(dims[v, 2]):
                    for i3 in range(dims[v, 3]):
                        units[0] = i0 * asked.together[0, level + 1]
                        units[1] = i1 * asked.together[1, level + 1]
                        units[2] = i2 * asked.together[2, level + 1]
                        units[3] = i3 * asked.together[3, level + 1]
                        if asked.limit[0] != NO_LEVEL:
                            units[2] = 0
                        if counts and (i2 == 1) != (i3 > 0):
                            cost = INFINITE
                        elif is_leaf:
                            cost = of_leaf(tree, asked, paid, v, units)
                        else:
                            below = (i0 * step[0] * have[1] + i1 * step[1]) * have[2]
                            cost = one[(below + i2 * step[2]) * have[3] + i3 * step[3]]
                        if cost < INFINITE and level >= 0:
                            own = of_domain(tree, asked, paid, v, units)
                            cost = INFINITE if own >= INFINITE else cost + own
                        for p in range(4):
                            if cost < INFINITE and paid.step_at[v, p] >= 0:
                                cost += paid.steps[paid.step_at[v, p] + units[p]]
                        tables[at] = min(cost, INFINITE)
                        at += 1


@kernel()
def join(first, have, second, dims, found, size, choice):
    """Fill in the least cost of every sum of a state of each table, and the second's part of it."""
    number = -1
    for b0 in range(dims[0]):
        for b1 in range(dims[1]):
            for b2 in range(dims[2]):
                for b3 in range(dims[3]):
                    number += 1
                    own = second[number]
                    if own >= INFINITE:
                        continue
                    for a0 in range(min(have[0], size[0] - b0)):
                        for a1 in range(min(have[1], size[1] - b1)):
                            for a2 in range(min(have[2], size[2] - b2)):
                                source = ((a0 * have[1] + a1) * have[2] + a2) * have[3]
                                target = ((a0 + b0) * size[1] + a1 + b1) * size[2] + a2 + b2
                                target = target * size[3] + b3
                                for a3 in range(min(have[3], size[3] - b3)):
                                    total = first[source + a3] + own
                                    if total < found[target + a3]:
                                        found[target + a3] = total
                                        choice[target + a3] = number


@kernel()
def of_leaf(tree, asked, paid, v, units):
    """Return what units on a host or in a pool pay for its rows, and for stranded units."""
    host, pool = tree.host[v], tree.pool[v]
    is_alone = paid.exclusive != NO_LEVEL
    if pool >= 0:
        total = units[0] + units[1] + units[2] + units[3]
        if total > paid.left[pool]:
            return INFINITE
        price = 0 if is_alone else paid.prices[pool]
        return total * (price + paid.of_domain[tree.level[v]])
    cost = 0
    for r in range(len(tree.first_row)):
        if tree.first_row[r] >= 0:
            taken = 0
            for p in range(4):
                taken += units[p] * asked.takes[p, r]
            row = tree.first_row[r] + host
            if taken > paid.left[row]:
                return INFINITE
            if not is_alone:
                cost += taken * paid.prices[row]
    for p in range(4):
        if units[p] > 0:
            cost += paid.stranded * (tree.rooms[host, asked.kinds[p]] - units[p])
    return cost


@kernel()
def of_domain(tree, asked, paid, v, units):
    """Return a node's cost besides that of its contents, `INFINITE` if units break a rule."""
    level, cost = tree.level[v], 0
    is_pool = tree.pool[v] >= 0
    used = units[0] + units[1] + units[2] + units[3] > 0
    for c in range(len(paid.covers)):
        if paid.covers[c, 0] == v:
            some = False
            for p in range(4):
                some = some or (paid.covers[c, 1] >> p & 1 == 1 and units[p] > 0)
            if some != (paid.covers[c, 2] == 1):
                return INFINITE
    if not used:
        return 0
    for p in range(4):
        if asked.spread[p, 0] == level and units[p] > asked.spread[p, 1]:
            return INFINITE
        if asked.least[p, 0] == level and 0 < units[p] < asked.least[p, 1]:
            return INFINITE
        if asked.joint[p] == level:
            for q in range(p):
                if asked.group[q] == asked.group[p]:
                    whole = units[q] == asked.units[q]
                    if (units[p] == asked.units[p]) != whole:
                        return INFINITE
        is_first = units[p] > 0
        for q in range(p):
            is_first = is_first and not (units[q] > 0 and asked.group[q] == asked.group[p])
        if is_first and not is_pool:
            cost += paid.of_domain[level]
    if paid.whole[v] < 0:
        return INFINITE
    cost += paid.whole[v]
    if paid.exclusive == NO_LEVEL or level < paid.exclusive:
        for c in range(tree.first_cut[v], tree.first_cut[v + 1]):
            price = paid.prices[tree.cuts[c, 3]]
            if price > 0:
                taken = 0
                for p in range(4):
                    each = 1 if tree.cuts[c, 0] < 0 else asked.takes[p, tree.cuts[c, 0]]
                    taken += units[p] * each
                cost += price * max(0, (taken * (tree.cuts[c, 2] + 1) - 1) // tree.cuts[c, 1])
    return cost


@kernel()
def trace(tree, asked, dims, summed, choice_starts, choices, state):
    """Return where the units of a state of the whole machine are: part, node, units by row."""
    found = np.empty((len(tree.level) * 4, 3), np.int64)
    num = 0
    nodes = [len(tree.level) - 1]
    states = [(state[0], state[1], state[2], state[3])]
    left = np.zeros(4, np.int64)
    while len(nodes) > 0:
        v, own = nodes.pop(), states.pop()
        if own[0] + own[1] + own[2] + own[3] == 0:
            continue
        level = tree.level[v]
        if tree.host[v] >= 0:
            for p in range(4):
                if own[p] > 0 and asked.units[p] > 0:
                    found[num, 0], found[num, 1] = p, v
                    found[num, 2] = own[p] * asked.together[p, level + 1]
                    num += 1
            continue
        for p in range(4):
            left[p] = own[p] * (asked.together[p, level + 1] // asked.together[p, level + 2])
        if level == asked.limit[0]:
            left[2] = 0
        for e in range(tree.first_child[v + 1] - 1, tree.first_child[v] - 1, -1):
            at = ((left[0] * summed[e, 1] + left[1]) * summed[e, 2] + left[2]) * summed[e, 3]
            number = choices[choice_starts[e] + at + left[3]]
            if number == 0:
                continue
            child = tree.children[e]
            d1, d2, d3 = dims[child, 1], dims[child, 2], dims[child, 3]
            share = (
                number // (d1 * d2 * d3),
                number // (d2 * d3) % d1,
                number // d3 % d2,
                number % d3,
            )
            nodes.append(child)
            states.append(share)
            for p in range(4):
                left[p] -= share[p]
    return found[:num]
