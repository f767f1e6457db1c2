"""Binomial jobs: what refutes thresholds, the search over them, and what it finds."""

from __future__ import annotations

import itertools
import math
import random
import time
from fractions import Fraction

import numpy as np
import pytest

from topoplace.placement.tree.exact.cutting.boxes import Boxes, Corners
from topoplace.placement.tree.exact.doubling.incumbent import Incumbent, Verdict
from topoplace.placement.tree.exact.doubling.kernels.refuting import Mix, Refutation
from topoplace.placement.tree.exact.doubling.plans import Plans
from topoplace.placement.tree.exact.doubling.search import DoublingSearch, doubles
from topoplace.placement.tree.exact.doubling.tables import tables_of
from topoplace.placement.tree.exact.job import Job
from topoplace.result import Status
from topoplace.snapshot.schema import Pattern, PatternUse
from topoplace.snapshot.tree_state import TreeState, prepare_tree
from tree_brute_force import least_cost
from tree_cases import model_of, snapshot_on, uses
from tree_doubling_cases import FOREVER, first_leaves, some_leaves
from tree_exact_cases import jobs_of, number, solved, tiny_snapshot, worst_hops


def binomial_state(seed: int, most_ranks: int) -> TreeState:
    """Return a tiny tree on which one binomial request waits."""
    snapshot = tiny_snapshot(seed, most_ranks=most_ranks, silent=0)
    patterns = [PatternUse(pattern=Pattern.BINOMIAL)]
    request = snapshot.queue[0].model_copy(update={"patterns": patterns})
    return prepare_tree(snapshot.model_copy(update={"queue": [request]}))


def binomial_jobs(seed: int, most_ranks: int) -> list[Job]:
    return [job for job in jobs_of(binomial_state(seed, most_ranks)) if job.steps]


def test_no_allocation_is_refuted() -> None:
    seen = 0
    for seed in range(120):
        rng = random.Random(f"doubling-{seed}")
        for job in binomial_jobs(seed, 20):
            assert doubles(job)
            plans = Plans(tables_of(job))
            for _ in range(3):
                found = plans.test(worst_hops(job, some_leaves(rng, job)))
                assert not isinstance(found, Refutation), seed
                seen += 1
    assert seen > 200


def test_what_is_refuted_stays_so_below_and_plans_stay_above() -> None:
    refuted = 0
    for seed in range(60):
        rng = random.Random(f"below-{seed}")
        for job in binomial_jobs(seed, 12):
            plans, values = (
                Plans(tables_of(job)),
                DoublingSearch(job, first_leaves(job), FOREVER).values,
            )
            at = np.array([rng.randrange(len(values)) for _ in job.steps])
            found = plans.test(values[at])
            if isinstance(found, Refutation):
                refuted += 1
                lower = np.array([rng.randint(0, n) for n in at])
                assert plans.refutes(found, values[at])
                assert not isinstance(plans.test(values[lower]), Mix)
            elif found is not None:
                least = plans.least(values, at, found)
                assert (least <= at).all()
                assert not isinstance(plans.test(values[least]), Refutation)
    assert refuted > 10


def test_bound_and_answer_enclose_the_optimum() -> None:
    closed, seen = 0, 0
    for seed in range(60):
        jobs = binomial_jobs(seed, 6)
        if not jobs:
            continue
        bounds, costs = [], []
        for job in jobs:
            search = DoublingSearch(job, first_leaves(job), time.perf_counter() + 60)
            bounds.append(Fraction(search.run(), 100 * job.scale))
            costs.append(Fraction(search.best.cost, 100 * job.scale))
            assert search.best.cost == job.cost(search.best.leaves)
        optimum = least_cost(binomial_state(seed, 6))[1]
        assert min(bounds) <= optimum <= min(costs), seed
        seen += 1
        closed += min(bounds) == min(costs)
    assert seen > 25
    assert closed >= 0.8 * seen


@pytest.mark.slow
def test_equals_brute_force_with_more_ranks() -> None:
    for seed in range(5000, 5080):
        state = binomial_state(seed, 8)
        assert number(solved(state).levels[1].objective) == least_cost(state)[1], seed


@pytest.mark.parametrize("ranks", [16, 32, pytest.param(64, marks=pytest.mark.slow)])
def test_proven_on_many_leaves(ranks: int) -> None:
    # as many free leaves as Janus has half full
    request = (ranks, uses(Pattern.BINOMIAL))
    state = prepare_tree(snapshot_on(model_of([18] * 38), [], [request]))
    cost = solved(state, time_limit=60).levels[1]
    assert cost.status is Status.OPTIMAL
    # 4 ranks on the root's leaf or 8, and the last steps between leaves of few
    known = {16: Fraction(136, 9), 32: Fraction(379, 18), 64: Fraction(238, 9)}
    assert number(cost.objective) == known[ranks]


def test_thresholds_of_an_allocation_lead_to_one() -> None:
    found = 0
    for seed in range(40):
        rng = random.Random(f"offer-{seed}")
        job = next((job for job in binomial_jobs(seed, 16)), None)
        if job is None or job.ranks & (job.ranks - 1):
            continue
        levels = job.model.tree.common_level[np.ix_(job.domain, job.domain)]
        sizes = job.model.tree.nodes_per_leaf[job.domain]
        if len(np.unique(levels[levels > 1])) > 1 or len(np.unique(sizes)) > 1:
            continue  # there the inequalities are not all that pairs need
        leaves = some_leaves(rng, job)
        thresholds = worst_hops(job, leaves)
        best = Incumbent(job, tables_of(job), leaves, time.perf_counter() + 60)
        assert best.offer(thresholds, 10.0) is Verdict.FOUND, seed
        assert (worst_hops(job, best.leaves) <= thresholds).all()
        found += 1
    assert found >= 3


def test_boxes_find_the_cheapest_corner_under_no_nogood() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        num, top = 3, 5
        values = np.sort(rng.choice(40, top + 1, replace=False))
        prices = rng.integers(1, 4, num)
        nogoods = rng.integers(0, top + 1, (6, num))
        corners = np.array(list(itertools.product(range(top + 1), repeat=num)))
        free = [c for c in corners if not (c <= nogoods).all(axis=1).any()]
        least = min((int(prices @ values[c]) for c in free), default=math.inf)
        boxes = Boxes(values, prices)
        boxes.add(np.zeros(num, dtype=np.int64), np.full(num, top))
        impossible = Corners(num)
        for nogood in nogoods:
            impossible.add(nogood)
        found = boxes.cheapest(impossible, 1 << 40)
        assert (math.inf if found is None else found[0]) == least, seed
        if found is not None:
            assert boxes.cheapest(impossible, least) is None


def test_corners_are_held_against_a_vector() -> None:
    rng = np.random.default_rng(3)
    for num_corners in (0, 1, 64, 65, 200):
        corners = Corners(3)
        for corner in rng.integers(0, 6, (num_corners, 3)):
            corners.add(corner)
        assert len(corners) == num_corners
        for _ in range(40):
            at, step = rng.integers(0, 6, 3), int(rng.integers(3))
            assert corners.below(at) == (corners.all <= at).all(axis=1).any()
            others = np.delete(corners.all <= at, step, axis=1).all(axis=1)
            least = corners.all[others, step].min(initial=6)
            assert corners.ceiling(at, step, 5) == min(5, least - 1)
