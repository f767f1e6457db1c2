"""How far thresholds rise under the same multipliers."""

from __future__ import annotations

import numba
import numpy as np

from topoplace.placement.tree.exact.doubling.kernels.cuts import named_cuts
from topoplace.placement.tree.exact.doubling.kernels.pricing import price, refutes
from topoplace.placement.tree.exact.doubling.kernels.standing import standing


@numba.njit(cache=True, nogil=True)
def rules_out(tables, proof, thresholds):
    """Tell whether multipliers show that thresholds are impossible, in integers."""
    view = standing(tables, thresholds)
    if view.spare < 0:
        return True
    rows = named_cuts(tables, view, thresholds, proof.step, proof.least)
    paths = np.zeros((len(tables.ranks), len(tables.active)), dtype=np.int64)
    value = price(tables, view, rows, proof.shares, proof.senders, proof.receivers, paths)
    return refutes(tables, view, rows, proof.shares, proof.senders, value)


@numba.njit(cache=True, nogil=True)
def first_to_rule_out(tables, packed, thresholds):
    """Return the number of the first multipliers that rule out thresholds, -1 if none do."""
    view = standing(tables, thresholds)
    if view.spare < 0:
        return 0
    paths = np.zeros((len(tables.ranks), len(tables.active)), dtype=np.int64)
    for number in range(len(packed.shares)):
        own = slice(packed.first[number], packed.first[number + 1])
        rows = named_cuts(tables, view, thresholds, packed.step[own], packed.least[own])
        shares, senders = packed.shares[number], packed.senders[own]
        value = price(tables, view, rows, shares, senders, packed.receivers[own], paths)
        if refutes(tables, view, rows, shares, senders, value):
            return number
    return -1


@numba.njit(cache=True, nogil=True)
def raised(tables, proof, values, at, top, order):
    """Return thresholds by number, raised step by step as far as multipliers rule them out."""
    at = at.copy()
    thresholds = values[at]
    for n in order:
        bottom, most = at[n], top[n]
        trial = most  # to the top first: it holds more often than not
        while bottom < most:
            thresholds[n] = values[trial]
            if rules_out(tables, proof, thresholds):
                bottom = trial
            else:
                most = trial - 1
            trial = (bottom + most + 1) // 2
        at[n] = bottom
        thresholds[n] = values[bottom]
    return at
