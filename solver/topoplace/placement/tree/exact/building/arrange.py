"""Ranks put on leaves whose counts and step thresholds are given."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.job import Job
from topoplace.snapshot.schema import Pattern

IntArray = NDArray[np.int64]


def counts_per_leaf(job: Job, leaves_in_state: IntArray) -> IntArray:
    """Return ranks per leaf: of every type its first leaves take the states, the highest first."""
    states = job.states
    counts = np.zeros(len(job.comm), dtype=np.int64)
    for t, leaves in enumerate(states.leaves):
        own = range(states.first[t + 1] - 1, states.first[t] - 1, -1)
        held = [int(states.count[s]) for s in own for _ in range(int(leaves_in_state[s]))]
        counts[leaves[: len(held)]] = held
    return counts


def arrangements(job: Job, counts: IntArray) -> Iterator[IntArray]:
    """Yield assignments of ranks to leaves with such counts, worth annealing."""
    if {family.pattern for family in job.families} == {Pattern.RING}:
        yield _around(job, counts)
    worst_first = sorted(np.flatnonzero(counts).tolist(), key=lambda at: -int(counts[at]))
    aligned = sorted(worst_first, key=lambda at: -int(counts[at] & -counts[at]))
    for order in (aligned, worst_first):
        yield np.repeat(order, counts[order])


def _around(job: Job, counts: IntArray) -> IntArray:
    """Return a ring in which leaves that pair badly alternate with ranks that pair well.

    Runs of the leaves with the most contention come one after the other, between any two a
    single rank of a leaf that pairs with both, the worst that does.
    """
    comm = job.comm + counts
    used = np.flatnonzero(counts)
    share = comm[used] / job.model.tree.nodes_per_leaf[used]
    used = used[np.argsort(-share, kind="stable")]
    best: IntArray | None = None
    # The more runs are kept apart, the worse the leaves that can be: try every number of them.
    for num_runs in range(len(used)):
        ring = _ring_of(counts[used], num_runs)
        if ring is None:
            break
        leaves = used[ring]
        if best is None or job.cost(leaves) < job.cost(best):
            best = leaves
    assert best is not None
    return best


def _ring_of(counts: IntArray, num_runs: int) -> list[int] | None:
    """Return leaves in ring order, the first `num_runs` in one run each; None if too many."""
    single = np.repeat(np.arange(num_runs, len(counts)), counts[num_runs:]).tolist()
    if num_runs > len(single):
        return None
    if num_runs == 0:
        return single
    # `single` is by contention: the last pair best, and the worst run needs them on both sides.
    rest, between = single[: len(single) - num_runs], single[len(single) - num_runs :][::-1]
    ring: list[int] = []
    for run in range(num_runs):
        ring += [run] * int(counts[run]) + between[run + 1 : run + 2]
    return [*ring, *reversed(rest), between[0]]
