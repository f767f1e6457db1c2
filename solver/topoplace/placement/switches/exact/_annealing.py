"""Compiled loops that put ranks on leaves: by cost, by forbidden pairs, in chains, in all ways.

An exchange of labels does not change which labels may be neighbours, so its gain depends only on
the neighbours of two parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topoplace.kernels import kernel
from topoplace.types import FloatArray, IntArray

_TROUBLED = 0.8
"""How often a part to move is drawn from those with a forbidden neighbour."""

_BESIDE = 0.8
"""How often its new label is that of a neighbour."""

COOLING = 1024
"""Moves between two changes of the heat."""


# ---- By cost ---------------------------------------------------------------------------------


class Hops(NamedTuple):
    """The cost of hops between leaves: ``levels x (unit + busy x own + ..)`` of eqs. (2) to (5).

    Attributes
    ----------
    levels
        Twice the level of the lowest common switch; 0 is none. Shape ``(num_leaves, num_leaves)``.
    own, shared
        What a busy node adds on its own leaf, and between two leaves.
    """

    levels: IntArray
    own: FloatArray | IntArray
    shared: FloatArray | IntArray


@kernel()
def _price(leaf, pairs, first, prices, busy, hops):
    """Return the cost of an assignment of parts to leaves and a smooth stand-in for it.

    The stand-in takes the 12-norm of a step's hops in place of their maximum.
    """
    cost, smooth = 0.0, 0.0
    for step in range(len(prices)):
        worst, total = 0.0, 0.0
        for i in range(first[step], first[step + 1]):
            a, b = leaf[pairs[i, 0]], leaf[pairs[i, 1]]
            found = 1.0 + busy[a] * hops.own[a]
            if a != b:
                found += busy[b] * hops.own[b] + (busy[a] + busy[b]) * hops.shared[a, b]
            found *= hops.levels[a, b]
            worst = max(worst, found)
            square = found * found / 256.0
            fourth = square * square
            total += fourth * fourth * fourth
        cost += prices[step] * worst
        smooth += prices[step] * 16.0 * (total / (first[step + 1] - first[step])) ** (1.0 / 12.0)
    return cost, smooth


@kernel()
def _put(part, at, leaf, size, room, busy):
    """Put a part on a leaf."""
    busy[leaf[part]] -= size[part]
    room[leaf[part]] += size[part]
    busy[at] += size[part]
    room[at] -= size[part]
    leaf[part] = at


@kernel()
def anneal(leaf, size, room, busy, pairs, first, prices, hops, domain, moves, hot, seed):
    """Improve an assignment of parts (of `size` ranks) to leaves; return the best one met.

    A move puts a run of parts on one leaf, or exchanges two runs of the same length.
    """
    np.random.seed(seed)
    num = len(leaf)
    spans = 0
    while (1 << spans) < num:
        spans += 1
    best = leaf.copy()
    cost, smooth = _price(leaf, pairs, first, prices, busy, hops)
    best_cost = cost
    current = cost + 0.2 * smooth
    cold = hot / 40.0
    part = np.empty(2 * num, dtype=np.int64)
    old, new = np.empty_like(part), np.empty_like(part)
    for move in range(moves):
        heat = hot * (cold / hot) ** (move / moves)
        length = 1
        if np.random.random() < 0.5:
            length = 1 << np.random.randint(0, max(1, spans))
        at = np.random.randint(0, num) // length * length
        end = min(num, at + length)
        moved = end - at
        part[:moved] = np.arange(at, end)
        if np.random.random() < 0.5:
            other = np.random.randint(0, num) // length * length
            if other == at or other + length > num or end - at < length:
                continue
            part[length : 2 * length] = np.arange(other, other + length)
            new[:length] = leaf[other : other + length]
            new[length : 2 * length] = leaf[at:end]
            moved = 2 * length
        else:
            new[:moved] = domain[np.random.randint(0, len(domain))]
        for k in range(moved):
            old[k] = leaf[part[k]]
        if (new[:moved] == old[:moved]).all():
            continue
        for k in range(moved):
            _put(part[k], new[k], leaf, size, room, busy)
        accept = True
        for k in range(moved):
            accept &= room[new[k]] >= 0
        if accept:
            cost, smooth = _price(leaf, pairs, first, prices, busy, hops)
            value = cost + 0.2 * smooth
            accept = value <= current or np.random.random() < np.exp((current - value) / heat)
            if accept:
                current = value
                if cost < best_cost * (1.0 - 1e-12):
                    best_cost = cost
                    best[:] = leaf
        if not accept:
            for k in range(moved):
                _put(part[k], old[k], leaf, size, room, busy)
    return best


# ---- By forbidden pairs ----------------------------------------------------------------------


@kernel(inline="always")
def _forbidden(part, own, label, bad, first, partner, step):
    """Count the neighbours that a part with a label may not have."""
    found = 0
    for i in range(first[part], first[part + 1]):
        if bad[step[i], own, label[partner[i]]]:
            found += 1
    return found


@kernel()
def _swap(label, members, place, p, q):
    """Exchange the labels of two parts, and their places in the lists of labels."""
    label[p], label[q] = label[q], label[p]
    i, j = place[p], place[q]
    members[i], members[j] = q, p
    place[p], place[q] = j, i


@kernel()
def _count(part, found, number, troubled, where, num):
    """Note how many forbidden neighbours a part has; return how many parts have any."""
    if found > 0 and number[part] == 0:
        troubled[num], where[part] = part, num
        num += 1
    elif found == 0 and number[part] > 0:
        num -= 1
        last, at = troubled[num], where[part]
        troubled[at], where[last] = last, at
    number[part] = found
    return num


@kernel()
def exchanged(label, bad, graph, moves, heat, cooler, seed):
    """Exchange labels of parts by simulated annealing until no part has a forbidden neighbour.

    Return the fewest forbidden pairs met, the labels at them, and labels and heat at the end.

    Parameters
    ----------
    bad
        Whether parts with two labels may not be neighbours, shape ``(rows, L, L)``.
    graph
        ``first, partner, step``: the pairs of part `p` are ``partner[first[p] : first[p + 1]]``,
        and ``step`` has their rows. Every part has a pair.
    heat, cooler
        The heat at the first move, in forbidden pairs, and its factor per `COOLING` moves.
    """
    np.random.seed(seed)
    first, partner, step = graph
    label = label.copy()
    num_parts, num_labels = len(label), bad.shape[1]
    start = np.zeros(num_labels + 1, dtype=np.int64)
    start[1:] = np.cumsum(np.bincount(label, minlength=num_labels))
    members = np.argsort(label, kind="mergesort")
    place = np.empty(num_parts, dtype=np.int64)
    place[members] = np.arange(num_parts)
    number = np.zeros(num_parts, dtype=np.int64)
    troubled, where = np.empty(num_parts, dtype=np.int64), np.empty(num_parts, dtype=np.int64)
    num = 0
    for p in range(num_parts):
        found = _forbidden(p, label[p], label, bad, first, partner, step)
        num = _count(p, found, number, troubled, where, num)
    now = number.sum() // 2
    least, best = now, label.copy()
    for move in range(moves):
        if least == 0:
            break
        if move % COOLING == COOLING - 1:
            heat *= cooler
        if np.random.random() < _TROUBLED:
            p = troubled[np.random.randint(num)]
        else:
            p = np.random.randint(num_parts)
        if np.random.random() < _BESIDE:
            b = label[partner[np.random.randint(first[p], first[p + 1])]]
            q = members[np.random.randint(start[b], start[b + 1])]
        else:
            q = np.random.randint(num_parts)
        a, b = label[p], label[q]
        if a == b:
            continue
        label[p], label[q] = b, a
        # a pair of the two themselves counts twice, before and after
        more = _forbidden(p, b, label, bad, first, partner, step) - number[p]
        more += _forbidden(q, a, label, bad, first, partner, step) - number[q]
        label[p], label[q] = a, b
        if more > 0 and np.random.random() >= np.exp(-more / heat):
            continue
        _swap(label, members, place, p, q)
        now += more
        for end in (p, q):
            found = _forbidden(end, label[end], label, bad, first, partner, step)
            num = _count(end, found, number, troubled, where, num)
            for i in range(first[end], first[end + 1]):
                n = partner[i]
                found = _forbidden(n, label[n], label, bad, first, partner, step)
                num = _count(n, found, number, troubled, where, num)
        if now < least:
            least = now
            best[:] = label
    return least, best, label, heat


# ---- In chains -------------------------------------------------------------------------------


@kernel()
def pack(caps, lines, length):
    """Cover lines of cells by chains of leaves, a separator between any two of a chain.

    A chain fills whole lines, and its end is the end of a line, where none is needed. `caps` are
    the most cells that each leaf can cover. Return the fewest separators, and per chain, last
    first, its first leaf and the lines it covers; separators alone cover lines of chains without a
    leaf.
    """
    num = len(caps)
    fewest = np.full((num + 1, lines + 1), length * lines + 1, dtype=np.int64)
    before = np.zeros((num + 1, lines + 1, 2), dtype=np.int64)
    fewest[0, 0] = 0
    for i in range(num + 1):
        for m in range(lines + 1):
            now = fewest[i, m]
            if i < num and now < fewest[i + 1, m]:
                fewest[i + 1, m] = now
                before[i + 1, m] = i, m
            if m < lines and now + length < fewest[i, m + 1]:
                fewest[i, m + 1] = now + length
                before[i, m + 1] = i, m
            total = -1
            for j in range(i, num):
                total += caps[j] + 1
                whole = min(total // length, lines - m)
                for more in range(min(2, lines - m - whole + 1)):
                    alone = max(0, (whole + more) * length - total)
                    if now + j - i + alone < fewest[j + 1, m + whole + more]:
                        fewest[j + 1, m + whole + more] = now + j - i + alone
                        before[j + 1, m + whole + more] = i, m
                if m + whole == lines:
                    break
    chains = [(num, lines)]
    i, m = num, lines
    while i > 0 or m > 0:
        i, m = before[i, m]
        chains.append((i, m))
    return fewest[num, lines], chains


# ---- All of them --------------------------------------------------------------------------------


@kernel()
def exhaust(pairs, first, step, price, job, counts, room, busy, hops, scale, twin, best, limit):
    """Try every assignment of ranks to leaves; return the best one and whether all were tried.

    Ranks are placed in order. Hops only grow as ranks are added, so the maxima of the steps over
    the pairs placed so far bound the cost from below.

    Parameters
    ----------
    pairs, first, step
        Pairs of all steps and the step of each; the higher rank of those before ``first[r + 1]``
        is at most r.
    job, counts
        Job of every rank; per job, whether its nodes count in L_comm.
    twin
        Per leaf, an earlier interchangeable one that is to be used first, or -1.
    best
        The cost to beat; the answer is -1 if there is none below.
    limit
        Assignments, partial ones included, to try.
    """
    num = len(job)
    leaf = np.full(num, -1, dtype=np.int64)
    answer = np.full(num, -1, dtype=np.int64)
    used = np.zeros(len(room), dtype=np.int64)
    worst = np.zeros(len(price), dtype=np.int64)
    visited = 0
    at_rank = 0
    while at_rank >= 0:
        at = leaf[at_rank]
        if at >= 0:
            used[at] -= 1
            busy[at] -= counts[job[at_rank]]
        elif not counts[job[at_rank]] and at_rank and job[at_rank] == job[at_rank - 1]:
            at = leaf[at_rank - 1] - 1  # the order of ranks that do not talk is idle
        at += 1
        while at < len(room) and (
            used[at] >= room[at] or (used[at] == 0 and twin[at] >= 0 and used[twin[at]] == 0)
        ):
            at += 1
        if at == len(room):
            leaf[at_rank] = -1
            at_rank -= 1
            continue
        leaf[at_rank] = at
        used[at] += 1
        busy[at] += counts[job[at_rank]]
        visited += 1
        if visited > limit:
            return answer, False
        legal = True  # below one root
        for r in range(at_rank):
            legal = legal and (job[r] != job[at_rank] or hops.levels[leaf[r], at] > 0)
        if not legal:
            continue
        worst[:] = 0
        for i in range(first[at_rank + 1]):
            a, b = leaf[pairs[i, 0]], leaf[pairs[i, 1]]
            found = scale + busy[a] * hops.own[a]
            if a != b:
                found += busy[b] * hops.own[b] + (busy[a] + busy[b]) * hops.shared[a, b]
            worst[step[i]] = max(worst[step[i]], hops.levels[a, b] * found)
        cost = 0
        for s in range(len(price)):
            cost += price[s] * worst[s]
        if cost >= best:
            continue
        if at_rank == num - 1:
            best = cost
            answer[:] = leaf
        else:
            at_rank += 1
    return answer, True
