"""The MiniZinc reference model against brute force and the exact method, and family by family."""

from __future__ import annotations

import random
from typing import Any

import pytest

from brute_force import brute_force
from exact_cases import reached, solve
from minizinc_cases import (
    WITHOUT,
    needs_minizinc,
    problem_of,
    run_prism,
    running,
    snapshot_of,
    solved,
    started_ids,
)
from random_instances import random_snapshot
from topoplace.placement.torus import minizinc as backend
from topoplace.result import Interference
from topoplace.solving import Options

pytestmark = needs_minizinc

MODES = list(Interference)
CHUNKS, PER_CHUNK = 20, 6

# ---- Against brute force and the exact method -------------------------------------------------


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_equals_brute_force_and_the_exact_method(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        mode = MODES[seed % 3]
        snapshot = random_snapshot(random.Random(f"minizinc-{seed}"), 16)
        problem = problem_of(snapshot, mode)
        expected = brute_force(snapshot, mode)
        assert reached(solve(snapshot, mode, time_limit=60)) == expected, (seed, mode)
        if problem.requests:
            assert solved(problem, checked=True) == expected, (seed, mode)
        else:
            assert expected == (0, 0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_method_equals_brute_force(seed: int) -> None:
    mode = MODES[seed % 3]
    snapshot = random_snapshot(random.Random(f"method-{seed}"), 24)
    problem = problem_of(snapshot, mode)
    outcome = backend.minizinc(problem, Options(interference=mode))
    assert not outcome.time_limit_hit
    assert backend.totals(problem, outcome.solution) == brute_force(snapshot, mode)


@pytest.mark.parametrize("left_out", [("redundant",), ("symmetry",), ("redundant", "symmetry")])
@pytest.mark.parametrize("mode", MODES)
def test_optimum_does_not_depend_on_implied_constraints(
    left_out: tuple[str, ...], mode: Interference
) -> None:
    twins = [{"nodes": 2}, {"nodes": 2}, {"nodes": 3, "shapes": "1x3/3x1"}]
    more = [{"nodes": 1, "communication": "tolerant"}] * 2
    problem = problem_of(snapshot_of([3, 4], twins + more, running=[running("5")]), mode)
    assert solved(problem, "".join(WITHOUT[name] for name in left_out)) == solved(problem)


# ---- Constraint families, each alone ---------------------------------------------------------

LINE = {"machine": {"wrap": [False]}}
PART = {"part": [{"origin": [0], "extents": [3]}]}
ROW = {"running": [running(str(node)) for node in (0, 1, 2)]}
BOTH_HELD = [running("1"), running("2")]
# Routers 1 and 3 of the first pencil and 6 of the second have a node down: two whole routers of
# the first are never neighbours, but depth 3 from 0 holds 0, 2 and 4, 5.
PENCILS = {"machine": {"wrap": [False, False], "nodes_per_router": 2}, "down": "2,7,12"}
GPU = {"machine": {"classes": {"gpu": "1,3"}}}


def two(first: str) -> list[dict[str, Any]]:
    """Return requests for one node each: only the prisms may not fit side by side."""
    return [{"nodes": 1, "priority": 2, "shapes": first}, {"nodes": 1, "shapes": "2"}]


@pytest.mark.parametrize(
    ("shape", "queue", "more", "num_started"),
    [
        # A prism goes on at 0 on a ring only; idle nodes inside are no harm.
        ([4], [{"nodes": 2}], {"down": "1-2"}, 1),
        ([4], [{"nodes": 2}], {"down": "1-2", **LINE}, 1),
        ([4], [{"nodes": 2}], {"running": BOTH_HELD}, 1),
        ([4], [{"nodes": 2}], {"running": BOTH_HELD, **LINE}, 0),
        # No router is in two prisms.
        ([4], two("2"), {}, 2),
        ([4], two("3"), {}, 1),
        # A prism holds the nodes wanted.
        ([6], [{"nodes": 3, "region": "part"}], {"regions": PART, "down": "5"}, 1),
        ([6], [{"nodes": 3, "region": "part"}], {"regions": PART, "down": "1"}, 0),
        # No router of a running job is inside.
        ([4], [{"nodes": 3}], {"running": [running("3")], **LINE}, 1),
        ([4], [{"nodes": 3}], {"running": [running("1")], **LINE}, 0),
        # Only nodes of the class count.
        ([4], [{"nodes": 2, "class": "gpu"}], {"down": "", **GPU}, 1),
        ([4], [{"nodes": 2, "class": "gpu"}], {"down": "3", **GPU}, 0),
        # A prism lies in its region.
        ([6], [{"nodes": 3, "region": "part"}], {"regions": PART}, 1),
        ([6], [{"nodes": 4, "region": "part"}], {"regions": PART}, 0),
        # Extents are those of an alternative.
        ([2, 3], [{"nodes": 2, "shapes": "2x1"}], ROW, 0),
        ([2, 3], [{"nodes": 2, "shapes": "1x2"}], ROW, 1),
        ([2, 3], [{"nodes": 2, "shapes": "2x1/1x2"}], ROW, 1),
        # An exact alternative needs usable nodes: all three routers of five hold the middle one.
        ([5], [{"nodes": 2, "shapes": "3"}], {"down": "2", **LINE}, 1),
        ([5], [{"nodes": 3, "shapes": "3"}], {"down": "2", **LINE}, 0),
        # Pencils hold whole routers within maxz.
        ([2, 4], [{"nodes": 8, "shapes": "2x2:maxz=3"}], PENCILS, 1),
        ([2, 4], [{"nodes": 8, "shapes": "2x2:maxz=2"}], PENCILS, 0),
    ],
)
def test_constraint_families(
    shape: list[int], queue: list[dict[str, Any]], more: dict[str, Any], num_started: int
) -> None:
    found = started_ids(snapshot_of(shape, queue, **more), Interference.OFF)
    assert found == {f"job{k}" for k in range(num_started)}


# ---- The link rule ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "runs", "wants", "starts"),
    [
        ("strict", "strict", "strict", False),
        ("strict", "tolerant", "tolerant", False),
        ("strict", "none", "strict", True),
        ("strict", "strict", "none", True),
        ("tolerant", "strict", "strict", False),
        ("tolerant", "strict", "tolerant", False),
        ("tolerant", "tolerant", "strict", False),
        ("tolerant", "tolerant", "tolerant", True),
        ("off", "strict", "strict", True),
    ],
)
def test_links_of_running_jobs(mode: str, runs: str, wants: str, starts: bool) -> None:
    # Four routers of a ring of six use all of it: the ways round tie at three hops.
    snapshot = snapshot_of(
        [6], [{"nodes": 2, "communication": wants}], running=[run_prism(0, 4, runs)]
    )
    assert started_ids(snapshot, Interference(mode)) == ({"job0"} if starts else set())


@pytest.mark.parametrize(
    ("mode", "first", "second", "both"),
    [
        ("strict", "strict", "strict", False),
        ("strict", "tolerant", "tolerant", False),
        ("strict", "strict", "none", True),
        ("tolerant", "strict", "tolerant", False),
        ("tolerant", "tolerant", "tolerant", True),
        ("off", "strict", "strict", True),
    ],
)
def test_links_of_two_requests(mode: str, first: str, second: str, both: bool) -> None:
    queue = [{"nodes": 4, "communication": first}, {"nodes": 2, "communication": second}]
    expected = {"job0", "job1"} if both else {"job0"}
    assert started_ids(snapshot_of([6], queue), Interference(mode)) == expected


@pytest.mark.parametrize(("ring", "extent", "both"), [(5, 3, True), (6, 4, False), (7, 4, True)])
def test_whole_ring_from_half_way_on(ring: int, extent: int, both: bool) -> None:
    queue = [{"nodes": extent}, {"nodes": 2}]
    expected = {"job0", "job1"} if both else {"job0"}
    assert started_ids(snapshot_of([ring], queue)) == expected


def test_line_never_uses_links_outside_the_prism() -> None:
    snapshot = snapshot_of([6], [{"nodes": 4}, {"nodes": 2}], machine={"wrap": [False]})
    assert started_ids(snapshot) == {"job0", "job1"}


@pytest.mark.parametrize(("ends", "starts"), [("0,4", False), ("0-1", True)])
def test_scattered_job_uses_all_its_routes(ends: str, starts: bool) -> None:
    snapshot = snapshot_of([5], [{"nodes": 2}], machine={"wrap": [False]}, running=[running(ends)])
    assert started_ids(snapshot, Interference.STRICT) == ({"job0"} if starts else set())
    assert started_ids(snapshot, Interference.OFF) == {"job0"}
