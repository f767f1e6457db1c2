"""Thresholds ruled out: never those of an allocation that exists, and the cheapest others found."""

from __future__ import annotations

import itertools
import math
import random
import time
from fractions import Fraction

import numpy as np
import pytest

from topoplace.certify.hierarchy.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.nogoods import has_cheap_one, rules_of
from topoplace.certify.switches.relaxed import Relaxed
from topoplace.certify.switches.rules import least_met
from topoplace.placement.switches.exact import thresholds
from topoplace.placement.switches.exact.binomial import DoublingSearch
from topoplace.placement.switches.exact.boxes import Boxes, Corners
from topoplace.placement.switches.exact.cubes import SideOracle
from topoplace.placement.switches.exact.thresholds import (
    Branch,
    Decider,
    Leaf,
    ThresholdSearch,
)
from topoplace.result import Status
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.schema import Pattern
from tree_brute_force import least_cost
from tree_cases import model_of, snapshot_on, uses
from tree_exact_cases import job_on, number, solved, worst_hops
from tree_threshold_cases import (
    KINDS,
    follow,
    in_order,
    oracle_of,
    proven,
    single_job,
    some_leaves,
    threshold_snapshot,
)

FOREVER = 1e18


def canonical(job, hops):
    """Return the hops of an allocation's steps, ascending along chains: that order counts."""
    found = hops.copy()
    for chain in job.chains:
        found[list(chain)] = np.sort(found[list(chain)])
    return found


# ---- What is refuted has no allocation ----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_no_allocation_is_ruled_out(kind: str) -> None:
    branched = 0
    for seed in range(24):
        rng, snapshot = random.Random(f"allocation-{seed}"), threshold_snapshot(kind, seed)
        job = single_job(snapshot)
        decider = Decider(oracle_of(job))
        bound, nogoods = proven(job, seconds=5)
        follow(snapshot, nogoods, bound)
        branched += any(nogood.proof.kind == "branch" for nogood in nogoods)
        corners = job.values[
            np.array([nogood.at for nogood in nogoods]).reshape(-1, len(job.prices))
        ]
        for _ in range(4):
            hops = canonical(job, worst_hops(job, some_leaves(rng, job)))
            assert not (hops <= corners).all(axis=1).any(), seed
            found = decider.decide(hops, 60, FOREVER)
            assert not isinstance(found, Leaf | Branch), seed
            for nogood in nogoods[:3]:
                at = np.maximum(nogood.at, np.searchsorted(job.values, hops)).tolist()
                with pytest.raises(RefusedError):
                    follow(snapshot, [nogood.model_copy(update={"at": at})], bound)
    assert branched or kind == "folded"


@pytest.mark.parametrize("kind", KINDS)
def test_tiny_bounds_are_below_brute_force(kind: str) -> None:
    tight = 0
    for seed in range(40):
        snapshot = threshold_snapshot(kind, seed, tiny=True)
        bound, nogoods = proven(single_job(snapshot))
        optimum = least_cost(prepare_contention(snapshot))[1]
        assert bound <= optimum, seed
        follow(snapshot, nogoods, bound)
        tight += bound == optimum
    assert tight > 10


# ---- Known optima -------------------------------------------------------------------------------


def test_the_least_cost_of_a_full_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cube of 512 ranks on 30 empty leaves of 18 nodes and one with seven free."""
    monkeypatch.setattr(thresholds, "_LIFT_SECONDS", 120)  # no less proven on a busy machine
    job = job_on([18] * 31, Pattern.RECURSIVE_DOUBLING, 512, [0] * 30 + [11])
    unit = 100 * job.scale // job.price_unit
    search = ThresholdSearch(job, SideOracle(job), 116 * unit, time.perf_counter() + 120)
    found = next(search.open_thresholds())
    assert found.cost == 111 * unit
    assert found.counts is not None
    assert found.counts @ job.states.ranks == 512


@pytest.mark.parametrize("ranks", [16, 32, pytest.param(64, marks=pytest.mark.slow)])
def test_binomial_trees_are_proven_on_many_leaves(ranks: int) -> None:
    # as many free leaves as Janus has half full
    request = (ranks, uses(Pattern.BINOMIAL))
    state = prepare_contention(snapshot_on(model_of([18] * 38), [], [request]))
    cost = solved(state, time_limit=60).levels[1]
    assert cost.status is Status.OPTIMAL
    # 4 ranks on the root's leaf or 8, and the last steps between leaves of few
    known = {16: Fraction(136, 9), 32: Fraction(379, 18), 64: Fraction(238, 9)}
    assert number(cost.objective) == known[ranks]


def test_a_binomial_search_encloses_the_optimum() -> None:
    closed = 0
    for seed in range(40):
        snapshot = threshold_snapshot("binomial", seed, tiny=True)
        job = single_job(snapshot)
        search = DoublingSearch(job, in_order(job), time.perf_counter() + 60)
        bound = Fraction(search.run() * job.price_unit, 100 * job.scale)
        cost = Fraction(job.cost(search.leaves), 100 * job.scale)
        assert bound <= least_cost(prepare_contention(snapshot))[1] <= cost, seed
        closed += bound == cost
    assert closed >= 32


# ---- Boxes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [Pattern.BINOMIAL, Pattern.RECURSIVE_DOUBLING])
def test_boxes_find_the_cheapest_corner_under_no_nogood(pattern: Pattern) -> None:
    job = job_on([4, 4, 3], pattern, 8)
    top, num = 5, len(job.prices)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        nogoods = rng.integers(0, top + 1, (6, num))
        corners = np.array(list(itertools.product(range(top + 1), repeat=num)))
        if job.chains:  # thresholds ascend
            corners = corners[(np.diff(corners, axis=1) >= 0).all(axis=1)]
        free = [c for c in corners if not (c <= nogoods).all(axis=1).any()]
        costs = [int(job.prices @ job.values[c]) for c in free]
        least = min(costs, default=math.inf)
        boxes, impossible = Boxes(job), Corners(num)
        boxes.add(np.zeros(num, dtype=np.int64), np.full(num, top))
        for nogood in nogoods:
            impossible.add(nogood)
        found = boxes.cheapest(impossible, 1 << 60)
        assert (math.inf if found is None else found[0]) == least, seed
        if found is not None:
            assert boxes.cheapest(impossible, least) is None
        own = [[int(value) for value in price * job.values[: top + 1]] for price in job.prices]
        every = [([0] * num, [top] * num)]
        for bound in (least, least + 1) if free else ():
            cheap = has_cheap_one(own, nogoods.tolist(), bound, every, job.chains)
            assert cheap is (bound > least), seed


# ---- The checker's own parts against the solver's -----------------------------------------------


@pytest.mark.parametrize("extents", [(7,), (3, 3), (5, 2), (3, 2, 2), (2, 2, 2)])
def test_cells_meet_as_many_lines_as_said(extents: tuple[int, ...]) -> None:
    cells = list(itertools.product(*map(range, extents)))
    for chosen in itertools.product((False, True), repeat=len(cells)):
        part = [cell for cell, there in zip(cells, chosen, strict=True) if there]
        if not part:
            continue
        lines = [len({cell[:d] + cell[d + 1 :] for cell in part}) for d in range(len(extents))]
        least = least_met(len(part), extents)
        assert (least <= np.array(lines)[:, None]).all(axis=0).any(), part


@pytest.mark.parametrize(("ranks", "fits"), [(3, True), (4, False)])
def test_where_a_rank_is_idle_a_leaf_need_not_double(ranks: int, fits: bool) -> None:
    """One of 3 ranks has no child in the last step: a leaf without partners may get one there."""
    instance = read_instance(snapshot_on(model_of([4, 4]), [], [(ranks, uses(Pattern.BINOMIAL))]))
    wish = instance.queue[0]
    every = np.ones((2, 1), dtype=np.bool_)
    found = rules_of(Relaxed(instance, wish), wish).fits(np.array([1]), every, every)
    assert found.tolist() == [fits]
