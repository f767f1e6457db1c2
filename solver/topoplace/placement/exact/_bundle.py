"""Compiled minimisation of the bundle's model near a centre (see `bundle`).

Arrays are indexed by column, packing row or earlier level. The columns of request q are
`members[first[q]] .. members[first[q+1] - 1]`; column j occupies the rows
`rows[starts[j]] .. rows[starts[j+1] - 1]`.
"""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PLR0912, PLR0915 - a kernel is one loop nest over flat arrays

from __future__ import annotations

import numba
import numpy as np

_LOOK = 4  # passes from one look at all columns to the next
_EXCHANGES = 3  # at most, of amounts of one request in a pass


@numba.njit(cache=True, nogil=True)
def gain_of(j, costs, earlier, starts, rows, prices, multipliers):
    """Return a column's value at prices: its worth less what its rows cost."""
    gain = costs[j]
    for k in range(multipliers.shape[0]):
        gain += multipliers[k] * earlier[k, j]
    for k in range(starts[j], starts[j + 1]):
        gain -= prices[rows[k]]
    return gain


@numba.njit(cache=True, nogil=True)
def pair_curvature(up, down, earlier, starts, rows, prices, softness, level_softness, mark):
    """Return a bound on the curvature along "more of column up, less of down" (-1: neither).

    Leaves `mark` 1 on the rows of `up` alone, 2 on those of both.
    """
    bend = 0.0
    if up >= 0:
        for k in range(starts[up], starts[up + 1]):
            mark[rows[k]] = 1
    if down >= 0:
        for k in range(starts[down], starts[down + 1]):
            r = rows[k]
            if mark[r]:
                mark[r] = 2
            elif prices[r] > 0:
                bend += softness[r]
    if up >= 0:
        for k in range(starts[up], starts[up + 1]):
            if mark[rows[k]] == 1:
                bend += softness[rows[k]]
    for k in range(level_softness.shape[0]):
        change = (earlier[k, up] if up >= 0 else 0.0) - (earlier[k, down] if down >= 0 else 0.0)
        bend += level_softness[k] * change * change
    return bend


@numba.njit(cache=True, nogil=True)
def shift(
    j, by, starts, rows, earlier, centre, softness, load, prices,
    reached, level_centre, level_softness, level_load, multipliers, amounts,
):  # fmt: skip
    """Take so much more of a column, and bring loads and prices up to date."""
    amounts[j] += by
    for k in range(starts[j], starts[j + 1]):
        r = rows[k]
        load[r] += by
        prices[r] = max(0.0, centre[r] + softness[r] * (load[r] - 1.0))
    for k in range(multipliers.shape[0]):
        level_load[k] += by * earlier[k, j]
        multipliers[k] = max(
            0.0, level_centre[k] - level_softness[k] * (level_load[k] - reached[k])
        )


@numba.njit(cache=True, nogil=True)
def minimise_near(
    first, members, forced, costs, earlier, reached, starts, rows,
    centre, softness, level_centre, level_softness,
    amounts, load, prices, level_load, multipliers,
    centre_value, accuracy, max_passes,
):  # fmt: skip
    """Find the prices that minimise the model plus their weighted squared distance to a centre.

    The dual of that problem is maximised over `amounts` (how much of every column, at most 1 per
    request, exactly 1 of a forced one) by moving amount between two columns of a request at a
    time. `load` and `prices`, `level_load` and `multipliers` must fit the amounts, and do so in
    the end. `softness` is by how much a row's price rises per unit of load (rows that no column
    may use: 0). Stops when the duality gap is below `accuracy` times the descent from
    `centre_value` that the model predicts.

    Returns the model's value at the prices found, and whether the gap came down that far.
    """
    num_requests = first.shape[0] - 1
    gains = np.zeros(costs.shape[0])
    live = np.ones(costs.shape[0], np.uint8)
    mark = np.zeros(prices.shape[0], np.uint8)
    model, gap = 0.0, 0.0
    for turn in range(max_passes):
        look = turn % _LOOK == 0
        model, gap = 0.0, 0.0
        for q in range(num_requests):
            for exchange in range(_EXCHANGES):
                up, down = -1, -2
                high = -np.inf if forced[q] else 0.0
                low = np.inf
                used, worth = 0.0, 0.0
                for m in range(first[q], first[q + 1]):
                    j = members[m]
                    if exchange > 0 and amounts[j] <= 0:
                        continue
                    if not look and not live[j]:
                        continue
                    gain = gain_of(j, costs, earlier, starts, rows, prices, multipliers)
                    gains[j] = gain
                    if gain > high:
                        high, up = gain, j
                    if amounts[j] > 0:
                        used += amounts[j]
                        worth += amounts[j] * gain
                        if gain < low:
                            low, down = gain, j
                if high == -np.inf:
                    break
                if exchange == 0:
                    model += high
                    gap += high - worth
                if not forced[q] and used < 1 - 1e-12 and low > 0:
                    low, down = 0.0, -1
                if look and exchange == 0:
                    for m in range(first[q], first[q + 1]):
                        j = members[m]
                        live[j] = amounts[j] > 0 or gains[j] >= low
                if down in (-2, up) or high - low <= 1e-12:
                    break
                bend = pair_curvature(
                    up, down, earlier, starts, rows, prices, softness, level_softness, mark
                )
                if up >= 0:
                    for k in range(starts[up], starts[up + 1]):
                        mark[rows[k]] = 0
                most = amounts[down] if down >= 0 else 1.0 - used
                by = most if bend * most <= high - low else (high - low) / bend
                if up >= 0:
                    shift(
                        up, by, starts, rows, earlier, centre, softness, load, prices,
                        reached, level_centre, level_softness, level_load, multipliers, amounts,
                    )  # fmt: skip
                if down >= 0:
                    shift(
                        down, -by, starts, rows, earlier, centre, softness, load, prices,
                        reached, level_centre, level_softness, level_load, multipliers, amounts,
                    )  # fmt: skip
                    if by == most:
                        amounts[down] = 0.0
        model += prices.sum()
        for k in range(multipliers.shape[0]):
            model -= multipliers[k] * reached[k]
        if look and gap <= accuracy * max(centre_value - model, 1e-6 * abs(centre_value)):
            return model, True
    return model, False
