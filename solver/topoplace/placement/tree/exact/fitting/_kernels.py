"""Compiled loops that exchange ranks until no pair is above its threshold."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

LARGEST_RUN = 16
"""Longest runs of ranks that are exchanged at once."""


@kernel()
def _above(begin, length, marked, leaf, first, partner, step, too_dear):
    """Return twice the pairs of a run of ranks that are above their thresholds.

    Those with both ranks marked are met from both ends, so they count half as much each time.
    """
    total = 0
    for rank in range(begin, begin + length):
        for i in range(first[rank], first[rank + 1]):
            if too_dear[step[i], leaf[rank], leaf[partner[i]]]:
                total += 1 if marked[partner[i]] else 2
    return total


@kernel()
def _exchange(a, b, length, leaf):
    for i in range(length):
        leaf[a + i], leaf[b + i] = leaf[b + i], leaf[a + i]


@kernel()
def exchange(leaf, first, partner, step, too_dear, moves, hot, cold, seed):
    """Exchange ranks, and runs of 2^n ranks, of different leaves by simulated annealing.

    Parameters
    ----------
    leaf
        Leaf of every rank, changed in place.
    first, partner, step
        The pairs of every rank: ``partner[first[rank] : first[rank + 1]]``, and their steps.
    too_dear
        Per step and two leaves, whether a pair of theirs is above the threshold.
    moves, hot, cold
        Exchanges tried, and the heat at the first and the last, in pairs.

    Returns
    -------
    The fewest pairs above their thresholds, and an assignment with so many.
    """
    np.random.seed(seed)
    ranks = len(leaf)
    marked = np.empty(ranks, dtype=np.bool_)
    marked[:] = True
    now = _above(0, ranks, marked, leaf, first, partner, step, too_dear) // 2
    marked[:] = False
    fewest, best = now, leaf.copy()
    spans = 0
    while (1 << spans) < min(LARGEST_RUN, ranks // 2):
        spans += 1
    for move in range(moves):
        if fewest == 0:
            break
        length = 1 << np.random.randint(0, spans + 1) if np.random.random() < 0.5 else 1
        a = np.random.randint(0, ranks // length) * length
        b = np.random.randint(0, ranks // length) * length
        alike = True
        for i in range(length):
            alike = alike and leaf[a + i] == leaf[b + i]
        if alike:
            continue
        marked[a : a + length] = True
        marked[b : b + length] = True
        before = _above(a, length, marked, leaf, first, partner, step, too_dear)
        before += _above(b, length, marked, leaf, first, partner, step, too_dear)
        _exchange(a, b, length, leaf)
        after = _above(a, length, marked, leaf, first, partner, step, too_dear)
        after += _above(b, length, marked, leaf, first, partner, step, too_dear)
        marked[a : a + length] = False
        marked[b : b + length] = False
        more = (after - before) // 2
        heat = hot * (cold / hot) ** (move / moves)
        if more <= 0 or np.random.random() < np.exp(-more / heat):
            now += more
            if now < fewest:
                fewest = now
                best[:] = leaf
        else:
            _exchange(a, b, length, leaf)
    return fewest, best
