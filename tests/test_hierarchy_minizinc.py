"""The MiniZinc model of hierarchies: its optima, its checker, its data, and the method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minizinc_cases import WITHOUT, needs_minizinc, said_of
from minizinc_cases import solved as optimum_of
from test_hierarchy import in_maximising_sense, solved
from tiny_hierarchies import best_of, lively_hierarchy, prepared
from topoplace.errors import InputError, TopoplaceError
from topoplace.placement.hierarchy import minizinc as backend
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.report.summary import headline
from topoplace.result import Proof, Status
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA
from topoplace.solving import Options, solve
from topoplace.solving.minizinc import run_minizinc

pytestmark = needs_minizinc

Document = dict[str, Any]


MANY = [pytest.param(range(k, k + 25), marks=pytest.mark.slow) for k in range(3, 103, 25)]


@pytest.mark.parametrize("seeds", [range(3), *MANY])
def test_equals_the_exact_method_and_brute_force(seeds: range) -> None:
    for seed in seeds:
        document = lively_hierarchy(f"minizinc-{seed}", 30_000)
        if any(request.without_gpus for request in prepared(document).requests):
            document["value"] = "nodes"  # a level more than the model has
        state = prepared(document)
        found = list(optimum_of(HierarchyProblem(state), checked=True))
        assert found == best_of(state), seed
        assert in_maximising_sense(solved(document)) == (found, found), seed


HOSTS = [
    {"hosts": "a[0-2]", "domains": ["b0", "r0"], "capacity": {"gpus": 2}},
    {"hosts": "b[0-1]", "domains": ["b0", "r1"], "capacity": {"gpus": 4}},
    {"hosts": "c", "domains": ["b1", "r0"], "capacity": {"gpus": 4, "gb": 4}},
]
MACHINE = {"kind": "hierarchy", "name": "m", "levels": ["block", "rack", "host"], "hosts": HOSTS}
GPU = {"gpus": 1}
APART = [{"level": "rack", "name": "x"}]
QUEUE: list[Document] = [
    {
        "id": "s",
        "nodes": 4,
        "takes": GPU,
        "segments": [{"size": 2, "level": "rack"}],
        "apart": APART,
    },
    {
        "id": "b",
        "nodes": 3,
        "takes": GPU,
        "balance": "rack",
        "apart": APART,
        "at_most": {"size": 2, "level": "rack"},
    },
    {
        "id": "p",
        "nodes": 2,
        "parts": [
            {"id": "x", "nodes": 1, "takes": GPU, "group": "g", "required": "block"},
            {"id": "y", "nodes": 1, "takes": {"gb": 1}, "group": "g", "required": "block"},
        ],
    },
    {
        "id": "e",
        "nodes": 2,
        "takes": GPU,
        "exclusive": "host",
        "spread": {"size": 1, "level": "host"},
    },
]


def problem_of(**fields: Any) -> HierarchyProblem:
    document = {"schema": SNAPSHOT_SCHEMA, "name": "m", "machine": MACHINE, "queue": QUEUE}
    running = [{"id": "old", "nodes": "a0", "takes": GPU}]
    return HierarchyProblem(prepared(document | {"running": running} | fields))


ALONE = [pytest.param((name,), marks=pytest.mark.slow) for name in WITHOUT]


@pytest.mark.parametrize("left_out", [tuple(WITHOUT), *ALONE])
def test_optimum_does_not_depend_on_implied_constraints(left_out: tuple[str, ...]) -> None:
    problem = problem_of(queue=QUEUE[:2])
    text = "".join(WITHOUT[name] for name in left_out)
    assert list(optimum_of(problem, text)) == best_of(problem.state)


def test_fabrics_are_not_spanned_and_not_counted() -> None:
    queue = [{"id": "wide", "nodes": 14, "takes": GPU}, {"id": "some", "nodes": 6, "takes": GPU}]
    problem = problem_of(machine=MACHINE | {"fabrics": True}, queue=queue)
    assert [name for name, _ in problem.levels] == ["nodes", "rack", "host", "stranded"]
    assert list(optimum_of(problem)) == best_of(problem.state) == [6, -1, -2, -2]
    assert solve(problem.state, "minizinc").check().holds


def test_the_method_gives_a_result_that_checks() -> None:
    state = problem_of(queue=QUEUE[:1]).state
    result, best = solve(state, "minizinc"), solve(state)
    report = result.check()
    assert report.holds
    assert not report.verified
    assert [x.objective for x in result.levels] == [x.objective for x in best.levels]
    assert [x.bound for x in result.levels] == [x.bound for x in best.levels]
    assert {(x.status, x.proof) for x in result.levels} == {(Status.OPTIMAL, Proof.SEARCH)}
    assert " optimal, by search (minizinc, " in headline(result)
    assert {x.status for x in best.levels} == {Status.OPTIMAL}
    cut_short = backend.minizinc(problem_of(), Options(time_limit=0.001))
    assert cut_short.time_limit_hit


def test_large_machines_and_large_values_are_refused() -> None:
    hosts = [{"hosts": "n[1-65]", "domains": ["b", "r"], "capacity": {"gpus": 1}}]
    large = problem_of(machine=MACHINE | {"hosts": hosts}, queue=[], running=[])
    with pytest.raises(InputError, match="at most 64 hosts"):
        backend.minizinc(large, Options())
    dear = [{"id": "d", "nodes": 1 << 20, "takes": GPU, "priority": 1 << 16}]
    with pytest.raises(InputError, match="objective values"):
        backend.minizinc(problem_of(queue=dear), Options())


BAD: dict[str, Any] = {
    "hosts": 0, "resources": 0, "levels": 0, "host_free": [1], "domains": [7] * 18,
    "busy_hosts": {"set": [7]}, "request_value": [-1] * 4, "request_second": [0],
    "request_exclusive": [4] * 4, "apart_request": [5] * 2, "apart_level": [4] * 2,
    "apart_name": [1], "part_request": [5] * 5, "part_group": [0] * 5, "part_units": [0] * 5,
    "part_takes": [0] * 10, "part_required": [4] * 5, "part_balance": [-1] * 5,
    "rule_part": [6] * 3, "rule_level": [0] * 3, "rule_size": [0] * 3, "goal": 8, "reached": [0],
}  # fmt: skip


@pytest.mark.parametrize("field", BAD)
def test_bad_data_is_an_error_and_not_unsatisfiable(field: str) -> None:
    data = backend.data_of(problem_of(), 0, []) | {field: BAD[field]}
    with pytest.raises(TopoplaceError, match=rf"AssertionError: {field}: "):
        run_minizinc("hierarchy", data)


# ---- The checker model --------------------------------------------------------------------------

NOBODY = [0] * 6
# On hosts a0, a1, a2 of rack r0, b0 and b1 of rack r1, c of the other block.
CLAIMS: dict[str, tuple[dict[int, list[int]], int, set[str]]] = {
    "all right": ({0: [0, 2, 2, 0, 0, 0], 1: [0, 0, 0, 3, 0, 0]}, 7, set()),
    "much that is wrong": (
        {
            0: [-1, 2, 2, 1, 0, 0],
            1: [0, 1, 0, 1, 0, 1],
            2: [0, 1, 0, 0, 0, 0],
            3: [0, 0, 0, 0, 0, 1],
            4: [0, 0, 2, 0, 0, 0],
        },
        4,
        {
            "part 1: a negative number of units on host 1",
            "host 2: more taken of resource 2 than is free",
            "host 3: more taken of resource 2 than is free",
            "part 1: segment of 2 at level 2 is not kept",
            "part 2: at_most of 2 at level 2 is not kept",
            "part 3: its group is in several domains of level 1",
            "part 4: its group is in several domains of level 1",
            "part 5: spread of 1 at level 3 is not kept",
            "request 4: shares a domain of level 3",
            "requests 1, 2: share a domain of level 2",
            "level 1: 11, not the 4 claimed",
        },
    ),
    "with a job": ({4: [1, 1, 0, 0, 0, 0]}, 2, {"request 4: shares a domain of level 3"}),
    "with another, and too few": (
        {0: [0, 0, 0, 2, 0, 0], 4: [0, 0, 0, 1, 1, 0]},
        6,
        {"part 1: 2 units of 4", "request 4: shares a domain of level 3"},
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_the_checker_names_each_violation(tmp_path: Path, name: str) -> None:
    placed, objective, expected = CLAIMS[name]
    problem = problem_of()
    of_part = [q for q, request in enumerate(problem.requests) for _ in request.parts]
    starting = [q in {of_part[p] for p in placed} for q in range(len(problem.requests))]
    here = [placed.get(p, NOBODY) for p in range(len(of_part))]
    claimed = {"start": ("REQUEST", "bool", starting), "here": ("PART, HOST", "int", here)}
    claimed["objective"] = ("", "int", objective)
    data = backend.data_of(problem, 0, [])
    report = said_of(tmp_path, "hierarchy", ["hierarchy_data"], data, claimed)
    wrong = {line.removeprefix("VIOLATION: ") for line in report.splitlines()}
    assert wrong == (expected or {"CORRECT"})
