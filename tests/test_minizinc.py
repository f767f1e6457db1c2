"""The MiniZinc reference model: its optima, each family of constraints, and as a user meets it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from brute_force import brute_force
from exact_cases import reached, solve
from few import few_of
from minizinc_cases import (
    WITHOUT,
    needs_minizinc,
    problem_of,
    said_of,
    solved,
)
from random_instances import random_snapshot
from small_snapshot import snapshot_of
from topoplace.errors import InputError, MissingToolError, TopoplaceError
from topoplace.placement.torus import minizinc as backend
from topoplace.placement.torus.outcome import num_shared_links
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference, Proof, Status
from topoplace.solving import Options, Outcome
from topoplace.solving.minizinc import run_minizinc

pytestmark = needs_minizinc

MODES = list(Interference)
CHUNKS, PER_CHUNK = 40, 3
HELD = [{"id": "run", "nodes": "5"}]

# ---- Against brute force and the exact method -------------------------------------------------


@pytest.mark.parametrize("chunk", few_of(range(CHUNKS), 5))
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


def test_its_optima_are_found_by_search_and_not_verified() -> None:
    result = tp.place(snapshot_of([2, 3], [{"nodes": 2}, {"nodes": 1}]), "minizinc")
    assert [(x.status, x.proof) for x in result.levels] == [(Status.OPTIMAL, Proof.SEARCH)] * 3
    assert "nodes, shape and fragmentation optimal, by search (minizinc, " in str(result)
    report = result.check()
    assert report.holds
    assert not report.verified
    assert [claim.name for claim in report.claims if claim.by_search] == [
        "nodes.bound", "shape.bound", "fragmentation.bound",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "left_out"),
    list(zip(MODES, [("redundant",), ("symmetry",), ("redundant", "symmetry")], strict=True)),
)
def test_optimum_does_not_depend_on_implied_constraints(
    mode: Interference, left_out: tuple[str, ...]
) -> None:
    twins = [{"nodes": 2}, {"nodes": 2}, {"nodes": 3, "shapes": "1x3/3x1"}]
    more = [{"nodes": 1, "communication": "tolerant"}] * 2
    problem = problem_of(snapshot_of([3, 4], twins + more, running=HELD), mode)
    assert solved(problem, "".join(WITHOUT[name] for name in left_out)) == solved(problem)


@pytest.mark.parametrize("mode", MODES)
def test_tolerant_jobs_share_links_where_the_rule_lets_them(mode: Interference) -> None:
    queue = [{"nodes": nodes, "communication": "tolerant"} for nodes in (4, 2)]
    ring = snapshot_of([6], queue)
    assert solved(problem_of(ring, mode)) == brute_force(ring, mode)


# ---- Data and limits -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good_data() -> dict[str, Any]:
    queue = [{"nodes": 2, "shapes": "1x2:maxz=3"}, {"nodes": 1}]
    data = backend.data_of(problem_of(snapshot_of([2, 3], queue, running=HELD)), 1, [])
    assert run_minizinc("prism_placement", data).status == "OPTIMAL_SOLUTION"
    return data


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("shape", [0, 3], "shape"),
        ("wrap", [True], "wrap"),
        ("bandwidth", [1, 0], "bandwidth"),
        ("nodes_per_router", 0, "nodes_per_router"),
        ("usable_nodes", [[1, 1, 1, 1, 1, 2]], "usable_nodes"),
        ("usable_nodes", [[1, 1, 1]], "usable_nodes"),
        ("running_routers", [{"set": [6]}], "running_routers"),
        ("running_communication", [], "running_communication"),
        ("request_nodes", [0, 1], "request_nodes"),
        ("request_classes", [{"set": [1]}, {"set": [2]}], "request_classes"),
        ("request_value", [0, 1], "request_value"),
        ("request_communication", [{"e": "strict"}], "request_communication"),
        ("request_region", [{"set": [0]}, {"set": [[0, 6]]}], "request_region"),
        ("alternative_request", [3], "alternative_request"),
        ("alternative_extents", [[1]], "alternative_extents"),
        ("alternative_extents", [[0, 1]], "alternative_extents"),
        ("alternative_max_depth", [0], "alternative_max_depth"),
        ("alternative_by_pencil", [False], "alternative_max_depth"),
        ("level", 4, "level"),
        ("reached", [1, 2], "reached"),
    ],
)
def test_bad_data_is_an_error_and_not_unsatisfiable(
    good_data: dict[str, Any], field: str, value: Any, message: str
) -> None:
    with pytest.raises(TopoplaceError, match=rf"AssertionError: {message}: "):
        run_minizinc("prism_placement", good_data | {field: value})


def test_unsatisfiable_is_an_internal_error() -> None:
    problem = problem_of(snapshot_of([2], [{"nodes": 2}]))
    with pytest.raises(TopoplaceError, match="UNSATISFIABLE"):
        backend.solve_level(problem, 2, [3])


def test_large_machine_and_large_values_are_refused() -> None:
    with pytest.raises(InputError, match="at most 64 routers"):
        backend.minizinc(problem_of(snapshot_of([65], [{"nodes": 1}])), Options())
    large = snapshot_of([64], [{"nodes": 2048, "priority": 1_000_000}], nodes_per_router=32)
    with pytest.raises(InputError, match="objective values"):
        backend.minizinc(problem_of(large), Options())


def one_job() -> PlacementProblem:
    return problem_of(snapshot_of([2], [{"nodes": 1}]))


def test_what_is_missing_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as without_program:
        without_program.setenv("PATH", str(tmp_path))
        with pytest.raises(MissingToolError, match="needs the minizinc program on the PATH"):
            backend.minizinc(one_job(), Options())
    monkeypatch.setitem(sys.modules, "minizinc", None)
    monkeypatch.setenv("PATH", os.environ["PATH"] + ":")  # nobody has asked with this path
    with pytest.raises(MissingToolError, match=r"pip install '\.\[minizinc\]' in a checkout"):
        backend.minizinc(one_job(), Options())


def test_it_runs_inside_a_running_loop_as_in_notebooks() -> None:
    async def placed() -> Outcome:
        return backend.minizinc(one_job(), Options())

    assert len(asyncio.run(placed()).solution) == 1


def test_an_interrupt_ends_the_program() -> None:
    problem = problem_of(snapshot_of([4, 4, 4], [{"nodes": 3 + q} for q in range(12)]))
    backend.minizinc(one_job(), Options())  # what is compiled or loaded first heeds no signals
    threading.Timer(1.5, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        backend.minizinc(problem, Options(time_limit=60))  # should the signal not come


def test_time_limit_keeps_the_best_placement_found() -> None:
    problem = problem_of(snapshot_of([4, 4, 4], [{"nodes": 3 + q} for q in range(12)]))
    outcome = backend.minizinc(problem, Options(time_limit=3.0))
    assert outcome.time_limit_hit
    assert outcome.solution
    assert not num_shared_links(problem, outcome.solution)
    cut_short = backend.minizinc(problem, Options(time_limit=0.001))
    assert cut_short.time_limit_hit
    assert not cut_short.solution


FAKE = """#!/bin/sh
case "$*" in
  *--solvers-json*) echo '[{"id": "org.gecode.gecode", "name": "Gecode", "version": "6"}]' ;;
  *--version*) echo 'MiniZinc to FlatZinc converter, version 2.6.4, build 1' ;;
  *) echo '{"type": "error", "what": "error", "message": "%s"}' ;;
esac
"""


@pytest.mark.parametrize(
    ("said", "time_is_up"),
    [
        ("Error in communication with solver: Invalid argument", True),
        ("Error in communication with solver: Bad file descriptor", False),
    ],
)
def test_minizinc_stumbling_over_the_end_of_its_time_is_no_error(
    said: str, time_is_up: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "minizinc"
    program.write_text(FAKE % said)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    problem = one_job()
    if time_is_up:
        assert backend.minizinc(problem, Options(time_limit=3.0)).time_limit_hit
    else:
        with pytest.raises(TopoplaceError, match="Bad file descriptor"):
            backend.minizinc(problem, Options(time_limit=3.0))
    with pytest.raises(TopoplaceError, match="communication with solver"):
        backend.minizinc(problem, Options())


# ---- The checker model -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prisms", "objective", "expected"),
    [
        ([(1, 2), None, None], 2, ""),
        ([(3, 4), None, None], 2, "request 1: covers router 5 of a running job"),
        ([(1, 9), None, None], 2, "request 1: not a prism of the machine"),
        ([(1, 2), (2, 1), None], 3, "requests 1 and 2: both cover router 2"),
        ([None, None, (2, 2)], 2, "request 3: covers router 3 outside its region"),
        ([(1, 1), None, None], 2, "request 1: 1 usable nodes, not 2"),
        ([(1, 3), None, None], 2, "request 1: fits no alternative of its geometry"),
        ([(6, 2), None, None], 2, "request 1: uses link 6, closed by running jobs"),
        ([(1, 2), None, None], 3, "level 1: 2, not the 3 claimed"),
    ],
)
def test_checker_names_each_violation(
    tmp_path: Path, prisms: list[tuple[int, int] | None], objective: int, expected: str
) -> None:
    queue = [{"nodes": 2, "shapes": "2"}, {"nodes": 1}, {"nodes": 2, "region": "low"}]
    snapshot = snapshot_of(
        [8],
        queue,
        wrap=False,
        running=[{"id": "run", "nodes": "5,7", "communication": "none"}]
        if "link" not in expected
        else [{"id": "run", "nodes": "4-7"}],
        regions={"low": [{"origin": [0], "extents": [3]}]},
    )
    report = check_claim(tmp_path, problem_of(snapshot), prisms, objective)
    if expected:
        assert f"VIOLATION: {expected}" in report.splitlines()
    else:
        assert report == "CORRECT\n"


@pytest.mark.parametrize(("mode", "shared"), [("strict", True), ("off", False)])
def test_checker_names_links_of_two_requests(tmp_path: Path, mode: str, shared: bool) -> None:
    problem = problem_of(snapshot_of([6], [{"nodes": 4}, {"nodes": 2}]), Interference(mode))
    report = check_claim(tmp_path, problem, [(0, 4), (4, 2)], 6)
    expected = "VIOLATION: requests 1 and 2: both use link 4\n" if shared else "CORRECT\n"
    assert report == expected


def check_claim(
    tmp_path: Path, problem: PlacementProblem, prisms: list[tuple[int, int] | None], objective: int
) -> str:
    """Return the checker's report on a claimed placement of a machine of one dimension."""
    claimed = {
        "start": ("REQUEST", "bool", [prism is not None for prism in prisms]),
        "origin": ("REQUEST, DIM", "int", [[prism[0] if prism else 0] for prism in prisms]),
        "extent": ("REQUEST, DIM", "int", [[prism[1] if prism else 1] for prism in prisms]),
        "class_of": ("REQUEST", "int", [1] * len(prisms)),
        "objective": ("", "int", objective),
    }
    data = backend.data_of(problem, 1, [])
    return said_of(tmp_path, "prism_placement", ("torus", "placement_data"), data, claimed)


def test_models_are_well_formed() -> None:
    script = Path(__file__).resolve().parent.parent / "scripts" / "check_models.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
