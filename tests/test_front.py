"""The front door: what a user of the package holds in hand (`import topoplace as tp`)."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import front_as_typed
import topoplace as tp
from mistakes import lines_said
from topoplace import options
from topoplace.cli.app import COMMANDS
from topoplace.front.mapping import write_nodes
from topoplace.mapping.problem import prepare_mapping

door: Any = tp
"""The front door for calls with arguments that types forbid."""


def torus_model() -> tp.Model:
    model = tp.Model(tp.torus(6, 4, 4, nodes_per_router=2), name="now")
    model.add_down([100, 101])
    model.add_running("climate", origin=(0, 0, 0), extents=(1, 4, 4))
    model.add_running("render", [121, 138], communication="none")
    model.add_region("right", origin=(3, 0, 0), extents=(3, 4, 4))
    model.add_request("cfd", 24, region="right")
    model.add_request("lattice", 64, shapes="2x4x4", priority=2)
    model.add_request("hero", 140)
    return model


def tree_model() -> tp.Model:
    model = tp.Model(tp.tree(3, 4))
    model.add_running("old", ["n0", "n1"], patterns={"ring": 50})
    model.add_request("new", 4, patterns={"rd": 60})
    model.add_request("huge", 12)
    return model


@pytest.fixture(scope="module")
def results() -> list[tp.Result[Any, Any, Any]]:
    """Return one result of each problem: on a torus, on a tree, a mapping."""
    mapped = tp.map(tp.grid(4, 2, 2, periodic=True), tp.torus(4, 2, 2), "blocks")
    return [tp.place(torus_model(), time_limit=20), tp.place(tree_model()), mapped]


@pytest.fixture(params=range(3), ids=["torus", "tree", "mapping"])
def result(request: pytest.FixtureRequest, results: list[Any]) -> tp.Result[Any, Any, Any]:
    return results[request.param]


def test_the_door_has_few_names_and_opens_at_once() -> None:
    code = "import sys, topoplace as tp; print(*dir(tp)); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, modules = (line.split() for line in run.stdout.splitlines())
    assert len(names) <= 40
    assert all(getattr(tp, name) is not None for name in names)
    assert not {"numpy", "pydantic", "numba", "ortools"} & set(modules)
    assert tp.methods("placement")["exact"] == tp.methods()["placement exact"]
    assert "blue_waters" in tp.machines()
    assert "blue_waters_60" in tp.snapshots()
    with pytest.raises(AttributeError, match="no attribute 'plase'"):
        _ = tp.plase


def test_a_result_is_verified_saved_and_shows_itself(
    result: tp.Result[Any, Any, Any], tmp_path: Path
) -> None:
    assert result.check().verified
    for text in (result.model_dump_json(), result.save(tmp_path / "r.json").read_text()):
        (tmp_path / "again.json").write_text(text)
        assert tp.check(tmp_path / "again.json").verified
        assert tp.check(json.loads(text)).verified
        assert tp.load(tmp_path / "again.json") == result
    assert 3 <= len(repr(result).splitlines()) <= 12
    assert result.instance.name in repr(result).splitlines()[0]
    assert "<table" in result._repr_html_()
    axes = result.plot()
    assert axes.figure.get_size_inches().min() > 1.5
    assert result.plot(axes) is axes


def test_frames_and_placements_name_every_request_or_task(results: list[Any]) -> None:
    on_torus, on_tree, mapped = results
    assert list(mapped.to_frame().columns) == ["task", "node", "router", "x0", "x1", "x2"]
    assert list(mapped.to_frame().node) == mapped.solution.nodes
    for placed in (on_torus, on_tree):
        frame = placed.to_frame()
        assert list(frame.request) == [request.id for request in placed.instance.queue]
        assert set(frame.request[frame.starts]) == {start.request for start in placed.placements}
        assert all(len(start.nodes) > 0 and start.hosts for start in placed.placements)
    lattice = next(start for start in on_torus.placements if start.request == "lattice")
    assert sorted(lattice.extents) == [2, 4, 4]
    assert (len(lattice.origin), len(set(lattice.nodes))) == (3, 64)
    assert on_tree.placements[0].hosts.startswith("n")
    assert on_tree.placements[0].cost > 0


def test_a_model_is_saved_loaded_and_changed(tmp_path: Path) -> None:
    model = torus_model()
    model.set_weights(hops=7)
    model.save(tmp_path / "m.json")
    again = tp.load(tmp_path / "m.json")
    assert again.snapshot == model.snapshot
    assert repr(again) == "<Model now: torus-6x4x4, 2 running, 3 waiting>"
    again.add_request("late", 2)
    assert len(again.queue) == len(model.queue) + 1
    assert tp.place(again.snapshot, "first-fit").check().holds
    assert isinstance(tp.load("torus:4x4"), type(tp.torus(4, 4)))
    assert tp.load("blue_waters_60").machine.name == "blue_waters"


def test_applications_are_mapped_wherever_there_is_room(tmp_path: Path) -> None:
    placed = tp.place(torus_model(), "first-fit")
    traffic = np.zeros((4, 4), dtype=np.int64)
    traffic[0, 1] = traffic[2, 3] = 5
    triples = [(0, 1, 5), (2, 3, 5)]
    assert tp.graph(traffic) == tp.graph(triples) == tp.graph(traffic.astype(float))
    for on in (placed, torus_model(), torus_model().machine, "torus:6x4x4:2"):
        job = "lattice" if on is placed else None
        result = tp.map(tp.graph(triples), on, "greedy", job=job, seed=3)
        assert result.check().holds
        assert len(set(result.solution.nodes)) == 4
    (tmp_path / "i.json").write_text(result.instance.model_dump_json())
    assert tp.map(tmp_path / "i.json", method="greedy").objective == result.objective


def test_a_mesh_does_not_close_and_a_tree_may_be_listed() -> None:
    assert tp.mesh(3, 3).wrap == [False, False]
    assert tp.torus(3, 3, wrap=[True, False]).wrap == [True, False]
    machine = tp.tree(leaves={"a": ["x1", "x2"], "b": "y[1-3]"})
    model = tp.Model(machine)
    model.add_request("one", 4, communication="none")
    assert tp.place(model).placements[0].hosts == "x1,y[1-3]"


def test_a_comparison_prints_and_shares_bounds(results: list[Any], tmp_path: Path) -> None:
    exact, on_tree, mapped = results
    exact.save(tmp_path / "r.json")
    found = tp.compare(tmp_path, torus_model(), on_tree, mapped, methods=["first-fit"])
    shown = ["placement exact", "placement first-fit", "allocation exact", "mapping blocks"]
    assert [f"{row.problem} {row.method}" for row in found.rows] == shown
    assert found.rows[1].levels[0].bound == exact.bound
    assert "first-fit" in str(found)
    assert list(found.to_frame().method) == [row.method for row in found.rows]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: tp.torus(0, 4), "shape[0]: expected an integer of at least 1, found 0"),
        (tp.tree, "tree: expected sizes such as tree(24, 16), or leaves"),
        (
            lambda: torus_model().add_request("late one", 4),
            "id: expected a name without blanks, commas and semicolons, found 'late one'",
        ),
        (
            lambda: torus_model().add_running("x", communication="strikt", nodes=[1]),
            "communication: expected one of strict, tolerant, none, found 'strikt' (did you mean",
        ),
        (
            lambda: torus_model().add_running("x", origin=(0, 0, 0), extents=(1, 1, 1.5)),
            "extents[2]: expected a whole number, found 1.5",
        ),
        (lambda: torus_model().add_down([0.5]), "nodes: expected numbers of nodes, names, or a"),
        (lambda: torus_model().add_down(5), "nodes: expected numbers of nodes, names, or a text"),
        (lambda: torus_model().add_running("x", [None]), "nodes: expected numbers of nodes, na"),
        (
            lambda: tree_model().add_request("x", 2, patterns=["ring"]),
            "patterns: expected a dictionary of shares by pattern, such as {'ring': 100}, found [",
        ),
        (
            lambda: tree_model().add_running("x", "n0", patterns="ring"),
            "patterns: expected a dictionary of shares by pattern, such as {'ring': 100}, found 'r",
        ),
        (
            lambda: tree_model().add_running("x", origin=(0, 0, 0), extents=(1, 1, 1)),
            "origin: expected a torus or mesh for a prism, found 'tree'",
        ),
        (
            lambda: torus_model().add_running("x", origin=3, extents=(1, 1, 1)),
            "origin: expected a list, found 3",
        ),
        (
            lambda: torus_model().add_region(["x"], (0, 0, 0), (1, 1, 1)),
            "name: expected text, found ['x']",
        ),
        (lambda: tp.torus(4, 4, bandwidth=5), "bandwidth: expected a list, found 5"),
        (lambda: tp.torus(4, classes=["a"]), "classes: expected a dictionary of nodes by class"),
        (lambda: tp.torus(4, anchored=[5]), "anchored[0].dims: expected a list, found 5"),
        (lambda: tp.tree("a"), "sizes[0]: expected an integer, found 'a'"),
        (lambda: tp.tree(leaves={"a": 5}), "leaves[a]: expected numbers of nodes, names, or a t"),
        (lambda: tp.cubes(4, side=4), "side: expected a list, found 4"),
        (lambda: tp.hierarchy([1, 2]), "sizes: expected a dictionary of numbers by level, such"),
        (lambda: tp.hierarchy({"a": "x"}), "sizes[a]: expected an integer, found 'x'"),
        (lambda: tp.grid(4, bytes=2.5), "bytes: expected a list, found 2.5"),
        (lambda: tp.objects({"a": 5}, {}), "arrays[0].shape: expected a list, found 5"),
        (lambda: tp.objects({}, ["x"]), "rules: expected a dictionary of bytes by rule, found ['"),
        (lambda: tp.graph([(0, 1, 2.5)]), "messages[0, 2]: expected a whole number, found 2.5"),
        (lambda: tp.graph([(0, 1, np.inf)]), "messages[0, 2]: expected a whole number, found inf"),
        (lambda: torus_model().add_running("x"), "nodes: expected the nodes of the job, found"),
        (lambda: tp.place(torus_model(), "exakt"), "(did you mean 'exact'?)"),
        (lambda: tp.place(torus_model(), time_limit=-1), "time_limit: expected a finite number"),
        (
            lambda: tp.place(tree_model(), interference="off"),
            "expected no interference rule but on tori and meshes",
        ),
        (lambda: tp.place("tpu_v4"), "instance: expected a snapshot, found TorusModel"),
        (lambda: door.place(tp.torus(4, 4)), "instance: expected a snapshot, found TorusModel"),
        (lambda: door.place(torus_model(), time_limit="5"), "time_limit: expected a number, found"),
        (lambda: door.place(torus_model(), seed="x"), "seed: expected an integer, found 'x'"),
        (lambda: door.place(torus_model(), seed=-1), "seed: expected a seed from 0 to"),
        (lambda: door.place(torus_model(), seed=2.5), "seed: expected a whole number, found 2.5"),
        (
            lambda: door.place(torus_model(), first_level="yes"),
            "first_level: expected True or False, fou",
        ),
        (lambda: door.place(torus_model(), ignore=3), "ignore: expected a list, found 3"),
        (
            lambda: door.place(torus_model(), required=["a"]),
            "required: expected a dictionary or te",
        ),
        (lambda: door.place(torus_model(), callback=3), "callback: expected a function, found 3"),
        (lambda: door.whatif(torus_model(), changes=5), "changes: expected a list, found 5"),
        (lambda: door.repack(torus_model(), defragment="x"), "defragment: expected an integer, fo"),
        (lambda: door.compare(torus_model(), methods=[5]), "methods[0]: expected text"),
        (lambda: door.map(tp.grid(4), 5), "on: expected a machine, a snapshot, a result, a squar"),
        (lambda: door.topology("torus:4", ranks=5), "ranks: expected a path or a list, found 5"),
        (lambda: door.topology("torus:4", cores=1.5), "cores: expected a whole number, found 1.5"),
        (lambda: tp.torus((4, 4)), "shape[0]: expected an integer, found [4, 4]"),
        (lambda: door.Model(5), "machine: expected a machine such as tp.torus(4, 4), its name or"),
        (lambda: door.load(3), "source: expected a path, a shipped name or a document, found int"),
        (lambda: door.compare([torus_model()]), "source: expected a path, a shipped name or a doc"),
        (lambda: door.map((4, 4), "torus:4x4"), "application: expected an application such as"),
        (lambda: tp.graph([(0, 1), (1,)]), "messages: expected a square matrix, triples of source"),
        (lambda: tp.graph(np.zeros((2, 3, 4), int)), "found an array of shape (2, 3, 4)"),
        (lambda: tp.optima(torus_model(), 0), "most: expected at least 1, found 0"),
        (
            lambda: tp.repack(torus_model(), "cdf"),
            "expected requests that wait and are not held, each once, found 'cd",
        ),
        (lambda: tp.compare(torus_model(), methods="bestfit"), "found 'bestfit' (did you mean"),
        (lambda: tp.place({"schema": "topoplace.snapshot/1"}), "document: name: expected a value"),
        (lambda: tp.check("blue_waters_60"), "result: expected a result, found Model"),
        (lambda: tp.map(tp.grid(4)), "on: expected a machine, an instance or a result"),
        (
            lambda: tp.map(tp.grid(4), "hierarchy:2x2", level_costs="1:10"),
            "level_costs: expected a list, found '1:10'",
        ),
        (
            lambda: tp.map(tp.grid(4), "torus:4", mapping=["x"]),
            "mapping[0]: expected an integer, found 'x'",
        ),
        (lambda: tp.map(tp.grid(4), "torus:4", mapping=5), "mapping: expected a list, found 5"),
        (lambda: tp.map(tp.grid(4), "torus:4", cell="2x2"), "cell: expected a list, found '2x2'"),
        (
            lambda: tp.repack(torus_model(), "abc", budgets=["x"]),
            "budgets[0]: expected a list, found 'x'",
        ),
        (
            lambda: tp.repack(torus_model(), "abc", budgets=[[1]]),
            "budgets[0]: expected 2 values, found [1]",
        ),
        (
            lambda: tp.methods("placing"),
            "problem: expected one of placement, allocation, hierarchy, cubes, dragonfly, fattree, "
            "repack, mapping",
        ),
    ],
)
def test_wrong_arguments_are_told_in_a_line(call: Any, line: str) -> None:
    assert line in "\n".join(lines_said(call))


def test_a_solve_is_shown_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tp.Progress] = []
    result = tp.place(torus_model(), time_limit=20, display=True, callback=told.append)
    assert told[-1].objective == result.objective
    assert told[-1].phase == result.status
    assert "now, exact: " in capsys.readouterr().err


def test_a_typed_program_runs() -> None:
    assert len(set(front_as_typed.main())) == 4


@pytest.mark.parametrize(
    ("name", "declaration"),
    [
        ("place", options.Place),
        ("repack", options.Repack),
        ("whatif", options.WhatIf),
        ("compare", options.Compare),
        ("audit", options.Audit),
        ("batch", options.Batch),
        ("convert", options.Convert),
        ("map", options.Map),
    ],
)
def test_an_option_reaches_the_command_and_the_function(name: str, declaration: type) -> None:
    function, command = getattr(tp, name), COMMANDS[name][0]
    keywords = inspect.signature(function).parameters
    on_command_line = {of.name for of, _ in command.options}
    for of, one in options.declared(declaration):
        assert of.name in keywords
        assert f"\n{of.name}\n    {one.text[:20]}" in function.__doc__
        assert (of.name in on_command_line) == (one.metavar is not None)


def test_a_comparison_draws_itself(results: list[Any], tmp_path: Path) -> None:
    found = tp.compare(torus_model(), results[2], methods=["exact", "first-fit"], time_limit=20)
    for what in ("gaps", "seconds", "profile"):
        picture = found.plot(what)
        svg = ElementTree.fromstring(picture.save(tmp_path / "p.svg").read_text())
        texts = {
            "".join(one.itertext()).strip() for one in svg.iter("{http://www.w3.org/2000/svg}text")
        }
        assert {"exact", "first-fit", "blocks"} <= texts
        assert len([text for text in texts if text.endswith((", placement", ", mapping"))]) == 2
        assert "data:image/svg+xml" in picture._repr_html_()
    line = "what: expected one of gaps, seconds, profile, found 'gap' (did you mean 'gaps'?)"
    assert lines_said(found.plot, "gap") == [line]
    unproven = tp.compare(torus_model(), methods=["first-fit"])
    assert lines_said(unproven.plot) == [
        "what: expected a comparison in which a method proved a bound, found 'gaps'"
    ]


@pytest.mark.usefixtures("batches_here")
def test_calls_that_lack_an_argument_name_the_function() -> None:
    with pytest.raises(TypeError, match=r"^batch\(\) missing 1 required keyword-only argument"):
        tp.batch("snapshots")
    with pytest.raises(TypeError, match=r"^map\(\) got multiple values for argument 'on'"):
        tp.map(tp.grid(4), "torus:4", on="torus:4")
    with pytest.raises(tp.InputError, match="timelimit: expected an option of this function"):
        tp.batch("snapshots", output="out", timelimit=3)


def test_a_script_is_told_to_guard_its_batch(tmp_path: Path) -> None:
    tp.Model("torus:2x2").save(tmp_path / "a.json")
    script = tmp_path / "script.py"
    script.write_text('import topoplace as tp\ntp.batch("a.json", output="out", jobs=1)\n')
    run = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert 'a script has to call this under if __name__ == "__main__":' in run.stderr


def test_a_batch_of_files_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torus_model().save(tmp_path / "now.json")
    asked: dict[str, Any] = {"output": str(tmp_path / "out"), "method": "first-fit"}
    done = door.batch(str(tmp_path), **asked, jobs=np.int64(1), display=True)
    assert "batch: 0 of 1" in capsys.readouterr().err
    assert str(done).startswith("1 instance: 1 feasible\nsolved 1, kept 0, ")
    assert list(done.to_frame().method) == ["first-fit"]
    assert tp.check(tmp_path / "out" / done.rows[0].result).holds
    assert door.batch(tmp_path, **asked).num_kept == 1
    for wrong, line in {
        "jobs": "jobs: expected at least 1, found 0",
        "retry_failed": "retry_failed: expected True or False, found 0",
    }.items():
        assert lines_said(door.batch, tmp_path, **asked, **{wrong: 0}) == [line]
    [line] = lines_said(door.batch, torus_model(), **asked)
    assert line.startswith("sources[0]: expected a path, found <Model now")


def test_files_are_converted_in_python(tmp_path: Path) -> None:
    torus_model().save(tmp_path / "now.json")
    made = tp.convert(tmp_path / "now.json", "snapshot", name="then")
    assert made.document.name == "then"
    assert tp.load(made.save(tmp_path / "then.json")).name == "then"
    text = tp.convert(str(tmp_path / "then.json"), "snapshot", "snapshot").text
    assert json.loads(text)["name"] == "then"
    (tmp_path / "log.swf").write_text("1 0 0 60 4 -1 -1 4 60 -1 1 1 1 1 1 -1 -1 -1\n")
    queue = tp.convert(tmp_path / "log.swf", "swf", machine="torus:4x4x4", limit=1)
    assert str(queue) == "Snapshot log\n1 job queued"
    assert tp.place(queue.document, "first-fit").objective == 4
    for call, line in {
        (lambda: tp.convert(tmp_path / "log.swf", "swf")): "--on: expected the machine the jobs",
        (lambda: door.convert(torus_model(), "swf")): "file: expected a path, found <Model now",
        (lambda: tp.convert("x", "swf", limit=-1)): "limit: expected at least 0, found -1",
        (lambda: tp.convert("x", "sfw")): "--from: expected a known conversion (",
    }.items():
        assert lines_said(call)[0].startswith(line)


def test_a_mapping_takes_the_options_of_its_command(tmp_path: Path) -> None:
    inside = tp.map(tp.grid(2, 2), "torus:4x4", "default", subset="4-7")
    assert sorted(inside.solution.nodes) == [4, 5, 6, 7]
    write_nodes(prepare_mapping(inside.instance), inside, csv=tmp_path / "m.csv")
    again = tp.map(tp.grid(2, 2), "torus:4x4", mapping=tmp_path / "m.csv")
    assert (again.method, again.solution.nodes) == ("given", inside.solution.nodes)
    assert tp.map(tp.grid(4, 4), "torus:4x4", "grid-order", cell=(2, 2)).check().holds
    with pytest.raises(tp.InputError, match="--cell: expected no such option for objects"):
        tp.map(tp.grid(4, 4), "torus:2x2:4", balance=1.1, cell=(2, 2))


def test_a_machine_file_that_changes_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(shape: list[int], folder: str = ".") -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "m.json").write_text(json.dumps({"name": "m", "shape": shape}))

    snapshot = {"schema": "topoplace.snapshot/1", "name": "s", "machine": "m.json"}
    (tmp_path / "s.json").write_text(json.dumps(snapshot | {"running": [], "queue": []}))
    pair = np.array([[0, 1], [1, 0]])
    monkeypatch.chdir(tmp_path)
    for shape in ([8], [4], [2, 2]):
        write(shape)
        assert tp.map(pair, "m.json", "default").instance.machine.shape == shape
        assert tp.place("s.json", "first-fit").instance.machine.shape == shape
        assert tp.topology("m.json").num_ranks == np.prod(shape)
        assert tp.Model("m.json").snapshot.machine.shape == shape
    write([5], "other")
    monkeypatch.chdir(tmp_path / "other")
    assert tp.topology("m.json").num_ranks == 5


def test_a_result_is_checked_against_an_instance(tmp_path: Path) -> None:
    results = [tp.map(tp.grid(2, 2, bytes=text), "torus:2x2", "default") for text in ("8/4", "8")]
    first, second = results
    first.save(tmp_path / "first.json")
    for same in (first, first.instance, tmp_path / "first.json"):
        assert tp.check(first, instance=same).holds
        assert not tp.check(second, instance=same).holds
    model = torus_model()
    placed = tp.place(model, "first-fit")
    assert tp.check(placed, instance=model).holds
    model.add_request("new", 2)
    assert not tp.check(placed, instance=model).holds
    (line,) = lines_said(tp.check, first, instance=3)
    assert line.startswith("instance: expected a model, a snapshot, a mapping instance, a result")


def test_bytes_of_a_grid_differ_by_direction() -> None:
    both = tp.grid(4, 2, bytes="8/4,2")
    assert both.bytes == [[8, 4], [2, 2]]
    assert tp.grid(4, 2, bytes="8/4").bytes == [[8, 4], [8, 4]]
    for text in ("8/4/2", "8,4,2", "x"):
        assert len(lines_said(tp.grid, 4, 2, bytes=text)) == 1
