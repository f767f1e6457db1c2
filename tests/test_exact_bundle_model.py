"""What a step of the bundle minimises: the compiled parts, against numpy and plain loops."""

from __future__ import annotations

import random

import numpy as np
import pytest

from exact_cases import MODES
from random_instances import random_snapshot
from topoplace.machine import Prism, Torus
from topoplace.machine.links import prism_links
from topoplace.placement.exact._bundle import gram, minimise_near, rows_in_words
from topoplace.placement.exact._kernels import best_slots
from topoplace.placement.exact.bundle import FlatColumns
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import Relaxation, Subproblem, usable_prices
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.torus.oracle._prism_rows import leaves_prism, prism_rows
from topoplace.placement.torus.oracle.listing import ListPricer, all_candidates
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.snapshot import prepare

NUM_ROWS = 90


def random_columns(rng: np.random.Generator, num: int) -> list[np.ndarray]:
    return [np.flatnonzero(rng.random(NUM_ROWS) < 0.2).astype(np.uint32) for _ in range(num)]


def flat(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(np.uint32)
    return starts, np.concatenate(columns).astype(np.uint32)


@pytest.mark.parametrize("num", [1, 4, 7, 30])
def test_common_rows_are_counted(num: int) -> None:
    rng = np.random.default_rng(num)
    columns = random_columns(rng, num)
    marked = rng.random(NUM_ROWS) < 0.7
    dense = np.zeros((num, NUM_ROWS))
    for row, column in zip(dense, columns, strict=True):
        row[column] = 1
    counts = gram(rows_in_words(np.arange(num), *flat(columns), marked))[:num, :num]
    assert (counts == (dense * marked) @ dense.T).all()


@pytest.mark.parametrize("seed", range(30))
def test_prices_minimise_the_model_and_the_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_requests, num, num_levels = 6, 40, seed % 3
    columns = random_columns(rng, num)
    owner = rng.integers(0, num_requests, num)
    forced = rng.random(num_requests) < 0.3
    forced &= np.isin(np.arange(num_requests), owner)
    costs = rng.uniform(5, 20, num)
    earlier = rng.uniform(-3, 3, (num_levels, num))
    reached = rng.uniform(-2, 2, num_levels)
    centre = rng.uniform(0, 2, NUM_ROWS) * (rng.random(NUM_ROWS) < 0.6)
    level_centre = rng.uniform(0, 2, num_levels)
    step_size, level_step_size = 0.4, rng.uniform(0.1, 1, num_levels)
    members = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[members], np.arange(num_requests + 1))
    amounts = np.zeros(num)
    for q in np.flatnonzero(forced):
        amounts[members[first[q]]] = 1
    starts, rows = flat(columns)

    def model(prices: np.ndarray, multipliers: np.ndarray) -> float:
        gains = costs + multipliers @ earlier - [prices[c].sum() for c in columns]
        total = prices.sum() - multipliers @ reached
        for q in range(num_requests):
            mine = gains[owner == q]
            total += max([*mine] if forced[q] else [0.0, *mine])
        return float(total)

    def objective(prices: np.ndarray, multipliers: np.ndarray) -> float:
        distance = ((prices - centre) ** 2).sum() / (2 * step_size)
        level_distance = ((multipliers - level_centre) ** 2 / (2 * level_step_size)).sum()
        return model(prices, multipliers) + float(distance + level_distance)

    prices, multipliers, value, solved = minimise_near(
        first, members, forced, costs, earlier, reached, starts, rows, centre, step_size,
        np.ones(NUM_ROWS, bool), level_centre, level_step_size, amounts,
        model(centre, level_centre), 1e-4, 60,
    )  # fmt: skip
    assert solved
    assert value == pytest.approx(model(prices, multipliers))
    for q in range(num_requests):
        total = amounts[owner == q].sum()
        assert total == pytest.approx(1) if forced[q] else total <= 1 + 1e-9
    least = objective(prices, multipliers)
    slack = 2e-4 * max(1.0, model(centre, level_centre) - value)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(30):
            others = np.maximum(0, prices + scale * rng.normal(size=NUM_ROWS))
            levels = np.maximum(0, multipliers + scale * rng.normal(size=num_levels))
            assert objective(others, levels) >= least - slack


@pytest.mark.parametrize("seed", range(40))
def test_the_model_of_all_columns_is_the_bound(seed: int) -> None:
    """Fixed jobs count in it, and so do prices of links that no column passes."""
    problem = PlacementProblem(
        prepare(random_snapshot(random.Random(f"model-{seed}"), 30)), MODES[seed % 3]
    )
    candidates = all_candidates(problem)
    fixed = (candidates[seed % len(candidates)],) if candidates and seed % 2 else ()
    sub = Subproblem(excluded=frozenset(c.request_idx for c in fixed), fixed=fixed)
    rows = PackingRows(problem)
    relaxation = Relaxation(problem, rows, ListPricer(problem, rows))
    point = usable_prices(rows)
    point.row_prices[: rows.num_routers] *= 0.3
    point.row_prices[rows.num_routers :] = 0.125  # on every link
    point.row_prices[relaxation.rows_of(fixed)] = 0
    start = Bounded(relaxation.evaluate(sub, point), point)
    master = Master(rows)
    master.add(candidates)
    free = rows.takable.copy()
    free[relaxation.rows_of(fixed)] = False
    columns = FlatColumns(master, sub, free)
    columns.begin(point)
    columns.update()
    _, model, _ = columns.minimise_near(start, 1e-7, 1e-6, 30)
    assert model == pytest.approx(start.value.bound, abs=1e-2)


@pytest.mark.parametrize("text", ["torus:7x4x6", "mesh:5x6", "torus:8", "torus:3x4x2x5"])
def test_prisms_have_the_rows_of_their_routers_and_links(text: str) -> None:
    kind, shape = text.split(":")
    sizes = tuple(map(int, shape.split("x")))
    torus = Torus(sizes, wrap=(kind == "torus",) * len(sizes))
    machine = np.array(torus.shape), np.array(torus.strides), np.array(torus.wrap)
    rng = random.Random(text)
    for _ in range(200):
        extents = tuple(rng.randint(1, n) for n in sizes)
        origin = tuple(
            0 if e == n else rng.randrange(n if torus.wrap[0] else n - e + 1)
            for e, n in zip(extents, sizes, strict=True)
        )
        prism = Prism(origin, extents)
        inside = prism.routers(torus)
        assert (prism_rows(*machine, origin, extents, False) == inside).all()
        rows = prism_rows(*machine, origin, extents, True)
        links = rows[len(inside) :] - torus.num_routers
        assert (rows[: len(inside)] == inside).all()
        assert sorted(links.tolist()) == prism_links(torus, prism).tolist()
        leaves = leaves_prism(*machine[:2], origin, extents, links)
        for link, leaving in zip(links.tolist(), leaves.tolist(), strict=True):
            dim, router = divmod(link, torus.num_routers)
            coords = list(torus.coords(router))
            coords[dim] = (coords[dim] + 1) % sizes[dim]
            both = {router, torus.router(tuple(coords))} <= set(inside.tolist())
            assert leaving is not both or extents[dim] == sizes[dim]


def test_the_best_slots_come_first() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        values = rng.integers(-5, 5, (6, 4))
        codes = rng.integers(0, 1000, (6, 4))
        firsts = rng.integers(0, 4, 5)
        worths, found = best_slots(values, codes, firsts, 3)
        for first, worth, code in zip(firsts, worths, found, strict=True):
            at = values[:, first:].argmax(axis=1) + first
            tops = values[np.arange(6), at]
            order = np.argsort(-tops, kind="stable")[:3]
            assert (worth == tops[order]).all()
            assert (code == codes[order, at[order]]).all()
