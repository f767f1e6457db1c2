"""The bundle reaches the linear program's bound, and dives from it reach placements."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from brute_force import brute_force
from exact_cases import MODES, mid_size_snapshot, reached, solve
from random_instances import random_snapshot
from topoplace.certify import check_document
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.bundle import Bundle, FlatColumns
from topoplace.placement.exact.dive import Diver
from topoplace.placement.exact.generation import Bounded, best_among_columns
from topoplace.placement.exact.groups import PlaceLimit
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import Pricer, Relaxation, Subproblem, usable_prices
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.exact.search import ExactSearch
from topoplace.placement.exact.tree_nodes import Leaf, new_pool
from topoplace.placement.torus.oracle.listing import ListPricer, all_candidates
from topoplace.placement.torus.oracle.pricing import ScanPricer
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Status
from topoplace.snapshot import prepare
from topoplace.snapshot.schema import (
    MAX_PRIORITY,
    SNAPSHOT_SCHEMA,
    Communication,
    Request,
    RunningJob,
    ShapeWeights,
    Snapshot,
    TorusModel,
)
from topoplace.solving import Options

CHUNKS, PER_CHUNK = 6, 10
STEPS = 300
LONGEST_DIVE = 60.0  # seconds; it ends once the bound is met, in about one


def tiny(seed: int) -> PlacementProblem:
    snapshot = random_snapshot(random.Random(f"bundle-{seed}"), 30)
    return PlacementProblem(prepare(snapshot), MODES[seed % 3])


def whole_master(rows: PackingRows) -> Master:
    master = Master(rows)
    master.add(all_candidates(rows.problem))
    return master


def descend(problem: PlacementProblem, pricer: Pricer, sub: Subproblem) -> Bounded:
    """Run the bundle to its end, with no column known before."""
    rows = PackingRows(problem)
    relaxation = Relaxation(problem, rows, pricer)
    point = usable_prices(rows)
    start = Bounded(relaxation.evaluate(sub, point), point)
    bundle = Bundle(relaxation, Master(rows), sub)
    return bundle.run(start, -1, deadline=np.inf, max_steps=STEPS)


def optimum(problem: PlacementProblem, fixed: tuple[Candidate, ...]) -> int:
    """Return the most nodes started beside fixed jobs, by an integer program over everything."""
    master = whole_master(PackingRows(problem))
    theirs = {c.request_idx for c in fixed}
    kept = np.array(
        [c.candidate in fixed or c.candidate.request_idx not in theirs for c in master.columns]
    )
    found = best_among_columns(
        master,
        Subproblem(forced=frozenset(theirs)),
        list(fixed),
        kept,
        seconds=60,
        seed=0,
        work=60,
    )
    assert found is not None
    return sum(problem.values(c)[0] for c in found)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_bundle_comes_down_to_the_linear_program(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        problem = tiny(seed)
        rows = PackingRows(problem)
        free = frozenset(range(len(problem.requests)))
        out = frozenset(q for q in free if q % 3 == seed % 3) if seed % 2 else frozenset()
        sub = Subproblem(excluded=out)
        program = whole_master(rows).solve_lp(sub)
        assert program is not None
        bounded = descend(problem, ListPricer(problem, rows), sub)
        assert bounded.value.bound >= program.objective - 1e-3, seed
        assert bounded.value.bound <= program.objective * 1.002 + 0.2, seed


@pytest.mark.parametrize("seed", range(12))
def test_fixed_jobs_count_and_keep_what_they_hold(seed: int) -> None:
    problems = (tiny(k) for k in range(100 * seed, 100 * seed + 100))
    problem = next(p for p in problems if all_candidates(p))
    candidates = all_candidates(problem)
    fixed = (candidates[len(candidates) // 2],)
    sub = Subproblem(excluded=frozenset({fixed[0].request_idx}), fixed=fixed)
    rows = PackingRows(problem)
    best = optimum(problem, fixed)
    for pricer in (ListPricer(problem, rows), ScanPricer(problem)):
        bounded = descend(problem, pricer, sub)
        assert bounded.value.certified is not None
        assert bounded.value.certified >= best
        assert bounded.value.bound <= usable_prices(rows).row_prices.sum() + best + 1e-6
        held = set(rows.of(fixed[0]).tolist())
        for columns in bounded.value.priced.columns:
            for gain, candidate in columns:
                assert gain <= 0 or not held & set(rows.of(candidate).tolist())


def begun(seed: int) -> tuple[ExactSearch, Bounded]:
    """Return a search without an incumbent, whose relaxation has a pool, and its root's prices."""
    problem = PlacementProblem(prepare(mid_size_snapshot(seed)), MODES[seed % 3])
    search = ExactSearch(problem, Options(time_limit=LONGEST_DIVE), start=[])
    sub, point = Subproblem(), usable_prices(search.rows)
    new_pool(search.relaxation)
    start = Bounded(search.relaxation.evaluate(sub, point), point)
    return search, search.bundle(sub).run(start, 0, deadline=np.inf, max_steps=30)


def is_placement(search: ExactSearch) -> bool:
    rows = PackingRows(search.problem)
    used = [row for c in search.incumbent for row in rows.of(c).tolist()]
    return len(set(used)) == len(used)


@pytest.mark.parametrize("seed", range(2))
def test_dives_end_in_placements(seed: int) -> None:
    search, bounded = begun(seed)
    diver = Diver(search, Node(Subproblem(), bounded))
    diver.run(time.perf_counter() + LONGEST_DIVE)
    assert search.objective(0) == bounded.value.certified
    assert is_placement(search)


@pytest.mark.parametrize("seed", range(3))
def test_dives_begin_at_leaves_that_limit_places(seed: int) -> None:
    search, root = begun(seed)
    amounts = search.master.amounts()
    _, largest = max(amounts, key=lambda item: (search.problem.values(item[1])[0], item[0]))
    covered = PlaceLimit(
        largest.request_idx, largest.prism.origin, search.problem.torus.shape, inside=seed % 2 == 0
    )
    sub = Subproblem(forced=frozenset({largest.request_idx}), limits=(covered,))
    bounded = Bounded(search.relaxation.evaluate(sub, root.point), root.point)
    bounded = search.bundle(sub).run(bounded, 0, deadline=np.inf, max_steps=10)
    assert bounded.value.certified is not None
    leaf = Leaf(sub, np.full(1, root.value.bound), bounded.value.certified, 1, bounded, amounts)
    diver = Diver(search, Node(Subproblem(), root))
    diver.run(time.perf_counter() + LONGEST_DIVE, leaf, once=True)
    assert 0 < search.objective(0) <= root.value.bound
    assert is_placement(search)


def small_ring() -> Snapshot:
    """Return a ring whose best placement has no cost on the last level, but for the others'."""
    queue = [
        Request(id="a", nodes=4, shapes="5"),
        Request(id="b", nodes=4),
        Request(id="c", nodes=6, priority=3),
    ]
    weights = ShapeWeights(bisection=4, volume=1, hops=0, idle=30, wrap=0)
    machine = TorusModel(name="ring", shape=[8])
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA, name="ring", machine=machine, queue=queue, weights=weights
    )


def two_dear_jobs() -> Snapshot:
    """Return jobs worth so much that the multiplier of the first level is below any price."""
    machine = TorusModel(
        name="mesh",
        shape=[2, 5],
        wrap=[False, True],
        nodes_per_router=3,
        classes={"gpu": "0-1,6-8,13-15,17-19,23,28-29"},
    )
    queue = [
        Request(id=f"q{k}", nodes=4, node_class="gpu", priority=MAX_PRIORITY) for k in range(2)
    ]
    running = [RunningJob(id="r0", nodes="6-8,15-17"), RunningJob(id="r1", nodes="21-22")]
    nothing = ShapeWeights(bisection=0, volume=0, hops=0, idle=0, wrap=0)
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="dear",
        machine=machine,
        running=running,
        queue=queue,
        weights=nothing,
    )


def wide_links() -> Snapshot:
    """Return a full router whose links are so wide that scores in millionths leave 64 bits."""
    machine = TorusModel(name="wide", shape=[1, 1], bandwidth=[1, 1 << 21])
    running = [RunningJob(id="run", nodes="0")]
    queue = [Request(id="q0", nodes=1), Request(id="q1", nodes=1, priority=2)]
    weights = ShapeWeights(bisection=1000, volume=0, hops=0, idle=0, wrap=0)
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="wide",
        machine=machine,
        running=running,
        queue=queue,
        weights=weights,
    )


def dear_and_ill_shaped() -> Snapshot:
    """Return a ring where a unit of the second level stands beside millions of the first."""
    queue = [
        Request(id="a", nodes=5, shapes="5/6", communication=Communication.NONE),
        Request(id="b", nodes=4),
        Request(id="c", nodes=7, priority=MAX_PRIORITY, communication=Communication.TOLERANT),
        Request(id="d", nodes=6, priority=MAX_PRIORITY, communication=Communication.NONE),
    ]
    weights = ShapeWeights(bisection=1000, volume=0, hops=0, idle=1000, wrap=1000)
    machine = TorusModel(name="ring", shape=[8])
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA, name="ring", machine=machine, queue=queue, weights=weights
    )


@pytest.mark.parametrize("make", [small_ring, two_dear_jobs, wide_links, dear_and_ill_shaped])
def test_bounds_near_zero_and_large_values_come_to_an_end(
    make: Callable[[], Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundle stops by itself, and what comes out is optimal, and accepted."""
    snapshot, steps = make(), 0
    minimise_near = FlatColumns.minimise_near

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        return minimise_near(*arguments)

    monkeypatch.setattr(FlatColumns, "minimise_near", counted)
    for mode in MODES:
        result = solve(snapshot, mode, time_limit=LONGEST_DIVE)
        assert reached(result) == brute_force(snapshot, mode)
        assert {level.status for level in result.levels} == {Status.OPTIMAL}
        assert check_document(result).holds
    assert steps < len(MODES) * STEPS
