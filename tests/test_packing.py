"""The engine on a topology that nobody ships: optimal and certified."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import pytest

from ring_cases import packings, random_ring
from topoplace.certify.packing import certified_bound
from topoplace.packing import search, steering
from topoplace.packing.budget import Budget
from topoplace.packing.listed import ListedPacking
from topoplace.packing.primal_dual import _Chains
from topoplace.packing.problem import PackingProblem, fits
from topoplace.packing.search import Found, Search
from topoplace.result.certificate import Certificate, size_of
from toy_ring import Job, Ring, RingOracle, ring_packing

CHUNKS, PER_CHUNK = 6, 40


def solved(ring: Ring, jobs: list[Job]) -> Found:
    return Search(ring_packing(ring, jobs), Budget(None)).run()


def proven(ring: Ring, jobs: list[Job], certificate: Certificate, earlier: list[int]) -> int | None:
    found = certified_bound(RingOracle(ring, tuple(jobs)), certificate, earlier)
    return None if found is None else found.value


@pytest.mark.parametrize("works", [[3.0], [1.0, 4.0], [2.0, 2.0, 2.0, 2.0], [1.0, 9.0, 1.0, 1.0]])
def test_two_threads_share_works_in_the_time_that_these_take(works: list[float]) -> None:
    budget, began, done = Budget(None), [], []
    budget.spend(5.0)

    def work(k: int) -> None:
        began.append(budget.now())
        budget.spend(works[k])
        done.append(k)

    budget.shared(work, range(len(works)))
    assert sorted(done) == list(range(len(works)))
    assert began == [5.0] * len(works), "each begins now, whatever its thread did before"
    assert budget.now() == 5.0 + max(*works, sum(works) / 2)


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_engine_is_brute_force_and_proves_it(
    chunk: int, heavy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heavy: as on large machines, by bundle, trees of starts and dives alone."""
    if heavy:
        monkeypatch.setattr(ListedPacking, "is_small", False)
        monkeypatch.setattr(search, "_HEAVY_NONZEROS", -1)
        monkeypatch.setattr("topoplace.packing.budget.USUAL_WORK", 5.0)
    closed = shared = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        ring, jobs = random_ring(random.Random(f"ring-{seed}"))
        found = solved(ring, jobs)
        assert fits(ring_packing(ring, jobs), found.placement)
        best = max(packings(ring, jobs))
        if not heavy:
            assert tuple(found.values) == best, seed
        for level, bound in enumerate(found.bounds):
            assert bound is not None
            says = proven(ring, jobs, bound.certificate, found.values[:level])
            assert says == bound.value, seed
            shared += level > 0 and '"ref"' in bound.certificate.model_dump_json()
            if found.values[:level] == list(best[:level]):
                assert bound.value >= best[level], seed
            closed += bound.value == found.values[level]
    assert closed >= (2 if not heavy else 1.9) * PER_CHUNK
    assert bool(shared) == heavy, "trees of later levels share the points of their pool"


def test_certificates_of_programs_have_a_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, they take 857 and 2,386 bytes, and both levels are closed."""
    room = 700
    monkeypatch.setattr(steering, "CERTIFICATES", room)
    for seed in (7, 56):
        ring, jobs = random_ring(random.Random(f"ring-{seed}"))
        found = solved(ring, jobs)
        left = room
        for level, bound in enumerate(found.bounds):
            assert bound is not None
            left -= size_of(bound.certificate)
            assert proven(ring, jobs, bound.certificate, found.values[:level]) == bound.value
        assert left >= 0
        assert found.bounds[1] is not None
        assert found.bounds[1].value > found.values[1]


def test_first_fit_leaves_out_what_does_not_fit() -> None:
    for seed in range(40):
        ring, jobs = random_ring(random.Random(f"first-{seed}"))
        problem = ring_packing(ring, jobs)
        [placed] = PackingProblem.starts(problem, math.inf)
        assert fits(problem, placed), seed
        rest = problem.around(placed, frozenset())
        more = [c for c in rest.problem.every_candidate if rest.problem.values[c.request_idx]]
        assert more == [], seed


def test_the_same_input_gives_the_same_answer() -> None:
    ring, jobs = random_ring(random.Random("ring-same"))
    assert solved(ring, jobs) == solved(ring, jobs)


def test_an_integer_program_counts_what_it_takes_and_not_what_it_may() -> None:
    for seed in range(20):
        ring, jobs = random_ring(random.Random(f"ring-{seed}"))
        budget = Budget(None)
        Search(ring_packing(ring, jobs), budget).run()
        assert budget.now() < 1.0, seed


def test_a_request_whose_candidates_no_branch_tells_apart_leaves_the_others_to_branch_on() -> None:
    jobs = [Job(f"j{k}", value, ((2,),)) for k, value in enumerate((3, 2, 5, 2))]
    problem = ring_packing(Ring((3, 3, 2)), jobs)
    problem.num_covers = 1
    found = Search(problem, Budget(None)).run()
    assert found.values == [10, 6]
    assert [bound and bound.value for bound in found.bounds] == found.values


def test_a_heuristic_that_waits_goes_on_until_it_has_done_as_much() -> None:
    fronts = iter([0.5, 2.0, 2.0])

    class Ahead:
        counts_work = True
        front = property(lambda _: next(fronts))

        def now(self) -> float:
            return 1.0

    problem = SimpleNamespace(heuristic=lambda _: None)
    chains = _Chains(SimpleNamespace(problem=problem, budget=Ahead()))  # type: ignore[arg-type]
    chains._stop.set()
    assert not chains._is_over(), "the search went on to 2.0 before it told the heuristic to end"
