"""Compiled search over the sets of started requests, bounded by knapsacks (see `_starts`)."""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PLR0912, PLR0915 - a kernel is one loop nest over flat arrays

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.kernels.lists import ranks, write
from topoplace.packing.dual._starts import bound_by

_EMPTY = -1.0  # the bound of a side that contradicts earlier decisions


@kernel()
def decide(state, q, starts, follows):
    """Decide a request and those that follow; return whether this is consistent."""
    state[q] = 1 if starts else -1
    for r in follows[1 if starts else 0, q]:
        if r < 0:
            break
        if state[r] == -state[q]:
            return False
        state[r] = state[q]
    return True


@kernel()
def search_starts(
    state, values, totals, costs, order, among, follows, lower, most, deepest, num_tight, numbers
):
    """Split the state of the largest bound, again and again.

    Parameters
    ----------
    among
        Requests to split.
    follows
        The decisions that follow if a request does not start, or does; -1 ends a list.
    lower
        The value below which bounds need not go.
    most, deepest
        Limits of splits, in total and in depth.
    num_tight
        Points considered when a request is chosen.
    numbers
        Fineness, largest multiple, overfull, safe (see `cut_pool`).

    Returns
    -------
    states, request split or -1, children, bounds by each point, and the bound of the whole.
    """
    room, num_points, num = 2 * most + 1, totals.shape[0], values.shape[0]
    fineness, largest, overfull, safe = numbers
    states = np.empty((room, num), np.int8)
    bounds = np.empty((room, num_points))
    best = np.empty(room)
    depth = np.zeros(room, np.int64)
    is_open = np.zeros(room, np.bool_)
    request = np.full(room, -1)
    children = np.full((room, 2), -1)
    side = np.empty(num, np.int8)
    states[0] = state
    for k in range(num_points):
        bounds[0, k], _ = bound_by(
            state, values, totals[k], costs[k], order[k], fineness, largest, overfull, safe
        )
    best[0] = np.floor(bounds[0].min())
    is_open[0] = True
    size, decided = 1, lower
    while size + 2 <= room:
        top = -1
        for i in range(size):
            if is_open[i] and best[i] > decided and (top < 0 or best[i] > best[top]):
                top = i
        if top < 0:
            break
        highest = bounds[top].min()
        tight = ranks(bounds[top])[:num_tight]
        most_use, chosen = -1.0, -1
        for q in among:
            if states[top, q] != 0 or depth[top] >= deepest:
                continue
            use = 1.0
            for starts in range(2):
                write(states[top], side)
                low = _EMPTY
                if decide(side, q, starts == 1, follows):
                    low = highest
                    for k in tight:
                        b, _ = bound_by(
                            side, values, totals[k], costs[k], order[k],
                            fineness, largest, overfull, safe,
                        )  # fmt: skip
                        low = min(low, b)
                use *= min(max(highest - low, 1e-3), highest - lower)
            if use > most_use:
                most_use, chosen = use, q
        is_open[top] = False
        if chosen < 0:
            decided = max(decided, best[top])
            continue
        request[top] = chosen
        for starts in range(2):
            states[size] = states[top]
            bounds[size] = _EMPTY
            if decide(states[size], chosen, starts == 1, follows):
                for k in range(num_points):
                    b, _ = bound_by(
                        states[size], values, totals[k], costs[k], order[k],
                        fineness, largest, overfull, safe,
                    )  # fmt: skip
                    bounds[size, k] = b
            best[size] = np.floor(bounds[size].min())
            depth[size] = depth[top] + 1
            is_open[size] = True
            children[top, starts] = size
            size += 1
    whole = decided
    for i in range(size):
        if is_open[i]:
            whole = max(whole, best[i])
    return states[:size], request[:size], children[:size], bounds[:size], whole
