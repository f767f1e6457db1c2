"""Compiled loops that exchange the parts of a grid until no two are neighbours that may not be.

Parts carry *labels*. What two labels may do does not change, so that an exchange is weighed by
the neighbours of two parts alone.
"""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

_TROUBLED = 0.8
"""How often a part to move is drawn from those with a forbidden neighbour."""

_BESIDE = 0.8
"""How often its new label is that of a neighbour."""

_COOLING = 1024
"""Moves between two changes of the heat."""


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
def exchanged(label, bad, graph, moves, hot, cold, seed):
    """Exchange labels of parts by simulated annealing until nobody has a forbidden neighbour.

    Parameters
    ----------
    label
        Of every part; as many parts keep each.
    bad
        Whether a part with one label may not be beside one with another, shape ``(rows, L, L)``.
    graph
        ``first, partner, step``: the pairs of part `p` are ``partner[first[p] : first[p + 1]]``,
        and ``step`` has their rows. Every part has a pair.
    moves, hot, cold
        Moves tried, and the heat at the first and the last, in forbidden pairs.

    Returns
    -------
    The fewest forbidden pairs met, and the labels at them.
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
    heat = hot
    cooler = (cold / hot) ** (_COOLING / max(moves, _COOLING))
    for move in range(moves):
        if least == 0:
            break
        if move % _COOLING == _COOLING - 1:
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
    return least, best
