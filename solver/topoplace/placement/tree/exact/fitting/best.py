"""The best allocation that fits some thresholds which the search for a bound could not rule out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.bounding.thresholds import ThresholdSearch
from topoplace.placement.tree.exact.building.arrange import arrangements, counts_per_leaf
from topoplace.placement.tree.exact.fitting.fit import fitted

IntArray = NDArray[np.int64]

_TRIES = 12
_SECONDS = 0.5


def best_fit(
    search: ThresholdSearch, leaves: IntArray, wanted: int, deadline: float, seed: int
) -> IntArray:
    """Return the best allocation found of a job whose thresholds were searched.

    Most of the time goes to the thresholds behind the bound: what fits them is optimal. Then some
    dearer ones are tried, from the cheapest on.

    Parameters
    ----------
    wanted
        A bound of the cost, at which there is no better one.
    """
    job, now = search.job, clock.now()
    if search.found is not None and search.found_at is not None:
        counts = counts_per_leaf(job, search.found)
        leaves = min([leaves, *arrangements(job, counts)], key=job.cost)
        if job.cost(leaves) > wanted:
            end = now + 0.75 * (deadline - now)
            found = fitted(job, counts, search.found_at, end, seed)
            leaves = min(leaves, found, key=job.cost)
    for thresholds in _some_of(search, leaves):
        left = min(_SECONDS, deadline - clock.now())
        if left < 0 or job.cost(leaves) <= wanted:
            break
        states, _ = search.relaxation.counts(thresholds.tolist(), left)
        if states is not None:
            end = min(deadline, clock.now() + _SECONDS)
            found = fitted(job, counts_per_leaf(job, states), thresholds, end, seed)
            leaves = min(leaves, found, key=job.cost)
    return leaves


def _some_of(search: ThresholdSearch, leaves: IntArray) -> list[IntArray]:
    """Return some thresholds between the bound and the cost of an allocation, evenly drawn."""
    job = search.job
    left = search.not_ruled_out(job.cost(leaves) * job.scale // int(job.model.scale))
    return left[:: max(1, len(left) // _TRIES)]
