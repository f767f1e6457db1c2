"""The value of the most valuable plan of a leaf, compiled (docs/proofs/tree.md)."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

NONE = -(1 << 61)
"""The value of a state that no plan reaches."""


@kernel()
def best_plans(ranks, active, crosses, able, of_active, of_new, of_inside):
    """Return the largest value of a plan, per state; `NONE` if it has none.

    `active` are the active ranks of all leaves before every step and at the end. `crosses` and
    `able` say for steps and states whether ranks may have children on other leaves, and on their
    own; `of_active`, `of_new` and `of_inside` have for states and steps (and the end) the value of
    an active rank, a new one and a pair inside.
    """
    num_steps, num = crosses.shape
    found = np.empty(num, dtype=np.int64)
    for s in range(num):
        most = ranks[s]
        best = np.full(most + 1, NONE, dtype=np.int64)
        best[0] = 0
        best[1] = of_active[s, 0]
        for n in range(num_steps):
            after = np.full(most + 1, NONE, dtype=np.int64)
            highest = min(most, active[n + 1])
            inside = of_inside[s, n] if able[n, s] else 0
            for a in range(min(most, active[n]) + 1):
                if best[a] == NONE:
                    continue
                first, last = a, highest
                if not crosses[n, s]:
                    if a > 0 and not able[n, s]:
                        continue
                    first, last = 2 * a, min(2 * a, highest)
                for end in range(first, last + 1):
                    new = end - a
                    worth = best[a] + of_new[s, n] * new + inside * min(a, new)
                    after[end] = max(after[end], worth + of_active[s, n + 1] * end)
            best = after
        found[s] = best[most]
    return found
