"""Compiled loops of binomial jobs: states left, inequalities, best plans, how far thresholds rise.

A *plan* is a state with its active ranks before every step and at the end (docs/proofs/tree.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.switches.exact._boxes import ceiling
from topoplace.placement.switches.exact.job import NOTHING, States
from topoplace.types import BoolArray, IntArray


class Tables(NamedTuple):
    """States of a binomial job, and its steps.

    Attributes
    ----------
    held
        Per type, whether no leaf may be without ranks.
    active
        Active ranks before every step and at the end.
    idle
        Active ranks without a child in every step.
    """

    states: States
    held: BoolArray
    active: IntArray
    idle: IntArray


class Standing(NamedTuple):
    """What thresholds leave: states, and their partners and pairs in every step.

    Attributes
    ----------
    alive
        Which states have a plan left.
    closed, able
        Per step, whether a state has no partner leaf, and whether it may have pairs inside;
        shape ``(num_steps, num_states)``.
    short, spare
        Per state, ranks fewer than the most that leaves of its type can hold, and how many all
        leaves together lack: two leaves that lack more do not go together.
    full
        Per type, whether none of its leaves can be without ranks.
    """

    alive: BoolArray
    closed: BoolArray
    able: BoolArray
    short: IntArray
    spare: int
    full: BoolArray


class Cuts(NamedTuple):
    """Per inequality its step, the least key of its states, the bad ones and their partners."""

    step: IntArray
    least: IntArray
    bad: BoolArray
    near: BoolArray


# ---- What thresholds leave -------------------------------------------------------------------


@kernel()
def shortfalls(tables, alive):
    """Return what every state lacks of the most ranks of its type, those, and the spare ranks.

    Below 0 spare, the ranks of the job do not fit.
    """
    most = np.zeros(len(tables.states.multiplicity), dtype=np.int64)
    for s in range(len(alive)):
        if alive[s]:
            most[tables.states.leaf_type[s]] = max(
                most[tables.states.leaf_type[s]], tables.states.ranks[s]
            )
    spare = (most * tables.states.multiplicity).sum() - tables.active[-1]
    return most[tables.states.leaf_type] - tables.states.ranks, most, spare


@kernel()
def nearest(tables, alive, short, spare, s):
    """Return the least hops of a state to one on another leaf; they grow with its ranks."""
    found = np.int64(1 << 60)
    for t in range(len(tables.states.multiplicity)):
        for other in range(tables.states.first[t], tables.states.first[t + 1]):
            if alive[other] and short[s] + short[other] <= spare:
                found = min(found, tables.states.pair[s, other])
                break
    return found


@kernel()
def _reaches(ranks, active, closed, able, s):
    """Tell whether a state has a trajectory."""
    reach = np.zeros(ranks + 1, dtype=np.bool_)
    after = np.zeros(ranks + 1, dtype=np.bool_)
    reach[0] = True
    reach[1] = True
    for n in range(len(closed)):
        after[:] = False
        if closed[n, s]:
            after[0] = reach[0]
            if able[n, s]:
                for a in range(1, ranks // 2 + 1):
                    after[2 * a] = reach[a]
        else:
            lowest = 0
            while lowest <= ranks and not reach[lowest]:
                lowest += 1
            after[lowest:] = True
        for a in range(min(ranks, active[n + 1]) + 1, ranks + 1):
            after[a] = False
        reach, after = after, reach
    return reach[ranks]


@kernel()
def standing(tables, thresholds):
    """Return which states have a plan under thresholds, and what they do in every step."""
    num_steps, num = len(thresholds), len(tables.states.ranks)
    alive = np.ones(num, dtype=np.bool_)
    closed = np.zeros((num_steps, num), dtype=np.bool_)
    able = np.zeros((num_steps, num), dtype=np.bool_)
    for n in range(num_steps):
        for s in range(num):
            able[n, s] = tables.states.inside[s] <= thresholds[n]
    while True:
        short, most, spare = shortfalls(tables, alive)
        changed = False
        for s in range(num):
            if alive[s] and short[s] > spare:
                alive[s] = False
                changed = True
        if changed:
            continue
        for s in range(num):
            if not alive[s]:
                continue
            least = nearest(tables, alive, short, spare, s)
            crosses = True
            for n in range(num_steps):
                closed[n, s] = least > thresholds[n] and tables.idle[n] == 0
                crosses &= not closed[n, s]
            if not crosses and not _reaches(tables.states.ranks[s], tables.active, closed, able, s):
                alive[s] = False
                changed = True
        if not changed:
            return Standing(alive, closed, able, short, spare, tables.held | (most > spare))


# ---- Inequalities ----------------------------------------------------------------------------


@kernel()
def _cut(tables, view, threshold, least, bad, near):
    """Write the states left from a key on that cannot pair with each other, and their partners."""
    states = tables.states
    num = len(view.alive)
    near[:] = False
    for s in range(num):
        if view.alive[s] and states.key[s] >= least:
            for other in range(num):
                if (
                    view.alive[other]
                    and not near[other]
                    and states.pair[s, other] <= threshold
                    and view.short[s] + view.short[other] <= view.spare
                ):
                    near[other] = True
    for s in range(num):
        bad[s] = view.alive[s] and states.key[s] >= least and not near[s]


@kernel()
def cuts(tables, view, thresholds):
    """Return the inequalities of all steps, for every set of partners that of most bad states."""
    num = len(view.alive)
    keys = np.unique(tables.states.key[view.alive])
    most = len(thresholds) * len(keys)
    step = np.empty(most, dtype=np.int64)
    lowest = np.empty(most, dtype=np.int64)
    bad = np.empty((most, num), dtype=np.bool_)
    near = np.empty((most, num), dtype=np.bool_)
    found = 0
    for n in range(len(thresholds)):
        begin = found
        for key in keys:
            if key <= thresholds[n]:
                continue
            _cut(tables, view, thresholds[n], key, bad[found], near[found])
            useful = (bad[found] & ~view.closed[n]).any()
            if useful and (found == begin or (near[found] != near[found - 1]).any()):
                step[found] = n
                lowest[found] = key
                found += 1
    return Cuts(step[:found], lowest[:found], bad[:found], near[:found])


@kernel()
def _named_cuts(tables, view, thresholds, proof):
    """Return the inequalities of a proof."""
    bad = np.empty((len(proof.step), len(view.alive)), dtype=np.bool_)
    rows = Cuts(proof.step, proof.least, bad, np.empty_like(bad))
    _renew(tables, view, thresholds, rows, -1)
    return rows


@kernel()
def _renew(tables, view, thresholds, rows, only):
    """Write the states of inequalities again, those of one step only or, if it is -1, of all."""
    for r in range(len(rows.step)):
        n = rows.step[r]
        if only in (-1, n):
            _cut(tables, view, thresholds[n], rows.least[r], rows.bad[r], rows.near[r])


# ---- Plans -----------------------------------------------------------------------------------


@kernel()
def _best_plan(tables, view, rows, shares, senders, receivers, s, best, came):
    """Return the largest value of a plan of a state, its active ranks' origins in `came`."""
    num_steps = len(tables.idle)
    of_active = shares.copy()
    of_new = np.zeros(num_steps, dtype=np.int64)
    of_inside = np.zeros(num_steps, dtype=np.int64)
    for r in range(len(rows.step)):
        n = rows.step[r]
        if rows.bad[r, s]:
            of_active[n] -= senders[r]
            of_new[n] -= receivers[r]
            of_inside[n] += senders[r] + receivers[r]
        elif rows.near[r, s]:
            of_active[n] += receivers[r]
            of_new[n] += senders[r]
    ranks = tables.states.ranks[s]
    best[:, : ranks + 1] = NOTHING
    best[0, 0] = 0
    best[0, 1] = of_active[0]
    for n in range(num_steps):
        inside = of_inside[n] if view.able[n, s] else 0
        highest = min(ranks, tables.active[n + 1])
        for a in range(min(ranks, tables.active[n]) + 1):
            so_far = best[n, a]
            if so_far == NOTHING:
                continue
            low, high = a, highest
            if view.closed[n, s]:
                if 2 * a > highest or (a > 0 and not view.able[n, s]):
                    continue
                low = high = 2 * a
            for after in range(low, high + 1):
                new = after - a
                found = so_far + of_new[n] * new + of_active[n + 1] * after
                found += inside * min(a, new)
                if found > best[n + 1, after]:
                    best[n + 1, after] = found
                    came[n + 1, after] = a
    return best[num_steps, ranks]


@kernel()
def _room(tables):
    """Return tables to find a plan with."""
    shape = len(tables.active), tables.states.ranks.max() + 1
    return np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)


@kernel()
def _wanted(tables, rows, shares, senders):
    """Return the least value that all plans together need."""
    wanted = (shares * tables.active).sum()
    for r in range(len(senders)):
        wanted -= senders[r] * tables.idle[rows.step[r]]
    return wanted


@kernel()
def refutes(tables, view, rows, shares, senders, receivers, hint):
    """Tell whether multipliers rule out what thresholds leave.

    `hint` has the state to begin with, and in the end the last one seen: where multipliers fail,
    they often fail at the same state.
    """
    room = np.zeros(len(view.full), dtype=np.int64)
    unseen = view.full.copy()
    lack = _wanted(tables, rows, shares, senders)
    best, came = _room(tables)
    first = hint[0]
    for turn in range(len(tables.states.ranks) + 1):
        s = first if turn == 0 else turn - 1
        if not view.alive[s] or (turn and s == first):
            continue
        value = _best_plan(tables, view, rows, shares, senders, receivers, s, best, came)
        t = tables.states.leaf_type[s]
        if value > NOTHING and (unseen[t] or value > room[t]):
            lack -= (value - room[t]) * tables.states.multiplicity[t]
            room[t] = value
            unseen[t] = False
        hint[0] = s
        if lack <= 0 and not unseen.any():
            return False
    return True


@kernel()
def weigh(tables, view, rows, duals, unit):
    """Return multipliers as integers, whether they refute, and plans of higher value than known.

    Multipliers are in units of 1 / `unit`. These plans are those of states in a list, with the best
    trajectory of every state.
    """
    num_active, num_cuts = len(tables.active), len(rows.step)
    scaled = np.empty(len(duals), dtype=np.int64)
    for i in range(len(duals)):
        scaled[i] = np.int64(np.rint(duals[i] * unit))
        if i >= num_active:
            scaled[i] = -scaled[i]
            if i < num_active + 2 * num_cuts:
                scaled[i] = max(0, scaled[i])
    shares = scaled[:num_active]
    senders = scaled[num_active : num_active + num_cuts]
    receivers = scaled[num_active + num_cuts : num_active + 2 * num_cuts]
    of_type = scaled[num_active + 2 * num_cuts :]
    best, came = _room(tables)
    most = np.where(view.full, NOTHING, 0)
    better = np.zeros(len(view.alive), dtype=np.bool_)
    paths = np.zeros((len(better), num_active), dtype=np.int64)
    for s in np.flatnonzero(view.alive):
        value = _best_plan(tables, view, rows, shares, senders, receivers, s, best, came)
        t = tables.states.leaf_type[s]
        most[t] = max(most[t], value)
        better[s] = value > of_type[t] + 2
        if value == NOTHING:
            continue
        at = tables.states.ranks[s]
        for n in range(num_active - 1, -1, -1):
            paths[s, n] = at
            if n:
                at = came[n, at]
    wanted = _wanted(tables, rows, shares, senders)
    refuted = wanted > (most * tables.states.multiplicity).sum()
    return shares, senders, receivers, refuted, np.flatnonzero(better), paths


# ---- Thresholds that rise or fall ------------------------------------------------------------


@kernel()
def rules_out(tables, proof, thresholds, hint):
    """Tell whether multipliers show that thresholds are impossible, in integers."""
    view = standing(tables, thresholds)
    if view.spare < 0:
        return True
    rows = _named_cuts(tables, view, thresholds, proof)
    return refutes(tables, view, rows, proof.shares, proof.senders, proof.receivers, hint)


@kernel()
def raised(tables, proof, values, at, top, order, possible, sets):
    """Return thresholds by number, raised step by step as far as multipliers rule them out.

    None are tried above some that are possible, vectors in sets of `corners`.
    """
    at = at.copy()
    thresholds = values[at]
    hint = np.zeros(1, dtype=np.int64)
    last = standing(tables, thresholds)
    rows = _named_cuts(tables, last, thresholds, proof)
    for n in order:
        bottom, most = at[n], ceiling(possible, sets, at, n, top[n])
        trial = most  # to the top first: it holds often
        stride = 1
        while bottom < most:
            thresholds[n] = values[trial]
            view = standing(tables, thresholds)
            # where as many states are left as at the last trial, they pair as they did there
            same = view.spare == last.spare and (view.alive == last.alive).all()
            _renew(tables, view, thresholds, rows, n if same else -1)
            last = view
            if view.spare < 0 or refutes(
                tables, view, rows, proof.shares, proof.senders, proof.receivers, hint
            ):
                bottom = trial
                stride *= 2
            else:
                most = trial - 1
            # otherwise mostly by few
            trial = min(bottom + stride, (bottom + most + 1) // 2)
        at[n] = bottom
        thresholds[n] = values[bottom]
        _renew(tables, last, thresholds, rows, n)
    return at


@kernel()
def _serves(tables, weight, state, path, n, threshold):
    """Tell whether weighted plans can have their step at most at a threshold."""
    num = len(tables.states.ranks)
    alive = np.zeros(num, dtype=np.bool_)
    alive[state] = True
    short, _, spare = shortfalls(tables, alive)
    nothing = np.zeros((0, 0), dtype=np.bool_)
    view = Standing(alive, nothing, nothing, short, spare, alive)
    for j in range(len(state)):
        s = state[j]
        if short[s] > spare:
            return False
        if tables.idle[n] == 0 and nearest(tables, alive, short, spare, s) > threshold:
            a = path[j, n]
            if path[j, n + 1] != 2 * a or (a > 0 and tables.states.inside[s] > threshold):
                return False
    bad = np.empty(num, dtype=np.bool_)
    near = np.empty(num, dtype=np.bool_)
    for key in np.unique(tables.states.key[state]):
        if key <= threshold:
            continue
        _cut(tables, view, threshold, key, bad, near)
        sent, received = -1e-6 - tables.idle[n], -1e-6
        for j in range(len(state)):
            s = state[j]
            a = path[j, n]
            new = path[j, n + 1] - a
            if bad[s]:
                inside = min(a, new) if tables.states.inside[s] <= threshold else 0
                sent += weight[j] * (a - inside)
                received += weight[j] * (new - inside)
            elif near[s]:
                sent -= weight[j] * new
                received -= weight[j] * a
        if sent > 0 or received > 0:
            return False
    return True


@kernel()
def lowest(tables, values, at, weight, state, path):
    """Return the least values, by number and up to some, that weighted plans can have."""
    found = at.copy()
    for n in range(len(at)):
        bottom = 0
        while bottom < found[n]:
            middle = (bottom + found[n]) // 2
            if _serves(tables, weight, state, path, n, values[middle]):
                found[n] = middle
            else:
                bottom = middle + 1
    return found
