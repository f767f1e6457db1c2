"""What is left around fixed jobs: the same candidates, the same bounds, the same best placement."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest

from exact_cases import MODES, mid_size_snapshot
from random_instances import random_prism, random_snapshot
from topoplace.machine import Prism, Torus
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.context import Residual
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.lns import NeighbourhoodSearch, hops_between
from topoplace.placement.exact.relaxation import DualPoint, Relaxation, Subproblem, usable_prices
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.exact.search import ExactSearch
from topoplace.placement.torus.oracle.listing import all_candidates
from topoplace.placement.torus.oracle.pricing import ScanPricer
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot import prepare
from topoplace.solving import Options

CHUNKS, PER_CHUNK = 4, 25
LONGEST = 60.0  # seconds; the searches end in about one


def tiny(seed: int) -> PlacementProblem:
    snapshot = random_snapshot(random.Random(f"residual-{seed}"), 30)
    return PlacementProblem(prepare(snapshot), MODES[seed % 3])


def compatible(problem: PlacementProblem, rng: random.Random, most: int) -> list[Candidate]:
    """Return some candidates of different requests that hold no row in common."""
    rows, chosen = PackingRows(problem), list[Candidate]()
    candidates = all_candidates(problem)
    rng.shuffle(candidates)
    for candidate in candidates:
        held = set(itertools.chain.from_iterable(rows.of(c).tolist() for c in chosen))
        new = all(candidate.request_idx != c.request_idx for c in chosen)
        if len(chosen) < most and new and not held & set(rows.of(candidate).tolist()):
            chosen.append(candidate)
    return chosen


def num_listed(relaxation: Relaxation) -> int:
    """Count the minimal prisms that pricing passes look at."""
    pricer = relaxation.pricer
    assert isinstance(pricer, ScanPricer)
    lists = [list(itertools.chain(*(g.minimal.listed or []))) for g in pricer.groups]
    return sum(len(listing.entries) for listings in lists for listing in listings)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_fits_beside_fixed_jobs_is_what_is_left(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        problem, rng = tiny(seed), random.Random(seed)
        fixed = compatible(problem, rng, rng.choice((1, 2)))
        out = frozenset({0} if rng.random() < 0.3 else ()) - {c.request_idx for c in fixed}
        rest = Residual.of(problem, fixed, out)
        rows = PackingRows(problem)
        held = set(itertools.chain.from_iterable(rows.of(c).tolist() for c in fixed))
        theirs = out | {c.request_idx for c in fixed}
        expected = [
            c
            for c in all_candidates(problem)
            if c.request_idx not in theirs and not held & set(rows.of(c).tolist())
        ]
        found = all_candidates(rest.problem)
        assert sorted([*fixed, *expected]) == rest.together(found), seed
        assert rest.here(expected) == found, seed
        worth = [problem.values(c)[0] for c in expected]
        assert worth == [rest.problem.values(c)[0] for c in found], seed
        assert rest.fixed_value == sum(problem.values(c)[0] for c in fixed)


@pytest.mark.parametrize("seed", range(4))
def test_a_relaxation_beside_jobs_is_the_relaxation_with_them_fixed(seed: int) -> None:
    problem = PlacementProblem(prepare(mid_size_snapshot(seed)), MODES[seed % 3])
    search, rng = ExactSearch(problem, Options(time_limit=60), start=[]), random.Random(seed)
    relaxation, numbers = search.relaxation, np.random.default_rng(seed)
    start = relaxation.evaluate(Subproblem(), usable_prices(search.rows))
    priced = [c for columns in start.priced.columns for _, c in columns[:1]]
    fixed = tuple(rng.sample(priced, 1))
    prices = numbers.random(search.rows.num_rows) * (numbers.random(search.rows.num_rows) < 0.2)
    theirs = frozenset(c.request_idx for c in fixed)
    sub = Subproblem(excluded=theirs, fixed=fixed)
    usual = relaxation.evaluate(sub, DualPoint(prices))
    narrowed = relaxation.beside(fixed)
    beside = narrowed.evaluate(sub, DualPoint(prices))
    assert num_listed(narrowed) < num_listed(relaxation)
    assert beside.bound == usual.bound
    assert beside.leaf_parts[2] == usual.leaf_parts[2]
    for q in range(len(problem.requests)):
        if usual.priced.best[q] > 0 and q not in theirs:
            assert beside.priced.best[q] == usual.priced.best[q]
    held = set(search.rows.of(fixed[0]).tolist())
    for columns in beside.priced.columns:
        for _, candidate in columns:
            assert not held & set(search.rows.of(candidate).tolist())


@pytest.mark.parametrize("seed", range(3))
def test_searches_around_jobs_and_neighbourhoods_reach_the_optimum(seed: int) -> None:
    problem = PlacementProblem(prepare(mid_size_snapshot(seed)), MODES[seed % 3])
    whole = ExactSearch(problem, Options(time_limit=LONGEST))
    bound = whole._solve_level(Subproblem()).bound
    best = whole.objective(0)
    assert bound == best

    search = ExactSearch(problem, Options(time_limit=LONGEST), start=[])
    fixed = whole.incumbent[: len(whole.incumbent) // 2]
    assert search.around(Residual.of(problem, fixed), LONGEST) == search.incumbent
    assert search.objective(0) == best, "the optimum keeps the fixed jobs"

    nothing = Residual.of(problem, whole.incumbent, frozenset(range(len(problem.requests))))
    assert whole.around(nothing, LONGEST) == whole.incumbent, "no request is left"

    poor = ExactSearch(problem, Options(time_limit=LONGEST), start=whole.incumbent[1:])
    point = usable_prices(poor.rows)
    root = Node(Subproblem(), Bounded(poor.relaxation.evaluate(Subproblem(), point), point))
    before = poor.objective(0)
    NeighbourhoodSearch(poor, root).run(time.perf_counter() + LONGEST / 4)
    assert poor.objective(0) > before


@pytest.mark.parametrize("seed", range(30))
def test_hops_between_prisms(seed: int) -> None:
    rng = random.Random(seed)
    num_dims = rng.randint(1, 3)
    shape = tuple(rng.randint(2, 7) for _ in range(num_dims))
    wrap = tuple(rng.random() < 0.6 for _ in range(num_dims))
    torus = Torus(shape, wrap)
    for _ in range(20):
        one, other = (random_prism(rng, list(shape), list(wrap)) for _ in range(2))
        a, b = (Prism(tuple(p.origin), tuple(p.extents)) for p in (one, other))
        least = min(
            torus.distance(int(r), int(s)) for r in a.routers(torus) for s in b.routers(torus)
        )
        assert hops_between(torus, a, b) == least
