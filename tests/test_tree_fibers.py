"""Subcubes of a cube cut among leaves: never against an allocation that exists."""

import itertools

import numpy as np
import pytest

from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.fibers.patterns import patterns
from topoplace.placement.tree.exact.fibers.program import FiberProgram, has_fibers
from topoplace.placement.tree.exact.fitting.fit import fitted
from topoplace.placement.tree.exact.fitting.turned import turned
from topoplace.snapshot.schema import Pattern
from tree_cube_cases import CUBES, random_job
from tree_exact_cases import job_on, worst_hops


def components_of(corners, dims):
    """Return the sizes of the components of some corners, and how many are not next to any."""
    left, found = set(corners), []
    while left:
        grown = [left.pop()]
        for corner in grown:
            for other in [corner ^ 1 << dim for dim in range(dims)]:
                if other in left:
                    left.remove(other)
                    grown.append(other)
        found.append(len(grown))
    near = {corner ^ 1 << dim for corner in corners for dim in range(dims)} | set(corners)
    return tuple(sorted(found)), (1 << dims) - len(near)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_patterns_are_those_of_all_sets_of_corners(dims):
    most = {}
    for number in range((1 << dims) + 1):
        for corners in itertools.combinations(range(1 << dims), number):
            components, apart = components_of(corners, dims)
            most[components] = max(most.get(components, 0), apart)
    assert {tuple(pattern) for pattern in patterns(dims)} == set(most.items())


def test_four_singles_take_half_a_cube_and_two_need_three_between():
    found = dict(patterns(3))
    assert found[1, 1, 1, 1] == 0
    assert (1, 1, 1, 1, 1) not in found
    assert (1, 5) not in found
    assert found[1, 4] == 0


@pytest.mark.parametrize("pattern", CUBES)
@pytest.mark.parametrize("seed", range(40))
def test_no_allocation_is_ruled_out(pattern, seed):
    job, rng = random_job(pattern, seed)
    assert has_fibers(job)
    program = FiberProgram(job)
    slots = np.repeat(np.arange(len(job.free)), job.free)
    for start in (slots[: job.ranks], np.sort(rng.choice(slots, job.ranks, replace=False))):
        leaves = start
        for _ in range(2):
            hops = worst_hops(job, leaves)
            assert not program.refutes(np.sort(hops))
            counts = np.bincount(leaves, minlength=len(job.free))
            leaves = turned(job, fitted(job, counts, hops - 1, 0.0, seed))


def test_more_is_ruled_out_than_by_counting_pairs():
    # as on a machine with seven empty leaves of 18 and one half full; units of two ranks
    job = job_on([18] * 8, Pattern.RECURSIVE_DOUBLING, 128, [0] * 7 + [7])
    values = Relaxation(job).values
    wanted = np.array([4, *[4 + 5 * 30 / 18] * 3, 14, 14, 14])
    at = values[np.abs(values[:, None] - wanted * job.scale).argmin(axis=0)]
    assert Relaxation(job).possible(at.tolist())
    assert FiberProgram(job).refutes(at)
    assert not Relaxation(job, more=FiberProgram(job).refutes).possible(at.tolist())
