"""Functions of Python as methods: of every kind, and every way of being wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace.study.external.allocator import VerdictError

Function = Callable[[dict[str, Any], float], Any]


def torus() -> tp.Model:
    model = tp.Model("torus:4x4x4", name="torus")
    model.add_running("old", [0, 1])
    model.add_request("a", 4)
    model.add_request("b", 8)
    return model


def tree() -> tp.Model:
    model = tp.Model("tree:2x4", name="tree")
    model.add_running("old", "n0")
    model.add_request("a", 3, required="leaf")
    model.add_request("b", 4)
    return model


def contention() -> tp.Model:
    model = tp.Model("tree:2x4", name="contention")
    model.add_request("a", 3, patterns={"ring": 50})
    return model


def hierarchy() -> tp.Model:
    model = tp.Model("hierarchy:2x2x4:2", name="hierarchy")
    model.add_running("old", "h0", takes={"slots": 1})
    model.add_request("a", 4, required="rack")
    model.add_request("b", 4, parts=[{"id": "lead", "nodes": 1}, {"id": "work", "nodes": 3}])
    return model


def cubes() -> tp.Model:
    model = tp.Model("cubes:3:4x4x4", name="cubes")
    model.add_running("old", [0])
    model.add_request("a", 64)
    model.add_request("b", 16)
    return model


GOOD: list[tuple[Callable[[], tp.Model], Any]] = [
    (torus, {"a": [4, 5, 6, 7], "b": np.arange(8, 16)}),
    (
        torus,
        [{"request": "a", "nodes": "4-7", "prism": {"origin": (0, 1, 0), "extents": [1, 1, 4]}}],
    ),
    (torus, {"schema": "topoplace.placements/1", "placements": []}),
    (tree, {"a": ["n1", "n2", "n3"], "b": ["n4", "n5", "n6", "n7"]}),
    (contention, {"a": ["n7", "n0", "n1"]}),
    (hierarchy, {"a": ["h0", "h1", "h1", "h2"], "b": ["h8", "h8", "h9", "h9"]}),
    (cubes, {"a": range(64, 128), "b": list(range(128, 144))}),
]

BAD: list[tuple[Callable[[], tp.Model], Any, str]] = [
    (torus, {"a": [0, 2, 3, 4]}, "breach: a has node 0 on router 0, held by running job old"),
    (torus, {"a": [3, 3, 3, 4]}, "breach: a has 2 nodes and wants 4"),
    (torus, {"c": [3]}, "breach: c is no request of the queue"),
    (torus, {"a": ["x"]}, "bad-output: answer: placements[0].nodes: expected text, found ['x']"),
    (torus, None, "bad-output: answer: expected a JSON object"),
    (tree, {"a": ["n1", "n2", "n4"]}, "breach: a: several leaf, one is required"),
    (tree, {"a": ["n0", "n1", "n2"]}, "breach: a has node n0, held by running job old"),
    (hierarchy, {"a": ["h0", "h0", "h1", "h2"]}, "breach: 2 slots of h0, 1 are free"),
    (hierarchy, {"a": ["h0", "h1", "h1", "h4"]}, "breach: a: several rack, one is required"),
    (hierarchy, {"a": ["h0", "h1", "h1", "x"]}, "breach: a has x, which is no host of the machine"),
    (hierarchy, {"a": ["h1"]}, "breach: a has 1 unit and wants 4"),
    (hierarchy, {"old": ["h1"]}, "breach: old runs already"),
    (cubes, {"a": range(64)}, "breach: a may not use chip 0"),
    (
        cubes,
        {"b": range(129, 145)},
        "breach: b has chips that are neither whole cubes nor a box in",
    ),
    (cubes, {"b": "1-1000"}, "breach: b has nodes: expected node numbers from 0 to 191"),
]


@pytest.mark.parametrize(("make", "answer"), GOOD)
def test_an_answer_is_scored_and_checked(make: Callable[[], tp.Model], answer: Any) -> None:
    def mine(snapshot: dict[str, Any], seconds: float) -> Any:
        assert snapshot["schema"] == "topoplace.allocator-input/1"
        assert seconds == 9
        return answer

    result = tp.place(make(), mine, time_limit=9)
    assert result.check().holds
    assert result.method == "mine"
    listed = answer if isinstance(answer, list) else answer.get("placements", answer)
    assert len(result.placements) == len(listed)
    assert result.versions["allocator"].endswith("<locals>.mine")


@pytest.mark.parametrize(("make", "answer", "verdict"), BAD)
def test_what_breaks_a_rule_gets_a_verdict(
    make: Callable[[], tp.Model], answer: Any, verdict: str
) -> None:
    model = make()
    with pytest.raises(VerdictError) as found:
        tp.place(model, lambda snapshot, seconds: answer)
    assert str(found.value).startswith(f"{model.name}: lambda: {verdict}")
    assert "\n" not in str(found.value)


def fails(instance: dict[str, Any], seconds: float) -> Any:
    raise ValueError("no idea")


def sleeps(instance: dict[str, Any], seconds: float) -> Any:
    time.sleep(20)


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (fails, "fails: failed: it raised ValueError: no idea"),
        (sleeps, "sleeps: time-out: no answer within the time limit"),
    ],
)
def test_a_function_that_gives_no_answer(function: Function, verdict: str) -> None:
    calls: list[tuple[str, Callable[[], object]]] = [
        ("torus", lambda: tp.place(torus(), function, time_limit=0.1)),
        ("grid", lambda: tp.map(tp.grid(4), "torus:4", function, time_limit=0.1)),
    ]
    for name, call in calls:
        with pytest.raises(tp.TopoplaceError) as found:
            call()
        assert str(found.value) == f"{name}: {verdict}"
        if function is fails:
            assert isinstance(found.value.__cause__, ValueError)


def first_free(snapshot: dict[str, Any], seconds: float) -> dict[str, list[str]]:
    free = [name for name, own in snapshot["free"].items() for _ in range(own["slots"])]
    return {"a": free[1:5], "b": free[5:9]}


def test_functions_are_compared_with_ours() -> None:
    found = tp.compare(hierarchy(), methods=[first_free, "exact", fails])
    assert [row.method for row in found.rows] == ["exact", "first_free", "fails"]
    ours, theirs, none = found.rows
    assert theirs.levels[0].bound == ours.levels[0].bound
    assert theirs.conforming
    assert not none.conforming
    assert "hierarchy: fails: failed: it raised ValueError: no idea" in str(found)


def reversed_places(instance: dict[str, Any], seconds: float) -> Any:
    assert len(instance["distances"]) == len(instance["places"]) == 16
    assert {len(message) for message in instance["messages"]} == {3}
    return np.array(instance["places"][::-1])


def test_a_function_maps() -> None:
    application = tp.grid(4, 4, periodic=True)
    result = tp.map(application, "torus:4x4", reversed_places, time_limit=5)
    assert (result.method, result.status, result.check().holds) == (
        "reversed_places",
        "optimal",
        True,
    )
    by_name = tp.map(tp.grid(4), "tree:2x2", lambda instance, seconds: ["n1", "n0", "n2", "n3"])
    assert by_name.solution.nodes == [1, 0, 2, 3]
    loaded = tp.map(tp.grid(4), "torus:2", lambda instance, seconds: [0, 0, 1, 1], balance=1)
    assert loaded.check().holds
    found = tp.compare(result.instance, methods=["default", reversed_places, fails])
    assert [row.status for row in found.rows] == ["optimal", "optimal", "unsuited"]
    assert "grid: fails: failed: it raised ValueError: no idea" in found.notes


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ([1, 2], "breach: expected nodes for 4 tasks, found 2"),
        ([1, 1, 2, 3], "breach: task 1: expected at most 1 task on a node, found '2 on node 1'"),
        ([1, 2, 3, 4], "breach: task 3: expected a node that tasks may go to, found 4"),
        ([0.5, 1, 2, 3], "breach: task 0: expected the number of a node, found 0.5"),
        (7, "breach: answer: expected a list of nodes, one for each task, found 7"),
        (["n0", "n1", "n2", "n3"], "breach: answer: expected nodes of the machine, found 'n0'"),
    ],
)
def test_what_is_no_mapping_gets_a_verdict(answer: Any, verdict: str) -> None:
    with pytest.raises(VerdictError) as found:
        tp.map(tp.grid(4), "torus:4", lambda instance, seconds: answer)
    assert str(found.value) == f"grid: lambda: {verdict}"


def exact(snapshot: dict[str, Any], seconds: float) -> Any:
    return {}


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: tp.place(torus(), exact), "method: expected a function with a name no other met"),
        (lambda: tp.compare(torus(), methods=[exact]), "method: expected a function with a name n"),
        (
            lambda: tp.compare(torus(), methods=[lambda a, b: 1, lambda a, b: 2]),
            "methods: expected functions of different names, found 'lambda'",
        ),
        (
            lambda: tp.place(torus(), fails, order="priority"),
            "order: expected value for an allocator of your own, found 'priority'",
        ),
        (
            lambda: tp.place(torus(), fails, command="true"),
            "--command: expected either --method or",
        ),
    ],
)
def test_functions_that_are_out_of_place(call: Callable[[], object], line: str) -> None:
    with pytest.raises(tp.InputError) as found:
        call()
    assert str(found.value).startswith(line)
