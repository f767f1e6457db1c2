"""Scanning all prisms and listing all candidates give the same best values at any prices."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from exact_cases import MODES
from random_instances import random_snapshot
from topoplace.machine import Prism
from topoplace.placement.exact.groups import PlaceLimit
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.torus.oracle import _minimal
from topoplace.placement.torus.oracle.listing import ListPricer
from topoplace.placement.torus.oracle.pricing import NO_VALUE, Prices, ScanPricer, Weights
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot import prepare

CHUNKS, PER_CHUNK = 10, 15
WEIGHTS = (
    Weights(nodes=1),
    Weights(nodes=997),
    Weights(shape=3),
    Weights(nodes=50, shape=7),
    Weights(fragmentation=11),
    Weights(nodes=200, shape=5, fragmentation=3),
)


def tiny(seed: int) -> PlacementProblem:
    snapshot = random_snapshot(random.Random(f"pricing-{seed}"), 30)
    return PlacementProblem(prepare(snapshot), MODES[seed % 3])


def random_prices(rows: PackingRows, rng: np.random.Generator, scale: int) -> Prices:
    """Return prices with many zeros; links that do not exist or nobody may use cost nothing."""
    drawn = rng.integers(0, scale + 1, size=rows.num_rows)
    drawn[rng.random(rows.num_rows) < rng.choice((0.0, 0.5, 0.95))] = 0
    prices = rows.prices(drawn)
    real = rows.problem.torus.link_mask.ravel()
    return Prices(prices.routers, {k: v * real for k, v in prices.links.items()})


def value_of(rows: PackingRows, prices: Prices, weights: Weights, candidate: Candidate) -> int:
    """Return value minus price of a candidate, summed router by router and link by link."""
    problem = rows.problem
    request = problem.requests[candidate.request_idx]
    nodes, shape, fragmentation = problem.values(candidate)
    paid = sum(int(prices.routers[r]) for r in candidate.prism.routers(problem.torus))
    tolerant = problem.is_tolerant(request.communication)
    for link in problem.links_of(candidate):
        for family, per_link in prices.links.items():
            if not tolerant or family == candidate.request_idx:
                paid += int(per_link[link])
    return (
        weights.nodes * nodes + weights.shape * shape + weights.fragmentation * fragmentation - paid
    )


@pytest.fixture(params=[True, False], ids=["listed", "scanned"])
def _minimal_prisms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the first level, price the minimal prisms from their list, or scan all prisms."""
    if not request.param:
        monkeypatch.setattr("topoplace.placement.exact.groups.MOST_ENTRIES", -1)


@pytest.mark.usefixtures("_minimal_prisms")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_scan_and_list_find_the_same_best_values(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        problem, rng = tiny(seed), np.random.default_rng(seed)
        rows = PackingRows(problem)
        listing, scan = ListPricer(problem, rows), ScanPricer(problem, threads=1)
        known = set(listing.candidates)
        for weights in WEIGHTS:
            prices = random_prices(rows, rng, int(rng.choice((1, 30, 2000))))
            listed, scanned = listing.price(prices, weights), scan.price(prices, weights)
            case = (seed, problem.interference, weights)
            assert scanned.best.tolist() == listed.best.tolist(), case
            for idx, columns in enumerate(scanned.columns):
                assert bool(columns) == (scanned.best[idx] != NO_VALUE), case
                for gain, candidate in columns:
                    assert candidate.request_idx == idx
                    assert candidate in known, case
                    assert gain == value_of(rows, prices, weights, candidate), case


@pytest.mark.usefixtures("_minimal_prisms")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_asking_for_gains_only_keeps_positive_and_wanted_best_values(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        problem, rng = tiny(seed), np.random.default_rng(seed)
        rows = PackingRows(problem)
        prices = random_prices(rows, rng, 6)
        every = ScanPricer(problem, threads=1).price(prices, Weights(nodes=3)).best
        for some in (0, 1, 3):
            exact_for = frozenset(rng.permutation(len(every))[:some].tolist())
            scan = ScanPricer(problem, threads=2)
            best = scan.price(prices, Weights(nodes=3), exact_for=exact_for).best
            assert np.maximum(best, 0).tolist() == np.maximum(every, 0).tolist(), seed
            assert [best[i] for i in exact_for] == [every[i] for i in exact_for], seed


@pytest.mark.usefixtures("_minimal_prisms")
@pytest.mark.parametrize("seed", range(80))
def test_both_obey_limits_on_places(seed: int) -> None:
    problem, rng = tiny(seed), random.Random(seed)
    rows = PackingRows(problem)
    listing = ListPricer(problem, rows)
    limits = []
    for _ in range(rng.randint(1, 3)):
        if not problem.requests:
            break
        shape = problem.torus.shape
        coords = tuple(rng.randrange(n) for n in shape)
        idx = rng.randrange(len(problem.requests))
        limits.append(PlaceLimit(idx, coords, shape, inside=rng.random() < 0.5))
    prices = random_prices(rows, np.random.default_rng(seed), 20)
    weights = WEIGHTS[seed % len(WEIGHTS)]
    expected = [NO_VALUE] * len(problem.requests)
    routers = [int(np.ravel_multi_index(x.coords, x.shape)) for x in limits]
    for candidate in listing.candidates:
        inside = all(
            limit.request_idx != candidate.request_idx
            or (router in candidate.prism.routers(problem.torus)) is limit.inside
            for limit, router in zip(limits, routers, strict=True)
        )
        if inside:
            value = value_of(rows, prices, weights, candidate)
            expected[candidate.request_idx] = max(expected[candidate.request_idx], value)
    assert listing.price(prices, weights, limits=tuple(limits)).best.tolist() == expected
    scan = ScanPricer(problem, threads=1)
    scan.price(prices, weights)  # marks lines as too poor in nodes, for the groups as they are
    for _ in range(2):
        scanned = scan.price(prices, weights, limits=tuple(limits))
        assert scanned.best.tolist() == expected
        for columns in scanned.columns:
            assert all(limit.admits(candidate) for limit in limits for _, candidate in columns)
    wanted = frozenset(range(0, len(problem.requests), 2))
    if not weights.shape and not weights.fragmentation:
        some = scan.price(prices, weights, limits=tuple(limits), exact_for=wanted).best
        assert [some[i] for i in wanted] == [expected[i] for i in wanted]


@pytest.mark.parametrize("seed", range(40))
def test_listed_prisms_have_no_smaller_one_of_their_size_inside(seed: int) -> None:
    problem = tiny(seed)
    scan = ScanPricer(problem, threads=1)
    prices = random_prices(PackingRows(problem), np.random.default_rng(seed), 0)
    scan.price(prices, Weights(nodes=1))  # lists them
    candidates = ListPricer(problem, PackingRows(problem)).candidates
    for group in scan.groups:
        if len(group.least):
            continue  # shapes are given
        assert group.minimal.listed is not None
        view, depth = group.view, group.view.depth
        listed: dict[int, set[Prism]] = {}
        for listing in itertools.chain(*group.minimal.listed):
            for pair, (f, line) in enumerate(zip(listing.footprints, listing.at, strict=True)):
                for entry in listing.entries[listing.starts[pair] : listing.starts[pair + 1]]:
                    z0, past = _minimal.extent_of(entry, depth)
                    code = ((int(f) * depth + past) * len(view.bases) + int(line)) * depth + z0
                    nodes = int(group.sizes[entry % _minimal.MOST_SIZES])
                    listed.setdefault(nodes, set()).add(view.prism(code))
        for idx in group.requests:
            mine = {c.prism for c in candidates if c.request_idx == idx}
            of = {p: frozenset(p.routers(problem.torus).tolist()) for p in mine}
            minimal = {p for p in mine if not any(of[q] < of[p] for q in mine)}
            later = set().union(*(p for n, p in listed.items() if n > problem.requests[idx].nodes))
            own = listed.get(problem.requests[idx].nodes, set())
            shape = problem.torus.shape
            # of a whole ring only the first and last router are tried to leave out
            rings = {p for p in own if any(e == n for e, n in zip(p.extents, shape, strict=True))}
            assert own - rings <= minimal
            assert minimal <= own | later, "what reaches a larger size, too, is listed there"
