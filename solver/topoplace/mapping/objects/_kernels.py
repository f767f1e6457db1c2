"""Compiled moves of objects between cells, within their capacity."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import math

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.local_search import (
    aim,
    below,
    chance,
    change,
    distance,
    draw,
    grown,
    hops_of,
    move,
    swap,
    who_leaves,
)


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
def move_off_fullest(machine, guest, trees, cells, loads, home, state, at, tries):
    """Move an object off the fullest cell if that costs no hop-bytes; return whether to go on.

    After a number of tries it stops without a move, and can go on from `at`, a slot and a cell;
    these are 0 at the first try and after a move.
    """
    filled, width = state.filled, cells.width
    full = 0
    for c in range(filled.shape[0]):
        if filled[c] * width[full] > filled[full] * width[c]:
            full = c
    k, begin = at
    at[0], at[1] = 0, 0
    while k < state.taken[full]:
        one = np.int64(state.occupant[state.base[full] + k])
        if home[one] < 0 and loads[one] > 0:
            for c in range(begin, filled.shape[0]):
                new = filled[c] + loads[one]
                if new * width[full] < filled[full] * width[c] and (
                    state.taken[c] < state.slots[c]
                ):
                    if tries == 0:
                        at[0], at[1] = k, c
                        return True
                    tries -= 1
                    goal = cells.router[c]
                    if (
                        change(machine, guest, state.router, one, goal, -1)
                        + grown(machine, trees, cells, state, one, c, -1)
                        <= 0
                    ):
                        move(cells, state, loads, one, c)
                        return True
        k, begin = k + 1, 0
    return False


# ---- Annealing where few may move ----------------------------------------------------------------


@kernel(inline="always")
def note(stay, state, away, at, count, one):
    """Keep the list of those that are away up to date after a move of one of them."""
    if state.cell[one] != stay[one]:
        if at[one] < 0:
            away[count[0]], at[one] = one, count[0]
            count[0] += 1
    elif at[one] >= 0:
        count[0] -= 1
        last = away[count[0]]
        away[at[one]], at[last] = last, at[one]
        at[one] = -1


@kernel(inline="always")
def who_swapped(cells, loads, stay, state, back):
    """Return who is where one belongs, belongs where that one is, and fits there; or -1."""
    was, first = state.cell[back], stay[back]
    for k in range(state.base[first], state.base[first] + state.taken[first]):
        mate = state.occupant[k]
        more = loads[back] - loads[mate]
        if (
            stay[mate] == was
            and state.filled[first] + more <= cells.room[first]
            and state.filled[was] - more <= cells.room[was]
        ):
            return np.int64(mate)
    return np.int64(-1)


@kernel()
def anneal_few(
    machine, guest, guide, trees, cells, loads, home, movable, state, random, moved, work, wander
):
    """Do as `anneal`, with no more objects away from where they stay than there may be.

    `moved` is where they stay, the list of those that are away, the position of each in it or -1,
    and how many there are and may be. Where all that may are away, one of them goes back first, for
    another to move. If there is no room for it, it changes places with one that belongs where it
    is.
    """
    stay, away, at, count = moved
    temperature, num_moves = work
    total = np.int64(0)
    for _ in range(num_moves):
        task = movable[below(random, movable.shape[0])]
        if count[0] > 0 and draw(random) & np.uint64(1):
            task = away[below(random, count[0])]
        here = state.cell[task]
        if here != stay[task] and chance(random) < 0.25:
            goal = np.int64(stay[task])
        else:
            goal = aim(machine, guide, cells, state, task, random, wander)
        if goal < 0 or goal == here:
            continue
        back, mate, was, delta = np.int64(-1), np.int64(-1), np.int64(0), np.int64(0)
        if count[0] == count[1] and here == stay[task]:
            if count[0] == 0:
                return total
            back = away[below(random, count[0])]
            was, first = np.int64(state.cell[back]), stay[back]
            full = state.filled[first] + loads[back] > cells.room[first]
            if full or state.taken[first] >= state.slots[first]:
                mate = who_swapped(cells, loads, stay, state, back)
                if mate < 0:
                    continue
            delta += change(machine, guest, state.router, back, cells.router[first], mate)
            delta += grown(machine, trees, cells, state, back, first, mate)
            if mate >= 0:
                delta += change(machine, guest, state.router, mate, cells.router[was], back)
                swap(state, loads, back, mate)
            else:
                move(cells, state, loads, back, first)
        short = loads[task] - (cells.room[goal] - state.filled[goal])
        num = state.taken[goal]
        fits = short <= 0 and num < state.slots[goal]
        other = np.int64(-1)
        if not fits or (num > 0 and draw(random) & np.uint64(1)):
            spare = cells.room[here] - state.filled[here] + loads[task]
            other = np.int64(who_leaves(state, loads, home, goal, max(0, short), spare, random))
        left = count[0] - (back >= 0) - (mate >= 0)
        left += (here == stay[task]) - (goal == stay[task])
        if other >= 0:
            both = left + (goal == stay[other]) - (here == stay[other])
            if other in (back, mate) or both > count[1]:
                other = np.int64(-1)
            else:
                left = both
        taken = (fits or other >= 0) and left <= count[1]
        if taken:
            delta += change(machine, guest, state.router, task, cells.router[goal], other)
            if other >= 0:
                delta += change(machine, guest, state.router, other, cells.router[here], task)
            delta += grown(machine, trees, cells, state, task, goal, other)
            taken = delta <= 0 or (
                temperature > 0.0
                and delta <= 40.0 * temperature
                and chance(random) < math.exp(-delta / temperature)
            )
        if not taken:
            if mate >= 0:
                swap(state, loads, back, mate)
            elif back >= 0:
                move(cells, state, loads, back, was)
            continue
        if other >= 0:
            swap(state, loads, task, other)
            note(stay, state, away, at, count, other)
        else:
            move(cells, state, loads, task, goal)
        note(stay, state, away, at, count, task)
        if back >= 0:
            note(stay, state, away, at, count, back)
        if mate >= 0:
            note(stay, state, away, at, count, mate)
        total += delta
    return total


# ---- All mappings of few objects, one object after the other -------------------------------------


@kernel()
def enumerate_all(
    machine,
    hops,
    bytes_,
    trees,
    routers,
    loads,
    room,
    goals,
    order,
    stay,
    moves,
    limit,
    most,
    stop,
    found,
):
    """Look for the mapping of fewest hop-bytes below a limit; return it and the steps taken.

    `hops` are distances of cells, `bytes_` of objects, both square; `routers` are those of cells;
    `goals[one, c]` says where an object may go, and at most so many `moves` are not to the cell in
    `stay`. The cost of a tree is that of its placed objects.
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
    grown = np.zeros(num + 1, dtype=np.int64)  # by the first k objects: the hop-bytes of trees
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
            moves += c != stay[one]
        c += 1
        while c < cells and not (
            goals[one, c]
            and loads[one] <= left[c]
            and spent[depth] + cost[depth, one, c] < best
            and (moves > 0 or c == stay[one])
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
        moves -= c != stay[one]
        grown[depth + 1] = 0
        for tree in range(trees.root.shape[0]):
            grown[depth + 1] += trees.bytes[tree] * hops_of(machine, trees, tree, where, at)
        spent[depth + 1] = spent[depth] + cost[depth, one, c] + grown[depth + 1] - grown[depth]
        sent = stay, moves
        if is_open(hops, bytes_, loads, left, goals, order, sent, depth, c, cost, spent, best):
            depth += 1
    return best, steps


@kernel(inline="always")
def is_open(hops, bytes_, loads, left, goals, order, sent, depth, at, cost, spent, best):
    """Update the costs of open objects; return whether they may still stay below the best.

    `sent` are the cells in which objects stay, and how many may leave theirs.
    """
    one, total = order[depth], spent[depth + 1]
    num, cells = loads.shape[0], left.shape[0]
    if total >= best:
        return False
    if sent[1] < num - depth - 1:
        return few_open(hops, bytes_, loads, left, goals, order, sent, depth, at, cost, spent, best)
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


@kernel()
def few_open(hops, bytes_, loads, left, goals, order, sent, depth, at, cost, spent, best):
    """Do as `is_open`, where only some of the open objects may leave their cells."""
    stay, moves = sent
    one, total = order[depth], spent[depth + 1]
    num, cells = loads.shape[0], left.shape[0]
    saved = np.zeros(num, dtype=np.int64)
    for k in range(depth + 1, num):
        other = order[k]
        least, here = np.int64(-1), np.int64(-1)
        for c in range(cells):
            now = cost[depth, other, c] + bytes_[one, other] * hops[at, c]
            cost[depth + 1, other, c] = now
            if goals[other, c] and loads[other] <= left[c]:
                if c == stay[other]:
                    here = now
                elif least < 0 or now < least:
                    least = now
        if here < 0:
            moves -= 1
            here = least
        if here < 0 or moves < 0:
            return False
        total += here
        saved[k] = max(0, here - least) if least >= 0 else 0
    saved.sort()
    return total - saved[num - moves :].sum() < best
