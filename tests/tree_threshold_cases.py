"""Requests of every pattern that has an oracle, and what the search proves of them."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.hierarchy.instance import read_instance
from topoplace.certify.switches.nogoods import Nogoods
from topoplace.certify.switches.relaxed import Relaxed
from topoplace.placement.switches.exact.binomial import doubles
from topoplace.placement.switches.exact.cubes import SideOracle, has_sides
from topoplace.placement.switches.exact.grids import LineOracle, has_lines
from topoplace.placement.switches.exact.job import Job
from topoplace.placement.switches.exact.leaf_states import StateOracle
from topoplace.placement.switches.exact.plans import PlanOracle
from topoplace.placement.switches.exact.thresholds import Oracle, ThresholdSearch, certificate_of
from topoplace.result.mapping import Fraction as FractionModel
from topoplace.result.tree import ThresholdNogood, ThresholdProof
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.schema import Communication, Pattern, PatternUse, Snapshot
from tree_cases import model_of, snapshot_on
from tree_exact_cases import jobs_of

IntArray = NDArray[np.int64]

KINDS = {
    "cube": ((Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING), (8, 16, 32)),
    "ring": ((Pattern.RING,), (7, 12, 16, 24)),
    "grid": ((Pattern.STENCIL_2D, Pattern.STENCIL_3D), (8, 11, 12, 13, 16, 18, 24, 27, 30)),
    "binomial": ((Pattern.BINOMIAL,), (13, 16, 32)),
    "folded": ((Pattern.RECURSIVE_DOUBLING,), (6, 11, 12, 20)),
}
"""Patterns and numbers of ranks."""


def threshold_snapshot(kind: str, seed: int, tiny: bool = False) -> Snapshot:
    """Return leaves that one request of a kind nearly fills, or not, some partly held."""
    rng = random.Random(f"{kind}-{seed}")
    patterns, sizes = KINDS[kind]
    ranks = rng.choice([4, 5, 6, 6] if tiny else sizes)
    if tiny and kind == "cube":
        ranks = 4
    some = [rng.randint(2, 4 if tiny else 8) for _ in range(rng.choice((1, 2, 3)))]
    leaves: list[int] = []
    room = rng.choice((0, 1, 3, ranks // 3))
    while sum(leaves) < ranks + room:
        leaves.append(rng.choice(some))
    names = [f"n{k}" for k in range(sum(leaves))]
    rng.shuffle(names)
    held = names[: rng.randint(0, sum(leaves) - ranks)]
    running = [(name, rng.choice((Communication.STRICT, Communication.NONE))) for name in held]
    use = PatternUse(pattern=rng.choice(patterns), share=rng.choice((30, 100)))
    return snapshot_on(model_of(leaves), running, [(ranks, [use])])


def single_job(snapshot: Snapshot) -> Job:
    """Return the request alone; all leaves are under one root."""
    (job,) = jobs_of(prepare_contention(snapshot))
    return job


def oracle_of(job: Job) -> Oracle:
    """Return the oracle of a job's pattern."""
    if doubles(job):
        return PlanOracle(job)
    if has_lines(job):
        return LineOracle(job)
    return SideOracle(job) if has_sides(job) else StateOracle(job)


def in_order(job: Job) -> IntArray:
    """Return the leaf of every rank, leaf after leaf."""
    return np.repeat(job.domain, job.free[job.domain])[: job.ranks]


def some_leaves(rng: random.Random, job: Job) -> IntArray:
    """Return any allocation."""
    room = np.repeat(job.domain, job.free[job.domain]).tolist()
    leaves = np.array(rng.sample(room, job.ranks))
    return np.sort(leaves) if rng.random() < 0.5 else leaves


def proven(job: Job, seconds: float = 20.0) -> tuple[Fraction, list[ThresholdNogood]]:
    """Return the bound that the search finds, and what proves it."""
    deadline = time.perf_counter() + seconds
    search = ThresholdSearch(job, oracle_of(job), job.units(in_order(job)), deadline)
    left = next(search.open_thresholds(), None)
    units = search.to_beat if left is None else left.cost
    nogoods = certificate_of(job, search.nogoods, search.num_proven)
    assert nogoods is not None
    return Fraction(units * job.price_unit, 100 * job.scale), nogoods


def proof_of(snapshot: Snapshot) -> ThresholdProof:
    """Return what proves the bound of a request."""
    bound, nogoods = proven(single_job(snapshot))
    number = FractionModel(numerator=bound.numerator, denominator=bound.denominator)
    return ThresholdProof(request="q0", bound=number, nogoods=nogoods)


def follow(snapshot: Snapshot, nogoods: Sequence[ThresholdNogood], bound: Fraction) -> None:
    """Have the checker follow nogoods; raises `RefusedError` unless they prove the bound."""
    instance = read_instance(snapshot)
    wish = instance.queue[0]
    Nogoods(Relaxed(instance, wish), wish).follow(nogoods, bound)
