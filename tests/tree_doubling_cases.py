"""Binomial requests that need nearly all free nodes, and thresholds that branches refute."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.tree_machine.doubling import Doubling
from topoplace.certify.tree_machine.instance import read_instance
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.placement.tree.exact.doubling.incumbent import Incumbent
from topoplace.placement.tree.exact.doubling.kernels.refuting import Refutation
from topoplace.placement.tree.exact.doubling.plans import Plans
from topoplace.placement.tree.exact.doubling.proof import Branch
from topoplace.placement.tree.exact.doubling.search import DoublingSearch
from topoplace.placement.tree.exact.job import Job
from topoplace.result.tree import DoublingNogood
from topoplace.snapshot.schema import Pattern, Snapshot
from topoplace.snapshot.tree_state import prepare_tree
from tree_cases import model_of, snapshot_on, uses
from tree_exact_cases import jobs_of, worst_hops

FOREVER = 1e18


def nearly_full(seed: int) -> Snapshot:
    """Return a request that leaves few nodes free, on leaves of one size or two."""
    rng = random.Random(f"full-{seed}")
    ranks = rng.choice((13, 16, 32))
    sizes = [rng.randint(3, 8) for _ in range(2)]
    leaves: list[int] = []
    while sum(leaves) < ranks + rng.randint(0, 6):
        leaves.append(rng.choice(sizes))
    return snapshot_on(model_of(leaves), [], [(ranks, uses(Pattern.BINOMIAL))])


def job_on(snapshot: Snapshot) -> Job:
    """Return the request alone; all leaves are under one root."""
    (job,) = jobs_of(prepare_tree(snapshot))
    return job


def first_leaves(job: Job) -> NDArray[np.int64]:
    return np.repeat(job.domain, job.free[job.domain])[: job.ranks]


def some_leaves(rng: random.Random, job: Job) -> NDArray[np.int64]:
    room = [int(leaf) for leaf in job.domain for _ in range(job.free[leaf])]
    leaves = np.array(rng.sample(room, job.ranks))
    return np.sort(leaves) if rng.random() < 0.5 else leaves


def search_of(job: Job) -> DoublingSearch:
    return DoublingSearch(job, first_leaves(job), FOREVER)


def possible_to_programs(
    rng: random.Random, job: Job, search: DoublingSearch, num: int
) -> Iterator[NDArray[np.int64]]:
    """Yield thresholds by number, lower and lower, that programs over plans do not refute."""
    plans = Plans(search.best.tables)
    at = np.searchsorted(search.values, worst_hops(job, some_leaves(rng, job)))
    for _ in range(num):
        trial = at.copy()
        step = rng.randrange(len(at))
        trial[step] = rng.randint(0, at[step])
        if not isinstance(plans.test(search.values[trial]), Refutation):
            at = trial
            yield at


@dataclass(frozen=True)
class Branched:
    """Thresholds by number that only branches refute, and the tree of them."""

    snapshot: Snapshot
    best: Incumbent
    values: NDArray[np.int64]
    at: NDArray[np.int64]
    proof: Branch


@cache
def branched() -> tuple[Branched, ...]:
    """Return thresholds of nearly full machines, one of each at most."""
    found = []
    for seed in range(60):
        rng, snapshot = random.Random(f"branched-{seed}"), nearly_full(seed)
        job = job_on(snapshot)
        search = search_of(job)
        tried = (at for _ in range(20) for at in possible_to_programs(rng, job, search, 8))
        for at in tried:
            proof = search.best.counts.decide(search.values[at], FOREVER).proof
            if isinstance(proof, Branch):
                found.append(Branched(snapshot, search.best, search.values, at, proof))
                break
    return tuple(found)


def follow(
    snapshot: Snapshot, nogoods: Sequence[DoublingNogood], bound: Fraction = Fraction(0)
) -> None:
    """Have the checker follow nogoods; raises `RefusedError` unless they prove the bound."""
    instance = read_instance(snapshot)
    wish = instance.wishes["q0"]
    Doubling(Relaxed(instance, wish), wish).follow(nogoods, bound)
