"""Typical mistakes and exactly what is said of each: expected X, found Y (did you mean Z?)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bending import bent
from mistakes import MISTAKES
from small_snapshot import small_document
from topoplace.cli import run
from topoplace.cli.app import COMMANDS
from topoplace.errors import MAX_FAULTS, Faults, InputError, closest
from topoplace.kinds import kind_named
from topoplace.shipped import FORMATS, MACHINES, WRITTEN
from topoplace.shipped import SNAPSHOTS as SNAPSHOT_NAMES
from topoplace.snapshot.convert import CONVERSIONS
from topoplace.snapshot.files import machine_names, snapshot_names
from topoplace.snapshot.machines import load_any, load_machine, load_snapshot

Document = dict[str, Any]
TESTS = Path(__file__).resolve().parent
SNAPSHOTS = TESTS.parent / "instances" / "snapshots"

SWF = "; a log\n" + "".join(f"{j} 0 0 9 64 -1 -1 64 9 {'-1 ' * 9}\n" for j in (1, 2, 3))
TREE: Document = {
    "schema": "topoplace.snapshot/1",
    "name": "tree",
    "machine": "tree:2x4",
    "down": "n7",
    "running": [{"id": "old", "nodes": "n[0-2]"}],
    "queue": [{"id": "new", "nodes": 2, "patterns": [{"pattern": "ring"}]}],
}
FORMATS_PAGE = (TESTS.parent / "docs" / "reference" / "formats.md").read_text()


def example_of_formats(section: str) -> Any:
    """Return the JSON that a section of the page about formats shows."""
    return json.loads(
        FORMATS_PAGE.split(f"### {section}\n")[1].split("```json\n")[1].split("```")[0]
    )


HIERARCHY: Document = {
    "schema": "topoplace.snapshot/1",
    "name": "hierarchy",
    "machine": example_of_formats("Hierarchy"),
    "running": [{"id": "old", "nodes": "a[0-1]", "takes": {"gpus": 6}}],
    "queue": example_of_formats("Request"),
}
DOCUMENTS = {
    "Small": small_document(),
    "Tree": TREE,
    "Hierarchy": HIERARCHY,
    "Features": json.loads((SNAPSHOTS / "tiny_features.json").read_text()),
}


def write_files(folder: Path) -> None:
    """Write a file of every kind: what a user has lying about."""
    instance = {"schema": "topoplace.mapping/1", "name": "m"}
    texts = {
        "snapshot.json": json.dumps(small_document()),
        "tree.json": json.dumps(TREE),
        "result.json": '{"schema": "topoplace.result/4", "problem": "placement"}',
        "mapped.json": '{"schema": "topoplace.result/4", "problem": "mapping"}',
        "mapping.json": json.dumps(instance),
        "machine.json": '{"kind": "torus", "name": "m", "shape": [4, 4]}',
        "misspelt.json": '{"kind": "torus", "name": "m", "shpae": [4, 4]}',
        "frontier.json": '{"schema": "topoplace.frontier/1"}',
        "log.swf": SWF,
        "short.swf": "1 2 3\n",
        "topology.conf": "SwitchName=s0 Nodes=n[0-3]\n",
        "graph.csv": "0,1\n1,0\n",
        "crooked.csv": "0,1\n1\n",
        "empty.json": "",
        "comma.json": '{"schema": "topoplace.snapshot/1" "name": "x"}',
        "twice.json": '{"name": "x", "name": "y"}',
        "list.json": "[]",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


def said_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run a command that must fail on its input; return what it says, a line for each fault."""
    before = sorted(p.name for p in Path().iterdir())
    assert run(shlex.split(command)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sorted(p.name for p in Path().iterdir()) == before
    lines = captured.err.splitlines()
    assert all(line.startswith("topoplace: error: ") for line in lines)
    return [line.removeprefix("topoplace: error: ") for line in lines]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def place_bent(document: Document, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Place a bent snapshot; return what is said after the name of the file."""
    Path("bent.json").write_text(json.dumps(document))
    said = said_of("place bent.json --method first-fit -o made.json", capsys)
    assert all(line.startswith("bent.json: ") for line in said)
    return [line.removeprefix("bent.json: ") for line in said]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("command", "lines"), MISTAKES["Command lines"])
def test_a_command_line(command: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert said_of(command, capsys) == lines


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "changes", "lines"),
    [(name, *mistake) for name in DOCUMENTS for mistake in MISTAKES[name]],
)
def test_a_field(
    name: str, changes: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert place_bent(bent(DOCUMENTS[name], changes), capsys) == lines


@pytest.mark.usefixtures("here")
def test_the_examples_of_the_page_can_be_placed() -> None:
    Path("example.json").write_text(json.dumps(HIERARCHY))
    assert run(["place", "example.json", "--method", "first-fit"]) == 0


@pytest.mark.usefixtures("here")
def test_no_more_lines_than_one_can_read(capsys: pytest.CaptureFixture[str]) -> None:
    document = small_document()
    document["queue"] = [{"id": f"j{k}", "nodes": 0} for k in range(MAX_FAULTS)]
    assert len(place_bent(document, capsys)) == MAX_FAULTS
    document["queue"] *= 2
    said = place_bent(document, capsys)
    assert len(said) == MAX_FAULTS
    assert said[-1] == f"and {MAX_FAULTS + 1} more faults"


@pytest.mark.parametrize("content", ["", "[]", '{"name": "m"}', '{"name": "m", "shape": "4x4"}'])
def test_bad_machine_files(content: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_machine(str(path))
    assert str(path) in str(caught.value)


@pytest.fixture
def from_stdin(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have a file be what comes from the standard input."""
    return lambda name: monkeypatch.setattr("sys.stdin", (here / name).open())


@pytest.mark.parametrize("command", ["place", "check", "show", "compare"])
def test_a_document_from_stdin_is_named_so(
    command: str, from_stdin: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    from_stdin("comma.json")
    options = " --png f.png" if command == "show" else ""
    (line,) = said_of(f"{command} -{options}", capsys)
    assert line.startswith("stdin: expected a JSON document (")


@pytest.mark.parametrize("arguments", ["place - --method", "compare - --methods"])
def test_a_snapshot_from_stdin(
    arguments: str, from_stdin: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    from_stdin("snapshot.json")
    assert run([*arguments.split(), "first-fit"]) == 0
    assert "first-fit" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_a_shipped_snapshot_by_name() -> None:
    assert load_snapshot("tiny_features").snapshot.name == "tiny_features"
    Path("tiny_features").write_text(json.dumps(TREE))
    assert load_any("tiny_features").snapshot.name == "tree"  # a file goes first


@pytest.mark.usefixtures("here")
def test_a_rank_order_alone_has_its_node_list_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["map", "--on", "torus:4x4", "--grid", "4x4", "--rank-order", "order"]) == 0
    said = capsys.readouterr().out
    assert "rank-order: order\nnode-list: order.nodes\n" in said
    order = Path("order").read_text().split()
    assert sorted(map(int, order)) == list(range(16))
    assert Path("order.nodes").read_text() == ",".join(map(str, range(16))) + "\n"


def test_the_names_that_help_lists_are_those_there_are() -> None:
    assert list(MACHINES) == machine_names()
    assert list(SNAPSHOT_NAMES) == snapshot_names()
    assert list(FORMATS) == list(dict.fromkeys(source for source, _ in CONVERSIONS))
    assert {*WRITTEN} == {target for _, target in CONVERSIONS}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_methods_and_machines(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "-h"]) == 0
    told = capsys.readouterr().out
    assert "Usage: topoplace" in told
    if command in {"place", "compare", "replay", "batch"}:
        assert all(
            name in told
            for name in (*kind_named("placement").methods, *kind_named("allocation").methods)
        )
    if command in {"map", "compare", "batch"}:
        assert all(name in told for name in kind_named("mapping").methods)
    if command in {"map", "layouts", "replay"}:
        assert all(name in told for name in MACHINES)


def test_help_lists_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in COMMANDS)


def test_a_shell_completes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TOPOPLACE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "topoplace place --method alps-")
    monkeypatch.setenv("COMP_CWORD", "3")
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out.split() == ["alps-2y", "alps-4y", "alps-o2", "alps-oy"]


def test_faults_are_collected_and_told_together() -> None:
    faults = Faults()
    for text in ("1", "x", "y"):
        with faults.collected():
            if not text.isdigit():
                raise InputError("a digit", field=text, value=text)
    with pytest.raises(InputError) as caught:
        faults.require_none()
    error = caught.value.located("f").inside("top")
    assert str(error).splitlines() == [
        "f: top.x: expected a digit, found 'x'",
        "f: top.y: expected a digit, found 'y'",
    ]
    assert error.brief == "f: top.x: expected a digit, found 'x' (and 1 more fault)"


@pytest.mark.parametrize(
    ("value", "meant"),
    [("First-Fit", "first-fit"), ("second", None), ("first", "first-fit"), (7, None), ("", None)],
)
def test_what_was_meant(value: object, meant: str | None) -> None:
    assert closest(value, ["first-fit", "exact"]) == meant
