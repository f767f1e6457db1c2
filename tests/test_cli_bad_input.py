"""Files and folders that cannot be used: one line on stderr, exit 2, nothing written.

What is said of a wrong option or field is in `mistakes.txt`.
"""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

from batch_runs import signalled
from small_snapshot import write_small
from topoplace.cli import run
from topoplace.cli.output import say
from topoplace.errors import InputError
from topoplace.formats.kubernetes.snapshots import read_kubernetes_machine
from topoplace.formats.slurm.jobs import read_slurm_jobs
from topoplace.snapshot.machines import load_machine
from topoplace.snapshot.schema import TreeModel

METHOD = "first-fit"


def one_line_error(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("topoplace: error: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


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


@pytest.mark.parametrize("option", ["-o", "--png"])
@pytest.mark.parametrize("where", ["no/such/folder/r", "/proc/r", "", "snapshot.json/r"])
def test_the_output_is_refused_before_the_solve(
    where: str,
    option: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("topoplace.front.placing.solve", None)  # a call would fail with exit 1
    snapshot = write_small(tmp_path)
    path = tmp_path / where
    assert run(["place", str(snapshot), "--method", METHOD, option, str(path)]) == 2
    assert "--output" in (error := one_line_error(capsys)) or "--png" in error
    assert [p.name for p in tmp_path.iterdir()] == ["snapshot.json"]


@pytest.mark.parametrize("name", ["picture.pdf", "picture.svg", "r.json"])
def test_a_picture_of_another_format_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["place", str(write_small(tmp_path)), "--method", METHOD, "--png"]
    path = str(tmp_path / name)
    assert run([*args, path]) == 2
    error = f"topoplace: error: --png: expected a file that ends in .png, found {path!r}"
    assert one_line_error(capsys)[:70] == error[:70]
    for fine in ("picture.PNG", "picture"):
        assert run([*args, str(tmp_path / fine)]) == 0
        assert (tmp_path / fine).read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("args", [["place", "nowhere.json"], ["check", "nowhere.json"], ["plaice"]])
def test_through_the_real_process(args: list[str], tmp_path: Path) -> None:
    done = signalled(["-m", "topoplace", *args], tmp_path, None)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("topoplace: error: ")
    assert done.stderr.count("\n") == 1


# ---- Encodings, and characters that are not seen -------------------------------------------------


def test_a_byte_order_mark_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = write_small(tmp_path)
    marked = tmp_path / "marked.json"
    marked.write_bytes(codecs.BOM_UTF8 + snapshot.read_bytes())
    assert run(["place", str(marked), "--method", METHOD, "-o", str(tmp_path / "r.json")]) == 0
    (tmp_path / "topology.conf").write_bytes(codecs.BOM_UTF8 + b"SwitchName=s Nodes=n[0-3]")
    assert isinstance(load_machine(str(tmp_path / "topology.conf")), TreeModel)
    assert run(["check", str(tmp_path / "r.json")]) == 0


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_named(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = write_small(tmp_path)
    snapshot.write_bytes(snapshot.read_text().encode(encoding))
    assert run(["place", str(snapshot), "--method", METHOD]) == 2
    told = f"expected text in UTF-8, found {encoding[:6].upper()}"
    assert one_line_error(capsys).endswith(f"snapshot.json: {told}\n")


UNSEEN = ["\x1b[2J", "\x07", "\x9b", "\u202e", "\u2066", "\u200f", "\u061c"]


@pytest.mark.parametrize("unseen", UNSEEN)
def test_names_with_what_is_not_seen_are_refused(
    unseen: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = write_small(tmp_path)
    document = json.loads(snapshot.read_text())
    for change in ({"name": f"a{unseen}b"}, {"queue": [{"id": f"a{unseen}b", "nodes": 1}]}):
        snapshot.write_text(json.dumps(document | change))
        assert run(["place", str(snapshot), "--method", METHOD]) == 2
        error = one_line_error(capsys)
        assert "expected a name without control and text-direction characters, found" in error
        assert unseen[0] not in error


@pytest.mark.parametrize("unseen", UNSEEN)
def test_what_is_not_seen_is_never_printed(unseen: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"a{unseen}b\nc")
    for command in ("place", "check"):
        assert run([command, f"a{unseen}b.json"]) == 2
    said = capsys.readouterr()
    assert unseen[0] not in said.out + said.err
    assert said.out.endswith("b\nc\n")


def test_other_tools_names_have_nothing_unseen(tmp_path: Path) -> None:
    for text in ("7\u202e", "7\x1b"):
        (tmp_path / "jobs").write_text(f"{text}|PENDING|2||(null)|1|1:00|N/A|N/A\n")
        with pytest.raises(InputError, match="a job id"):
            read_slurm_jobs(tmp_path / "jobs")
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a\u202eb"},
        "status": {"allocatable": {}},
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": [node]}
    (tmp_path / "nodes.json").write_text(json.dumps(listed))
    with pytest.raises(InputError, match="without control and text-direction characters"):
        read_kubernetes_machine(tmp_path / "nodes.json")
