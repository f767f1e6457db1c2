"""Allocations of a grid at the thresholds that a bound leaves open."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.clock import at_share
from topoplace.placement.tree.exact.gridding.counted import CountedSearch
from topoplace.placement.tree.exact.gridding.fit import fit_grid
from topoplace.placement.tree.exact.lines.counts import likely_counts
from topoplace.placement.tree.exact.lines.search import LineSearch, Open

IntArray = NDArray[np.int64]

_MOST = 12
"""Thresholds to settle ranks at."""

_EACH, _ALL = 0.1, 0.5
"""Shares of the time for counts that are likely to fit: for each of those, then for all; the
first ones get most to settle."""

_FREE = 0.15
"""Share of what is left for free counts at the first of them."""


def settled_where_open(
    search: LineSearch, leaves: IntArray, deadline: float, seed: int
) -> tuple[IntArray, int]:
    """Return the best allocation found where a search for a bound leaves thresholds, and the bound.

    Parameters
    ----------
    leaves
        An allocation to beat, the leaf of every rank.
    """
    job = search.job
    counted = CountedSearch(job, leaves, seed)
    left: list[Open] = []
    bound = search.to_beat
    for found in search.open_thresholds():
        bound = bound if left else found.cost
        if len(left) == _MOST or clock.now() > search.deadline:
            break
        left.append(found)
        for counts in likely_counts(search.program, found.thresholds, at_share(_EACH, deadline)):
            counted.add(found.thresholds, found.cost, counts)
        if counted.run(at_share(_EACH / len(left), deadline)):
            break  # the next thresholds cost as much or more
    counted.run_on(bound, at_share(_ALL, deadline))
    leaves = counted.best
    for number, found in enumerate(left):
        if found.cost >= job.cost(leaves):
            break
        fit = fit_grid(job, found.thresholds, at_share(_FREE / (1 + number), deadline), seed)
        if fit is not None:
            leaves = min(leaves, fit, key=job.cost)
    return leaves, bound
