"""Ranks fitted to counts and thresholds of which it is known that they can be met."""

import time

import numpy as np
import pytest

from topoplace.placement.tree.cost import CostModel
from topoplace.placement.tree.exact.fitting.fit import fitted
from topoplace.placement.tree.exact.job import Job, job_of
from topoplace.snapshot.schema import Pattern, PatternUse
from tree_cases import two_level


def job_on(sizes, pattern, ranks) -> Job:
    tree = two_level(sizes)
    comm = np.zeros(len(sizes), dtype=np.int64)
    uses = [PatternUse(pattern=pattern)]
    return job_of(CostModel(tree), uses, ranks, comm, np.array(sizes), np.arange(len(sizes)))


def worst_hops(job, leaves):
    comm = job.comm + np.bincount(leaves, minlength=len(job.comm))
    ends = [leaves[step.pairs] for step in job.steps]
    return np.array([job.model.scaled_hops(e[:, 0], e[:, 1], comm).max() for e in ends])


@pytest.mark.parametrize("pattern", list(Pattern))
@pytest.mark.parametrize("seed", range(3))
def test_known_thresholds_are_met_again(pattern, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.permutation([9, 7, 7, 5, 4, 4]).tolist()
    job = job_on(sizes, pattern, 24)
    counts = np.minimum(sizes, rng.permutation([6, 5, 4, 4, 3, 2]))
    counts[counts.argmin()] += 24 - counts.sum()
    assert (counts <= sizes).all()
    known = np.concatenate([np.repeat(leaf, counts[leaf]) for leaf in rng.permutation(6)])
    thresholds = worst_hops(job, known)
    found = fitted(job, counts, thresholds, time.perf_counter() + 20, seed)
    assert np.bincount(found, minlength=6).tolist() == counts.tolist()
    assert (worst_hops(job, found) <= thresholds).all()


def test_what_cannot_be_met_is_met_as_far_as_possible():
    job = job_on([4, 4], Pattern.RECURSIVE_DOUBLING, 8)
    counts = np.array([4, 4])
    found = fitted(job, counts, np.zeros(3, dtype=np.int64), time.perf_counter() + 0.05, 0)
    assert np.bincount(found).tolist() == [4, 4]
