"""Who starts at a leaf: the bound of several points together, against all sets of requests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from topoplace.placement.exact.cut_pool import CutPool, KnapsackSearch, StartsBelow
from topoplace.placement.exact.dominance import Dominance
from topoplace.placement.exact.relaxation import Subproblem
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import LeafRef, StartBranch
from topoplace.result.certificate import CertificateNode
from topoplace.snapshot import Snapshot, prepare
from topoplace.solving import Options

SCALE = 1000
NAMES = [f"q{k}" for k in range(7)]


def problem_of(rng: random.Random) -> PlacementProblem:
    """Return a problem with a queue of two classes, some requests of which are preferred."""
    snapshot = Snapshot.model_validate(
        {
            "schema": "topoplace.snapshot/1",
            "name": "starts",
            "machine": {
                "kind": "torus",
                "name": "ring",
                "shape": [64],
                "nodes_per_router": 1,
                "default_class": "a",
                "classes": {"b": "32-63"},
            },
            "queue": [
                {
                    "id": name,
                    "nodes": rng.randint(1, 20),
                    "priority": rng.randint(1, 2),
                    "class": rng.choice("ab"),
                }
                for name in NAMES
            ],
        }
    )
    return PlacementProblem(prepare(snapshot), Options().interference)


class Case:
    """Some points of a problem, and a leaf."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.problem = problem_of(rng)
        self.values = [request.value for request in self.problem.requests]
        startable = frozenset(q for q in range(len(NAMES)) if rng.random() < 0.9)
        self.pool = CutPool(SCALE, 3, np.array(self.values, dtype=float), startable)
        self.points: list[tuple[int, list[int]]] = []
        for k in range(rng.choice((1, 2, 5))):
            total = rng.randint(SCALE, 60 * SCALE)
            costs = [rng.randint(0, 2 * SCALE * value) for value in self.values]
            gains = [SCALE * v - c for v, c in zip(self.values, costs, strict=True)]
            self.pool.add(np.array([total, k, 0]), np.array(gains))
            self.points.append((total + k, costs))
        self.dominance = Dominance(self.problem, startable)
        self.sides = self.dominance.worse, self.dominance.better
        sub = Subproblem()
        for q in rng.sample(sorted(startable), rng.randint(0, min(3, len(startable)))):
            if q not in sub.forced | sub.excluded:
                sides, _ = self.dominance.branch(sub, q)
                sub = rng.choice(sides)
                if sub.forced & sub.excluded:
                    sub = Subproblem()
        self.sub = sub
        self.free = sorted(startable - sub.forced - sub.excluded)

    def sets(self) -> Iterator[frozenset[int]]:
        """Yield the sets that may start, but those that start a request without a preferred one."""
        for k in range(len(self.free) + 1):
            for some in itertools.combinations(self.free, k):
                started = self.sub.forced | set(some)
                if all(self.dominance.better.get(q, frozenset()) <= started for q in some):
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
            more_out = out | {q} | self.dominance.worse.get(q, frozenset())
            more_in = forced | {q} | self.dominance.better.get(q, frozenset())
            if not more_out & forced:
                look(node.out, forced, more_out)
            if not more_in & out:
                look(node.into, more_in, out)

        look(tree.written(NAMES, 10), set(self.sub.forced), set(self.sub.excluded))
        return proven


@pytest.mark.parametrize("seed", range(150))
def test_points_together_bound_every_set_that_all_of_them_admit(seed: int) -> None:
    case = Case(seed)
    search = KnapsackSearch(case.pool.values, case.sides)
    best, lowest = (
        case.best(),
        int(np.floor(case.pool.bounds(case.sub.forced, case.sub.excluded).min())),
    )
    for lower in (-1, best, best + 3):
        tree = search.below(case.sub.forced, case.sub.excluded, case.pool, lower, 50)
        assert tree.bound >= max(best, lower)
        assert tree.bound <= max(lowest, lower)
        assert case.written(tree) < tree.bound + 1
        if lower >= best and lower >= 0 and len(case.points) == 1:
            assert tree.bound == lower, "one knapsack is searched to its end"


def test_several_points_bound_more_than_each_by_itself() -> None:
    lower = 0
    for seed in range(150):
        case = Case(seed)
        tree = KnapsackSearch(case.pool.values, case.sides).below(
            case.sub.forced, case.sub.excluded, case.pool, -1, 50
        )
        each = case.pool.bounds(case.sub.forced, case.sub.excluded)
        lower += tree.bound < int(np.floor(each.min()))
    assert lower > 50


def test_branches_end_where_they_would_be_too_deep() -> None:
    case = Case(3)
    search = KnapsackSearch(case.pool.values, case.sides)
    tree = search.below(case.sub.forced, case.sub.excluded, case.pool, -1, 0)
    assert tree.request == [-1]
    each = case.pool.bounds(case.sub.forced, case.sub.excluded)
    assert tree.bound == int(np.floor(each.min()))


def test_points_hold_under_more_limits_than_they_were_found_for() -> None:
    case = Case(5)
    pool = case.pool.under((), [len(case.points) - 1])
    assert len(pool) == 1
    assert (pool.row_prices(0) == case.pool.row_prices(len(case.points) - 1)).all()
    assert pool.bounds(frozenset(), frozenset()) == case.pool.bounds(frozenset(), frozenset())[-1:]
