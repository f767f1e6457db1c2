"""The naive model of the benchmark: its candidates, and its optimum on tiny machines."""

from __future__ import annotations

import random

import pytest

from brute_force import brute_force
from random_instances import random_snapshot
from scripts_of_the_project import script
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.state import prepare

MODES = list(Interference)


def tiny(seed: int) -> tuple[Snapshot, PlacementProblem]:
    snapshot = random_snapshot(random.Random(f"naive-{seed}"), 24)
    queue = [request.model_copy(update={"shapes": None}) for request in snapshot.queue]
    snapshot = snapshot.model_copy(update={"queue": queue})
    return snapshot, PlacementProblem(prepare(snapshot), MODES[seed % 3])


@pytest.mark.parametrize("minimal", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_optimum_is_the_first_level_s(seed: int, minimal: bool) -> None:
    naive = script("bench_place")
    snapshot, problem = tiny(seed)
    run = naive.solve_naively(problem, minimal=minimal, time_limit=60, workers=1)
    assert run.status == "optimal"
    assert run.objective == run.bound == brute_force(snapshot, problem.interference)[0]
