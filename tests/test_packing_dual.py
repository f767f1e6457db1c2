"""What prices bound, and how the bundle finds good ones: compiled parts against plain loops."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from ring_cases import random_ring
from topoplace.packing.budget import Budget
from topoplace.packing.dual import bundle as bundle_module
from topoplace.packing.dual import cut_pool, generation
from topoplace.packing.dual._bundle import minimise_near
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.cut_pool import CutPool, KnapsackSearch, StartsBelow
from topoplace.packing.dual.generation import Bounded
from topoplace.packing.dual.master import Master
from topoplace.packing.dual.relaxation import DualPoint, Relaxation
from topoplace.packing.dual.sparse import SparsePrices
from topoplace.packing.problem import Query, Subproblem
from topoplace.result.certificate import CertificateNode, LeafRef, StartBranch
from toy_ring import ring_packing

NUM_ROWS = 90


def random_columns(rng: np.random.Generator, num: int, most: int) -> list[np.ndarray]:
    """Return the rows of columns, some of them up to so many times."""
    every = [np.flatnonzero(rng.random(NUM_ROWS) < 0.2) for _ in range(num)]
    return [np.repeat(rows, rng.integers(1, most + 1, len(rows))) for rows in every]


def flat(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(np.uint32)
    return starts, np.concatenate(columns).astype(np.uint32)


@pytest.mark.parametrize("seed", range(10))
def test_columns_keep_their_rows(seed: int) -> None:
    """Also the amounts of columns that take several units of a row, and in the order given."""
    problem = ring_packing(*random_ring(random.Random(f"rows-{seed}")))
    columns, rng = Columns(problem), np.random.default_rng(seed)
    free = np.zeros(problem.num_rows, dtype=np.int64)
    listed = [c for found in problem.price(free, Query((1,), 9)).columns for _, c in found]
    columns.add(listed)
    kept = rng.random(len(columns)) < 0.6
    left = [c.candidate for c, k in zip(columns.all, kept, strict=True) if k]
    columns.keep(kept)
    columns.add(listed)
    assert [c.candidate for c in columns.all][: len(left)] == left
    rows = [problem.rows_of(column.candidate) for column in columns.all]
    assert columns.num_entries == sum(map(len, rows))
    marked = rng.random(problem.num_rows) < 0.7
    starts, among = columns.rows_among(np.arange(len(columns)), marked)
    for k, mine in enumerate(rows):
        assert columns.rows(k).tolist() == mine.tolist()
        assert among[starts[k] : starts[k + 1]].tolist() == mine[marked[mine]].tolist()


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("seed", range(15))
def test_prices_minimise_the_model_and_the_distance(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    num_requests, num, num_levels = 6, 40, seed % 3
    columns = random_columns(rng, num, most)
    capacity = rng.integers(1, most + 1, NUM_ROWS).astype(float)
    owner = rng.integers(0, num_requests, num)
    at_most = rng.choice([1, 1, 2, 5], num_requests)
    at_least = rng.integers(0, at_most + 1) * (rng.random(num_requests) < 0.4)
    at_least *= np.isin(np.arange(num_requests), owner)
    costs = rng.uniform(5, 20, num)
    earlier = rng.uniform(-3, 3, (num_levels, num))
    reached = rng.uniform(-2, 2, num_levels)
    centre = rng.uniform(0, 2, NUM_ROWS) * (rng.random(NUM_ROWS) < 0.6)
    level_centre = rng.uniform(0, 2, num_levels)
    step_size, level_step_size = 0.4, rng.uniform(0.1, 1, num_levels)
    members = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[members], np.arange(num_requests + 1))
    amounts = np.zeros(num)
    for q in np.flatnonzero(at_least):
        amounts[members[first[q]]] = at_least[q]
    starts, rows = flat(columns)

    def model(prices: np.ndarray, multipliers: np.ndarray) -> float:
        gains = costs + multipliers @ earlier - [prices[c].sum() for c in columns]
        total = prices @ capacity - multipliers @ reached
        for q in range(num_requests):
            high = gains[owner == q].max(initial=-np.inf)
            if high > -np.inf:
                total += high * (at_most[q] if high > 0 else at_least[q])
        return float(total)

    def objective(prices: np.ndarray, multipliers: np.ndarray) -> float:
        distance = ((prices - centre) ** 2).sum() / (2 * step_size)
        level_distance = ((multipliers - level_centre) ** 2 / (2 * level_step_size)).sum()
        return model(prices, multipliers) + float(distance + level_distance)

    prices, multipliers, value, solved = minimise_near(
        first, members, at_least, at_most, costs, earlier, reached, starts, rows,
        capacity, most == 1, centre, step_size,
        np.ones(NUM_ROWS, bool), level_centre, level_step_size, amounts,
        model(centre, level_centre), 1e-4, 60,
    )  # fmt: skip
    assert solved
    assert value == pytest.approx(model(prices, multipliers))
    for q in range(num_requests):
        total = amounts[owner == q].sum()
        assert at_least[q] - 1e-9 <= total <= at_most[q] + 1e-9
    least = objective(prices, multipliers)
    slack = 2e-4 * max(1.0, model(centre, level_centre) - value)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(30):
            others = np.maximum(0, prices + scale * rng.normal(size=NUM_ROWS))
            levels = np.maximum(0, multipliers + scale * rng.normal(size=num_levels))
            assert objective(others, levels) >= least - slack


@pytest.mark.parametrize("seed", range(60))
def test_the_bundle_comes_down_to_the_linear_program(seed: int) -> None:
    problem = ring_packing(*random_ring(random.Random(f"bundle-{seed}")))
    budget = Budget(None)
    out = frozenset(q for q in range(len(problem.names)) if seed % 2 and q % 3 == 0)
    sub, every = Subproblem(excluded=out), Columns(problem)
    every.add(problem.every_candidate)
    program = Master(every, budget).solve(sub)
    relaxation, point = Relaxation(problem, budget), DualPoint(problem.start_prices.astype(float))
    start = Bounded(relaxation.evaluate(sub, point), point)
    bundle = Bundle(relaxation, Columns(problem), sub)
    bounded = bundle.run(start, -1, until=np.inf, max_steps=300)
    least = 0.0 if program is None else program.objective
    assert bounded.value.bound >= least - 1e-3
    assert bounded.value.bound <= least * 1.002 + 0.2
    again = relaxation.evaluate(sub, DualPoint.rounded(bounded.value))
    assert again.bound == bounded.value.bound, "the integers behind it are a point as good"


def test_a_bundle_forgets_columns_rather_than_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (bundle_module, generation):
        monkeypatch.setattr(module, "MOST_ENTRIES", 60)
    for seed in range(20):
        problem = ring_packing(*random_ring(random.Random(f"bundle-{seed}")))
        every, columns, sub = Columns(problem), Columns(problem), Subproblem()
        every.add(problem.every_candidate)
        program = Master(every, Budget(None)).solve(sub)
        relaxation = Relaxation(problem, Budget(None))
        point = DualPoint(problem.start_prices.astype(float))
        start = Bounded(relaxation.evaluate(sub, point, 4), point)
        for _ in range(60):
            start = Bundle(relaxation, columns, sub).run(start, -1, until=np.inf, max_steps=1)
            largest = max((len(every.rows(k)) for k in range(len(every))), default=0)
            assert columns.num_entries <= 60 + 4 * len(problem.names) * largest
        least = 0.0 if program is None else program.objective
        assert least - 1e-3 <= start.value.bound


@pytest.mark.parametrize("seed", range(40))
def test_fixed_jobs_count_and_keep_what_they_hold(seed: int) -> None:
    ring, jobs = random_ring(random.Random(f"fixed-{seed}"))
    problem = ring_packing(ring, jobs)
    candidates = problem.every_candidate
    if not candidates:
        return
    fixed = (random.Random(seed).choice(candidates),)
    gone = frozenset({fixed[0].request_idx})
    rest = problem.around(fixed, frozenset())
    budget, point = Budget(None), DualPoint(problem.start_prices.astype(float))
    sub = Subproblem(excluded=gone, fixed=fixed)
    bounds = []
    for one, under, worth in ((problem, sub, 0), (rest.problem, Subproblem(), rest.worth)):
        relaxation = Relaxation(one, budget)
        start = Bounded(relaxation.evaluate(under, point), point)
        bounded = Bundle(relaxation, Columns(one), under).run(start, -1, until=np.inf, max_steps=99)
        bounds.append(bounded.value.bound + worth)
    assert bounds[0] >= bounds[1] - 0.2  # without the windows that do not fit it may be less


SCALE = 1000


@pytest.mark.parametrize(("name", "most"), [("MOST_POINTS", 70), ("MOST_BYTES", 69 * 4)])
def test_a_pool_does_not_grow_for_ever(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_pool, name, most)
    pool = CutPool(SCALE, np.array([3.0]), frozenset((0,)))
    for price in range(80):
        pool.add(SparsePrices.of(np.array([price])), price, np.array([-price]))
    assert len(pool) == len(pool.bounds(frozenset(), frozenset())) == 70
    assert pool.point(69).dense().tolist() == [69]


@pytest.mark.parametrize("dense", [[0, 5, 0, -7], [0, 1 << 40], [0.0, 0.5, 1e-9], [0, 0], []])
def test_prices_are_kept_without_zeros(dense: list[float]) -> None:
    prices = np.array(dense, dtype=None if dense else np.int64)
    kept = SparsePrices.of(prices)
    assert kept.dense().tolist() == dense
    assert kept.dense().dtype == prices.dtype
    assert len(kept.rows) == np.count_nonzero(prices)


def test_a_point_is_taken_in_once() -> None:
    pool = CutPool(SCALE, np.array([3.0, 1.0]), frozenset((0, 1)))
    for prices, gains in (([1, 2], [5, 6]), ([2, 1], [5, 6]), ([1, 2], [5, 7]), ([1, 3], [5, 6])):
        pool.add(SparsePrices.of(np.array(prices)), sum(prices), np.array(gains))
    assert len(pool) == 3  # the second says what the first does


NAMES = [f"q{k}" for k in range(7)]


class Case:
    """Some points of a problem, and a leaf."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        kinds = [rng.choice("ab") for _ in NAMES]
        sizes = [rng.randint(1, 20) for _ in NAMES]
        self.values = [size * rng.randint(1, 2) for size in sizes]
        startable = frozenset(q for q in range(len(NAMES)) if rng.random() < 0.9)
        self.pool = CutPool(SCALE, np.array(self.values, dtype=float), startable)
        self.points: list[tuple[int, list[int]]] = []
        for k in range(rng.choice((1, 2, 5))):
            total = rng.randint(SCALE, 60 * SCALE)
            costs = [rng.randint(0, 2 * SCALE * value) for value in self.values]
            gains = [SCALE * v - c for v, c in zip(self.values, costs, strict=True)]
            self.pool.add(SparsePrices.of(np.array([total, k, 0])), total + k, np.array(gains))
            self.points.append((total + k, costs))
        self.better = {
            q: frozenset(
                b
                for b in startable - {q}
                if kinds[b] == kinds[q]
                and sizes[b] <= sizes[q]
                and (-self.values[b], sizes[b], b) < (-self.values[q], sizes[q], q)
            )
            for q in startable
        }
        self.worse = {q: frozenset(w for w in startable if q in self.better[w]) for q in startable}
        self.forced, self.excluded = frozenset[int](), frozenset[int]()
        for q in rng.sample(sorted(startable), rng.randint(0, min(3, len(startable)))):
            if q in self.forced | self.excluded:
                continue
            if rng.random() < 0.5:
                self.forced |= {q} | self.better[q]
            else:
                self.excluded |= {q} | self.worse[q]
        if self.forced & self.excluded:
            self.forced = self.excluded = frozenset()
        self.free = sorted(startable - self.forced - self.excluded)

    def sets(self) -> Iterator[frozenset[int]]:
        """Yield the sets that may start, but those that start a request without a preferred one."""
        for k in range(len(self.free) + 1):
            for some in itertools.combinations(self.free, k):
                started = self.forced | set(some)
                if all(self.better[q] <= started for q in some):
                    yield started

    def best(self) -> int:
        """Return the value of the best set that all points admit, -1 if there is none."""
        return max(
            (
                sum(self.values[q] for q in some)
                for some in self.sets()
                if all(sum(costs[q] for q in some) <= total for total, costs in self.points)
            ),
            default=-1,
        )

    def bound_at(self, point: int, multiple: Fraction, forced: set[int], out: set[int]) -> Fraction:
        """Return what a multiple of a point's prices says of a set of starts."""
        total, costs = self.points[point]
        bound = multiple * total / SCALE
        for q in self.pool.startable - out:
            gain = self.values[q] - multiple * costs[q] / SCALE
            bound += gain if q in forced else max(Fraction(0), gain)
        return bound

    def written(self, tree: StartsBelow) -> Fraction:
        """Return what the tree proves as it is written, evaluated end by end."""
        proven = Fraction(-1)

        def look(node: CertificateNode, forced: set[int], out: set[int]) -> None:
            nonlocal proven
            if isinstance(node, LeafRef):
                multiple = Fraction(node.times, node.over)
                point = tree.numbers[node.leaf - 10]
                proven = max(proven, self.bound_at(point, multiple, forced, out))
                return
            assert isinstance(node, StartBranch)
            q = NAMES.index(node.request)
            assert q not in forced | out, "a request is split once"
            more_out = out | {q} | self.worse[q]
            more_in = forced | {q} | self.better[q]
            if not more_out & forced:
                look(node.out, forced, more_out)
            if not more_in & out:
                look(node.into, more_in, out)

        look(
            tree.written(NAMES, range(10, 10 + len(tree.points))),
            set(self.forced),
            set(self.excluded),
        )
        return proven


@pytest.mark.parametrize("seed", range(80))
def test_points_together_bound_every_set_that_all_of_them_admit(seed: int) -> None:
    case = Case(seed)
    search = KnapsackSearch(case.pool.values, (case.worse, case.better))
    best, lowest = (
        case.best(),
        int(np.floor(case.pool.bounds(case.forced, case.excluded).min())),
    )
    for lower in (-1, best, best + 3):
        tree = search.below(case.forced, case.excluded, case.pool, lower, 50)
        assert tree.bound >= max(best, lower)
        assert tree.bound <= max(lowest, lower)
        assert case.written(tree) < tree.bound + 1
        if lower >= best and lower >= 0 and len(case.points) == 1:
            assert tree.bound == lower, "one knapsack is searched to its end"


def test_several_points_bound_more_than_each_by_itself() -> None:
    lower = 0
    for seed in range(150):
        case = Case(seed)
        tree = KnapsackSearch(case.pool.values, (case.worse, case.better)).below(
            case.forced, case.excluded, case.pool, -1, 50
        )
        each = case.pool.bounds(case.forced, case.excluded)
        lower += tree.bound < int(np.floor(each.min()))
    assert lower > 50


def test_points_hold_under_more_limits_than_they_were_found_for() -> None:
    case = Case(5)
    pool = case.pool.under((), [len(case.points) - 1])
    assert len(pool) == 1
    assert pool.point(0) is case.pool.point(len(case.points) - 1)
    assert pool.bounds(frozenset(), frozenset()) == case.pool.bounds(frozenset(), frozenset())[-1:]
