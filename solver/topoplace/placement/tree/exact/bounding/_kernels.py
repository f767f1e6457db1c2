"""Compiled loops of the relaxation."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

UNIT = 1 << 16
"""Multipliers are integers in units of 1 / `UNIT`."""


LARGEST = 1024.0
"""Multipliers are kept so small that their products stay within 64 bits."""

NEVER = 1 << 60
"""Hops where there is no partner."""


@kernel()
def spare_ranks(first, multiplicity, count, alive, ranks):
    """Return how many ranks fewer every state leaves room for than the job may spare.

    The room that is left where one leaf is in the state and all others hold as many ranks as
    they can; below 0, the state is impossible.
    """
    most = np.zeros(len(multiplicity), dtype=np.int64)
    spare = -ranks
    for t in range(len(multiplicity)):
        for s in range(first[t], first[t + 1]):
            if alive[s]:
                most[t] = max(most[t], count[s])
        spare += multiplicity[t] * most[t]
    room = np.empty(len(count), dtype=np.int64)
    for t in range(len(multiplicity)):
        for s in range(first[t], first[t + 1]):
            room[s] = spare - most[t] + count[s]
    return room, spare


@kernel()
def nearest(first, multiplicity, kind, type_, crossing, among, room, spare):
    """Return the least hops from every state to a state of another leaf among some.

    Of those that leave room for all ranks together with the state (`room` and `spare` are those
    of `spare_ranks`). Hops grow with the partner's count.
    """
    found = np.full(len(kind), NEVER, dtype=np.int64)
    for s in range(len(kind)):
        for t in range(len(multiplicity)):
            if t == type_[s] and multiplicity[t] == 1:
                continue
            for other in range(first[t], first[t + 1]):
                if among[other] and room[other] + room[s] >= spare:
                    found[s] = min(found[s], crossing[kind[s], kind[other]])
                    break
    return found


@kernel()
def _most(count, alive, first, multiplicity, rows, least, mults, chosen):
    """Return the most ranks that multipliers allow, times `UNIT`; all in integers.

    Writes to `chosen` the state taken by the leaves of every type, -1 for none.
    """
    total = 0
    for r in range(len(mults)):
        total -= mults[r] * least[r]
    for t in range(len(multiplicity)):
        best = 0
        chosen[t] = -1
        for s in range(first[t], first[t + 1]):
            if alive[s]:
                value = UNIT * count[s]
                for r in range(len(mults)):
                    value += mults[r] * rows[s, r]
                if value > best:
                    best = value
                    chosen[t] = s
        total += multiplicity[t] * best
    return total


@kernel()
def refute(count, alive, first, multiplicity, rows, least, ranks, rounds):
    """Look for multipliers that show that no choice of states holds all ranks.

    Every choice has ``sum of rows[:, r] >= least[r]``, so for multipliers >= 0 it holds at most
    ``max sum (count + sum_r mult_r rows[:, r]) - sum_r mult_r least[r]`` ranks. The multipliers
    follow the subgradient with Polyak's step.

    Returns
    -------
    bool
        Whether they were found; then `UNIT` x ranks is out of reach in integer arithmetic.
    """
    num_rows = len(least)
    mults = np.zeros(num_rows, dtype=np.int64)
    exact = np.zeros(num_rows)
    chosen = np.empty(len(multiplicity), dtype=np.int64)
    slope = np.empty(num_rows)
    target = UNIT * ranks
    for r in range(num_rows):
        # one row alone: no choice of states reaches its least
        total = 0
        for t in range(len(multiplicity)):
            most = 0
            for s in range(first[t], first[t + 1]):
                if alive[s]:
                    most = max(most, rows[s, r])
            total += multiplicity[t] * most
        if total < least[r]:
            return True
    best = target * 1000
    stale = 0
    reach = 1.0
    for _ in range(rounds + 1):
        found = _most(count, alive, first, multiplicity, rows, least, mults, chosen)
        if found < target:
            return True
        if found < best - (best - target) // 64:
            best = found
            stale = 0
        else:
            stale += 1
            if stale > 12:
                stale = 0
                reach *= 0.5
                if reach < 0.1:
                    return False
        norm = 0.0
        for r in range(num_rows):
            slope[r] = -least[r]
            for t in range(len(multiplicity)):
                if chosen[t] >= 0:
                    slope[r] += multiplicity[t] * rows[chosen[t], r]
            if exact[r] <= 0.0 and slope[r] > 0.0:
                slope[r] = 0.0
            norm += slope[r] * slope[r]
        if norm == 0.0:
            return False
        step = reach * (found - target + 0.5 * UNIT) / UNIT / norm
        for r in range(num_rows):
            exact[r] = min(max(0.0, exact[r] - step * slope[r]), LARGEST)
            mults[r] = round(exact[r] * UNIT)
    return False
