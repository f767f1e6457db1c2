"""Ranks fitted to counts and thresholds of which it is known that they can be met."""

import itertools
import time

import numpy as np
import pytest

from topoplace.placement.tree.exact.fitting.fit import fitted
from topoplace.placement.tree.exact.fitting.turned import turned
from topoplace.snapshot.schema import Pattern
from tree_exact_cases import job_on, worst_hops


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


@pytest.mark.parametrize("seed", range(5))
def test_a_cube_is_turned_to_its_cheapest_order(seed):
    job = job_on([4, 3, 3, 2, 4], Pattern.VECTOR_DOUBLING, 16)
    rng = np.random.default_rng(seed)
    leaves = rng.permutation(np.repeat(np.arange(5), [4, 3, 3, 2, 4]))
    found = turned(job, leaves)
    assert np.bincount(found).tolist() == np.bincount(leaves).tolist()
    bits = range(4)
    ranks = np.arange(16)
    every = []
    for order in itertools.permutations(bits):
        came = sum(((ranks >> new & 1) << old for new, old in enumerate(order)), np.zeros(16, int))
        every.append(job.cost(leaves[came]))
    assert job.cost(found) == min(every)


def test_other_patterns_are_not_turned():
    job = job_on([4, 3, 3, 2, 4], Pattern.BINOMIAL, 16)
    leaves = np.repeat(np.arange(5), [4, 3, 3, 2, 4])
    assert turned(job, leaves) is leaves
