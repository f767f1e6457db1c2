"""The exact method against brute force over all placements of random tiny machines."""

from __future__ import annotations

import random

import pytest

from brute_force import brute_force
from exact_cases import MODES, reached, solve
from few import few_of
from random_instances import random_snapshot
from topoplace.certify import check_document
from topoplace.result import Proof, Status

CHUNKS, PER_CHUNK = 30, 20


@pytest.mark.parametrize("chunk", few_of(range(CHUNKS), 8))
def test_every_level_is_the_brute_force_optimum_and_certified(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        mode = MODES[seed % 3]
        snapshot = random_snapshot(random.Random(f"exact-{seed}"), 24)
        result = solve(snapshot, mode, time_limit=60)
        case = (seed, mode)
        assert reached(result) == brute_force(snapshot, mode), case
        assert {level.status for level in result.levels} == {Status.OPTIMAL}, case
        assert {level.proof for level in result.levels} == {Proof.CERTIFICATE}, case
        report = check_document(result)
        assert report.holds, (case, report)
