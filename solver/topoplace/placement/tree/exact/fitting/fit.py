"""Allocations at thresholds that the relaxation leaves, of leaves whose counts it leaves.

The cost of eq. (6) is a sum of maxima: most exchanges of two ranks do not change it, so that a
search by cost has no slope to follow. Once thresholds and counts are given, the number of pairs
above their thresholds is one. Ranks that thresholds hold together, because no crossing is as
cheap, are exchanged together: any other exchange would only break what has to be mended again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.bounding.structure import components
from topoplace.placement.tree.exact.fitting._kernels import exchange
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]

_MOVES_PER_RANK = 200
_HOT, _COLD = 0.4, 0.1


def fitted(
    job: Job, counts: IntArray, thresholds: IntArray, deadline: float, seed: int
) -> IntArray:
    """Return the leaf of every rank, with few pairs above their thresholds, or none.

    Parameters
    ----------
    counts
        Ranks per leaf, shape ``(num_leaves,)``.
    thresholds
        Per step of the job, in units of 1 / `job.scale`.
    """
    used = np.flatnonzero(counts)
    hops = job.model.scaled_hops(used[:, None], used, job.comm + counts)
    if not job.exact:
        hops = hops * job.scale // int(job.model.scale)
    too_dear = hops > thresholds[:, None, None]
    unit = _units(job, counts, thresholds)
    num_units = int(unit.max()) + 1
    pairs = [np.unique(unit[step.pairs], axis=0) for step in job.steps]
    between = [both[both[:, 0] != both[:, 1]] for both in pairs]
    first, partner, step = pairs_by_rank(between, num_units)
    parts = counts[used] * num_units // job.ranks
    start = np.repeat(_order(parts), parts[_order(parts)])
    fewest, best = np.inf, start
    moves = _MOVES_PER_RANK * num_units
    for turn in itertools.count(1):
        begin = clock.now()
        above, found = exchange(
            start.copy(), first, partner, step, too_dear, moves, _HOT, _COLD, seed + turn
        )
        if above < fewest:
            fewest, best = above, found
        now = clock.now()
        if fewest == 0 or now > deadline:
            break
        # twice as long each time: short runs find most fits, what they miss wants slow cooling
        in_time = moves * (deadline - now) / (now - begin)
        moves = min(2 * moves, max(1, int(in_time)))
    leaves: IntArray = used[best[unit]]
    return leaves


def _units(job: Job, counts: IntArray, thresholds: IntArray) -> IntArray:
    """Return the unit of every rank: equally many that some steps keep on a leaf, or one."""
    if len(job.families) == 1:
        family, least = job.families[0], int(job.states.crossing.min())
        inside = [dim for dim, step in enumerate(family.steps) if thresholds[step] < least]
        unit = components(family.pattern, job.ranks, frozenset(inside))
        size = np.bincount(unit)
        if (size == size[0]).all() and not (counts % size[0]).any():
            return unit
    return np.arange(job.ranks)


def _order(counts: IntArray) -> IntArray:
    """Return the order of leaves in which runs of 2^n ranks begin at multiples of 2^n."""
    return np.lexsort((-counts, -(counts & -counts)))


def pairs_by_rank(
    pairs_of_steps: Sequence[IntArray], ranks: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the pairs of all steps by rank: first of every rank, partners, steps."""
    pairs = np.concatenate(pairs_of_steps)
    number = np.repeat(np.arange(len(pairs_of_steps)), [len(found) for found in pairs_of_steps])
    rank = pairs.T.ravel()
    order = np.argsort(rank, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(rank, minlength=ranks))])
    return first, pairs[:, ::-1].T.ravel()[order], np.tile(number, 2)[order]
