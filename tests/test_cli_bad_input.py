"""Bad input through the real command: one line on stderr, exit 2, nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from small_snapshot import small_document, write_small
from topoplace.cli import run

METHOD = "first-fit"

Bend = Callable[[dict[str, Any]], object]


def one_line_error(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("topoplace: error: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


BENT: dict[str, tuple[Bend, str]] = {
    "wrong schema": (lambda d: d.update(schema="topoplace.snapshot/9"), "schema"),
    "no schema": (lambda d: d.pop("schema"), "schema"),
    "unknown field": (lambda d: d.update(speed=9), "speed"),
    "unknown field inside": (lambda d: d["queue"][1].update(color="red"), "queue[1].color"),
    "unknown machine": (lambda d: d.update(machine="no-such-machine"), "machine"),
    "prism outside": (
        lambda d: d["running"][0]["prism"].update(origin=[4, 0, 0]),
        "running[0].prism",
    ),
    "node outside": (lambda d: d["running"][0].update(nodes="95-96"), "running[0].nodes"),
    "down node outside": (lambda d: d.update(down="96"), "down"),
    "node twice in a set": (lambda d: d["running"][0].update(nodes="24,24"), "running[0].nodes"),
    "node of two jobs": (
        lambda d: d["running"].append({"id": "other", "nodes": "24"}),
        "running[1].nodes",
    ),
    "running on service": (
        lambda d: d["running"].append({"id": "other", "nodes": "0"}),
        "running[1].nodes",
    ),
    "same id twice": (lambda d: d["queue"][1].update(id="first"), "queue[1].id"),
    "negative nodes": (lambda d: d["queue"][0].update(nodes=-8), "queue[0].nodes"),
    "no nodes": (lambda d: d["queue"][0].update(nodes=0), "queue[0].nodes"),
    "huge nodes": (lambda d: d["queue"][0].update(nodes=10**30), "queue[0].nodes"),
    "fractional nodes": (lambda d: d["queue"][0].update(nodes=2.5), "queue[0].nodes"),
    "text for a number": (lambda d: d["queue"][0].update(nodes="8"), "queue[0].nodes"),
    "huge priority": (lambda d: d["queue"][0].update(priority=10**9), "queue[0].priority"),
    "negative extent": (
        lambda d: d["running"][0]["prism"].update(extents=[1, 1, -2]),
        "running[0].prism",
    ),
    "huge machine": (lambda d: d["machine"].update(shape=[2000, 2000, 2000]), "machine.shape"),
    "larger than the machine": (lambda d: d["queue"][1].update(nodes=87), "queue[1].nodes"),
    "larger than the class": (lambda d: d["queue"][2].update(nodes=9), "queue[2].nodes"),
    "unknown class": (lambda d: d["queue"][2].update({"class": "gpu"}), "queue[2].class"),
    "unknown region": (lambda d: d["queue"][2].update(region="west"), "queue[2].region"),
    "geometry too long": (lambda d: d["queue"][0].update(shapes="5x1x1"), "queue[0].shapes"),
    "geometry too small": (lambda d: d["queue"][0].update(shapes="1x1x1"), "queue[0].shapes"),
    "geometry of 2 extents": (lambda d: d["queue"][0].update(shapes="2x4"), "queue[0].shapes"),
    "geometry of words": (lambda d: d["queue"][0].update(shapes="a cube"), "queue[0].shapes"),
}


@pytest.mark.parametrize("case", BENT)
def test_a_bent_snapshot(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bend, field = BENT[case]
    document = small_document()
    bend(document)
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(json.dumps(document))
    out = tmp_path / "out"
    out.mkdir()
    code = run(["place", str(snapshot), "--method", METHOD, "-o", str(out / "r.json")])
    error = one_line_error(capsys)
    assert code == 2
    assert "snapshot.json" in error
    assert field in error
    assert list(out.iterdir()) == []


CONTENTS = {
    "empty": b"",
    "not JSON": b"{ this is not JSON",
    "not text": bytes(range(256)),
    "a list": b"[1, 2]",
    "a number": b"7",
    "deeply nested": b"[" * 100_000,
    "a number of a million digits": b'{"schema": ' + b"9" * 1_000_000 + b"}",
    "not a number": b'{"schema": "topoplace.snapshot/1", "name": "x", "seed": NaN}',
}


@pytest.mark.parametrize("command", ["place", "check", "compare", "show"])
@pytest.mark.parametrize("case", CONTENTS)
def test_a_file_that_is_no_document(
    case: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rubbish.json"
    file.write_bytes(CONTENTS[case])
    picture = ["--png", str(tmp_path / "f.png")] if command == "show" else []
    assert run([command, str(file), *picture]) == 2
    assert "rubbish.json" in one_line_error(capsys)
    assert [p.name for p in tmp_path.iterdir()] == ["rubbish.json"]


@pytest.mark.parametrize("command", ["place", "check", "compare"])
def test_100_megabytes_of_rubbish(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rubbish.json"
    with file.open("wb") as stream:
        stream.truncate(100 << 20)
    assert run([command, str(file)]) == 2
    assert "MiB" in one_line_error(capsys)


@pytest.mark.parametrize(
    "path",
    ["missing.json", "", "snapshot.json/inside"],
    ids=["missing", "folder", "through a file"],
)
def test_a_file_that_cannot_be_read(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_small(tmp_path)
    assert run(["place", str(tmp_path / path), "--method", METHOD]) == 2
    one_line_error(capsys)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--method", "no-such-method"], "method"),
        (["--time-limit", "-1"], "--time-limit"),
        (["--time-limit", "nan"], "--time-limit"),
        (["--time-limit", "inf"], "--time-limit"),
        (["--time-limit", "soon"], "--time-limit"),
        (["--interference", "some"], "--interference"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "99999999999999999999"], "--seed"),
        (["--colour", "red"], "--colour"),
    ],
)
def test_bad_options(
    options: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["place", str(write_small(tmp_path)), *options]) == 2
    assert named in one_line_error(capsys)


@pytest.mark.parametrize(
    "args",
    [["plaice"], ["place"], ["compare"], ["check"], ["show", "r.json"]],
    ids=" ".join,
)
def test_a_wrong_command_line(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(args) == 2
    one_line_error(capsys)


def test_compare_refuses_a_method_named_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = str(write_small(tmp_path))
    assert run(["compare", snapshot, "--methods", f"{METHOD},{METHOD}"]) == 2
    assert "once" in one_line_error(capsys)


@pytest.mark.parametrize("option", ["-o", "--png"])
@pytest.mark.parametrize("where", ["no/such/folder/r", "/proc/r", "", "snapshot.json/r"])
def test_the_output_is_refused_before_the_solve(
    where: str,
    option: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("topoplace.solving.solve", None)  # a call would fail with exit 1
    snapshot = write_small(tmp_path)
    path = tmp_path / where
    assert run(["place", str(snapshot), "--method", METHOD, option, str(path)]) == 2
    assert "--output" in (error := one_line_error(capsys)) or "--png" in error
    assert [p.name for p in tmp_path.iterdir()] == ["snapshot.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = write_small(tmp_path)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    assert run(["place", str(snapshot), "--method", METHOD, "-o", str(locked / "r")]) == 2
    assert "--output" in one_line_error(capsys)


@pytest.mark.parametrize("args", [["place", "nowhere.json"], ["check", "nowhere.json"], ["plaice"]])
def test_through_the_real_process(args: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "topoplace", *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("topoplace: error: ")
    assert done.stderr.count("\n") == 1
