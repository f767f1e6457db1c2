"""The MiniZinc reference model against brute force and the exact method, and family by family."""

from __future__ import annotations

import random

import pytest

from brute_force import brute_force
from exact_cases import reached, solve
from minizinc_cases import (
    needs_minizinc,
    problem_of,
    run_prism,
    running,
    snapshot_of,
    solved,
    started_ids,
)
from random_instances import random_snapshot
from topoplace.placement import minizinc as backend
from topoplace.result import Interference
from topoplace.solving import Options

pytestmark = needs_minizinc

MODES = list(Interference)
CHUNKS, PER_CHUNK = 20, 6
WITHOUT = {
    "redundant": ("-D", "mzn_ignore_redundant_constraints=true"),
    "symmetry": ("-D", "mzn_ignore_symmetry_breaking_constraints=true"),
}

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
    arguments = [word for name in left_out for word in WITHOUT[name]]
    assert solved(problem, arguments) == solved(problem)


# ---- Constraint families, each alone ---------------------------------------------------------


@pytest.mark.parametrize(("wraps", "expected"), [(True, {"job0"}), (False, set())])
def test_prism_goes_on_at_zero_on_a_ring_only(wraps: bool, expected: set[str]) -> None:
    snapshot = snapshot_of([4], [{"nodes": 2}], machine={"wrap": [wraps]}, down="1-2")
    assert started_ids(snapshot, Interference.OFF) == {"job0"}
    snapshot = snapshot_of(
        [4], [{"nodes": 2}], machine={"wrap": [wraps]}, running=[running("1"), running("2")]
    )
    assert started_ids(snapshot, Interference.OFF) == expected


@pytest.mark.parametrize(("first", "expected"), [("2", {"job0", "job1"}), ("3", {"job0"})])
def test_no_router_in_two_prisms(first: str, expected: set[str]) -> None:
    # One node each: the machine has nodes enough, only the prisms may not fit side by side.
    queue = [{"nodes": 1, "priority": 2, "shapes": first}, {"nodes": 1, "shapes": "2"}]
    assert started_ids(snapshot_of([4], queue), Interference.OFF) == expected


@pytest.mark.parametrize(("down", "expected"), [("5", {"job0"}), ("1", set())])
def test_prism_holds_the_nodes_wanted(down: str, expected: set[str]) -> None:
    regions = {"part": [{"origin": [0], "extents": [3]}]}
    queue = [{"nodes": 3, "region": "part"}]
    assert started_ids(snapshot_of([6], queue, regions=regions, down=down)) == expected


@pytest.mark.parametrize(("held", "expected"), [("3", {"job0"}), ("1", set())])
def test_no_running_router_inside(held: str, expected: set[str]) -> None:
    machine = {"wrap": [False]}
    snapshot = snapshot_of([4], [{"nodes": 3}], machine=machine, running=[running(held)])
    assert started_ids(snapshot, Interference.OFF) == expected


@pytest.mark.parametrize(("down", "expected"), [("", {"job0"}), ("3", set())])
def test_only_nodes_of_the_class_count(down: str, expected: set[str]) -> None:
    machine = {"classes": {"gpu": "1,3"}}
    snapshot = snapshot_of([4], [{"nodes": 2, "class": "gpu"}], machine=machine, down=down)
    assert started_ids(snapshot) == expected


@pytest.mark.parametrize(("depth", "expected"), [(3, {"job0"}), (2, set())])
def test_prism_lies_in_its_region(depth: int, expected: set[str]) -> None:
    regions = {"part": [{"origin": [1], "extents": [depth]}]}
    snapshot = snapshot_of([6], [{"nodes": 3, "region": "part"}], regions=regions)
    assert started_ids(snapshot) == expected


@pytest.mark.parametrize(
    ("shapes", "expected"), [("2x1", set()), ("1x2", {"job0"}), ("2x1/1x2", {"job0"})]
)
def test_extents_are_those_of_an_alternative(shapes: str, expected: set[str]) -> None:
    row = [running(str(node)) for node in (0, 1, 2)]
    snapshot = snapshot_of([2, 3], [{"nodes": 2, "shapes": shapes}], running=row)
    assert started_ids(snapshot, Interference.OFF) == expected


@pytest.mark.parametrize(("nodes", "expected"), [(2, {"job0"}), (3, set())])
def test_exact_alternative_needs_usable_nodes(nodes: int, expected: set[str]) -> None:
    # Every prism of three of the five routers holds the middle one, which is down.
    queue = [{"nodes": nodes, "shapes": "3"}]
    snapshot = snapshot_of([5], queue, machine={"wrap": [False]}, down="2")
    assert started_ids(snapshot) == expected


@pytest.mark.parametrize(("max_depth", "expected"), [(3, {"job0"}), (2, set())])
def test_pencils_hold_whole_routers_within_maxz(max_depth: int, expected: set[str]) -> None:
    # Routers 1 and 3 of the first pencil and 6 of the second have a node down: two whole routers
    # of the first are never neighbours, but depth 3 from 0 holds 0, 2 and 4, 5.
    snapshot = snapshot_of(
        [2, 4],
        [{"nodes": 8, "shapes": f"2x2:maxz={max_depth}"}],
        machine={"wrap": [False, False], "nodes_per_router": 2},
        down="2,7,12",
    )
    assert started_ids(snapshot) == expected


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
