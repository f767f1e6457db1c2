"""Grids on leaves whose ranks are given: labels, exchanges, and counts that are likely to fit."""

from __future__ import annotations

import time

import numpy as np
import pytest

from topoplace.placement.tree.exact.gridding.counted import CountedSearch, labels_of
from topoplace.placement.tree.exact.gridding.kernels.exchange import exchanged
from topoplace.placement.tree.exact.gridding.opened import settled_where_open
from topoplace.placement.tree.exact.gridding.search import better_grid
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.exact.lines.counts import likely_counts
from topoplace.placement.tree.exact.lines.program import LineProgram
from topoplace.placement.tree.exact.lines.search import LineSearch
from topoplace.placement.tree.exact.lines.tables import tables_of
from topoplace.snapshot.schema import Pattern
from tree_exact_cases import job_on, worst_hops
from tree_line_cases import counts_of

SIZES = [9, 7, 7, 5, 4, 4]
GRIDS = (Pattern.STENCIL_2D, Pattern.STENCIL_3D)


def islands() -> tuple[Job, np.ndarray, np.ndarray]:
    """Return a job, thresholds and counts: 22 leaves of eight ranks, 16 of five between them."""
    job = job_on([18] * 38, Pattern.STENCIL_2D, 256)
    thresholds = np.rint((4 + 5 * np.array([13, 13]) / 18) * job.scale).astype(np.int64)
    counts = np.zeros(len(job.states.count), dtype=np.int64)
    counts[job.states.count == 8], counts[job.states.count == 5] = 22, 16
    return job, thresholds, counts


def in_order(job: Job) -> np.ndarray:
    """Return ranks put on leaves one leaf after the other."""
    return np.repeat(np.arange(len(job.free)), job.free)[: job.ranks]


@pytest.mark.parametrize("pattern", GRIDS)
@pytest.mark.parametrize("seed", range(6))
def test_known_counts_fit_again(pattern: Pattern, seed: int) -> None:
    rng = np.random.default_rng(seed)
    job = job_on(SIZES, pattern, 24, rng.integers(0, 2, len(SIZES)))
    known = rng.permutation(np.repeat(np.arange(len(SIZES)), job.free)[:24])
    thresholds = worst_hops(job, known)
    labels = labels_of(job, thresholds, counts_of(job, known))
    assert labels is not None
    number, leaves = labels.settled(1 << 12, seed)
    assert number == 0
    assert (worst_hops(job, leaves) <= thresholds).all()
    assert (counts_of(job, leaves) == counts_of(job, known)).all()


def test_what_stays_inside_is_moved_whole() -> None:
    job = job_on([8] * 4, Pattern.STENCIL_2D, 16)
    known = np.repeat(np.arange(4), 4)  # rows of a 4 x 4 grid
    thresholds = worst_hops(job, known)
    labels = labels_of(job, thresholds, counts_of(job, known))
    assert labels is not None
    assert labels.board.unit == 4
    number, leaves = labels.settled(1 << 8, 0)
    assert number == 0
    assert (worst_hops(job, leaves) <= thresholds).all()


def test_counts_that_cannot_be_have_no_labels() -> None:
    job = job_on([8] * 4, Pattern.STENCIL_2D, 16)
    known = np.repeat(np.arange(4), 4)
    thresholds = worst_hops(job, known)
    counts = counts_of(job, known)
    assert labels_of(job, thresholds, 0 * counts) is None  # too few ranks
    split = counts_of(job, np.repeat(np.arange(4), [5, 3, 4, 4]))
    assert labels_of(job, thresholds, split) is None  # rows would not stay inside
    assert labels_of(job, 0 * thresholds, counts) is None  # nothing may cross


def test_leaves_that_may_be_neighbours_of_each_other_share_a_label() -> None:
    job, thresholds, counts = islands()
    labels = labels_of(job, thresholds, counts)
    assert labels is not None
    assert sorted(len(own) for own in labels.leaves) == [8] * 22 + [80]
    assert not labels.bad[:, range(23), range(23)].any()
    assert labels.bad.any()
    assert len(np.unique(np.concatenate(labels.leaves))) == 38


def test_exchanges_keep_the_labels_and_count_what_is_left() -> None:
    job, thresholds, counts = islands()
    labels = labels_of(job, thresholds, counts)
    assert labels is not None
    sizes = [len(own) for own in labels.leaves]
    start = np.repeat(np.arange(len(sizes)), sizes)
    number, label = exchanged(start, labels.bad, labels.board.graph, 20_000, 0.8, 0.12, 0)
    assert (np.bincount(label) == sizes).all()
    first, partner, step = labels.board.graph
    own = np.repeat(label, np.diff(first))
    assert 2 * number == labels.bad[step, own, label[partner]].sum()


def test_islands_between_emptier_leaves_are_found() -> None:
    job, thresholds, counts = islands()
    cost = int(thresholds.sum()) * job.steps[0].price
    search = CountedSearch(job, in_order(job), 0)
    search.add(thresholds, cost, counts)
    search.add(thresholds, cost, counts)
    assert len(search.trials) == 1
    search.run_on(cost, time.perf_counter() + 60)
    assert job.cost(search.best) <= cost
    assert (worst_hops(job, search.best) <= thresholds).all()
    assert not search.trials  # what is left would not be cheaper
    assert not search.run(time.perf_counter() + 60)


def test_stretched_programs_leave_room_for_islands() -> None:
    job, thresholds, counts = islands()
    program = LineProgram(tables_of(job))
    found = likely_counts(program, thresholds, time.perf_counter() + 60)
    assert any((own == counts).all() for own in found)
    for own in found:
        assert own @ job.states.count == job.ranks
        assert own.sum() <= 38
    assert likely_counts(program, thresholds, 0.0) == []


def test_open_thresholds_are_met_where_counts_fit() -> None:
    job, thresholds, _ = islands()
    cost = int(thresholds.sum()) * job.steps[0].price
    start = better_grid(job, in_order(job), cost, time.perf_counter() + 1, 0)
    assert job.cost(start) > cost
    soon = time.perf_counter() + 60
    search = LineSearch(job, job.cost(start), soon)
    leaves, bound = settled_where_open(search, start, soon, 0)
    assert bound == job.cost(leaves) == cost
