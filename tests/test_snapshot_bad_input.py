"""Bad snapshot files: an `InputError` whose text names file and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from topoplace.errors import InputError
from topoplace.snapshot import load_machine, load_snapshot
from topoplace.snapshot.files import MAX_DOCUMENT_BYTES

TINY = Path(__file__).resolve().parent.parent / "instances" / "snapshots" / "tiny_features.json"


def tiny() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(TINY.read_text())
    return document


def error_of(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_snapshot(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert len(text) < 400 + len(str(path))
    return text.removeprefix(f"{path}: ")


def error_of_document(folder: Path, document: object) -> str:
    path = folder / "bent.json"
    path.write_text(json.dumps(document))
    return error_of(path)


def test_the_document_bent_here_is_good():
    assert len(load_snapshot(TINY).queue) == len(tiny()["queue"])


def test_missing_file(tmp_path):
    assert "a file that exists" in error_of(tmp_path / "none.json")


def test_folder(tmp_path):
    assert error_of(tmp_path) == "expected a file, found a folder"


@pytest.mark.parametrize(
    "content",
    [b"", b"not JSON", b'{"schema": ', b"\xff\xfe\x00", b"[" * 100_000, b'{"a": NaN'],
)
def test_not_json(tmp_path, content):
    path = tmp_path / "rubbish.json"
    path.write_bytes(content)
    assert "a JSON document" in error_of(path)


@pytest.mark.parametrize("document", [[], 1, "text", None])
def test_not_an_object(tmp_path, document):
    assert "a JSON object" in error_of_document(tmp_path, document)


def test_too_large(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(MAX_DOCUMENT_BYTES + 1)
    assert "at most 64 MiB" in error_of(path)


def test_empty_queue_is_fine(tmp_path):
    path = tmp_path / "idle.json"
    path.write_text(json.dumps(tiny() | {"queue": [], "running": [], "regions": {}}))
    assert load_snapshot(path).queue == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "topoplace.snapshot/2"),
        ("schema", None),
        ("name", "two words"),
        ("unknown", 1),
        ("machine", "no-such-machine"),
        ("machine", 7),
        ("down", "5-3"),
        ("down", "128"),
        ("down", "3,3"),
        ("down", "x"),
        ("weights", {"bisection": -1}),
        ("seed", 1.5),
        ("queue", None),
    ],
)
def test_bad_top_level_fields(tmp_path, field, value):
    assert error_of_document(tmp_path, tiny() | {field: value}).startswith(field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shape", [4, 4, 0]),
        ("shape", [4, -4, 4]),
        ("shape", [10**30, 4, 4]),
        ("shape", [2048, 2048, 2048]),
        ("wrap", [True]),
        ("bandwidth", [1, 0, 1]),
        ("nodes_per_router", 0),
        ("nodes_per_router", "2"),
        ("classes", {"gpu": "96-128"}),
        ("classes", {"gpu": "0-1"}),
        ("service", "0-1,1"),
        ("colour", "red"),
    ],
)
def test_bad_machines(tmp_path, field, value):
    document = tiny()
    document["machine"][field] = value
    assert error_of_document(tmp_path, document).startswith("machine")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nodes": "0"}, "nodes"),
        ({"nodes": ""}, "nodes"),
        ({"nodes": "40,40"}, "nodes"),
        ({"nodes": "4000"}, "nodes"),
        ({"nodes": "-4"}, "nodes"),
        ({"nodes": "64"}, "nodes"),
        ({"nodes": "59"}, "nodes"),
        ({"nodes": "40", "prism": {"origin": [2, 2], "extents": [1, 1]}}, "prism"),
        ({"nodes": "40", "prism": {"origin": [1, 1, 0], "extents": [1, 1, 5]}}, "prism"),
        ({"nodes": "40", "prism": {"origin": [1, 1, 1], "extents": [1, 1, 4]}}, "prism"),
        ({"nodes": "40", "prism": {"origin": [1, 4, 0], "extents": [1, 1, 1]}}, "prism"),
        ({"nodes": "40", "prism": {"origin": [1, 1, 0], "extents": [4, 1, 1]}}, "prism"),
        ({"nodes": "40", "prism": {"origin": [1, -1, 0], "extents": [1, 1, 1]}}, "prism"),
        ({"nodes": "40", "prism": {"origin": [1, 0, 0], "extents": [1, 1, 1]}}, "prism"),
        ({"nodes": "40", "prism": {"origin": [1, 1, 0], "extents": [1, 2, 1]}}, "prism"),
        ({"id": "boxed"}, "id"),
        ({"id": ""}, "id"),
        ({"communication": "loud"}, "communication"),
    ],
)
def test_bad_running_jobs(tmp_path, changes, field):
    document = tiny()
    document["running"].append({"id": "new", "nodes": "40"} | changes)
    assert error_of_document(tmp_path, document).startswith(f"running[3].{field}")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": -5}, "nodes"),
        ({"nodes": 10**40}, "nodes"),
        ({"nodes": 93}, "nodes"),
        ({"nodes": 1.0}, "nodes"),
        ({"nodes": "1"}, "nodes"),
        ({"nodes": True}, "nodes"),
        ({"class": "tpu"}, "class"),
        ({"node_class": "gpu", "class": "gpu"}, "node_class"),
        ({"priority": 0}, "priority"),
        ({"priority": 10**9}, "priority"),
        ({"region": "back"}, "region"),
        ({"shapes": "2x2"}, "shapes"),
        ({"shapes": "0x2x2"}, "shapes"),
        ({"shapes": "5x1x1"}, "shapes"),
        ({"shapes": "2x2x2/"}, "shapes"),
        ({"shapes": "2x2x2:maxz=5"}, "shapes"),
        ({"shapes": "2x2x2:maxz=1"}, "shapes"),
        ({"shapes": "2x2x99999999"}, "shapes"),
        ({"nodes": 9, "shapes": "2x2x1"}, "shapes"),
        ({"communication": None}, "communication"),
        ({"walltime": -1}, "walltime"),
        ({"id": "boxed"}, "id"),
        ({"id": "any-shape"}, "id"),
        ({"deadline": 5}, "deadline"),
    ],
)
def test_bad_requests(tmp_path, changes, field):
    document = tiny()
    document["queue"].append({"id": "new", "nodes": 2} | changes)
    assert error_of_document(tmp_path, document).startswith(f"queue[6].{field}")


@pytest.mark.parametrize(
    "prism",
    [
        {"origin": [4, 0, 0], "extents": [1, 1, 1]},
        {"origin": [0, 0, 3], "extents": [1, 1, 2]},
        {"origin": [0, 0, 0]},
    ],
)
def test_bad_regions(tmp_path, prism):
    document = tiny()
    document["regions"]["front"] = [prism]
    assert error_of_document(tmp_path, document).startswith("regions.front[0]")


@pytest.mark.parametrize("spec", ["no-such", "torus:0x4", "mesh:4x4x", "torus:4096x4096", "cube:4"])
def test_bad_machine_names(tmp_path, spec):
    document = {"schema": "topoplace.snapshot/1", "name": "bare", "machine": spec}
    assert error_of_document(tmp_path, document).startswith("machine")


@pytest.mark.parametrize("content", ["", "[]", '{"name": "m"}', '{"name": "m", "shape": "4x4"}'])
def test_bad_machine_files(tmp_path, content):
    path = tmp_path / "machine.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_machine(str(path))
    assert str(path) in str(caught.value)
