"""Binomial jobs: which states thresholds leave, what refutes them and how far that reaches."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np

from test_tree_doubling import binomial_jobs
from topoplace.placement.tree.exact.doubling.kernels.refuting import Mix, Refutation
from topoplace.placement.tree.exact.doubling.kernels.standing import standing
from topoplace.placement.tree.exact.doubling.nogoods import Refuter
from topoplace.placement.tree.exact.doubling.plans import Plans
from topoplace.placement.tree.exact.doubling.search import DoublingSearch
from topoplace.placement.tree.exact.doubling.tables import tables_of
from topoplace.snapshot.schema import Pattern
from topoplace.snapshot.tree_state import prepare_tree
from tree_cases import model_of, snapshot_on, uses
from tree_doubling_cases import FOREVER, first_leaves, job_on, nearly_full, some_leaves
from tree_exact_cases import jobs_of, worst_hops


def test_no_allocation_of_a_nearly_full_machine_is_refuted() -> None:
    for seed in range(60):
        rng = random.Random(f"full-{seed}")
        job = job_on(nearly_full(seed))
        plans = Plans(tables_of(job))
        for _ in range(5):
            found = plans.test(worst_hops(job, some_leaves(rng, job)))
            assert isinstance(found, Mix), seed


def test_leaves_that_leave_no_room_do_not_go_together() -> None:
    request = (16, uses(Pattern.BINOMIAL))
    (job,) = jobs_of(prepare_tree(snapshot_on(model_of([6] * 3), [], [request])))
    view = standing(tables_of(job), np.full(len(job.steps), 1 << 40))
    assert job.states.count[view.alive].tolist() == [4, 5, 6]
    assert view.spare == 2
    assert view.full.all()
    # a pair of leaves lacks 2 at most: 4 and 6 ranks or 5 and 5
    most = job.states.crossing[job.states.kind[3], job.states.kind[5]]
    lowest = standing(tables_of(job), np.full(len(job.steps), most - 1))
    assert not lowest.alive.any()


def test_steps_inside_can_come_first() -> None:
    seen = 0
    for seed in range(150):
        rng = random.Random(f"inside-first-{seed}")
        ranks = rng.choice((4, 8))
        sizes = [rng.randint(1, 5) for _ in range(rng.randint(2, 3))]
        if sum(sizes) < ranks:
            continue
        state = prepare_tree(snapshot_on(model_of(sizes), [], [(ranks, uses(Pattern.BINOMIAL))]))
        (job,) = jobs_of(state)
        least = {True: math.inf, False: math.inf}
        for leaves in itertools.product(range(len(sizes)), repeat=ranks):
            if (np.bincount(leaves, minlength=len(sizes)) > sizes).any():
                continue
            own = np.array(leaves)
            crosses = [bool((own[s.pairs[:, 0]] != own[s.pairs[:, 1]]).any()) for s in job.steps]
            ordered = crosses == sorted(crosses)
            least[ordered] = min(least[ordered], job.cost(own))
        assert least[True] <= least[False], seed
        seen += least[False] < math.inf
    assert seen > 25


def test_a_program_over_few_plans_decides_as_much() -> None:
    request = (64, uses(Pattern.BINOMIAL))
    (job,) = jobs_of(prepare_tree(snapshot_on(model_of([18] * 8), [], [request])))
    values = DoublingSearch(job, first_leaves(job), FOREVER).values

    def verdicts(most: int) -> list[bool]:
        plans, rng = Plans(tables_of(job), most), random.Random("few")
        found = []
        for _ in range(150):
            verdict = plans.test(values[[rng.randrange(len(values)) for _ in job.steps]])
            assert verdict is not None
            found.append(isinstance(verdict, Refutation))
        return found

    expected = verdicts(1000)
    assert verdicts(50) == expected
    assert 10 < sum(expected) < len(expected) - 10


def test_raised_thresholds_stay_refuted() -> None:
    higher = 0
    for seed in range(60):
        rng = random.Random(f"raised-{seed}")
        for job in binomial_jobs(seed, 12):
            plans, values = (
                Plans(tables_of(job)),
                DoublingSearch(job, first_leaves(job), FOREVER).values,
            )
            refuter = Refuter(plans, values, np.random.default_rng(seed))
            at = np.array([rng.randrange(len(values)) for _ in job.steps])
            high = np.array([rng.randrange(n, len(values)) for n in at])
            found = refuter.test(at)
            if found is None:
                assert (refuter.possible.all[-1] <= at).all()
                continue
            lifted = refuter.lifted(found, high)
            assert (lifted.at >= at).all()
            assert isinstance(plans.test(values[lifted.at]), Refutation)
            for step in np.flatnonzero(lifted.at < high):
                above = lifted.at.copy()
                above[step] += 1
                assert not isinstance(plans.test(values[above]), Refutation), seed
            higher += bool((lifted.at > at).any())
    assert higher > 10
