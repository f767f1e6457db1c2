"""Batches whose method is an allocator that is not ours."""

from __future__ import annotations

import csv
import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from batch_runs import alive, wait_until
from external_answers import FIRST, answer_of
from small_snapshot import small_document
from test_cli_bad_input import one_line_error
from topoplace.certify import check_document
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.result import PlacementResult

# Answers by the name of the snapshot: as in the file beside it, or not at all.
ALLOCATOR = """
import json, os, sys
name = json.load(sys.stdin)["name"]
if name == "dies":
    sys.exit("no database")
with open(os.path.join(os.path.dirname(__file__), name + ".answer")) as stream:
    print(stream.read())
"""

BUSY = {"request": "first", "nodes": "24-31"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of three snapshots, beside which lies an allocator."""
    inside = tmp_path / "in"
    inside.mkdir()
    for name, answer in (("dies", None), ("good", FIRST), ("wrong", BUSY)):
        (inside / f"{name}.json").write_text(json.dumps(small_document() | {"name": name}))
        if answer is not None:
            (tmp_path / f"{name}.answer").write_text(answer_of([answer]))
    (tmp_path / "allocator.py").write_text(ALLOCATOR)
    return inside


def command(tmp_path: Path) -> str:
    return shlex.join([sys.executable, "-I", str(tmp_path / "allocator.py")])


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "table.csv").open() as stream:
        return list(csv.DictReader(stream))


def test_every_verdict_is_stored_and_the_rest_goes_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    args = ["batch", str(folder), "-o", str(out), "--command", f"mine={command(tmp_path)}"]
    args += ["--jobs", "1"]
    assert run(args) == ExitCode.CHECK_FAILED
    assert "1 breach, 1 failed, 1 feasible" in capsys.readouterr().out
    dies, good, wrong = rows(out)
    assert {row["method"] for row in (dies, good, wrong)} == {"mine"}
    assert (dies["status"], dies["message"]) == (
        "failed",
        'mine: exit code 1; it said "no database"',
    )
    result = PlacementResult.model_validate_json((out / good["result"]).read_text())
    assert result.objective == 8
    assert check_document(result).holds
    assert wrong["status"] == "breach"
    (path,) = (out / "failures").glob("wrong-*.json")
    verdict = json.loads(path.read_text())["verdict"]
    assert verdict["schema"] == "topoplace.verdict/1"
    assert verdict["breaches"][0]["request"] == "first"
    assert verdict["breaches"][0]["text"] in wrong["message"]
    # What is done stays done until the program, a file on the command line, changes.
    assert run(args) == ExitCode.CHECK_FAILED
    assert "solved 0, kept 3" in capsys.readouterr().out
    (tmp_path / "allocator.py").write_text(ALLOCATOR + "# changed\n")
    assert run(args) == ExitCode.CHECK_FAILED
    assert "solved 3, kept 0" in capsys.readouterr().out


def test_time_out(folder: Path, tmp_path: Path) -> None:
    args = ["batch", str(folder / "good.json"), "-o", str(tmp_path / "out"), "--jobs", "1"]
    assert run([*args, "--command", "sleep 60", "--time-limit", "0.2"]) == ExitCode.NO_SOLUTION
    (row,) = rows(tmp_path / "out")
    assert (row["status"], row["method"]) == ("timeout", "command")
    assert row["message"] == "command: no answer within the time limit"


def test_what_cannot_be_is_refused_at_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["batch", str(folder), "-o", str(tmp_path / "out")]
    assert run([*args, "--command", "true", "--method", "exact"]) == ExitCode.BAD_INPUT
    assert "either --method or --command" in one_line_error(capsys)
    result = tmp_path / "m.json"
    grid = ["map", "--grid", "2x2", "--on", "torus:2x2", "--method", "default"]
    assert run([*grid, "-o", str(result)]) == ExitCode.DONE
    instance = json.loads(result.read_text())["instance"]
    (folder / "mapping.json").write_text(json.dumps(instance))
    capsys.readouterr()
    assert run([*args, "--command", "true"]) == ExitCode.BAD_INPUT
    assert "mapping.json" in one_line_error(capsys)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of this")
def test_a_program_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60"
    text = (
        "from topoplace.study.external.program import run_program\n"
        f"run_program(['sh', '-c', {script!r}], b'', 60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", text]) as parent:
        wait_until(pid.exists)
        child = int(pid.read_text())
        assert alive(child)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not alive(child))
    assert not alive(child)
