"""Prisms as a plug-in of the engine: what is left around jobs, dominance, distance, annealing."""

from __future__ import annotations

import gc
import itertools
import json
import random
import weakref

import numpy as np
import pytest

from brute_force import brute_force
from exact_cases import MODES, mid_size_snapshot
from random_instances import random_snapshot
from topoplace.certify.packing import certified_bound
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.machine import Prism, Torus, prism_links
from topoplace.packing.budget import Budget
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.generation import Bounded
from topoplace.packing.dual.relaxation import DualPoint, Relaxation
from topoplace.packing.primal.dive import NeighbourhoodSearch
from topoplace.packing.problem import Query, Subproblem, fits
from topoplace.packing.search import Search
from topoplace.packing.tree.later import lifted
from topoplace.packing.tree.nodes import Dominance, split_columns, split_start
from topoplace.placement.torus import footprints
from topoplace.placement.torus._ruin_recreate import free_places
from topoplace.placement.torus.annealing import Annealer, forms_of
from topoplace.placement.torus.oracle._boxes import fill
from topoplace.placement.torus.packing import TorusPacking, all_candidates
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Interference
from topoplace.result.certificate import Leaf, LeafRef, SharedLeaves
from topoplace.snapshot.schema import Communication, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.types import BoolArray

LONGEST = 60.0  # seconds; searches end in about one


def tiny(seed: int) -> TorusPacking:
    snapshot = random_snapshot(random.Random(f"packing-{seed}"), 30)
    return TorusPacking(PlacementProblem(prepare(snapshot), MODES[seed % 3]))


def mid_size(seed: int) -> TorusPacking:
    return TorusPacking(PlacementProblem(prepare(mid_size_snapshot(seed)), MODES[seed % 3]))


def compatible(problem: TorusPacking, rng: random.Random, most: int) -> list[Candidate]:
    """Return some candidates of different requests that fit beside each other."""
    chosen: list[Candidate] = []
    candidates = all_candidates(problem.placement)
    rng.shuffle(candidates)
    for candidate in candidates:
        if len(chosen) < most and fits(problem, [*chosen, candidate]):
            chosen.append(candidate)
    return chosen


def test_prices_of_the_level_before_help_where_it_is_decided_who_starts() -> None:
    with_them, without, best = 0.0, 0.0, 0
    for seed in range(16):
        problem, budget = mid_size(seed), Budget(None)
        found = Search(problem, budget).run()
        every, started = range(len(problem.names)), {c.request_idx for c in found.placement}
        reached, value = tuple(found.values[:2]), found.values[2]
        sub = Subproblem(2, reached, frozenset(started), frozenset({*every} - started))
        relaxation = Relaxation(problem, budget)
        point, before = (DualPoint(np.zeros(problem.num_rows), (0.0,) * k) for k in (2, 1))
        start = Bounded(relaxation.evaluate(sub, point), point)
        own = lifted(relaxation, Columns(problem), sub, start, before, np.inf)
        assert value <= own.value.bound <= start.value.bound
        bounds = [
            Bundle(relaxation, Columns(problem), sub)
            .run(one, value, until=np.inf, max_steps=10)
            .value.bound
            for one in (start, own)
        ]
        assert min(bounds) >= value
        without, with_them, best = without + bounds[0], with_them + bounds[1], best + value
    assert with_them - best < 0.5 * (without - best)


@pytest.mark.parametrize("chunk", range(4))
def test_what_fits_beside_fixed_jobs_is_what_is_left(chunk: int) -> None:
    for seed in range(chunk * 20, chunk * 20 + 20):
        problem, rng = tiny(seed), random.Random(seed)
        fixed = compatible(problem, rng, rng.choice((1, 2)))
        out = frozenset({0} if rng.random() < 0.3 else ()) - {c.request_idx for c in fixed}
        rest = problem.around(fixed, out)
        theirs = out | {c.request_idx for c in fixed}
        expected = [
            c
            for c in all_candidates(problem.placement)
            if c.request_idx not in theirs and fits(problem, [*fixed, c])
        ]
        found = all_candidates(rest.problem.placement)
        assert sorted([*fixed, *expected]) == rest.together(found), seed
        assert rest.here(expected) == found, seed
        assert rest.worth == sum(problem.values[c.request_idx] for c in fixed)
        assert (rest.problem.values == np.delete(problem.values, sorted(theirs))).all()


@pytest.mark.parametrize("seed", range(4))
def test_an_oracle_beside_jobs_leaves_out_what_meets_them(seed: int) -> None:
    problem, rng = mid_size(seed), np.random.default_rng(seed)
    prices = np.zeros(problem.num_rows, dtype=np.int64)
    free = problem.price(prices, Query((1,), 4))
    fixed = next(columns[0][1] for columns in free.columns if columns)
    prices = rng.integers(0, 9, problem.num_rows) * (rng.random(problem.num_rows) < 0.2)
    held = problem.rows_of(fixed)
    prices[held] = 10**6
    usual = problem.price(prices, Query((1000,), 4))
    narrowed = problem.beside([fixed])
    assert narrowed.work(0) < problem.work(0), "what is left out takes no work"
    beside = narrowed.price(prices, Query((1000,), 4))
    for q in range(len(problem.names)):
        assert max(0, usual.best[q]) == max(0, beside.best[q])
        for _, candidate in beside.columns[q]:
            assert not set(held.tolist()) & set(problem.rows_of(candidate).tolist())


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_many_prisms_are_those_of_each(seed: int) -> None:
    problem = tiny(seed) if seed < 3 else mid_size(seed)
    torus, first = problem.placement.torus, problem.num_covers
    every = [c for c in all_candidates(problem.placement) if not c.request_idx % 3][::7]
    starts, rows = problem.rows_of_all(every)
    assert len(starts) == len(every) + 1
    strides, shape = np.array(torus.strides), np.array(torus.shape)
    num_outside = 0
    for k, candidate in enumerate(every):
        own, prism = rows[starts[k] : starts[k + 1]], candidate.prism
        routers, links = np.split(own, [prism.volume])
        assert sorted(routers.tolist()) == sorted(prism.routers(torus).tolist())
        in_one_family = sorted(((links - first) % torus.num_links).tolist())
        assert set(in_one_family) <= set(prism_links(torus, prism).tolist())
        if "links" in problem.families and len(problem.families) == 2 and len(links):
            assert in_one_family == prism_links(torus, prism).tolist()
        inside, outside = set(routers.tolist()), []
        for row in links.tolist():
            d, begin = divmod((row - first) % torus.num_links, torus.num_routers)
            at = begin // strides[d] % shape[d]
            end = begin + ((at + 1) % shape[d] - at) * strides[d]
            if begin not in inside or end not in inside:
                outside.append(row)
        assert problem.breakable(candidate, own).tolist() == outside
        num_outside += len(outside)
    assert len(problem.breakable_of_all(every, starts, rows)) == num_outside


@pytest.mark.parametrize("seed", range(4))
def test_columns_of_a_request_in_one_place_are_split(seed: int) -> None:
    """A solution may be whole and yet no placement: then some of its places are not to be taken."""
    problem, columns = mid_size(seed), Columns(mid_size(seed))
    columns.add(c for c in all_candidates(problem.placement) if not c.request_idx % 2)
    placed = compatible(problem, random.Random(seed), 3)
    columns.add(placed)
    sub = Subproblem(forced=frozenset(c.request_idx for c in placed))
    branch = split_columns(sub, [(1.0, c) for c in placed], columns)
    assert branch is not None
    [cover] = [own for own in branch.sides[0].covers if own.inside]
    q = cover.request_idx
    [chosen] = [c for c in placed if c.request_idx == q]
    mine = [c for c in columns.all if c.request_idx == q]
    inside = [c for c in mine if problem.covers(c, cover.row)]
    assert chosen in inside
    assert 0 < len(inside) < len(mine)
    alone = Columns(mid_size(seed))
    alone.add(placed)
    assert split_columns(sub, [(1.0, c) for c in placed], alone) is None, "nowhere else to go"


@pytest.mark.parametrize("seed", range(3))
def test_searches_around_jobs_and_neighbourhoods_reach_the_optimum(seed: int) -> None:
    problem = mid_size(seed)
    whole = Search(problem, Budget(LONGEST))
    root = whole.solve_level(Subproblem())
    best = whole.incumbent.objective(0)
    assert root.bound == best
    placed = whole.incumbent.best

    search = Search(mid_size(seed), Budget(LONGEST), start=[])
    fixed = placed[: len(placed) // 2]
    search.state.take(search.around(search.problem.around(fixed, frozenset()), LONGEST))
    assert search.incumbent.objective(0) == best, "the optimum keeps the fixed jobs"
    every = frozenset(range(len(problem.names)))
    assert whole.around(problem.around(placed, every), LONGEST) == placed, "no request is left"

    ends = []
    for _ in range(2):  # two neighbourhoods at once; where work counts, the same come out
        poor = Search(mid_size(seed), Budget(None), start=placed[1:])
        before = poor.incumbent.objective(0)
        NeighbourhoodSearch(poor.state, root, poor.around).run(poor.budget.now() + LONGEST / 4)
        assert poor.incumbent.objective(0) > before
        ends.append((poor.incumbent.best, poor.budget.now()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("seed", range(12))
def test_tolerant_requests_alone_have_no_rows_of_their_own(seed: int) -> None:
    """They share every link; with hundreds of them the rows would be tens of millions."""
    snapshot = random_snapshot(random.Random(f"tolerant-{seed}"), 16)
    queue = [
        r.model_copy(update={"communication": Communication.TOLERANT})
        if r.communication is Communication.STRICT
        else r
        for r in snapshot.queue
    ]
    snapshot, mode = snapshot.model_copy(update={"queue": queue}), Interference.TOLERANT
    problem = TorusPacking(PlacementProblem(prepare(snapshot), mode))
    assert set(problem.families) == {"routers", "links"}
    found = Search(problem, Budget(None)).run()
    assert tuple(found.values) == brute_force(snapshot, mode)
    oracle = TorusOracle(read_instance(snapshot, mode))
    assert found.bounds[0] is not None
    bound = certified_bound(oracle, found.bounds[0].certificate, [])
    assert bound is not None
    assert bound.value == found.values[0]


def test_a_search_around_jobs_is_forgotten_as_soon_as_it_ends() -> None:
    """Thousands of them come and go, and commands hardly ever look for garbage."""
    search = Search(mid_size(0), Budget(LONGEST), start=[])
    rest = search.problem.around([], frozenset())
    gc.disable()
    try:
        search.around(rest, LONGEST)
        assert isinstance(rest.problem, TorusPacking)
        left = [weakref.ref(rest.problem), weakref.ref(rest.problem.placement)]
        del rest
        assert [it() for it in left] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("seed", range(40))
def test_some_best_set_of_starts_obeys_the_preferences(seed: int) -> None:
    """And a tree of branches on starts bounds it."""
    snapshot, mode = random_snapshot(random.Random(f"dominance-{seed}"), 12), MODES[seed % 3]
    problem = TorusPacking(PlacementProblem(prepare(snapshot), mode))
    best, num = brute_force(snapshot, mode)[0], len(problem.names)
    found = Dominance(problem, frozenset(range(num)))
    obeying = [
        sum(problem.values[q] for q in some)
        for k in range(num + 1)
        for some in itertools.combinations(range(num), k)
        if all(found.better.get(q, frozenset()) <= set(some) for q in some)
    ]
    assert best in obeying
    oracle = TorusOracle(read_instance(snapshot, mode))
    for q in range(num):
        ref = LeafRef(leaf=0)
        tree = split_start(problem, Subproblem(), q, found).write(ref, ref)
        whole = SharedLeaves(leaves=[Leaf(scale=1)], tree=tree)
        bound = certified_bound(oracle, whole, [])
        assert bound is not None
        assert bound.value >= best


@pytest.mark.parametrize("chunk", range(4))
def test_annealing_keeps_to_the_candidates_and_is_no_worse_than_its_start(chunk: int) -> None:
    for seed in range(chunk * 15, chunk * 15 + 15):
        problem, budget = tiny(seed), Budget(None)
        start = max(problem.starts(np.inf), key=len) if seed % 2 else []
        found = Annealer(problem.placement).run(start, budget, 0.02, 5.0, seed)
        again = Annealer(problem.placement).run(start, Budget(None), 0.02, 5.0, seed)
        assert found == again, "work counts, not the clock"
        assert set(found) <= {*all_candidates(problem.placement)}, seed
        value, before = (sum(problem.values[c.request_idx] for c in s) for s in (found, start))
        assert value >= before, seed
        assert fits(problem, found)


def cube(size: int, requests: list[int], busy: str = "") -> TorusPacking:
    """Return a torus of a node per router, some of them held, and requests of some sizes."""
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "cube",
        "machine": {"kind": "torus", "name": "cube", "shape": [size] * 3, "wrap": [True] * 3},
        "running": [{"id": "held", "nodes": busy}] if busy else [],
        "queue": [{"id": f"job{k}", "nodes": nodes} for k, nodes in enumerate(requests)],
    }
    snapshot = Snapshot.model_validate_json(json.dumps(document))
    return TorusPacking(PlacementProblem(prepare(snapshot)))


def test_annealing_puts_in_the_requests_that_it_does_not_move() -> None:
    problem = cube(6, [108, 1, 1, 1, 1, 54])
    start = [next(c for c in all_candidates(problem.placement) if c.request_idx == 0)]
    found = Annealer(problem.placement).run(start, Budget(None), 0.2, 0.2, 1)
    assert {c.request_idx for c in found} == set(range(6))
    assert fits(problem, found)


def test_a_request_has_forms_wherever_it_fits() -> None:
    # the one layer that is free: hundreds of more compact forms are free nowhere
    problem = cube(16, [100], busy=f"256-{16**3 - 1}")
    forms = forms_of(problem.placement, np.array([True]))
    assert forms.first[1] > 1
    assert (forms.extents[:, 0] == 1).all()
    assert forms.places.max() < 256


@pytest.mark.parametrize("seed", range(40))
def test_the_places_of_a_form_are_those_where_all_routers_are_free(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    shape, wraps = rng.integers(2, 7, dims), rng.random(dims) < 0.7
    torus = Torus(tuple(shape.tolist()), tuple(wraps.tolist()))
    strides = np.array(torus.strides)
    num = torus.num_routers
    free = (rng.random(num) < 0.8).astype(np.uint8)
    run = np.zeros(num, dtype=np.uint16)
    for r in range(0, num, int(shape[-1])):
        one = np.ones(dims, dtype=np.int64)
        fill(shape, strides, wraps, r, one, free[r], free, run)
    extents = np.array([rng.integers(1, n + 1) for n in shape])
    coords = np.array([torus.coords(r) for r in range(num)], dtype=np.int32)
    inside = wraps | (coords + extents <= shape)
    places = np.flatnonzero(inside.all(axis=1)).astype(np.int32)
    prisms = [Prism(torus.coords(r), tuple(extents.tolist())) for r in places.tolist()]
    expected = [k for k, prism in enumerate(prisms) if free[prism.routers(torus)].all()]
    mask, other = np.zeros((2, (num + 7) // 8 * 8), dtype=np.uint8)
    steps, ahead = np.zeros((num, dims), dtype=np.int32), np.zeros(num, dtype=np.int32)
    for times in (1, 3000):  # by lines, and by masks
        among = np.tile(places, times)
        found = np.zeros(len(among), dtype=np.int64)
        count = free_places(
            shape, strides, wraps, coords, extents, among, run, mask, other, found, steps, ahead
        )  # fmt: skip
        here = [k for k in found[:count].tolist() if k < len(places)]
        assert here == expected
        assert not count or mask[places[expected]].all()


def test_heuristics_keep_to_the_candidates_where_tables_are_turned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(footprints, "_MAX_NATURAL", 0)
    for seed in range(40):
        problem = tiny(seed)
        allowed = {*all_candidates(problem.placement)}
        for found in problem.starts(np.inf):
            assert set(found) <= allowed, seed
            assert fits(problem, found)
            better = Annealer(problem.placement).run(found, Budget(None), 0.01, 5.0, seed)
            assert set(better) <= allowed, seed
            assert fits(problem, better)


def test_oracles_and_annealing_have_one_table_of_what_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []
    reach = footprints.Footprints.reach

    def counted(view: footprints.Footprints, *args: BoolArray) -> footprints.Reach:
        made.append(view)
        return reach(view, *args)

    problem = mid_size(0)
    monkeypatch.setattr(footprints.Footprints, "reach", counted)
    assert problem._scan.groups
    few = len(made)
    assert few >= 1
    some = frozenset(range(len(problem.names) // 2))
    for other in (problem.only(some), problem.unified([tuple(some)])):
        assert isinstance(other, TorusPacking)
        assert other._scan.groups
    Annealer(problem.placement).run([], Budget(None), 0.01, 5.0, 0)
    assert len(made) == few
