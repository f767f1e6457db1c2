"""What prices bound: every set of requests that a knapsack of prices admits, and no less."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from topoplace.placement.exact import cut_pool
from topoplace.placement.exact.cut_pool import FINENESS, NONE, CutPool, few_that_cover

SCALE, NUM_REQUESTS = 1000, 6


def random_pool(rng: random.Random) -> tuple[CutPool, list[tuple[int, list[int]]]]:
    """Return a pool, and its points as totals and least costs, both times the scale."""
    values = [rng.randint(1, 40) for _ in range(NUM_REQUESTS)]
    startable = frozenset(q for q in range(NUM_REQUESTS) if rng.random() < 0.9)
    pool = CutPool(SCALE, 9, np.array(values, dtype=float), startable)
    points = []
    for _ in range(rng.choice((1, 3, 70))):
        prices = np.array([rng.choice((0, rng.randint(0, 12 * SCALE))) for _ in range(9)])
        costs = [rng.choice((0, rng.randint(0, 50 * SCALE))) for _ in range(NUM_REQUESTS)]
        pool.add(prices, np.array([SCALE * v - c for v, c in zip(values, costs, strict=True)]))
        points.append((int(prices.sum()), costs))
    return pool, points


def most_at(point: tuple[int, list[int]], values: list[int], sets: list[set[int]]) -> Fraction:
    """Return the largest value of the sets that a point admits, far below 0 if it admits none."""
    total, costs = point
    fit = [sum(values[q] for q in some) for some in sets if sum(costs[q] for q in some) <= total]
    return Fraction(max(fit, default=-(10**9)))


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold_for_every_set_that_fits_and_are_those_of_a_multiple(seed: int) -> None:
    rng = random.Random(seed)
    pool, points = random_pool(rng)
    values = pool.values.astype(int).tolist()
    kinds = {q: rng.choice(("forced", "excluded", "free")) for q in pool.startable}
    forced = frozenset(q for q, kind in kinds.items() if kind == "forced")
    excluded = frozenset(q for q, kind in kinds.items() if kind == "excluded")
    free = sorted(pool.startable - forced - excluded)
    sets = [
        set(forced) | set(some)
        for k in range(len(free) + 1)
        for some in itertools.combinations(free, k)
    ]
    bounds = pool.bounds(forced, excluded)
    _, times = pool.knapsacks().bounds(pool.values, *pool.sides(forced, excluded))
    assert len(bounds) == len(points) == len(pool)
    for number, ((total, costs), bound) in enumerate(zip(points, bounds, strict=True)):
        assert bound >= most_at(points[number], values, sets)
        multiple = Fraction(int(times[number]), FINENESS)
        gains = {q: values[q] - multiple * costs[q] / SCALE for q in pool.startable}
        exact = multiple * total / SCALE + sum(gains[q] for q in forced)
        exact += sum(max(Fraction(0), gains[q]) for q in free)
        assert exact <= Fraction(float(bound))
        assert float(bound) - exact < 1e-4 * max(1, abs(float(exact)))
        # no multiple is better, but for how finely they are stepped
        for times_more in (0, Fraction(1, 2), 2, 10):
            other = min(multiple * times_more, Fraction(cut_pool.LARGEST_MULTIPLE))
            gains = {q: values[q] - other * costs[q] / SCALE for q in pool.startable}
            at_other = other * total / SCALE + sum(gains[q] for q in forced)
            at_other += sum(max(Fraction(0), gains[q]) for q in free)
            step = Fraction(total + sum(costs), SCALE * FINENESS)
            assert float(exact) <= max(-1.0, float(at_other)) + float(step)


def test_points_come_back_as_they_were_and_later_ones_alone() -> None:
    rng = random.Random(1)
    pool = CutPool(SCALE, 5, np.array([3.0, 4.0]), frozenset((0, 1)))
    rows = [np.array([*rng.choices((0, 7, 10**9), k=4), k]) for k in range(200)]
    for prices in rows:
        pool.add(prices, np.array([rng.randint(-9, 9), 1]))
    assert all((pool.row_prices(k) == prices).all() for k, prices in enumerate(rows))
    every = pool.bounds(frozenset((0,)), frozenset())
    assert (pool.bounds(frozenset((0,)), frozenset(), 150) == every[150:]).all()
    assert not len(pool.bounds(frozenset(), frozenset(), 200))


def test_a_pool_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_pool, "MOST_POINTS", 70)
    pool = CutPool(SCALE, 1, np.array([3.0]), frozenset((0,)))
    for price in range(80):
        pool.add(np.array([price]), np.array([-price]))
    assert len(pool) == len(pool.bounds(frozenset(), frozenset())) == 70
    assert pool.row_prices(69).tolist() == [69]


def test_a_point_is_taken_in_once() -> None:
    pool = CutPool(SCALE, 2, np.array([3.0, 1.0]), frozenset((0, 1)))
    for prices, gains in (([1, 2], [5, 6]), ([2, 1], [5, 6]), ([1, 2], [5, 7]), ([1, 3], [5, 6])):
        pool.add(np.array(prices), np.array(gains))
    assert len(pool) == 3  # the second says what the first does


def test_few_columns_cover_what_can_be_covered() -> None:
    covers = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0]], dtype=bool)
    chosen = few_that_cover(covers)
    assert chosen[2] == NONE
    assert all(covers[row, column] for row, column in enumerate(chosen) if column != NONE)
    assert len(set(chosen) - {NONE}) == 2
