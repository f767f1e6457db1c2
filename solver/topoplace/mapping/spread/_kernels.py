"""Compiled moves of tasks among the places of a hierarchy, whose groups span domains."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.mapping.local_search import below, chance

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.


@kernel()
def cost_between(rows, costs, p, q):
    """Return the cost of a byte between two leaves, given their domains by level."""
    for k in range(rows.shape[0]):
        if rows[k, p] == rows[k, q]:
            return 0 if k == 0 else costs[k - 1]
    return costs[-1]


@kernel()
def hops_added(rows, costs, guest, leaf, task, goal, other):
    """Return what a task that moves to a leaf adds, messages with `other` left out."""
    added = 0
    for e in range(guest.first[task], guest.first[task + 1]):
        partner = guest.other[e]
        if partner != other:
            there = leaf[partner]
            added += guest.weight[e] * (
                cost_between(rows, costs, goal, there)
                - cost_between(rows, costs, leaf[task], there)
            )
    return added


@kernel()
def has(groups, task, group):
    """Tell whether a task is in a group."""
    for e in range(groups.of_first[task], groups.of_first[task + 1]):
        if groups.of[e] == group:
            return True
    return False


@kernel()
def excess_added(rows, groups, spans, inside, leaf, task, goal, other, most):
    """Return how far above `most` groups come that were not, all together, if a task moves.

    Groups that have `other` as well, which takes its place, stay as they are.
    """
    added = 0
    for e in range(groups.of_first[task], groups.of_first[task + 1]):
        group = groups.of[e]
        if other >= 0 and has(groups, other, group):
            continue
        row, base = groups.row[group], groups.base[group]
        left, entered = rows[row, leaf[task]], rows[row, goal]
        if left == entered:
            continue
        change = 0
        if inside[base + left] == 1:
            change -= 1
        if inside[base + entered] == 0:
            change += 1
        span = spans[group]
        added += max(0, span + change - most) - max(0, span - most)
    return added


@kernel()
def put(rows, groups, spans, inside, leaf, task, goal):
    """Move a task to a leaf."""
    for e in range(groups.of_first[task], groups.of_first[task + 1]):
        group = groups.of[e]
        row, base = groups.row[group], groups.base[group]
        left, entered = rows[row, leaf[task]], rows[row, goal]
        inside[base + left] -= 1
        if inside[base + left] == 0:
            spans[group] -= 1
        if inside[base + entered] == 0:
            spans[group] += 1
        inside[base + entered] += 1
    leaf[task] = goal


@kernel()
def moves(machine, guest, groups, state, random, work):
    """Try moves of tasks to places, and of those there to theirs; return what they added.

    `work` has the most domains of a group, whether hop-bytes count, the temperature and the number
    of moves. Without hop-bytes the domains above the limit count, and it ends once there are none;
    with them, no move may add any. Half of the places tried are in a domain that has a member of a
    group of the task.
    """
    rows, costs, leaf_of, begin, end = machine
    leaf, place, occupant, spans, inside = state
    most, by_hops, temperature, num_moves = work
    num_tasks, num_places = leaf.shape[0], leaf_of.shape[0]
    over, hops = 0, 0
    for g in range(spans.shape[0]):
        over += max(0, spans[g] - most)
    for _ in range(num_moves):
        if over == 0 and not by_hops:
            break
        task = below(random, num_tasks)
        goal = below(random, num_places)
        mine = groups.of_first[task + 1] - groups.of_first[task]
        if mine > 0 and chance(random) < 0.5:
            group = groups.of[groups.of_first[task] + below(random, mine)]
            row, size = groups.row[group], groups.first[group + 1] - groups.first[group]
            mate = groups.task[groups.first[group] + below(random, size)]
            domain = rows[row, leaf[mate]]
            low = begin[row, domain]
            goal = low + below(random, end[row, domain] - low)
        here, there = leaf[task], leaf_of[goal]
        other = occupant[goal]
        if here == there:
            continue
        excess = excess_added(rows, groups, spans, inside, leaf, task, there, other, most)
        if other >= 0:
            excess += excess_added(rows, groups, spans, inside, leaf, other, here, task, most)
        change, added = excess, 0
        if by_hops:
            if excess > 0:
                continue
            added = hops_added(rows, costs, guest, leaf, task, there, other)
            if other >= 0:
                added += hops_added(rows, costs, guest, leaf, other, here, task)
            change = added
        if change > 0 and chance(random) >= np.exp(-change / max(temperature, 1e-9)):
            continue
        put(rows, groups, spans, inside, leaf, task, there)
        if other >= 0:
            put(rows, groups, spans, inside, leaf, other, here)
        occupant[place[task]] = other
        if other >= 0:
            place[other] = place[task]
        occupant[goal] = task
        place[task] = goal
        over += excess
        hops += added
    return over, hops
