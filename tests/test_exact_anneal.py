"""Annealing gives placements, no worse than its start."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from exact_cases import MODES, mid_size_snapshot
from random_instances import random_snapshot
from topoplace.placement.exact.annealing import Annealer, forms_of
from topoplace.placement.exact.context import heuristic_start
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.torus.oracle.listing import all_candidates
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot import prepare
from topoplace.solving import Options

CHUNKS, PER_CHUNK = 8, 15
SLOW_START = 60.0  # seconds: compiling is not annealing


def tiny(seed: int) -> PlacementProblem:
    snapshot = random_snapshot(random.Random(f"anneal-{seed}"), 30)
    return PlacementProblem(prepare(snapshot), MODES[seed % 3])


def mid_size(seed: int) -> PlacementProblem:
    return PlacementProblem(prepare(mid_size_snapshot(seed)), MODES[seed % 3])


def value(problem: PlacementProblem, started: list[Candidate]) -> int:
    return sum(problem.values(c)[0] for c in started)


def check_disjoint(problem: PlacementProblem, started: list[Candidate]) -> None:
    rows = PackingRows(problem)
    used = [row for c in started for row in rows.of(c).tolist()]
    assert len(set(used)) == len(used)
    assert len({c.request_idx for c in started}) == len(started)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    problem = tiny(0)
    Annealer(problem).run([], time.perf_counter() + SLOW_START / 60, 1.0, 0)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_annealing_keeps_to_the_candidates(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        problem = tiny(seed)
        allowed = set(all_candidates(problem))
        start = heuristic_start(problem, Options()) if seed % 2 else []
        found = Annealer(problem).run(start, time.perf_counter() + 0.05, 5.0, seed)
        assert set(found) <= allowed, seed
        assert value(problem, found) >= value(problem, start), seed
        check_disjoint(problem, found)


@pytest.mark.parametrize("seed", range(6))
def test_annealing_is_no_worse_than_its_start(seed: int) -> None:
    problem = mid_size(seed)
    start = heuristic_start(problem, Options())
    found = Annealer(problem).run(start, time.perf_counter() + 0.5, 5.0, seed)
    assert value(problem, found) >= value(problem, start)
    check_disjoint(problem, found)


def test_forms_stand_where_they_say() -> None:
    for seed in range(60):
        problem = tiny(seed)
        forms = forms_of(problem)
        allowed = {
            (c.request_idx, c.prism.extents, problem.torus.router(c.prism.origin))
            for c in all_candidates(problem)
        }
        for q in range(len(problem.requests)):
            for form in range(forms.first[q], forms.first[q + 1]):
                extents = tuple(forms.extents[form].tolist())
                for origin in np.flatnonzero(forms.waste[form]).tolist():
                    assert (q, extents, origin) in allowed, seed
