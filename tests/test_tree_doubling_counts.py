"""Binomial jobs: leaves by state in whole numbers, by branches."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from test_tree_doubling import binomial_jobs
from topoplace.certify.report import RefusedError
from topoplace.placement.tree.exact.doubling.certificate import tree_document
from topoplace.placement.tree.exact.doubling.counts import Counts
from topoplace.placement.tree.exact.doubling.incumbent import Verdict
from topoplace.placement.tree.exact.doubling.pairing import assigned
from topoplace.placement.tree.exact.doubling.proof import num_parts
from topoplace.placement.tree.exact.doubling.whole import WholePlans
from topoplace.placement.tree.exact.job import Job
from topoplace.result.tree import DoublingTreeNogood
from topoplace.snapshot.schema import Pattern
from tree_cases import model_of, snapshot_on, uses
from tree_doubling_cases import (
    FOREVER,
    branched,
    follow,
    job_on,
    nearly_full,
    possible_to_programs,
    search_of,
    some_leaves,
)
from tree_exact_cases import worst_hops


def refuted_by_branches(counts: Counts, thresholds: np.ndarray) -> bool:
    return counts.decide(thresholds, FOREVER).proof is not None


def test_no_allocation_is_refuted() -> None:
    jobs = [job for seed in range(100) for job in binomial_jobs(seed, 20)]
    jobs += [job_on(nearly_full(seed)) for seed in range(40)]
    for number, job in enumerate(jobs):
        rng, counts = random.Random(f"counts-{number}"), search_of(job).best.counts
        for _ in range(3):
            assert not refuted_by_branches(counts, worst_hops(job, some_leaves(rng, job))), number
    assert len(jobs) > 80


def all_values(job: Job) -> np.ndarray:
    """Return the dearest hops of every step, of all allocations."""
    num = len(job.free)
    every = np.indices((num,) * job.ranks, dtype=np.int8).reshape(job.ranks, -1)
    counts = np.array([(every == leaf).sum(axis=0) for leaf in range(num)])
    leaf, other = np.indices((num, num))
    found = []
    for held in itertools.product(*(range(most + 1) for most in job.free)):
        own = every[:, (counts == np.array(held)[:, None]).all(axis=0)]
        hops = job.model.scaled_hops(leaf.ravel(), other.ravel(), job.comm + np.array(held))
        table = hops.reshape(num, num)
        steps = [table[own[step.pairs[:, 0]], own[step.pairs[:, 1]]] for step in job.steps]
        found.append(np.stack([step.max(axis=0) for step in steps], axis=1))
    return np.concatenate(found)


def test_what_branches_refute_has_no_allocation() -> None:
    refuted = 0
    for sizes in ([5, 7, 5], [6, 5, 6], [8, 8, 4]):
        job = job_on(snapshot_on(model_of(sizes), [], [(13, uses(Pattern.BINOMIAL))]))
        search, rng, there = search_of(job), random.Random(f"{sizes}"), all_values(job)
        leaves = some_leaves(rng, job)
        assert (there == worst_hops(job, leaves)).all(axis=1).any()
        for _ in range(30):
            for at in possible_to_programs(rng, job, search, 8):
                thresholds = search.values[at]
                if refuted_by_branches(search.best.counts, thresholds):
                    refuted += 1
                    assert not (there <= thresholds).all(axis=1).any()
    assert refuted > 10


def test_branches_agree_with_whole_plans() -> None:
    agree, seen = 0, 0
    for seed in range(0, 60, 3):
        rng, job = random.Random(f"agree-{seed}"), job_on(nearly_full(seed))
        search = search_of(job)
        for at in possible_to_programs(rng, job, search, 8):
            thresholds = search.values[at]
            plans, certain = WholePlans(search.best.tables, thresholds).solve(20)
            assert certain
            seen += 1
            agree += refuted_by_branches(search.best.counts, thresholds) == (plans is None)
            if plans is not None and assigned(job, plans, thresholds) is not None:
                assert not refuted_by_branches(search.best.counts, thresholds), seed
    assert agree > 0.9 * seen


def test_whole_plans_agree_with_what_branches_refute() -> None:
    impossible = 0
    for case in branched():
        thresholds = case.values[case.at]
        plans, certain = WholePlans(case.best.tables, thresholds).solve(20)
        assert certain
        impossible += plans is None
        # branches know which leaf is the only one left of its type, and so do pairs of ranks
        assert plans is None or assigned(case.best.job, plans, thresholds) is None
    assert impossible > 0.6 * len(branched())


def test_the_checker_accepts_every_tree() -> None:
    assert len(branched()) > 10
    for case in branched():
        tree = tree_document(case.proof, case.values)
        follow(case.snapshot, [DoublingTreeNogood(at=case.at.tolist(), proof=tree)])
    assert max(num_parts(case.proof) for case in branched()) > 5


def test_the_checker_accepts_no_tree_at_the_thresholds_of_an_allocation() -> None:
    for case in branched():
        tree, job = tree_document(case.proof, case.values), case.best.job
        rng = random.Random(f"allocation-{case.at.tolist()}")
        for _ in range(5):
            hops = worst_hops(job, some_leaves(rng, job))
            at = np.searchsorted(case.values, hops).tolist()
            with pytest.raises(RefusedError, match="thresholds that are possible"):
                follow(case.snapshot, [DoublingTreeNogood(at=at, proof=tree)])


def test_what_was_refuted_is_remembered_with_its_tree() -> None:
    for case in branched():
        thresholds = case.values[case.at]
        assert case.best.refuted(thresholds + 1) is None
        assert case.best.offer(thresholds, 60.0) is Verdict.IMPOSSIBLE
        lower = case.values[np.maximum(case.at - 1, 0)]
        assert case.best.offer(lower, 60.0) is Verdict.IMPOSSIBLE
        known = case.best.refuted(lower)
        assert known is not None
        assert known.proof is not None
        assert (known.thresholds == thresholds).all()
