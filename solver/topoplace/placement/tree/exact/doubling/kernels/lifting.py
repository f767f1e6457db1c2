"""How far thresholds rise under the same multipliers."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel
from topoplace.placement.tree.exact.cutting.kernels.corners import ceiling
from topoplace.placement.tree.exact.doubling.kernels.cuts import named_cuts, renew
from topoplace.placement.tree.exact.doubling.kernels.pricing import refutes
from topoplace.placement.tree.exact.doubling.kernels.standing import standing


@kernel()
def rules_out(tables, proof, thresholds, hint):
    """Tell whether multipliers show that thresholds are impossible, in integers."""
    view = standing(tables, thresholds)
    if view.spare < 0:
        return True
    rows = named_cuts(tables, view, thresholds, proof.step, proof.least)
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
    rows = named_cuts(tables, last, thresholds, proof.step, proof.least)
    for n in order:
        bottom, most = at[n], ceiling(possible, sets, at, n, top[n])
        trial = most  # to the top first: it holds often
        stride = 1
        while bottom < most:
            thresholds[n] = values[trial]
            view = standing(tables, thresholds)
            # where as many states are left as at the last trial, they pair as they did there
            same = view.spare == last.spare and (view.alive == last.alive).all()
            renew(tables, view, thresholds, rows, n if same else -1)
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
        renew(tables, last, thresholds, rows, n)
    return at
