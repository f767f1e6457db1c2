"""Adaptive allocation: the cheaper of greedy and balanced (Mishra 2020, section 4.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.heuristics.balanced import balanced
from topoplace.placement.tree.heuristics.greedy import greedy
from topoplace.placement.tree.heuristics.in_turn import register_allocator
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.snapshot.schema import Pattern, PatternUse
from topoplace.snapshot.tree_state import TreeRequest

_SUPPOSED = (PatternUse(pattern=Pattern.RECURSIVE_DOUBLING),)


@register_allocator("adaptive", "greedy or balanced, whichever costs less (Mishra 2020)")
def adaptive(
    occupancy: Occupancy, request: TreeRequest, rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Choose between greedy and balanced by eq. (6): the cheaper for an intensive job.

    A compute-intensive job gets the dearer one, which leaves the better places to others. The
    paper does not say how it is costed: here as if it doubled recursively among the running jobs.
    Of two that cost the same, the balanced one is chosen.
    """
    first, second = balanced(occupancy, request, rng), greedy(occupancy, request, rng)
    if first is None or second is None:
        return None
    patterns = request.patterns if request.intensive else _SUPPOSED
    costs = [occupancy.cost_with(n, patterns, request.intensive) for n in (first, second)]
    better = costs[1] < costs[0] if request.intensive else costs[1] > costs[0]
    return second if better else first
