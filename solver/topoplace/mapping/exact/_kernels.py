"""Kernels of branch and bound on small graphs: assignments, orbits and the search."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

# ---- Compiled assignment of rows to columns by shortest augmenting paths, with dual values -------

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.


NEVER = np.int64(1) << 62
"""Cost of a forbidden pair."""


@kernel()
def assign(cost, kind, num_rows, num_columns, work):
    """Assign every row to a column of its own at least cost (Jonker and Volgenant 1987).

    The cost of row i in column c is ``cost[i, kind[c]]``. Returns the least cost, or `NEVER` if
    there is no assignment, and leaves in `work` the dual values: ``cost - u - v`` is never
    negative, v is never positive, and 0 for columns left free.
    """
    row_of, u, v = work.row_of, work.u, work.v
    row_of[:num_columns] = -1
    v[:num_columns] = 0
    for i in range(num_rows):
        at, least = -1, NEVER
        for c in range(num_columns):
            value = cost[i, kind[c]]
            # among equally cheap columns a free one saves a search
            if value < least or (value == least and at >= 0 and row_of[at] >= 0 > row_of[c]):
                at, least = c, value
        if least == NEVER:
            return NEVER
        u[i] = least
        work.late[i] = row_of[at] >= 0
        if not work.late[i]:
            row_of[at] = i
    for i in range(num_rows):
        if work.late[i] and not _augment(cost, kind, num_columns, i, work):
            return NEVER
    total = np.int64(0)
    for c in range(num_columns):
        if row_of[c] >= 0:
            total += cost[row_of[c], kind[c]]
    return total


@kernel()
def _augment(cost, kind, num_columns, start, work):
    """Give row `start` a column along the cheapest alternating path; return whether one exists."""
    row_of, u, v = work.row_of, work.u, work.v
    length, before, scanned = work.length, work.before, work.scanned
    length[:num_columns] = NEVER
    scanned[:num_columns] = 0
    row, reached, last = start, np.int64(0), -1
    while True:
        end, least = -1, NEVER
        for c in range(num_columns):
            if scanned[c]:
                continue
            value = cost[row, kind[c]]
            if value != NEVER:
                value += reached - u[row] - v[c]
                if value < length[c]:
                    length[c], before[c] = value, last
            if length[c] < least:
                end, least = c, length[c]
        if end < 0:
            return False
        reached, last = least, end
        if row_of[end] < 0:
            break
        scanned[end] = 1
        row = row_of[end]
    u[start] += reached
    for c in range(num_columns):
        if scanned[c]:
            u[row_of[c]] += reached - length[c]
            v[c] -= reached - length[c]
    while before[last] >= 0:
        row_of[last] = row_of[before[last]]
        last = before[last]
    row_of[last] = start
    return True


# ---- Compiled use of the symmetries that leave in place all that a partial mapping placed -----
# ``listed[kept[depth, s]]`` for s below ``count[depth]`` are the symmetries of a level.


@kernel()
def keep_fixing(listed, kept, count, depth, point):
    """Keep one level down the symmetries that leave a task or router where it is."""
    found = 0
    for s in range(count[depth]):
        if listed[kept[depth, s], point] == point:
            kept[depth + 1, found] = kept[depth, s]
            found += 1
    count[depth + 1] = found


@kernel()
def images(listed, kept, count, depth, point, marks):
    """Mark the images of a task or router by the symmetries of a level."""
    marks[:] = 0
    for s in range(count[depth]):
        marks[listed[kept[depth, s], point]] = 1


@kernel()
def representatives(listed, kept, count, depth, first):
    """Set for every task or router its least image by a symmetry of this level."""
    for p in range(listed.shape[1]):
        first[p] = p
    for s in range(count[depth]):
        for p in range(listed.shape[1]):
            first[p] = min(first[p], listed[kept[depth, s], p])


# ---- Compiled branch and bound over partial mappings (Gilmore 1962, Lawler 1963) -----------------
# Costs are doubled, so that the cost of two tasks can be shared between them. `Tree` holds one
# level per task placed. Everything left out, by bound or by symmetry, is proven to be no better
# than the best mapping or than something searched before.


@kernel()
def search(case, tree, work, max_nodes):
    """Go on with the search for some nodes; return whether it is complete."""
    nodes = 0
    depth = tree.at[0]
    while depth >= 0:
        if tree.num_children[depth] < 0:
            _open(case, tree, work, depth)
            nodes += 1
        k = tree.next[depth]
        if k == tree.num_children[depth]:
            depth -= 1
            if depth >= 0:
                _forbidimages(case, tree, work, depth)
            continue
        tree.next[depth] = k + 1
        i, r = tree.child[depth, k, 0], tree.child[depth, k, 1]
        if tree.child[depth, k, 2] < tree.best[0] and not tree.forbidden[depth, i, r]:
            descend(case, tree, depth, i, r)
            depth += 1
            tree.num_children[depth] = -1
        if nodes >= max_nodes:
            break
    tree.at[0] = depth
    tree.at[1] += nodes
    return depth < 0


@kernel()
def descend(case, tree, depth, i, r):
    """Put a task on a router one level down."""
    n, below = case.weight.shape[1], depth + 1
    tree.placed[depth, 0], tree.placed[depth, 1] = i, r
    tree.base[below] = tree.base[depth] + tree.linear[depth, i, r]
    tree.room[below] = tree.room[depth]
    tree.room[below, r] -= 1
    tree.where[below] = tree.where[depth]
    tree.where[below, i] = r
    tree.forbidden[below] = tree.forbidden[depth]
    tree.linear[below] = tree.linear[depth]
    for k in range(case.weight.shape[0]):
        for j in range(n):
            if case.weight[k, i, j] and tree.where[below, j] < 0:
                tree.linear[below, j] += 2 * case.weight[k, i, j] * case.distance[k, r]
    keep_fixing(case.guest, tree.guest, tree.num_guest, depth, i)
    keep_fixing(case.host, tree.host, tree.num_host, depth, r)


@kernel()
def _forbidimages(case, tree, work, depth):
    """Forbid the symmetric images of the child just searched: they are no better."""
    tasks, routers = work.guest_first, work.host_first
    images(case.guest, tree.guest, tree.num_guest, depth, tree.placed[depth, 0], tasks)
    images(case.host, tree.host, tree.num_host, depth, tree.placed[depth, 1], routers)
    for i in range(tasks.shape[0]):
        if tasks[i]:
            for r in range(routers.shape[0]):
                if routers[r]:
                    tree.forbidden[depth, i, r] = 1


@kernel()
def _open(case, tree, work, depth):
    """Bound a node, try the mapping that the bound suggests, and list the children."""
    tree.num_children[depth] = 0
    tree.next[depth] = 0
    num_rows, num_columns = _list_lines(case, tree, work, depth)
    gilmore_lawler(case, tree, work, depth, num_rows)
    total = assign(work.cost, work.kind, num_rows, num_columns, work)
    if total == NEVER:
        return
    total += tree.base[depth]
    _try(case, tree, work, depth, num_columns)
    if (total + 1) // 2 >= tree.best[0]:
        return
    bound_children(case, tree, work, depth, num_rows, num_columns, total)
    _list_children(case, tree, work, depth, num_rows, num_columns)


@kernel()
def _list_lines(case, tree, work, depth):
    """List the tasks without router and the free places; return their numbers."""
    num_rows = 0
    for i in range(case.weight.shape[1]):
        if tree.where[depth, i] < 0:
            work.tasks[num_rows] = i
            num_rows += 1
    num_columns = 0
    for r in range(case.distance.shape[1]):
        for _ in range(min(tree.room[depth, r], num_rows)):
            work.kind[num_columns] = r
            num_columns += 1
    return num_rows, num_columns


@kernel()
def gilmore_lawler(case, tree, work, depth, num_rows):
    """Fill ``work.cost``: the least cost of a task on a router, costs doubled.

    Its messages to tasks without router are sent, most bytes first, to the nearest places.
    """
    num_kinds, n, m = case.weight.shape[0], case.weight.shape[1], case.distance.shape[1]
    room = tree.room[depth]
    for row in range(num_rows):
        i = work.tasks[row]
        for r in range(m):
            closed = room[r] == 0 or tree.forbidden[depth, i, r]
            work.cost[row, r] = NEVER if closed else tree.linear[depth, i, r]
    for k in range(num_kinds):
        for row in range(num_rows):
            i, count = work.tasks[row], 0
            for p in range(n):
                j = case.heaviest[k, i, p]
                if case.weight[k, i, j] == 0:
                    break
                if j != i and tree.where[depth, j] < 0:
                    work.sent[row, count] = case.weight[k, i, j]
                    count += 1
            work.num_sent[row] = count
        for r in range(m):
            if room[r] == 0:
                continue
            count = min(room[r] - 1, num_rows - 1)
            work.near[:count] = 0
            for p in range(m):
                if count >= num_rows - 1:
                    break
                s = case.nearest[k, r, p]
                if s != r:
                    step = case.distance[k, r, s]
                    for _ in range(min(room[s], num_rows - 1 - count)):
                        work.near[count] = step
                        count += 1
            for row in range(num_rows):
                if work.cost[row, r] != NEVER:
                    total = np.int64(0)
                    for p in range(work.num_sent[row]):
                        total += work.sent[row, p] * work.near[p]
                    work.cost[row, r] += total


@kernel()
def _try(case, tree, work, depth, num_columns):
    """Keep the mapping of the assignment if it is the best so far."""
    n = case.weight.shape[1]
    trial = work.trial
    trial[:] = tree.where[depth]
    for c in range(num_columns):
        if work.row_of[c] >= 0:
            trial[work.tasks[work.row_of[c]]] = work.kind[c]
    total = np.int64(0)
    for k in range(case.weight.shape[0]):
        for i in range(n):
            for j in range(i):
                total += case.weight[k, i, j] * case.distance[k, trial[i], trial[j]]
    if total < tree.best[0]:
        tree.best[0] = total
        tree.best_where[:] = trial


@kernel()
def bound_children(case, tree, work, depth, num_rows, num_columns, total):
    """Turn ``work.cost`` into lower bounds of the children; forbid those that cannot be better."""
    m = case.distance.shape[1]
    work.price[:m] = -NEVER
    for c in range(num_columns):
        r = work.kind[c]
        work.price[r] = max(work.price[r], work.v[c])
    for row in range(num_rows):
        i = work.tasks[row]
        for r in range(m):
            if work.cost[row, r] == NEVER:
                continue
            doubled = total + work.cost[row, r] - work.u[row] - work.price[r]
            work.cost[row, r] = (doubled + 1) // 2
            if work.cost[row, r] >= tree.best[0]:
                work.cost[row, r] = NEVER
                tree.forbidden[depth, i, r] = 1


@kernel()
def best_line(case, tree, work, depth, num_rows, num_columns):
    """Return the row, or the number of rows plus the router, with the fewest children.

    Those are the ones that are first in `work`, and have a cost.
    """
    m = case.distance.shape[1]
    line, fewest, strength = -1, NEVER, np.int64(-1)
    full = num_rows == num_columns
    for entry in range(num_rows + (m if full else 0)):
        by_task = entry < num_rows
        if not by_task and tree.room[depth, entry - num_rows] == 0:
            continue
        count, least = np.int64(0), np.int64(0)
        for other in range(m if by_task else num_rows):
            row, r = (entry, other) if by_task else (other, entry - num_rows)
            if work.cost[row, r] != NEVER:
                first = work.host_first[r] == r
                if not by_task:
                    first = work.guest_first[work.tasks[row]] == work.tasks[row]
                if first:
                    count += 1
                    least += work.cost[row, r]
        if count < fewest or (count == fewest and least > strength):
            line, fewest, strength = entry, count, least
    return line


@kernel()
def _list_children(case, tree, work, depth, num_rows, num_columns):
    """Branch on the task, or on the router that must be filled, with the fewest children."""
    m = case.distance.shape[1]
    representatives(case.guest, tree.guest, tree.num_guest, depth, work.guest_first)
    representatives(case.host, tree.host, tree.num_host, depth, work.host_first)
    line = best_line(case, tree, work, depth, num_rows, num_columns)
    found = 0
    by_task = line < num_rows
    for other in range(m if by_task else num_rows):
        row, r = (line, other) if by_task else (other, line - num_rows)
        if work.cost[row, r] != NEVER:
            _insert(tree.child[depth], found, work.tasks[row], r, work.cost[row, r])
            found += 1
    tree.num_children[depth] = found


@kernel()
def _insert(children, count, i, r, bound):
    """Add a child to a list kept in ascending order of bounds: open bounds rise soonest."""
    k = count
    while k > 0 and children[k - 1, 2] > bound:
        children[k] = children[k - 1]
        k -= 1
    children[k, 0], children[k, 1], children[k, 2] = i, r, bound


# ---- Compiled proof of an optimum: a tree whose leaves are bounded, each by itself ---------------
# Here only symmetry leaves children out, which is the same for every reader of the tree, and no
# bound of a node depends on another's: see docs/proofs/graphs.md, "Trees".


@kernel()
def prove(case, tree, work, target, written, max_nodes):
    """Go on writing a tree in which no leaf is below `target`; return whether it is complete.

    ``tree.at`` holds the level and the number of nodes, ``tree.child`` the task and router of the
    children of a level. Stops after some nodes, and when `written` is full.
    """
    depth, size = tree.at[0], tree.at[1]
    stop = min(size + max_nodes, written.shape[0])
    while depth >= 0:
        if tree.num_children[depth] < 0:
            if size == stop:
                break
            written[size] = _open_proof(case, tree, work, depth, target)
            size += 1
        k = tree.next[depth]
        if k == tree.num_children[depth]:
            depth -= 1
            continue
        tree.next[depth] = k + 1
        descend(case, tree, depth, tree.child[depth, k, 0], tree.child[depth, k, 1])
        depth += 1
        tree.num_children[depth] = -1
    tree.at[0], tree.at[1] = depth, size
    return depth < 0


@kernel()
def _open_proof(case, tree, work, depth, target):
    """List the children of a node, none if its bound is enough; return its written form."""
    tree.num_children[depth] = 0
    tree.next[depth] = 0
    num_rows, num_columns = _list_lines(case, tree, work, depth)
    gilmore_lawler(case, tree, work, depth, num_rows)
    total = assign(work.cost, work.kind, num_rows, num_columns, work) + tree.base[depth]
    if (total + 1) // 2 >= target or num_rows == 0:
        return 0
    bound_children(case, tree, work, depth, num_rows, num_columns, total)
    tree.forbidden[depth] = 0  # only for the choice of a line
    orbit_firsts(case.guest, tree.guest, tree.num_guest, depth, work.guest_first)
    orbit_firsts(case.host, tree.host, tree.num_host, depth, work.host_first)
    line = best_line(case, tree, work, depth, num_rows, num_columns)
    found = 0
    if line < num_rows:
        i = work.tasks[line]
        for r in range(case.distance.shape[1]):
            if tree.room[depth, r] > 0 and work.host_first[r] == r:
                tree.child[depth, found, 0], tree.child[depth, found, 1] = i, r
                found += 1
        tree.num_children[depth] = found
        return i + 1
    r = line - num_rows
    for row in range(num_rows):
        i = work.tasks[row]
        if work.guest_first[i] == i:
            tree.child[depth, found, 0], tree.child[depth, found, 1] = i, r
            found += 1
    tree.num_children[depth] = found
    return -r - 1


@kernel()
def orbit_firsts(listed, kept, count, depth, first):
    """Set for every task or router its least image by products of symmetries of this level.

    `representatives` uses one symmetry at a time, from a list that may be incomplete.
    """
    num = listed.shape[1]
    for p in range(num):
        first[p] = p
    changed = True
    while changed:
        changed = False
        for s in range(count[depth]):
            for p in range(num):
                q = listed[kept[depth, s], p]
                least = min(first[p], first[q])
                if first[p] != least or first[q] != least:
                    first[p] = first[q] = least
                    changed = True
