"""Compiled bounds of sets of started requests by points of a pool (see `cut_pool`).

A state has a number for every request: 1 if it starts, -1 if not, 0 if that is not decided.
"""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def bound_by(state, values, total, costs, order, fineness, largest, overfull, safe):
    """Bound what a state may start by the best multiple of a point's prices (see `cut_pool`).

    The multiple is returned as well, in units of ``1 / fineness``.
    """
    room, worth, certain = total, 0.0, 0.0
    for q in range(values.shape[0]):
        if state[q] == 1:
            room -= costs[q]
            certain += values[q]
        if state[q] >= 0:
            worth += values[q]
    multiple = 0.0
    if room < -overfull:
        multiple = 2.0 * (1.0 + worth) / -room
    else:
        filled = 0.0
        for q in order:
            if state[q] == 0:
                filled += costs[q]
                if filled > room:
                    multiple = min(largest, values[q] / max(costs[q], 1e-9))
                    break
    times = np.ceil(multiple * fineness)
    multiple = times / fineness
    bound = certain + multiple * room + safe
    for q in range(values.shape[0]):
        if state[q] == 0:
            bound += max(0.0, values[q] - multiple * costs[q])
    return bound, times


@kernel()
def bounds_by(states, values, totals, costs, order, numbers):
    """Bound states by points: bounds and multiples, shape ``(num_states, num_points)``."""
    fineness, largest, overfull, safe = numbers
    bounds = np.empty((states.shape[0], totals.shape[0]))
    times = np.empty((states.shape[0], totals.shape[0]), np.int64)
    for i in range(states.shape[0]):
        for k in range(totals.shape[0]):
            bounds[i, k], times[i, k] = bound_by(
                states[i], values, totals[k], costs[k], order[k],
                fineness, largest, overfull, safe,
            )  # fmt: skip
    return bounds, times
