"""Compiled loops that settle the parts of a grid on leaves below thresholds.

Rows of the tables are the steps that may cross leaves; one more row, where there is one, stands
for the steps that stay inside, in which every part is a pair with itself.
"""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

EXCESS = 8.0
"""Weight of a hop above a threshold; that there is one weighs 1."""

_SHIFTED = 0.3
_TRIES = 4


@kernel(inline="always")
def _excess(hops, limit):
    """Return the weight of a pair."""
    return 1.0 + EXCESS * (hops - limit) if hops > limit + 1e-9 else 0.0


@kernel()
def _weigh(a, weight, limit, busy, levels, own, shared):
    """Weigh all pairs with a leaf anew."""
    last = len(limit) - 1
    for c in range(len(busy)):
        if c == a:
            hops = levels[a, a] * (1.0 + busy[a] * own[a])
            weight[last, a, a] = _excess(hops, limit[last])
            continue
        both = (busy[a] + busy[c]) * shared[a, c]
        hops = levels[a, c] * (1.0 + busy[a] * own[a] + busy[c] * own[c] + both)
        for row in range(last):
            found = _excess(hops, limit[row])
            weight[row, a, c] = found
            weight[row, c, a] = found


@kernel()
def _put(part, leaf, target, number, first, partner, step):
    """Put a part on another leaf; `number` counts pairs between leaves, within them twice."""
    old = leaf[part]
    for i in range(first[part], first[part + 1]):
        row, c = step[i], leaf[partner[i]]
        number[row, old, c] -= 1.0
        number[row, c, old] -= 1.0
    leaf[part] = target
    for i in range(first[part], first[part + 1]):
        row, c = step[i], leaf[partner[i]]
        number[row, target, c] += 1.0
        number[row, c, target] += 1.0
    number[-1, old, old] -= 2.0
    number[-1, target, target] += 2.0


@kernel()
def _total(a, b, number, weight):
    """Return the weight of all pairs with one of two leaves."""
    total = 0.0
    for row in range(len(number)):
        for c in range(number.shape[1]):
            if number[row, a, c] > 0.0:
                total += number[row, a, c] * weight[row, a, c] * (0.5 if c == a else 1.0)
            if c != a and number[row, b, c] > 0.0:
                total += number[row, b, c] * weight[row, b, c] * (0.5 if c == b else 1.0)
    return total


@kernel()
def _change(part, other, old, new, leaf, weight, first, partner, step):
    """Return what a part on another leaf adds; pairs with `other`, exchanged for it, stay."""
    total = 0.0
    for i in range(first[part], first[part + 1]):
        if partner[i] != other:
            c = leaf[partner[i]]
            total += weight[step[i], new, c] - weight[step[i], old, c]
    return total


@kernel()
def _mate(b, leaf, tries):
    """Return a part of a leaf drawn at random, -1 if it is hard to find."""
    for _ in range(tries):
        other = np.random.randint(len(leaf))
        if leaf[other] == b:
            return other
    return -1


@kernel()
def _drawn(part, leaf, num_leaves, first, partner):
    """Return a leaf to put a part on, and a part of that leaf to exchange it for, or -1."""
    kind = np.random.random()
    if kind < 0.5:  # beside a neighbour
        return leaf[partner[np.random.randint(first[part], first[part + 1])]], -1
    if kind < 0.9:
        other = np.random.randint(len(leaf))
        return leaf[other], other
    return np.random.randint(num_leaves), -1


@kernel()
def _taken(more, heat):
    return more <= 0.0 or np.random.random() < np.exp(-more / heat)


@kernel()
def settle(leaf, graph, unit, room, busy, leaves, limit, moves, hot, cold, shifts, seed):
    """Settle parts on leaves until no pair is above its limit, by simulated annealing.

    A move exchanges two parts or shifts one to a leaf with room.

    Parameters
    ----------
    leaf
        Leaf of every part.
    graph
        ``first, partner, step``: the pairs of part `p` are ``partner[first[p] : first[p + 1]]``,
        and ``step`` has their rows. Every part has a pair.
    unit
        Ranks of every part.
    room, busy
        Parts that still fit on every leaf, and its communication-intensive nodes, this job's
        included (floats).
    leaves
        ``levels, own, shared``: what prices hops, shapes ``(L, L)``, ``(L,)``, ``(L, L)``.
    limit
        Per row, in hops.
    moves, hot, cold
        Moves tried, and the heat at the first and the last, in weight.
    shifts
        Whether counts may change.

    Returns
    -------
    The least weight met, below 1 if no pair is above its limit, and the leaf of every part at it.
    """
    np.random.seed(seed)
    leaf, room, busy = leaf.copy(), room.copy(), busy.copy()
    levels, own, shared = leaves
    first, partner, step = graph
    num, rows = len(busy), len(limit)
    number, weight = np.zeros((rows, num, num)), np.zeros((rows, num, num))
    for part in range(len(leaf)):
        number[-1, leaf[part], leaf[part]] += 2.0
        for i in range(first[part], first[part + 1]):
            number[step[i], leaf[part], leaf[partner[i]]] += 1.0
    for a in range(num):
        _weigh(a, weight, limit, busy, levels, own, shared)
    now = 0.5 * (number * weight).sum()
    least, best = now, leaf.copy()
    for move in range(moves):
        if least < 0.5:
            break
        heat = hot * (cold / hot) ** (move / moves)
        part = np.random.randint(len(leaf))
        a = leaf[part]
        dear = weight[-1, a, a]
        for i in range(first[part], first[part + 1]):
            dear += weight[step[i], a, leaf[partner[i]]]
        if dear == 0.0 and np.random.random() < 0.5:
            continue
        b, other = _drawn(part, leaf, num, first, partner)
        if a == b:
            continue
        if shifts and room[b] > 0 and np.random.random() < _SHIFTED:
            more = -_total(a, b, number, weight)
            _put(part, leaf, b, number, first, partner, step)
            busy[a] -= unit
            busy[b] += unit
            _weigh(a, weight, limit, busy, levels, own, shared)
            _weigh(b, weight, limit, busy, levels, own, shared)
            more += _total(a, b, number, weight)
            if _taken(more, heat):
                room[a] += 1
                room[b] -= 1
                now += more
            else:
                _put(part, leaf, a, number, first, partner, step)
                busy[a] += unit
                busy[b] -= unit
                _weigh(a, weight, limit, busy, levels, own, shared)
                _weigh(b, weight, limit, busy, levels, own, shared)
        else:
            if other < 0 and number[-1, b, b] > 0.0:
                other = _mate(b, leaf, _TRIES * num)
            if other < 0:
                continue
            more = _change(part, other, a, b, leaf, weight, first, partner, step)
            more += _change(other, part, b, a, leaf, weight, first, partner, step)
            if _taken(more, heat):
                _put(part, leaf, b, number, first, partner, step)
                _put(other, leaf, a, number, first, partner, step)
                now += more
        if now < least - 1e-6:
            least = now
            best[:] = leaf
    return least, best


@kernel()
def pack(caps, lines, length):
    """Cover lines of cells by chains of leaves, a separator between any two of a chain.

    A chain fills whole lines, and its end is the end of a line, where none is needed.

    Parameters
    ----------
    caps
        Cells that every leaf can cover.

    Returns
    -------
    The fewest separators, and per chain, last first, its first leaf and the lines it covers;
    separators alone cover lines of chains without a leaf.
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
