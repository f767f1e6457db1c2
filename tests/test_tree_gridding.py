"""Grids annealed under thresholds: what is known to fit, and costs that are known to exist."""

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest

from topoplace.placement.tree.exact.bounding.structure import components
from topoplace.placement.tree.exact.building.exhaustive import SmallJob, best_of_all
from topoplace.placement.tree.exact.gridding.board import Board, boards, is_grid
from topoplace.placement.tree.exact.gridding.chains import chained
from topoplace.placement.tree.exact.gridding.divide import divisions
from topoplace.placement.tree.exact.gridding.fit import fit_grid
from topoplace.placement.tree.exact.gridding.search import better_grid
from topoplace.snapshot.schema import Pattern
from tree_exact_cases import job_on, worst_hops

GRIDS = (Pattern.STENCIL_2D, Pattern.STENCIL_3D)
SIZES = [9, 7, 7, 5, 4, 4]


def soon(seconds=20):
    return time.perf_counter() + seconds


def in_order(job):
    """Return ranks put on leaves one leaf after the other."""
    return np.repeat(np.arange(len(job.free)), job.free)[: job.ranks]


# ---- At given thresholds ----------------------------------------------------------------------


@pytest.mark.parametrize("pattern", GRIDS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("given", [True, False])
def test_known_thresholds_are_met_again(pattern, seed, given):
    rng = np.random.default_rng(seed)
    busy = rng.integers(0, 2, len(SIZES))
    job = job_on(SIZES, pattern, 24, busy)
    known = rng.permutation(np.repeat(np.arange(len(SIZES)), job.free)[:24])
    thresholds = worst_hops(job, known)
    counts = np.bincount(known, minlength=len(SIZES))
    found = fit_grid(job, thresholds, soon(), seed, counts if given else None)
    assert found is not None
    assert (worst_hops(job, found) <= thresholds).all()
    assert (np.bincount(found, minlength=len(SIZES)) <= (counts if given else job.free)).all()


@pytest.mark.parametrize("pattern", GRIDS)
def test_steps_that_stay_inside_do(pattern):
    job = job_on([8] * 8, pattern, 16)
    kept = frozenset({1})
    known = components(pattern, 16, kept)
    thresholds = worst_hops(job, known)
    found = fit_grid(job, thresholds, soon(), 0)
    assert found is not None
    assert (worst_hops(job, found) <= thresholds).all()
    assert (np.diff(found[job.steps[1].pairs], axis=1) == 0).all()


def test_what_cannot_be_met_is_not_met():
    job = job_on([4, 4], Pattern.STENCIL_2D, 8)
    thresholds = worst_hops(job, in_order(job))
    assert fit_grid(job, thresholds - 1, soon(0.02), 0) is None
    assert fit_grid(job, 0 * thresholds, soon(0.02), 0) is None  # no leaf has room for all


def test_counts_that_break_what_stays_inside_are_refused():
    job = job_on([8, 8], Pattern.STENCIL_2D, 8)
    thresholds = worst_hops(job, np.repeat([0, 1], 4))
    assert thresholds.argmin() == 1  # 4 x 2, and the pairs across stay inside
    assert fit_grid(job, thresholds, soon(0.02), 0, np.array([5, 3])) is None
    assert fit_grid(job, thresholds, soon(), 0, np.array([4, 4])) is not None


# ---- At no given thresholds -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "cost"),
    [
        # the full leaves are neighbours in one dim only: 4 + 5 x 36 / 18 and 4 + 5 x 27 / 18
        (Pattern.STENCIL_2D, Fraction(51, 2)),
        # and in one of three, the emptiest two between them: sums 36, 29, 29
        (Pattern.STENCIL_3D, Fraction(343, 9)),
    ],
)
def test_few_ranks_stand_between_full_leaves(pattern, cost):
    job = job_on([18] * 8, pattern, 128, [7] + [0] * 7)
    wanted = int(cost * 100 * int(job.model.scale))
    found = better_grid(job, in_order(job), wanted, soon(60), 0)
    assert job.cost(found) <= wanted
    assert (np.bincount(found, minlength=8) <= job.free).all()


@pytest.mark.parametrize(
    ("pattern", "ranks", "busy", "leaves", "sums"),
    [
        (Pattern.STENCIL_2D, 256, 14, 16, (36, 27)),
        (Pattern.STENCIL_2D, 512, 11, 31, (36, 26)),
        (Pattern.STENCIL_3D, 512, 11, 31, (36, 36, 25)),
        (Pattern.STENCIL_2D, 256, 0, 38, (14, 13)),
    ],
)
def test_chains_of_full_leaves_need_few_ranks_between(pattern, ranks, busy, leaves, sums):
    job = job_on([18] * leaves, pattern, ranks, [busy] + [0] * (leaves - 1))
    found = min(chained(Board(job, frozenset())), key=job.cost)
    cost = sum(4 + Fraction(5 * both, 18) for both in sums)
    assert Fraction(job.cost(found), 100 * int(job.model.scale)) <= cost
    assert (np.bincount(found, minlength=leaves) <= job.free).all()


@pytest.mark.parametrize("pattern", GRIDS)
@pytest.mark.parametrize("sizes", [[4, 3, 2], [9, 1, 1, 1], [2] * 10, [7, 5, 3, 3]])
def test_chains_fit_on_any_leaves(pattern, sizes):
    job = job_on(sizes, pattern, 8)
    found = [leaves for board in boards(job) for leaves in chained(board)]
    assert found
    for leaves in found:
        assert len(leaves) == 8
        assert (np.bincount(leaves, minlength=len(sizes)) <= job.free).all()


@pytest.mark.parametrize("pattern", GRIDS)
@pytest.mark.parametrize("sizes", [[4, 3, 2], [3, 3, 3], [5, 2, 2], [2, 2, 2, 3]])
@pytest.mark.parametrize("ranks", [4, 6, 8])
def test_small_grids_are_solved(pattern, sizes, ranks):
    job = job_on(sizes, pattern, ranks)
    small = SmallJob(ranks, job.steps, intensive=True)
    start = in_order(job)
    to_beat = job.cost(start) + 1
    best, complete = best_of_all(job.model, [small], job.comm, job.free, to_beat, 10**7)
    assert complete
    assert best is not None
    least = job.cost(best[0])
    assert job.cost(better_grid(job, start, least, soon(), 0)) == least


def test_the_search_ends_where_nothing_is_left_to_try():
    job = job_on([3, 3], Pattern.STENCIL_2D, 4)
    found = better_grid(job, in_order(job), 0, soon(), 0)
    begin = time.perf_counter()
    again = better_grid(job, found, 0, soon(), 0, longest=1000)
    assert time.perf_counter() - begin < 10
    assert job.cost(again) == job.cost(found)


def test_nothing_is_tried_once_the_cost_is_low_enough():
    job = job_on([3, 3], Pattern.STENCIL_2D, 4)
    start = np.array([0, 1, 0, 1])
    assert better_grid(job, start, job.cost(start), soon(), 0) is start


# ---- Parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "ranks", "kept"),
    [
        (Pattern.STENCIL_2D, 64, [(), (0,)]),  # 8 x 8: both dims are alike
        (Pattern.STENCIL_2D, 128, [(), (0,), (1,)]),
        (Pattern.STENCIL_3D, 128, [(), (0,), (1,), (0, 1), (1, 2)]),  # 8 x 4 x 4
    ],
)
def test_dims_that_are_alike_stay_inside_once(pattern, ranks, kept):
    job = job_on([ranks], pattern, ranks)
    assert [tuple(sorted(board.kept)) for board in boards(job)] == kept


def test_parts_are_what_the_kept_dims_connect():
    job = job_on([20] * 4, Pattern.STENCIL_2D, 32)  # 8 x 4
    board = Board(job, frozenset({1}))
    assert board.unit == 4
    assert board.parts.part_of_rank.tolist() == np.repeat(np.arange(8), 4).tolist()
    assert board.room.tolist() == [5] * 4


def test_only_a_single_grid_is_one():
    assert is_grid(job_on([4], Pattern.STENCIL_3D, 4))
    assert not is_grid(job_on([4], Pattern.RING, 4))
    assert not is_grid(job_on([4], Pattern.STENCIL_2D, 1))


@pytest.mark.parametrize("pattern", GRIDS)
def test_divisions_use_up_a_budget_and_no_more(pattern):
    job = job_on(SIZES, pattern, 24)
    for board in boards(job):
        crossing = board.values[0]
        few = itertools.islice(divisions(board), 200)
        for division in few:
            limit = division.limit(25.0)
            if limit is None:
                continue
            own = limit[: len(board.crossing)]
            inside = len(board.kept) * limit[-1] if board.kept else 0.0
            assert own.sum() + inside <= 25.0 + 1e-6
            assert np.isin(own, crossing).all()
            assert own.max() == pytest.approx(division.top)
