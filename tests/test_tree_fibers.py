"""Subcubes of a cube cut among leaves: never against an allocation that exists."""

import itertools

import numpy as np
import pytest

from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.fibers.patterns import patterns
from topoplace.placement.tree.exact.fibers.program import FiberProgram, has_fibers
from topoplace.placement.tree.exact.fibers.whole import fits
from topoplace.placement.tree.exact.fitting.fit import fitted
from topoplace.placement.tree.exact.fitting.turned import turned
from topoplace.snapshot.schema import Pattern
from tree_exact_cases import job_on, worst_hops


def components_of(corners, dims):
    """Return the components of some corners of a cube and the corners not next to any."""
    left, found = set(corners), []
    while left:
        grown = [left.pop()]
        for corner in grown:
            for other in [corner ^ 1 << dim for dim in range(dims)]:
                if other in left:
                    left.remove(other)
                    grown.append(other)
        found.append(len(grown))
    near = {c ^ 1 << dim for c in corners for dim in range(dims)} | set(corners)
    return tuple(sorted(found)), (1 << dims) - len(near)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_patterns_are_those_of_all_sets_of_corners(dims):
    most = {}
    for number in range(dims and 1 << dims, -1, -1):
        for corners in itertools.combinations(range(1 << dims), number):
            components, apart = components_of(corners, dims)
            most[components] = max(most.get(components, 0), apart)
    assert {tuple(p) for p in patterns(dims)} == set(most.items())


def test_four_singles_take_half_a_cube_and_two_need_three_between():
    found = dict(patterns(3))
    assert found[1, 1, 1, 1] == 0
    assert (1, 1, 1, 1, 1) not in found
    assert (1, 5) not in found
    assert found[1, 4] == 0


def test_whole_numbers_of_leaves_are_cut_or_not():
    # six leaves of nine: six whole cubes, and of what is left no two single ones are neighbours
    assert not fits(3, 8, ((9, 6),), 4)
    assert fits(3, 8, ((9, 6),), 0)
    assert fits(3, 8, ((8, 8),), 0)
    assert not fits(2, 4, ((3, 5),), 0)


@pytest.mark.parametrize("pattern", [Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING])
@pytest.mark.parametrize("seed", range(40))
def test_no_allocation_is_ruled_out(pattern, seed):
    rng = np.random.default_rng(seed)
    ranks = int(rng.choice([8, 16, 32]))
    sizes, busy = [], []
    while sum(sizes) - sum(busy) < ranks:
        size = int(rng.integers(2, 10))
        sizes.append(size)
        busy.append(int(rng.integers(0, size)) if rng.random() < 0.3 else 0)
    sizes, busy = [*sizes, 3], [*busy, 0]
    job = job_on(sizes, pattern, ranks, busy)
    assert has_fibers(job)
    program = FiberProgram(job)
    free = np.array(sizes) - np.array(busy)
    slots = np.repeat(np.arange(len(sizes)), free)
    for start in (slots[:ranks], np.sort(rng.choice(slots, ranks, replace=False))):
        leaves = start
        for _ in range(2):
            assert not program.refutes(np.sort(worst_hops(job, leaves)))
            counts = np.bincount(leaves, minlength=len(sizes))
            leaves = turned(job, fitted(job, counts, worst_hops(job, leaves) - 1, 0.0, seed))


def test_more_is_ruled_out_than_by_counting_pairs():
    # as on a machine with seven empty leaves of 18 and one half full; units of two ranks
    job = job_on([18] * 8, Pattern.RECURSIVE_DOUBLING, 128, [0] * 7 + [7])
    values = Relaxation(job).values
    wanted = np.array([4, 4 + 5 * 30 / 18, 4 + 5 * 30 / 18, 4 + 5 * 30 / 18, 14, 14, 14])
    at = values[np.abs(values[:, None] - wanted * job.scale).argmin(axis=0)]
    assert Relaxation(job).possible(at.tolist())
    assert FiberProgram(job).refutes(at)
    assert not Relaxation(job, more=FiberProgram(job).refutes).possible(at.tolist())
