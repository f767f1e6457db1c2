"""What prices bound, and how the bundle finds good ones: compiled parts against plain loops."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ortools.sat.python import cp_model_helper as cp

from ring_cases import random_ring
from topoplace.packing.budget import Budget
from topoplace.packing.dual import _bundle, cut_pool, generation
from topoplace.packing.dual import bundle as bundle_module
from topoplace.packing.dual._kernels import marked_runs, numbered, runs_of, sums_over
from topoplace.packing.dual.bundle import Bundle
from topoplace.packing.dual.columns import Columns, Unsigned
from topoplace.packing.dual.cut_pool import CutPool, KnapsackSearch, StartsBelow
from topoplace.packing.dual.generation import Bounded
from topoplace.packing.dual.master import Master
from topoplace.packing.dual.relaxation import DualPoint, Relaxation
from topoplace.packing.dual.sparse import SparsePrices
from topoplace.packing.primal.program import Cancel, solved
from topoplace.packing.problem import Subproblem
from topoplace.result.certificate import CertificateNode, LeafRef, StartBranch
from toy_ring import ring_packing


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


def row_lists(rng: np.random.Generator, num_rows: int, num: int, most: int) -> list[list[int]]:
    """Return lists of rows, each row up to `most` times."""
    times = rng.integers(0, most + 1, (num, num_rows)) * (rng.random((num, num_rows)) < 0.6)
    return [np.repeat(np.arange(num_rows), own).tolist() for own in times]


def as_runs(lists: list[list[int]]) -> tuple[Unsigned, Unsigned]:
    rows = np.array([row for own in lists for row in own], dtype=np.int64)
    starts, runs = runs_of(np.cumsum([0, *map(len, lists)]), rows)
    return starts.astype(np.uint32), runs


@pytest.mark.parametrize("most", [1, 3])
def test_rows_as_runs_are_the_rows(most: int) -> None:
    rng = np.random.default_rng(most)
    for num_rows in (1, 7, 63, 64, 65, 200):
        lists = row_lists(rng, num_rows, 9, most)
        starts, runs = as_runs(lists)
        marked, values = rng.random(num_rows) < 0.7, rng.random(num_rows)
        assert np.allclose(sums_over(starts, runs, 9, values), [values[x].sum() for x in lists])
        number = np.cumsum(marked) - 1
        which = rng.permutation(9)[:5]
        own_starts, own = marked_runs(starts, runs, which, numbered(marked))
        for k, j in enumerate(which.tolist()):
            mine = own[own_starts[k] : own_starts[k + 1]].tolist()
            found = [row for begin, end in mine for row in range(begin, end)]
            assert sorted(found) == [number[row] for row in lists[j] if marked[row]]


@pytest.mark.parametrize("most", [1, 3])
def test_columns_meet_by_the_priced_rows_that_they_share(most: int) -> None:
    rng = np.random.default_rng(most)
    for num_rows in (1, 7, 63, 64, 65, 200):
        lists, every = row_lists(rng, num_rows, 40, most), np.ones(num_rows, dtype=bool)
        starts, runs = marked_runs(*as_runs(lists), np.arange(40), numbered(every))
        columns, priced = np.sort(rng.permutation(40)[:35]), rng.random(num_rows) < 0.7
        dense = np.array([np.bincount(lists[j], minlength=num_rows) for j in columns])[:, priced]
        wanted = 0.5 * (dense @ dense.T)
        of_amounts = _bundle.gram_of_amounts(columns, starts, runs, priced, np.float32(0.5))
        assert np.array_equal(of_amounts, wanted)
        level_step_size, worth = rng.random(2), rng.random((2, 35))
        by_level = (level_step_size[:, None] * worth).T @ worth
        for i in range(35 if most == 1 else 0):
            words = _bundle.rows_in_words(columns, starts, runs, priced)
            found, ready = np.empty((35, 35), dtype=np.float32), np.zeros(35, dtype=bool)
            _bundle.complete(i, words, np.float32(0.5), level_step_size, worth, found, ready)
            assert np.allclose(found[i], wanted[i] + by_level[i])
            assert np.flatnonzero(ready).tolist() == [i]


@pytest.mark.parametrize("before", [True, False])
def test_another_thread_may_end_an_integer_program(before: bool) -> None:
    model, cancel = pigeons(14), Cancel()
    if before:
        cancel()
    later = threading.Timer(0.2, cancel)
    later.start()
    answer = solved(model, "symmetry_level: 0 linearization_level: 0", 120.0, cancel)
    later.join()
    assert cancel.called
    assert answer.wall_time < 60, "it takes hours"


def pigeons(num: int) -> Any:
    """Return a program that puts some pigeons into one hole less, one in each."""
    model: Any = cp.CpModelProto()
    place = np.arange(num * (num - 1)).reshape(num, num - 1)
    for _ in range(place.size):
        model.variables.add().domain.extend([0, 1])
    for mine in place.tolist():
        model.constraints.add().bool_or.literals.extend(mine)
    for hole in place.T.tolist():
        for two in itertools.combinations(hole, 2):
            model.constraints.add().bool_or.literals.extend([-v - 1 for v in two])
    return model
