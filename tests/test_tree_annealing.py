"""Allocations at thresholds: labels, exchanges, chains and rings."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest

from topoplace.placement.switches.exact.annealing import best_start, realised
from topoplace.placement.switches.exact.grids import is_grid
from topoplace.placement.switches.exact.job import Job
from topoplace.placement.switches.exact.settling import CountedSearch, around, chained, labels_of
from topoplace.snapshot.schema import Pattern
from tree_exact_cases import job_on, worst_hops
from tree_threshold_cases import in_order

FOREVER = 1e18
SIZES = [9, 7, 7, 5, 4, 4]


def counts_of(job: Job, leaves: np.ndarray) -> np.ndarray:
    """Return leaves per state of an allocation."""
    found = np.zeros(len(job.states.ranks), dtype=np.int64)
    for leaf, ranks in Counter(leaves.tolist()).items():
        (kind,) = (t for t, own in enumerate(job.leaves) if leaf in own)
        found[(job.states.leaf_type == kind) & (job.states.ranks == ranks)] += 1
    return found


def islands() -> tuple[Job, np.ndarray, np.ndarray]:
    """Return a job, thresholds and counts: 22 leaves of eight ranks, 16 of five between them."""
    job = job_on([18] * 38, Pattern.STENCIL_2D, 256)
    thresholds = np.rint((4 + 5 * np.array([13, 13]) / 18) * job.scale).astype(np.int64)
    counts = np.zeros(len(job.states.ranks), dtype=np.int64)
    counts[job.states.ranks == 8], counts[job.states.ranks == 5] = 22, 16
    return job, thresholds, counts


@pytest.mark.parametrize("pattern", [Pattern.STENCIL_2D, Pattern.STENCIL_3D])
@pytest.mark.parametrize("seed", range(4))
def test_known_counts_fit_again(pattern: Pattern, seed: int) -> None:
    rng = np.random.default_rng(seed)
    job = job_on(SIZES, pattern, 24, rng.integers(0, 2, len(SIZES)))
    known = rng.permutation(np.repeat(np.arange(len(SIZES)), job.free)[:24])
    thresholds = worst_hops(job, known)
    labels = labels_of(job, thresholds, counts_of(job, known))
    assert labels is not None
    number, leaves = labels.settled(1 << 12, seed, FOREVER)
    assert number == 0
    assert (worst_hops(job, leaves) <= thresholds).all()
    assert (counts_of(job, leaves) == counts_of(job, known)).all()


def test_islands_between_emptier_leaves_are_found() -> None:
    job, thresholds, counts = islands()
    labels = labels_of(job, thresholds, counts)
    assert labels is not None
    # leaves that may be neighbours of each other share a label
    assert sorted(len(own) for own in labels.leaves) == [8] * 22 + [80]
    cost = int(job.prices @ thresholds)
    search = CountedSearch(job, in_order(job), 0)
    for _ in range(2):
        search.add(thresholds, cost, counts)
    assert len(search.trials) == 1
    search.run_on(cost, time.perf_counter() + 60)
    assert job.units(search.best) <= cost
    assert (worst_hops(job, search.best) <= thresholds).all()
    assert not search.trials  # what is left would not be cheaper


def test_bad_leaves_of_a_ring_stand_apart() -> None:
    job = job_on([6, 6, 6, 6, 6], Pattern.RING, 22)
    leaves = np.repeat(np.arange(5), [6, 6, 6, 3, 1])
    found = around(job, counts_of(job, leaves))
    assert (counts_of(job, found) == counts_of(job, leaves)).all()
    assert job.cost(found) < job.cost(leaves)


@pytest.mark.parametrize("pattern", list(Pattern))
def test_starts_fit_and_annealing_makes_none_dearer(pattern: Pattern) -> None:
    job = job_on(SIZES, pattern, 24)
    start = best_start(job, time.perf_counter() + 0.2, 0)
    assert start is not None
    chains = chained(job, FOREVER) if is_grid(job) else ()
    for leaves in (start, *chains):
        assert (np.bincount(leaves, minlength=len(SIZES)) <= job.free).all()
        assert len(leaves) == job.ranks
    found = realised(job, in_order(job), 0, time.perf_counter() + 0.1, 0)
    assert (np.bincount(found, minlength=len(SIZES)) <= job.free).all()
    assert job.cost(found) <= job.cost(in_order(job))
    assert best_start(job_on([2, 2], pattern, 5), 0.0, 0) is None
