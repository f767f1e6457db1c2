"""Cubes whose thresholds are refuted: never those of an allocation that exists."""

import time

import numpy as np
import pytest

from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.bounding.thresholds import ThresholdSearch
from topoplace.placement.tree.exact.cubes.proof import Branch, Needs
from topoplace.placement.tree.exact.cubes.refuter import CubeRefuter, has_cube
from topoplace.placement.tree.exact.fitting.fit import fitted
from topoplace.placement.tree.exact.fitting.turned import turned
from topoplace.snapshot.schema import Pattern
from tree_cube_cases import CUBES, random_job
from tree_exact_cases import job_on, worst_hops

FOREVER = 1e18


def some_allocations(job, rng):
    """Allocations in order, at random, and such with lower and lower hops."""
    slots = np.repeat(np.arange(len(job.free)), job.free)
    for start in (slots[: job.ranks], np.sort(rng.choice(slots, job.ranks, replace=False))):
        leaves = start
        for _ in range(3):
            yield leaves
            counts = np.bincount(leaves, minlength=len(job.free))
            leaves = turned(job, fitted(job, counts, worst_hops(job, leaves) - 1, 0.0, 1))


@pytest.mark.parametrize("pattern", CUBES)
@pytest.mark.parametrize("seed", range(30))
def test_no_allocation_is_ruled_out(pattern, seed):
    job, rng = random_job(pattern, seed)
    assert has_cube(job)
    refuter = CubeRefuter(job, FOREVER)
    values = Relaxation(job).values
    found = [np.sort(worst_hops(job, leaves)) for leaves in some_allocations(job, rng)]
    for hops in found:
        assert not refuter.refutes(hops)
        for below in range(1, 6):  # thresholds nearby give nogoods, which may not reach up
            at = np.searchsorted(values, hops) - below
            refuter.refutes(values[np.maximum(at, 0)])
    for hops in found:
        at = np.searchsorted(values, hops)
        assert not any((nogood.at >= at).all() for nogood in refuter.nogoods)


def full_machine():
    """A cube of 512 ranks on 30 empty leaves of 18 nodes and one with seven free."""
    return job_on([18] * 31, Pattern.RECURSIVE_DOUBLING, 512, [0] * 30 + [11])


def thresholds(job, *ranks_together):
    """Pairs inside at first, then so many ranks on two leaves that are neighbours, at most."""
    values = Relaxation(job).values
    wanted = np.array([4, *(4 + np.array(ranks_together) * 5 / 18)])
    return values[np.abs(values[:, None] - wanted * job.scale).argmin(axis=0)]


def test_what_neighbours_need_is_counted_distance_by_distance():
    job = full_machine()
    refuter = CubeRefuter(job, FOREVER)
    # 30 would be on leaves of 18 beside 12, 32 beside 14, 34 beside 16
    assert refuter.refutes(thresholds(job, 32, 32, 32, 34, 34, 34, 34, 36))
    assert isinstance(refuter.nogoods[-1].proof, Needs)
    assert refuter.refutes(thresholds(job, 32, 32, 34, 34, 34, 34, 34, 34))
    assert isinstance(refuter.nogoods[-1].proof, Branch)
    assert not refuter.refutes(thresholds(job, 34, 34, 34, 34, 34, 34, 34, 34))
    number = len(refuter.nogoods)
    assert refuter.refutes(thresholds(job, 30, 32, 32, 34, 34, 34, 34, 36))
    assert len(refuter.nogoods) == number


def test_leaves_of_whole_subcubes_and_one_pair_more():
    job = full_machine()
    at = thresholds(job, 30, 30, 30, 36, 36, 36, 36, 36)
    assert not CubeRefuter(job, FOREVER).refutes(at)
    counts = np.array([18] * 24 + [16] * 2 + [12] * 4 + [0])
    found = fitted(job, counts, at, time.perf_counter() + 60, 0)
    assert (worst_hops(job, found) <= at).all()
    assert np.bincount(found, minlength=31).tolist() == counts.tolist()


def test_the_least_cost_of_a_full_machine():
    job = full_machine()
    search = ThresholdSearch(
        job, time.perf_counter() + 60, plain=True, more=CubeRefuter(job, FOREVER).refutes
    )
    assert search.bound(116 * 100 * job.scale) == 111 * 100 * job.scale
    assert search.complete


@pytest.mark.parametrize("seed", range(10))
def test_a_bound_is_never_above_the_cost_to_beat(seed):
    job, _ = random_job(CUBES[0], seed)
    slots = np.repeat(np.arange(len(job.free)), job.free)
    cost = job.cost(slots[: job.ranks]) * job.scale // int(job.model.scale)
    for share in (0.5, 0.7, 0.9, 1.0):
        to_beat = int(share * cost)
        search = ThresholdSearch(job, time.perf_counter() + 20)
        assert search.bound(to_beat) <= to_beat


def test_other_jobs_are_left_alone():
    assert not has_cube(job_on([6] * 3, Pattern.RECURSIVE_DOUBLING, 12))
    assert not has_cube(job_on([6] * 3, Pattern.RING, 16))
    assert has_cube(job_on([6] * 3, Pattern.VECTOR_DOUBLING, 16))
