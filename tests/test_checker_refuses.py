"""False claims that were once accepted, as result files, and what is said of them now.

docs/proofs/attacks.md tells how they were found.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from baseline_instances import problem_on
from field_samples import refigured
from mapping_results import document_of, solved
from small_snapshot import snapshot_of
from solved_results import solved_case
from topoplace.certify import Report, check_file
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.packing import Proven
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.mapping.mapped import outcome_of
from topoplace.result.certificate import packed
from topoplace.snapshot.hierarchy_state import prepare_contention, prepare_hierarchy
from topoplace.snapshot.schema import (
    MAPPING_SCHEMA,
    MAX_SIZE,
    AxisModel,
    GraphApplication,
    MappingInstance,
    MatrixModel,
    ParallelismApplication,
    Pattern,
    PatternUse,
    Snapshot,
    TorusModel,
)
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, result_of, solve
from tree_cases import model_of, snapshot_on

Document = dict[str, Any]


def checked(document: Document, folder: Path) -> Report:
    """Write a result file and check it."""
    file = folder / "result.json"
    file.write_text(json.dumps(document))
    return check_file(file)


def reason(report: Report) -> str:
    """Return the first refusal."""
    assert not report.holds
    return f"{report.failures[0].name}: {report.failures[0].detail}"


def as_optimal(document: Document, bound: int, certificate: Document) -> Document:
    """Claim that a solution is optimal, or as near to a bound as it is."""
    level = document["levels"][0]
    level |= {"bound": bound, "proof": "certificate", "certificate": certificate}
    return refigured(document)


NOTHING = packed(np.zeros(4, dtype=np.int64)).model_dump(mode="json")
"""No prices."""


def ring_of_64() -> Document:
    """Return a mapping of two pairs to places half a ring apart: 64 hop-bytes, 32 do."""
    application = GraphApplication(num_tasks=4, sources=[0, 2], targets=[1, 3], bytes=[1, 1])
    problem = problem_on(application, [64], nodes="0,16,32,48")
    outcome = outcome_of(np.array([0, 32, 16, 48], dtype=np.int64))
    return document_of(result_of(problem, outcome, "by-hand", Options(), 0.5))


@pytest.mark.parametrize("kind", ["blocks", "star", "distance-classes", "cuts", "total"])
def test_a_certificate_that_proves_more_than_a_mapping_reaches_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VALUES, kind, lambda *_: 10**9)
    certificate = {
        "blocks": {"kind": "blocks", "families": []},
        "star": {"kind": "star", "prices": []},
        "cuts": {"kind": "cuts", "scale": 1, "balance": 0, "prices": NOTHING},
        "total": {"kind": "total"},
        "distance-classes": {"kind": "distance-classes", "shape": [64], "routers": [], "scale": 1}
        | {"classes": [], "filters": [], "factors": [], "rows": []},
    }[kind]
    document = as_optimal(ring_of_64(), 64, certificate)
    line = "proves 1000000000, yet the solution reaches 64: the evidence contradicts itself"
    assert line in reason(checked(document, tmp_path))


def test_a_flow_that_proves_more_than_its_mapping_reaches_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topoplace.certify.mapping.pencils.window_value", lambda *_: 10**9)
    document = document_of(solved("pencils"))
    assert document["solution"]["optimum"]["flow"] is not None
    assert "the evidence contradicts itself" in reason(checked(document, tmp_path))


@pytest.mark.parametrize("level", range(3))
def test_a_certificate_that_proves_less_than_a_placement_reaches_is_refused(
    level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(
        case for case in map(solved_case, range(30)) if all(case.best) and len(case.chosen) > 1
    )

    def proven(*args: Any) -> Proven:
        return Proven(case.best[len(args[2])] - (len(args[2]) == level), " at the leaf a out")

    monkeypatch.setattr("topoplace.certify.packing.certified_bound", proven)
    found = reason(checked(case.document, tmp_path))
    assert "at the leaf a out" in found
    assert f"yet the solution reaches {case.best[level] * (-1 if level == 2 else 1)}" in found


def two_leaves(*, starts_both: bool) -> Document:
    """Return what starts B, two nodes that communicate, on two leaves of two; and A, if asked."""
    uses = [PatternUse(pattern=Pattern.BINOMIAL)]
    queue: list[tuple[int, list[PatternUse]]] = [(2, []), (2, uses)]
    state = prepare_contention(snapshot_on(model_of([2, 2]), queue=queue))
    result = solve(state, "exact", Options(time_limit=5))
    document = result.model_dump(mode="json")
    if not starts_both:
        document["solution"]["allocations"].pop(0)
        document["levels"][0]["objective"] = {"numerator": 2, "denominator": 1}
    return refigured(document)


def test_a_cost_is_optimal_only_if_what_it_counts_has_to_start(tmp_path: Path) -> None:
    assert checked(two_leaves(starts_both=True), tmp_path).verified
    document = two_leaves(starts_both=False)
    assert document["levels"][1]["status"] == "optimal"
    found = reason(checked(document, tmp_path))
    assert found == "cost.bound: bound is 4, the certificate only proves 0"


def test_a_request_is_not_proven_to_cost_more_than_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topoplace.certify.switches.check.Nogoods.follow", lambda *_: None)
    document = two_leaves(starts_both=True)
    document["levels"][1]["certificate"]["proofs"][0]["bound"]["numerator"] += 1
    found = reason(checked(document, tmp_path))
    assert found.startswith("cost.bound: q1 is proven to cost")
    assert found.endswith("the evidence contradicts itself")


def test_a_tree_without_solution_has_no_bound_of_its_cost(tmp_path: Path) -> None:
    document = two_leaves(starts_both=True)
    document["solution"] = None
    for level in document["levels"]:
        level["objective"] = None
    found = reason(checked(refigured(document), tmp_path))
    assert found.startswith("cost.bound: the earlier levels")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"objective": 64', '"objective": 64, "objective": 64', "every key once, not objective"),
        ('"hops": ', '"hops": 0, "hops": ', "with every key once, not hops twice"),
        ('"seconds": 0.5', '"seconds": -5', "seconds: expected a number of at least 0, found -5"),
        ('"seconds": 0.5', '"seconds": 1e400', "with finite numbers, not 1e400"),
        ('"seconds": 0.5', '"seconds": Infinity', "with finite numbers, not Infinity"),
        ('"seconds": 0.5', '"seconds": NaN', "with finite numbers, not NaN"),
        (
            '"time_limit": null',
            '"time_limit": -1',
            "time_limit: expected a number of at least 0, found -1",
        ),
    ],
)
def test_documents_that_readers_disagree_on_are_no_documents(
    old: str, new: str, expected: str, tmp_path: Path
) -> None:
    text = json.dumps(ring_of_64())
    assert old in text
    file = tmp_path / "result.json"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        check_file(file)
    assert expected in str(raised.value)
    assert str(file) in str(raised.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"7",
        b"[]",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"schema": "topoplace.result/1"}',
        b'{"schema": "topoplace.result/2"}',
        b'{"schema": "topoplace.result/4"}',
        b'{"schema": "topoplace.result/4", "x": 1e999}',
    ],
)
def test_files_that_are_no_results(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        check_file(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    assert len(lines) == len(caught.value.faults)  # a line each, and no line within a line


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(InputError, match="a file"):
            check_file(path)


def test_a_key_twice_among_many_is_told_at_once(tmp_path: Path) -> None:
    """It took hours where it was looked for key by key."""
    file = tmp_path / "result.json"
    file.write_text("{" + "".join(f'"k{k}": 0, ' for k in range(300_000)) + '"z": 1, "z": 2}')
    with pytest.raises(InputError, match="every key once, not z twice"):
        check_file(file)


def test_whose_instance_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, mine, other = (tmp_path / f"{name}.json" for name in ("result", "mine", "other"))
    document = ring_of_64()
    file.write_text(json.dumps(document))
    instance = document["instance"]
    mine.write_text(json.dumps(instance | {"nodes": " 48, 0,16,32-32"}))
    other.write_text(json.dumps(instance | {"nodes": "0,16,32,47"}))
    assert run(["check", str(file), "--instance", str(mine)]) == 0
    shown = capsys.readouterr().out
    assert f"whose: the instance is that of {mine}" in shown
    assert "sha256 of the instance inside: " in shown
    assert run(["check", str(file), "--instance", str(other)]) == 5
    assert "FAILS  whose: sha256 " in capsys.readouterr().out
    assert run(["check", str(file), "--instance", str(file)]) == 0
    assert run(["check", str(file), "--json"]) == 0
    sums = [json.loads(capsys.readouterr().out.splitlines()[-1])["instance_sha256"]]
    assert len(sums[0]) == 64
    assert run(["check", str(file), "--instance", str(tmp_path / "none.json")]) == 2


# ---- Rules of other machines ---------------------------------------------------------------------

FOREIGN: dict[str, Any] = {
    "required": "block",
    "segments": [{"size": 1, "level": "block"}],
    "tasks": {
        "application": {"kind": "graph", "num_tasks": 1, "sources": [], "targets": [], "bytes": []}
    },
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("machine", ["torus", "tree"])
def test_a_rule_of_another_machine_is_not_passed_over(
    machine: str, name: str, tmp_path: Path
) -> None:
    """Solved without it, and said to be solved with it; neither is it read."""
    if machine == "torus" and name == "tasks":
        return
    tree = snapshot_on(model_of([2, 2]), queue=[(2, [])])
    snapshot = snapshot_of([4], [{"nodes": 2}]) if machine == "torus" else tree
    prepared: Any = prepare if machine == "torus" else prepare_contention
    document = solve(prepared(snapshot), "exact").model_dump(mode="json")
    assert checked(document, tmp_path).holds
    document["instance"]["queue"][0][name] = FOREIGN[name]
    assert "which have no meaning here" in reason(checked(document, tmp_path))
    with pytest.raises(InputError, match=f"no {name} on a {machine}"):
        prepared(type(snapshot).model_validate(document["instance"]))


# ---- Claims of one kind of instance on another ---------------------------------------------------


def figures(document: Document, *levels: tuple[int, int | None, Document | None]) -> Document:
    """Write objective, bound and certificate of every level into a placement."""
    for level, (objective, bound, certificate) in zip(document["levels"], levels, strict=True):
        level |= {"objective": objective, "bound": bound, "certificate": certificate}
        level["proof"] = "none" if certificate is None else "certificate"
    return refigured(document)


def test_a_job_without_segments_has_no_further_prisms(tmp_path: Path) -> None:
    """Those of segments use no links; both jobs use link 5 of the ring, so that 4 nodes start."""
    snapshot = snapshot_of([6], [{"nodes": 4}, {"nodes": 2}])
    document = solve(prepare(snapshot), "exact").model_dump(mode="json")
    assert checked(document, tmp_path).verified
    assert document["objective"] == 4
    document["solution"]["placements"] = [
        {
            **{"request": f"job{k}", "nodes": nodes, "other_prisms": []},
            "prism": {"origin": [origin], "extents": [extent]},
        }
        for k, nodes, origin, extent in ((0, "0-3", 0, 4), (1, "4-5", 4, 2))
    ]
    document["explanations"] = []
    leaf = {"kind": "leaf", "scale": 1, "prices": {"routers": "1*6"}}
    figures(document, (6, 6, leaf), (3078, None, None), (4, None, None))
    found = reason(checked(document, tmp_path))
    assert found == "placements: job0 has further prisms, and wants one"


def test_nothing_is_mapped_where_prisms_are_anchored(tmp_path: Path) -> None:
    """A job in segments has no prism that bounds of mappings know: 20 hop-bytes do, not 40."""
    graph = {"kind": "graph", "num_tasks": 2, "sources": [0], "targets": [1], "bytes": [10]}
    request = {"nodes": 2, "segment": 1, "communication": "none", "tasks": {"application": graph}}
    running = [{"id": "r", "nodes": "1,3,5,7", "communication": "none"}]
    snapshot = snapshot_of([1, 8], [request], anchored=[{"dims": [1, 1]}], running=running)
    document = solve(prepare(snapshot), "exact").model_dump(mode="json")
    assert checked(document, tmp_path).verified
    document["levels"][1] |= {"name": "hop-bytes", "sense": "min"}
    document["solution"]["placements"][0] |= {
        **{"nodes": "0,4", "mapping": {"nodes": [0, 4], "hop_bytes": 40}},
        "other_prisms": [{"origin": [0, 4], "extents": [1, 1]}],
    }
    leaf = {"kind": "leaf", "scale": 1, "prices": {}}
    packing = leaf | {"multipliers": [20]}
    proof = {"kind": "hop-bytes", "mappings": [], "packing": packing}
    figures(document, (2, 2, leaf), (40, 40, proof))
    assert reason(checked(document, tmp_path)).startswith("levels: the levels are [('nodes'")


def test_distances_between_objects_are_those_back(tmp_path: Path) -> None:
    """Object 1 costs 1 on node 1 and 10 on node 2, and ten times as much the other way."""
    machine = MatrixModel(kind="matrix", name="m", distances=[[0, 1, 10], [1, 0, 5], [10, 5, 0]])
    application = GraphApplication(num_tasks=2, sources=[0], targets=[1], bytes=[1])
    result = tp.map(application, machine, "exact", balance=2, fixed={0: 0})
    document = result.model_dump(mode="json")
    assert checked(document, tmp_path).verified
    document["instance"]["machine"]["distances"] = [[0, 1, 10], [10, 0, 5], [100, 5, 0]]
    found = reason(checked(document, tmp_path))
    assert found == "instance: distances differ by direction, those of objects may not"


# ---- Documents that once ended the checker -------------------------------------------------------


def on_hierarchy(**request: Any) -> Document:
    """Return an empty placement on two hosts, said to be the best there is for a request."""
    leaf = {"kind": "leaf", "scale": 1, "prices": {}}
    hosts = {"hosts": "h[0-1]", "domains": ["r"], "capacity": {"slots": 4}}
    machine = {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": [hosts]}
    snapshot = snapshot_of([1], []).model_dump(mode="json") | {"machine": machine}
    snapshot["queue"] = [{"id": "q", **request}]
    names = {"nodes": "max", "rack": "min", "host": "min", "stranded": "min"}
    document = {
        **{"schema": "topoplace.result/4", "problem": "hierarchy", "method": "by-hand"},
        **{"seconds": 0.5, "limits": {}, "seed": None, "versions": {}, "instance": snapshot},
        **{"levels": [{"name": name, "sense": sense} for name, sense in names.items()]},
        "solution": {"placements": []},
    }
    rest = [(0, None, None)] * 3
    return figures(document, (0, request["nodes"], leaf), *rest)


def test_no_rows_of_a_resource_are_called_as_those_of_none(tmp_path: Path) -> None:
    """Prices of its rows were paid, and counted with the capacities of the others, which are 0."""
    document = on_hierarchy(nodes=2, takes={"units": 2}, required="rack")
    document["instance"]["queue"][0]["spread"] = {"level": "host", "size": 2}
    document["instance"]["machine"]["hosts"][0]["capacity"] = {"units": 4}
    prices = {f"rounded:units:{k}": "1000*3" for k in range(1, 9)}
    leaf = {"kind": "leaf", "scale": 1, "prices": prices}
    figures(document, (0, 0, leaf), *[(0, None, None)] * 3)
    found = reason(checked(document, tmp_path))
    assert "contradicts" in found or "proves" in found, found


def test_a_request_of_too_many_units_is_told(tmp_path: Path) -> None:
    document = on_hierarchy(nodes=MAX_SIZE + 1)
    assert reason(checked(document, tmp_path)) == "levels: q wants more than 2097152 units"
    snapshot = Snapshot.model_validate(document["instance"])
    with pytest.raises(InputError, match="at most 2097152 units"):
        prepare_hierarchy(snapshot)


def test_states_are_counted_in_integers_of_any_size(tmp_path: Path) -> None:
    parts = [{"id": f"p{k}", "nodes": MAX_SIZE} for k in range(3)]
    document = on_hierarchy(nodes=3 * MAX_SIZE, parts=parts)
    assert reason(checked(document, tmp_path)).startswith("nodes.bound: the states of a request")


def test_tables_that_take_too_long_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = on_hierarchy(nodes=8)
    assert checked(document, tmp_path).verified
    monkeypatch.setattr("topoplace.certify.hierarchy.oracle._MOST_WORK", 9_000)
    assert reason(checked(document, tmp_path)).endswith("additions for the document")


def test_a_point_has_a_solution_of_its_problem(tmp_path: Path) -> None:
    document = on_hierarchy(nodes=1)
    levels = [{name: level[name] for name in ("name", "sense")} for level in document["levels"]]
    kept = ("problem", "method", "seconds", "limits", "seed", "versions", "instance")
    plan = {"moves": [], "placements": [], "steps": [], "suspended": [], "fewest_suspended": True}
    frontier: Document = {
        **{name: document[name] for name in kept},
        **{"schema": "topoplace.frontier/1", "levels": levels, "traded": ["nodes", "rack"]},
        **{"complete": False, "steps": [], "open": []},
        "points": [{"values": [0, 0, 0, 0], "solution": plan}],
    }
    found = reason(checked(frontier, tmp_path))
    assert found == "points: points[0]: a solution of another problem"


def test_a_name_of_thousands_of_characters_is_none(tmp_path: Path) -> None:
    document = on_hierarchy(nodes=1)
    document["instance"]["machine"]["hosts"][0]["hosts"] = "h" + 5_000 * "1"
    assert "expected names of at most 256 characters" in reason(checked(document, tmp_path))


def test_a_tree_of_mappings_names_what_is_there(tmp_path: Path) -> None:
    nodes = packed(np.array([-(1 << 63), 0, 0]))
    certificate = {"kind": "tree", "guests": [], "hosts": [], "size": 3}
    certificate["nodes"] = nodes.model_dump()
    document = as_optimal(ring_of_64(), 64, certificate)
    assert reason(checked(document, tmp_path)).endswith("what is not there to branch on")


def test_lines_of_many_ranks_are_read_at_once() -> None:
    """By pairs of ranks it took minutes."""
    axis = AxisModel(name="data", size=200_000, pattern="ring", bytes=1)
    instance = MappingInstance(
        **{"schema_version": MAPPING_SCHEMA, "name": "i", "nodes": "0-199999"},
        machine=TorusModel(name="m", shape=[200_000]),
        tasks_per_node=1,
        application=ParallelismApplication(axes=[axis]),
    )
    assert read_instance(instance).total == 200_000


def test_a_document_too_deep_for_one_reader_is_told(tmp_path: Path) -> None:
    document = ring_of_64() | {"notes": 0}
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document).replace('"notes": 0', f'"notes": {"[" * 300 + "]" * 300}'))
    with pytest.raises(InputError, match=r"a JSON document \(recursion limit"):
        check_file(file)
    file.write_text('{"schema": ["topoplace.result/4"]}')
    with pytest.raises(InputError, match="schema: expected a result"):
        check_file(file)
