"""The oracle of prisms is the best of all candidates, one by one, at any prices."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from exact_cases import MODES
from random_instances import random_snapshot
from topoplace.packing.listed import ListedOracle
from topoplace.packing.problem import NO_VALUE, Cover, Kinds, Query, Subproblem
from topoplace.placement.torus import packing as plug_in
from topoplace.placement.torus.oracle import groups, pricing
from topoplace.placement.torus.packing import TorusPacking, all_candidates
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.snapshot.state import prepare
from topoplace.types import IntArray

CHUNKS, PER_CHUNK = 8, 12
WEIGHTS = ((1,), (997,), (0, 3), (50, 7), (0, 0, 11), (200, 5, 3))


@pytest.fixture(autouse=True)
def _scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plug_in, "are_few", lambda problem: False)


@pytest.fixture(params=[True, False], ids=["minimal", "all"])
def _minimal_prisms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Price prisms from their lists, on the first level the minimal ones, or scan all."""
    if not request.param:
        monkeypatch.setattr(groups, "MOST_ENTRIES", -1)
        monkeypatch.setattr(groups, "MOST_VALUED", -1)


def tiny(seed: int) -> TorusPacking:
    snapshot = random_snapshot(random.Random(f"pricing-{seed}"), 30)
    return TorusPacking(PlacementProblem(prepare(snapshot), MODES[seed % 3]))


def random_prices(packing: TorusPacking, rng: np.random.Generator, scale: int) -> IntArray:
    """Return prices with many zeros; links that do not exist or nobody may use cost nothing."""
    drawn = rng.integers(0, scale + 1, size=packing.num_rows)
    drawn[rng.random(packing.num_rows) < rng.choice((0.0, 0.5, 0.95))] = 0
    real = packing.placement.torus.link_mask.ravel()
    drawn[packing.num_covers :] *= np.tile(
        real, (packing.num_rows - packing.num_covers) // len(real)
    )
    return drawn


def random_covers(packing: TorusPacking, rng: random.Random) -> tuple[Cover, ...]:
    num = len(packing.names)
    return tuple(
        Cover(rng.randrange(num), rng.randrange(packing.num_covers), inside=rng.random() < 0.5)
        for _ in range(rng.randint(1, 3) if num else 0)
    )


@pytest.mark.usefixtures("_minimal_prisms")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_oracle_is_the_best_of_all_candidates(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        packing, rng = tiny(seed), np.random.default_rng(seed)
        every = all_candidates(packing.placement)
        listed = ListedOracle(packing, lambda every=every: every)
        values = packing.values_of(every)
        drawn = random_covers(packing, random.Random(seed))
        for weights, covers in itertools.product(WEIGHTS, ((), drawn)):
            prices = random_prices(packing, rng, int(rng.choice((1, 30, 2000))))
            gains = {
                c: int(np.dot(weights, v[: len(weights)])) - int(prices[packing.rows_of(c)].sum())
                for c, v in zip(every, values.tolist(), strict=True)
                if all(
                    packing.covers(c, x.row) == x.inside
                    for x in covers
                    if x.request_idx == c.request_idx
                )
            }
            best = [NO_VALUE] * len(packing.names)
            for candidate, gain in gains.items():
                best[candidate.request_idx] = max(best[candidate.request_idx], gain)
            case = (seed, packing.placement.interference, weights, covers)
            first = Kinds(packing, Subproblem(covers=covers)).first
            query = Query(weights, 24, covers)
            for priced in (packing.price(prices, query), listed.price(prices, query)):
                assert priced.best.tolist() == best, case
                for q, columns in enumerate(priced.columns):
                    assert bool(columns) == (best[q] != NO_VALUE) or first[q] != q, case
                    for gain, candidate in columns:
                        assert candidate.request_idx == q
                        assert gains[candidate] == gain, case


@pytest.mark.usefixtures("_minimal_prisms")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_asking_for_gains_only_keeps_positive_and_wanted_best_values(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        packing, rng = tiny(seed), np.random.default_rng(seed)
        prices = random_prices(packing, rng, 6)
        every = packing.price(prices, Query((3,), 24)).best
        for some in (0, 1, 3):
            exact_for = frozenset(rng.permutation(len(every))[:some].tolist())
            best = packing.price(prices, Query((3,), 24, exact_for=exact_for)).best
            assert np.maximum(best, 0).tolist() == np.maximum(every, 0).tolist(), seed
            assert [best[i] for i in exact_for] == [every[i] for i in exact_for], seed


@pytest.mark.usefixtures("_minimal_prisms")
@pytest.mark.parametrize("weights", [(50,), (50, 7)])
def test_what_branches_left_of_groups_is_kept_within_a_limit(
    weights: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    roomy, tight = tiny(0), tiny(0)
    prices = random_prices(roomy, np.random.default_rng(0), 30)
    most = 0
    for seed in range(30):
        covers = random_covers(roomy, random.Random(seed))
        monkeypatch.setattr(pricing, "MOST_NARROWED", 1 << 26)
        query = Query(weights, 24, covers)
        expected = roomy.price(prices, query)
        monkeypatch.setattr(pricing, "MOST_NARROWED", 5000)
        assert tight.price(prices, query).best.tolist() == expected.best.tolist()
        kept = [group.own_bytes for group in tight._pricer._narrowed.values()]
        assert sum(kept) <= 5000 or len(kept) == 1
        most = max(most, len(kept))
    assert most > 1, "as many as there is room for"
    assert len(roomy._pricer._narrowed) > most


@pytest.mark.parametrize("chunk", range(3))
def test_large_machines_let_tables_go_and_answer_the_same(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without branches, then under some, for which tables are made anew, then on a later level."""
    let_go = 0
    for seed in range(chunk * 20, chunk * 20 + 20):
        usual = tiny(seed)
        monkeypatch.setattr(pricing, "_ALONE", 0)
        large = tiny(seed)
        monkeypatch.undo()
        monkeypatch.setattr(plug_in, "are_few", lambda problem: False)
        assert (usual.most_at_once, large.most_at_once) == (2, 1)
        rng, own = np.random.default_rng(seed), random.Random(seed)
        prices = random_prices(usual, rng, 10)
        for covers, weights in [
            ((), (10,)),
            (random_covers(usual, own), (10,)),
            ((), (10, 1)),
            (random_covers(usual, own), (10, 1)),
        ]:
            answers = [p.price(prices, Query(weights, 4, covers)) for p in (usual, large)]
            assert (answers[0].best == answers[1].best).all(), seed
            assert answers[0].columns == answers[1].columns, seed
            let_go += not all(group.has_tables for group in large._scan.groups)
    assert let_go
