"""Compiled loops that build and improve assignments of ranks to leaves."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def price(leaf, pairs, first, prices, busy, own, shared, kind, levels):
    """Return the cost of an assignment of parts to leaves and a smooth stand-in for it.

    The stand-in takes the 12-norm of a step's hops in place of their maximum.
    """
    cost, smooth = 0.0, 0.0
    for step in range(len(prices)):
        worst, total = 0.0, 0.0
        for i in range(first[step], first[step + 1]):
            a, b = leaf[pairs[i, 0]], leaf[pairs[i, 1]]
            if a == b:
                hops = 2.0 * (1.0 + busy[a] * own[a])
            else:
                both = (busy[a] + busy[b]) * shared[kind[a], kind[b]]
                hops = levels[a, b] * (1.0 + busy[a] * own[a] + busy[b] * own[b] + both)
            worst = max(worst, hops)
            square = hops * hops / 256.0
            fourth = square * square
            total += fourth * fourth * fourth
        cost += prices[step] * worst
        smooth += prices[step] * 16.0 * (total / (first[step + 1] - first[step])) ** (1.0 / 12.0)
    return cost, smooth


@kernel()
def anneal(
    leaf,
    size,
    room,
    busy,
    pairs,
    first,
    prices,
    own,
    shared,
    kind,
    levels,
    domain,
    moves,
    hot,
    seed,
):
    """Improve an assignment of parts (of `size` ranks) to leaves; return the best one met.

    A move puts a run of parts on one leaf, or exchanges two runs of the same length.
    """
    np.random.seed(seed)
    num = len(leaf)
    spans = 0
    while (1 << spans) < num:
        spans += 1
    best = leaf.copy()
    cost, smooth = price(leaf, pairs, first, prices, busy, own, shared, kind, levels)
    best_cost = cost
    current = cost + 0.2 * smooth
    cold = hot / 40.0
    old = np.empty(2 * num, dtype=np.int64)
    for move in range(moves):
        heat = hot * (cold / hot) ** (move / moves)
        length = 1
        if np.random.random() < 0.5:
            length = 1 << np.random.randint(0, max(1, spans))
        at = np.random.randint(0, num) // length * length
        end = min(num, at + length)
        other = -1
        target = -1
        if np.random.random() < 0.5:
            other = np.random.randint(0, num) // length * length
            if other == at or other + length > num or end - at < length:
                continue
        else:
            target = domain[np.random.randint(0, len(domain))]
        for i in range(end - at):
            old[i] = leaf[at + i]
            if other >= 0:
                old[num + i] = leaf[other + i]
        changed = False
        for i in range(end - at):
            new = target if other < 0 else old[num + i]
            changed = changed or new != old[i]
            busy[old[i]] -= size[at + i]
            room[old[i]] += size[at + i]
            busy[new] += size[at + i]
            room[new] -= size[at + i]
            leaf[at + i] = new
            if other >= 0:
                busy[old[num + i]] -= size[other + i]
                room[old[num + i]] += size[other + i]
                busy[old[i]] += size[other + i]
                room[old[i]] -= size[other + i]
                leaf[other + i] = old[i]
        accept = changed
        if changed:
            for i in range(end - at):
                if room[leaf[at + i]] < 0 or (other >= 0 and room[leaf[other + i]] < 0):
                    accept = False
                    break
        if accept:
            cost, smooth = price(leaf, pairs, first, prices, busy, own, shared, kind, levels)
            value = cost + 0.2 * smooth
            accept = value <= current or np.random.random() < np.exp((current - value) / heat)
            if accept:
                current = value
                if cost < best_cost * (1.0 - 1e-12):
                    best_cost = cost
                    best[:] = leaf
        if not accept:
            for i in range(end - at):
                new = leaf[at + i]
                busy[new] -= size[at + i]
                room[new] += size[at + i]
                busy[old[i]] += size[at + i]
                room[old[i]] -= size[at + i]
                leaf[at + i] = old[i]
                if other >= 0:
                    busy[old[i]] -= size[other + i]
                    room[old[i]] += size[other + i]
                    busy[old[num + i]] += size[other + i]
                    room[old[num + i]] -= size[other + i]
                    leaf[other + i] = old[num + i]
    return best


@kernel()
def exhaust(
    pairs,
    first,
    step,
    price,
    job,
    counts,
    room,
    busy,
    levels,
    scale,
    own,
    shared,
    twin,
    best,
    limit,
):
    """Try every assignment of ranks to leaves; return the best cost, whether all were tried.

    Ranks are placed in order. Hops only grow as ranks are added, so the maxima of the steps over
    the pairs placed so far bound the cost from below.

    Parameters
    ----------
    pairs, first, step
        Pairs of all steps and the step of each; the higher rank of those before ``first[r + 1]``
        is at most r.
    price
        Per step.
    job, counts
        Job of every rank; per job, whether its nodes count in L_comm.
    room, busy
        Free nodes and L_comm of every leaf.
    levels, scale, own, shared
        Hops are ``levels x (scale + busy x own + ..)``, in integers; a level of 0 is none.
    twin
        Per leaf, an earlier interchangeable one that is to be used first, or -1.
    best
        The cost to beat.
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
            return best, False, answer
        legal = True
        if counts[job[at_rank]]:
            for r in range(at_rank):
                legal = legal and (job[r] != job[at_rank] or levels[leaf[r], at] > 0)
        if not legal:
            continue
        worst[:] = 0
        for i in range(first[at_rank + 1]):
            a, b = leaf[pairs[i, 0]], leaf[pairs[i, 1]]
            found = scale + busy[a] * own[a]
            if a != b:
                found += busy[b] * own[b] + (busy[a] + busy[b]) * shared[a, b]
            worst[step[i]] = max(worst[step[i]], levels[a, b] * found)
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
    return best, True, answer
