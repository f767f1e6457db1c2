"""Whole numbers of leaves that hold all ranks of a request (docs/proofs-tree.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.certify.tree_machine.line_states import LineStates, View

_NEVER = 1 << 61


def work_of_holding(states: LineStates, wanted: int) -> int:
    """Return about how many additions `most_worth` takes."""
    return len(states.ranks) * wanted * min(states.num_leaves, wanted)


def most_worth(
    states: LineStates, view: View, worths: Sequence[int | None], wanted: int
) -> int | None:
    """Return the most that leaves are worth which hold all ranks, None if none do.

    Parameters
    ----------
    worths
        Of a leaf, per state left, small enough for sums within 64 bits; None if impossible.
    wanted
        All ranks.
    """
    sure, left = 0, wanted
    by_type: dict[int, list[tuple[int, int]]] = {}
    for at, worth in enumerate(worths):
        state = view.states[at]
        ranks, assumed = int(states.ranks[state]), int(view.assumed[at])
        if worth is None:
            if assumed:
                return None
            continue
        sure += assumed * worth
        left -= assumed * ranks
        if view.open[at]:
            by_type.setdefault(int(states.types[state]), []).append((ranks, worth))
    if left < 0:
        return None
    best = np.full(left + 1, -_NEVER, dtype=np.int64)
    best[0] = 0
    for t, choices in by_type.items():
        for _ in range(int(view.free[t])):
            after = best.copy()
            for ranks, worth in choices:
                if ranks <= left:
                    part = after[ranks:]
                    np.maximum(part, best[: left + 1 - ranks] + worth, out=part)
            if (after == best).all():
                break
            best = after
    return None if best[left] < -_NEVER // 2 else int(best[left]) + sure
