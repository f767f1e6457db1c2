"""The exact method on machines too large to be tried out, with little and with enough time."""

from __future__ import annotations

import numpy as np
import pytest

from exact_cases import MODES, mid_size_snapshot, reached, solve, text_without_seconds
from small_snapshot import snapshot_of
from topoplace.certify import check_document
from topoplace.machine import Prism, Torus, format_node_set
from topoplace.result import Interference, Proof

HEURISTICS = ("first-fit", "best-fit")


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Load the kernels before any clock runs."""
    for method in ("exact", *HEURISTICS):
        solve(mid_size_snapshot(0, (5, 5, 5), jobs=2), Interference.STRICT, method, time_limit=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [0.01, 0.1, 1.0])
def test_never_below_a_heuristic(limit: float, mode: Interference) -> None:
    snapshot = mid_size_snapshot(MODES.index(mode))
    result = solve(snapshot, mode, time_limit=limit)
    report = check_document(result)
    assert report.holds, report
    assert result.proof is Proof.CERTIFICATE
    for method in HEURISTICS:
        assert reached(result) >= reached(solve(snapshot, mode, method)), method


def test_a_pass_over_six_dimensions_ends() -> None:
    result = solve(mid_size_snapshot(0, (12, 12, 12, 2, 3, 2)), Interference.STRICT, time_limit=0.1)
    assert {level.proof for level in result.levels} == {Proof.CERTIFICATE}


def test_a_machine_of_six_dimensions_and_many_nodes_is_placed() -> None:
    shape, wrap = [24, 23, 24, 2, 3, 2], [True, True, True, False, True, False]
    torus = Torus(tuple(shape), tuple(wrap))
    running = []
    for k, (at, extents) in enumerate([([3, 0, 0], [21, 23, 24]), ([0, 5, 0], [3, 18, 24])]):
        prism = Prism((*at, 0, 0, 0), (*extents, 2, 3, 2))
        nodes = format_node_set(np.sort(prism.routers(torus)))
        model = {"origin": list(prism.origin), "extents": list(prism.extents)}
        running.append({"id": f"run{k}", "nodes": nodes, "prism": model})
    queue = [{"nodes": nodes} for nodes in (48, 100, 384, 1000, 1536, 2304)]
    snapshot = snapshot_of(shape, queue, wrap=wrap, running=running)
    result = solve(snapshot, Interference.STRICT, time_limit=1.0)
    assert result.levels[0].bound is not None
    assert reached(result)[0] > 0


def test_a_limit_asks_for_no_more_work() -> None:
    snapshot = mid_size_snapshot(1)
    free, limited = (
        solve(snapshot, Interference.STRICT, time_limit=t, first_level=True).levels
        for t in (None, 300.0)
    )
    assert free == limited


@pytest.mark.parametrize("mode", MODES)
def test_same_seed_gives_the_same_bytes(mode: Interference) -> None:
    snapshot = mid_size_snapshot(1)
    first, second = (text_without_seconds(solve(snapshot, mode, seed=3)) for _ in range(2))
    assert first == second
