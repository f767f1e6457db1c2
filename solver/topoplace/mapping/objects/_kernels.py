"""Compiled moves of objects between cells, within their capacity."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import math

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.local_search import below, chance, distance, draw

WALK_TRIES = 4
PICKS, DEPTH = 3, 12
"""How many of the first objects of a cell are tried to free space."""


@kernel()
def settle(machine, first, cell_router, loads, wanted, order, cell, left):
    """Fill in a cell for objects: on the wanted router, else the nearest with space; or -1.

    Objects come in `order`; those that have a cell stay there. It is the emptiest cell of the
    router; among equally near routers, the one with the most space `left`, which is kept up to
    date.
    """
    for one in order:
        if cell[one] >= 0:
            continue
        best, near = -1, np.int64(1) << 60
        for c in range(first[wanted[one]], first[wanted[one] + 1]):
            if left[c] >= loads[one] and (best < 0 or left[c] > left[best]):
                best = c
        if best < 0:
            for c in range(left.shape[0]):
                if left[c] >= loads[one]:
                    away = distance(machine, wanted[one], cell_router[c])
                    if best < 0 or away < near or (away == near and left[c] > left[best]):
                        best, near = c, away
        cell[one] = best
        if best >= 0:
            left[best] -= loads[one]


@kernel()
def members(cell, num_cells):
    """Return the heads of lists of the objects of every cell, and links to the next and last."""
    head = np.full(num_cells, -1, dtype=np.int64)
    after = np.full(cell.shape[0], -1, dtype=np.int64)
    before = np.full(cell.shape[0], -1, dtype=np.int64)
    for one in range(cell.shape[0]):
        insert(head, after, before, one, cell[one])
    return head, after, before


@kernel(inline="always")
def insert(head, after, before, one, at):
    """Put an object at the head of a list."""
    old = head[at]
    after[one], before[one], head[at] = old, -1, one
    if old >= 0:
        before[old] = one


@kernel(inline="always")
def remove(head, after, before, one, at):
    """Take an object out of its list."""
    if before[one] >= 0:
        after[before[one]] = after[one]
    else:
        head[at] = after[one]
    if after[one] >= 0:
        before[after[one]] = before[one]


@kernel(inline="always")
def added(machine, guest, router, one, goal, without):
    """Return the change by moving an object to a router, without its messages with `without`."""
    here, total = router[one], np.int64(0)
    if here == goal:
        return total
    for e in range(guest.first[one], guest.first[one + 1]):
        other = guest.other[e]
        if other != without:
            at = router[other]
            step = distance(machine, goal, at) - distance(machine, here, at)
            total += guest.weight[e] * step
    return total


@kernel()
def before(trees, origin, at):
    """Return the router before another one on the route from an origin."""
    for d in range(trees.shape.shape[0] - 1, -1, -1):
        size, stride = trees.shape[d], trees.strides[d]
        begin, here = origin // stride % size, at // stride % size
        if begin != here:
            up = 2 * ((here - begin) % size) <= size if trees.wraps[d] else here > begin
            back = (here - 1) % size if up else (here + 1) % size
            return at + (back - here) * stride
    return at


@kernel()
def links_of(trees, tree, router):
    """Return the links of a tree, over objects that have a router: the union of the routes.

    From every member back to the root, up to where another member's route has been.
    """
    origin = np.int64(router[trees.root[tree]])
    if origin < 0:
        return np.int64(0)
    trees.at[-1] += 1
    mark, links = trees.at[-1], np.int64(0)
    trees.at[origin] = mark
    for e in range(trees.first[tree], trees.first[tree + 1]):
        at = np.int64(router[trees.member[e]])
        while at >= 0 and trees.at[at] != mark:
            trees.at[at] = mark
            links += 1
            at = before(trees, origin, at)
    return links


@kernel()
def tree_bytes(trees, router, one, other):
    """Return the hop-bytes of the trees that have one object or (if not -1) another."""
    trees.seen[-1] += 1
    mark, total = trees.seen[-1], np.int64(0)
    for k in (one, other):
        if k >= 0:
            for e in range(trees.of_first[k], trees.of_first[k + 1]):
                tree = trees.of[e]
                if trees.seen[tree] != mark:
                    trees.seen[tree] = mark
                    total += trees.bytes[tree] * links_of(trees, tree, router)
    return total


@kernel()
def grown(trees, router, one, goal, other):
    """Return what moving an object adds to its trees; another one (or -1) moves in exchange."""
    here = router[one]
    if trees.of.shape[0] == 0 or here == goal:
        return np.int64(0)
    total = -tree_bytes(trees, router, one, other)
    router[one] = goal
    if other >= 0:
        router[other] = here
    total += tree_bytes(trees, router, one, other)
    router[one] = here
    if other >= 0:
        router[other] = goal
    return total


@kernel(inline="always")
def aim(machine, guest, router, first, one, random, wander):
    """Return a router with cells: a partner's or one close to it, or (rarely) any; -1 if none."""
    count = guest.first[one + 1] - guest.first[one]
    if count == 0 or chance(random) < wander:
        return np.int64(machine.usable[below(random, machine.usable.shape[0])])
    goal = router[guest.other[guest.first[one] + below(random, count)]]
    if draw(random) & np.uint64(1):
        return goal
    for _ in range(WALK_TRIES):
        goal = np.int64(machine.near[goal, below(random, machine.num_near[goal])])
        if first[goal + 1] > first[goal]:
            return goal
    return np.int64(-1)


@kernel(inline="always")
def who_leaves(head, after, goal, home, loads, least, most, random):
    """Return an object of a cell, not fixed, whose load is in a range; -1 if a few have none."""
    for _ in range(PICKS):
        other = head[goal]
        for _ in range(below(random, DEPTH)):
            if other >= 0 and after[other] >= 0:
                other = after[other]
        if other >= 0 and home[other] < 0 and least <= loads[other] <= most:
            return other
    return -1


@kernel()
def anneal_objects(
    machine,
    guest,
    guide,
    trees,
    first,
    cell_router,
    room,
    loads,
    home,
    movable,
    state,
    random,
    work,
    wander,
):
    """Try random moves and swaps of objects, accepted by Metropolis's rule; return the change.

    `guest` are the bytes of messages, `guide` those of trees as well, for moves to try. `state` are
    cell, router and the load of every cell, and the lists of `members`; `work` the
    temperature (0 accepts no worsening) and the number of moves to try.
    """
    cell, router, filled, head, after, before = state
    temperature, num_moves = work
    total = np.int64(0)
    for _ in range(num_moves):
        one = movable[below(random, movable.shape[0])]
        target = aim(machine, guide, router, first, one, random, wander)
        if target < 0 or first[target + 1] == first[target]:
            continue
        here = cell[one]
        goal = first[target] + below(random, first[target + 1] - first[target])
        if goal == here:
            continue
        short = loads[one] - (room[goal] - filled[goal])
        other = -1
        if short > 0 or draw(random) & np.uint64(3) == np.uint64(0):
            spare = room[here] - filled[here] + loads[one]
            other = who_leaves(head, after, goal, home, loads, max(0, short), spare, random)
            if other < 0 and short > 0:
                continue
        delta = added(machine, guest, router, one, cell_router[goal], other)
        if other >= 0:
            delta += added(machine, guest, router, other, cell_router[here], one)
        delta += grown(trees, router, one, cell_router[goal], other)
        if delta > 0 and (
            temperature <= 0.0
            or delta > 40.0 * temperature
            or chance(random) >= math.exp(-delta / temperature)
        ):
            continue
        shift(cell, router, filled, head, after, before, loads, one, goal, cell_router)
        if other >= 0:
            shift(cell, router, filled, head, after, before, loads, other, here, cell_router)
        total += delta
    return total


@kernel(inline="always")
def shift(cell, router, filled, head, after, before, loads, one, goal, cell_router):
    """Move an object to a cell."""
    remove(head, after, before, one, cell[one])
    insert(head, after, before, one, goal)
    filled[cell[one]] -= loads[one]
    filled[goal] += loads[one]
    cell[one], router[one] = goal, cell_router[goal]


@kernel()
def move_off_fullest(machine, guest, trees, cell_router, width, loads, home, state, at, tries):
    """Move an object off the fullest cell if that costs no hop-bytes; return whether to go on.

    After a number of tries it stops without a move, and can go on from `at`, an object and a cell;
    these are -1 and 0 at the first try and after a move.
    """
    cell, router, filled, head, after, before = state
    full = 0
    for c in range(filled.shape[0]):
        if filled[c] * width[full] > filled[full] * width[c]:
            full = c
    one, begin = at
    at[0], at[1] = -1, 0
    if one < 0:
        one = head[full]
    while one >= 0:
        if home[one] < 0 and loads[one] > 0:
            for c in range(begin, filled.shape[0]):
                new = filled[c] + loads[one]
                if new * width[full] < filled[full] * width[c]:
                    if tries == 0:
                        at[0], at[1] = one, c
                        return True
                    tries -= 1
                    if (
                        added(machine, guest, router, one, cell_router[c], -1)
                        + grown(trees, router, one, cell_router[c], -1)
                        <= 0
                    ):
                        shift(cell, router, filled, head, after, before, loads, one, c, cell_router)
                        return True
        one, begin = after[one], 0
    return False


# ---- All mappings of few objects, one object after the other -------------------------------------


@kernel()
def enumerate_all(
    hops, bytes_, trees, routers, loads, room, goals, order, limit, most, stop, found
):
    """Look for the mapping of fewest hop-bytes below a limit; return it and the steps taken.

    `hops` are distances of cells, `bytes_` of objects, both square; `routers` are those of cells;
    `goals[one, c]` says where an object may go. The cost of a tree is that of its placed objects.
    Fills in the cells of the best mapping in `found`. With `stop` the first mapping below the limit
    ends it; `most` steps also end it, and then the steps are negative.
    """
    num, cells = loads.shape[0], room.shape[0]
    left = room.copy()
    at = np.full(num, -1, dtype=np.int64)
    # cost[k, o, c]: of an open object o in cell c with the first k objects
    cost = np.zeros((num + 1, num, cells), dtype=np.int64)
    spent = np.zeros(num + 1, dtype=np.int64)
    where = np.full(num, -1, dtype=np.int64)
    grown = np.zeros(num + 1, dtype=np.int64)  # by the first k objects: the bytes over trees
    best, steps, depth = limit, np.int64(0), 0
    while depth >= 0:
        if depth == num:
            best = spent[depth]
            found[:] = at
            if stop:
                return best, steps
            depth -= 1
        one = order[depth]
        c = at[one]
        if c >= 0:
            left[c] += loads[one]
            where[one] = -1
        c += 1
        while c < cells and not (
            goals[one, c] and loads[one] <= left[c] and spent[depth] + cost[depth, one, c] < best
        ):
            c += 1
        if c == cells:
            at[one] = -1
            depth -= 1
            continue
        steps += 1
        if steps > most:
            return best, -steps
        at[one], where[one] = c, routers[c]
        left[c] -= loads[one]
        grown[depth + 1] = 0
        for tree in range(trees.root.shape[0]):
            grown[depth + 1] += trees.bytes[tree] * links_of(trees, tree, where)
        spent[depth + 1] = spent[depth] + cost[depth, one, c] + grown[depth + 1] - grown[depth]
        if is_open(hops, bytes_, loads, left, goals, order, depth, c, cost, spent, best):
            depth += 1
    return best, steps


@kernel(inline="always")
def is_open(hops, bytes_, loads, left, goals, order, depth, at, cost, spent, best):
    """Update the costs of open objects; return whether they may still stay below the best."""
    one, total = order[depth], spent[depth + 1]
    num, cells = loads.shape[0], left.shape[0]
    if total >= best:
        return False
    for k in range(depth + 1, num):
        other = order[k]
        least = np.int64(-1)
        for c in range(cells):
            now = cost[depth, other, c] + bytes_[one, other] * hops[at, c]
            cost[depth + 1, other, c] = now
            if goals[other, c] and loads[other] <= left[c] and (least < 0 or now < least):
                least = now
        if least < 0:
            return False
        total += least
        if total >= best:
            return False
    return True


# ---- Vectors of a semidefinite relaxation, each in turn where it is best -------------------------
