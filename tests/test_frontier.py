"""Levels that are set instead of solved, and trade-offs between levels."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import topoplace as tp
from random_instances import random_snapshot
from topoplace.certify import check_document
from topoplace.cli.app import app
from topoplace.machine import Prism
from topoplace.packing.frontier import TradeOff
from topoplace.placement.several import traded_off
from topoplace.placement.torus.problem import Candidate
from topoplace.report.figure import write_figure
from topoplace.result import PlacementResult, Status
from topoplace.result.placement import CubesResult, HierarchyResult
from topoplace.result.several import Frontier
from topoplace.snapshot.files import write_document
from topoplace.snapshot.machines import load_any
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Bound, Options, Outcome, result_of
from topoplace.solving.solve import problem_of
from topoplace.study.case import load_checkable

Document = dict[str, Any]


PlacedResult = PlacementResult | HierarchyResult | CubesResult


def small_queue(kind: str, sizes: Sequence[int] = (2, 1)) -> Snapshot:
    """Return an empty machine of a kind and requests for so many nodes or units."""
    hosts = [
        {"hosts": f"{rack}[0-1]", "domains": [rack], "capacity": {"slots": 2}} for rack in "ab"
    ]
    machine: Document = {
        "torus": {"shape": [5], "wrap": [False]},
        "hierarchy": {"kind": "hierarchy", "levels": ["rack", "host"], "hosts": hosts},
        "cubes": {"kind": "cubes", "cubes": 3, "side": [2, 2]},
    }[kind]
    queue: list[Document] = [{"id": f"q{k}", "nodes": n} for k, n in enumerate(sizes)]
    if kind == "hierarchy":
        queue = [request | {"takes": {"slots": 1}} for request in queue]
    return Snapshot.model_validate(
        {
            "schema": SNAPSHOT_SCHEMA,
            "name": kind,
            "machine": {"name": "small", **machine},
            "queue": queue,
        }
    )


def impossible(snapshot: Snapshot, **required: int) -> PlacedResult:
    """Return the result where something is required of a later level that cannot be met."""
    found = tp.place(snapshot, required=required)
    assert isinstance(found, PlacedResult)
    assert found.solution is None
    return found


def torus_result(document: Document) -> PlacementResult:
    return PlacementResult.model_validate_json(json.dumps(document))


@pytest.mark.parametrize(
    ("kind", "required", "worth"),
    [
        ("torus", {"fragmentation": 0}, [3]),
        ("torus", {"nodes": 2, "fragmentation": 0}, [3]),
        ("hierarchy", {"host": 1}, [3, 2]),
        ("cubes", {"free_cubes": 3}, [3, 2]),
    ],
)
def test_what_cannot_be_met_is_proven(
    kind: str, required: dict[str, int], worth: list[int]
) -> None:
    result = impossible(small_queue(kind), **required)
    [level] = [level for level in result.levels if level.status is Status.INFEASIBLE]
    assert level.name == [*required][-1]
    assert result.witness is not None
    assert result.witness.values[: len(worth)] == worth
    assert result.check().verified, result.check()
    assert "best found without what was set: nodes 3, " in str(result)


def test_a_level_is_infeasible_only_if_those_before_are_settled() -> None:
    document = impossible(small_queue("torus"), fragmentation=0).model_dump(mode="json")
    document["bound"] = document["levels"][0]["bound"] = 4  # as if one more node might start
    assert [c.name for c in check_document(torus_result(document)).failures] == ["fragmentation"]
    document["levels"][2]["status"] = "unknown"
    unknown = torus_result(document)
    assert check_document(unknown).verified
    assert unknown.witness is not None
    started = [
        Candidate(number, Prism(tuple(at.prism.origin), tuple(at.prism.extents)))
        for number, at in enumerate(unknown.witness.solution.placements)
        if at.prism is not None
    ]
    bounds = [Bound(v.bound, v.certificate) for v in unknown.levels if v.bound is not None]
    outcome, options = (
        Outcome(None, bounds, witness=started),
        Options(required={"fragmentation": 0}),
    )
    problem = problem_of(prepare(unknown.instance), options)
    again = result_of(problem, outcome, "exact", options, unknown.seconds)
    assert (again.levels, again.witness) == (unknown.levels, unknown.witness)


def test_false_witnesses_are_refused() -> None:
    snapshot = small_queue("torus")
    whole = impossible(snapshot, nodes=3, fragmentation=0).model_dump(mode="json")
    alone = small_queue("torus", (2,))

    def refused_by(witness: Document | None) -> list[str]:
        return [c.name for c in check_document(torus_result(whole | {"witness": witness})).failures]

    witness = whole["witness"]
    first, second = witness["solution"]["placements"]
    for level in range(3):
        values = [*witness["values"]]
        values[level] += 1
        assert refused_by(witness | {"values": values}) == ["witness"]
    there = second | {"nodes": "0", "prism": {"origin": [0], "extents": [1]}}
    twice = [first | {"nodes": "0-1", "prism": {"origin": [0], "extents": [2]}}, there]
    solution = witness["solution"] | {"placements": twice}
    assert refused_by(witness | {"solution": solution}) == ["witness"]
    assert refused_by(None) == ["fragmentation", "fragmentation.bound"]
    fewer = impossible(alone, fragmentation=0).model_dump(mode="json")["witness"]
    assert "fragmentation.bound" in refused_by(fewer)  # it does not reach what is required
    answered = tp.place(snapshot).model_dump(mode="json")
    assert not check_document(torus_result(answered | {"witness": witness})).holds


def test_without_a_step_everything_is_open() -> None:
    anything = (-math.inf, -math.inf), (math.inf, math.inf)
    assert TradeOff((0, 1)).boxes() == [anything]


# ---- Commands ------------------------------------------------------------------------------------


def test_commands_trade_off_and_show(tmp_path: Path) -> None:
    snapshot, file = tmp_path / "small.json", tmp_path / "frontier.json"
    write_document(snapshot, random_snapshot(random.Random("frontier-7"), 8))
    run = CliRunner().invoke
    made = run(app, ["place", str(snapshot), "--pareto", "nodes,shape", "-o", str(file)])
    assert made.exit_code == 0, made.output
    assert "complete" in made.output
    assert run(app, ["check", str(file)]).exit_code == 0
    for name, document in (("two", load_checkable(file)), ("three", None)):
        found = document or traded_off(load_any(snapshot), ["nodes", "shape", "fragmentation"])
        assert isinstance(found, Frontier)
        write_figure(found, tmp_path / f"{name}.png", dark=name == "two")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert run(app, ["show", str(file), "--png", str(tmp_path / "shown.png")]).exit_code == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--set", "nodes<=3"], "expected >= for nodes"),
        (["--set", "knots>=3"], "did you mean 'nodes'?"),
        (["--set", "nodes"], "expected LEVEL>=NUMBER"),
        (["--pareto", "nodes"], "expected two or three levels"),
        (["--pareto", "nodes,shapes"], "did you mean 'shape'?"),
        (["--pareto", "nodes,shape", "--method", "best-fit"], "expected no other than"),
        (["--set", "nodes>=3", "--method", "best-fit"], "expected method exact"),
    ],
)
def test_wrong_levels_are_told(tmp_path: Path, given: list[str], told: str) -> None:
    snapshot = tmp_path / "small.json"
    write_document(snapshot, random_snapshot(random.Random("frontier-7"), 8))
    done = CliRunner().invoke(app, ["place", str(snapshot), *given])
    assert told in str(done.exception)
