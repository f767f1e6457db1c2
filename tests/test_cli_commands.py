"""The commands on good input: what they print, write and exit with."""

from __future__ import annotations

import csv
import gc
import json
import os
from pathlib import Path

import pytest

from batch_runs import signalled
from small_snapshot import write_small
from topoplace import __version__
from topoplace.certify import Claim, Report
from topoplace.cli import entry, run
from topoplace.errors import ExitCode
from topoplace.report.summary import exit_code_of
from topoplace.result import PlacementResult, Status
from topoplace.solving import Outcome

METHOD = ["--method", "first-fit"]
SWF = "; a log\n1 0 5 60 4 -1 -1 4 90 -1 1 1 1 1 1 1 -1 -1\n"


@pytest.fixture
def result_file(tmp_path: Path) -> Path:
    path = tmp_path / "r.json"
    assert run(["place", str(write_small(tmp_path)), *METHOD, "-o", str(path)]) == 0
    return path


def test_place_writes_a_result_and_says_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result_file = tmp_path / "r.json"
    result_file.write_text("x" * 1_000_000)
    assert run(["place", str(write_small(tmp_path)), *METHOD, "-o", str(result_file)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json", "snapshot.json"]
    result = PlacementResult.model_validate_json(result_file.read_text())
    assert (result.schema_version, result.method) == ("topoplace.result/4", "first-fit")
    assert {p.request for p in result.solution.placements} == {"first", "second", "third"}
    said = capsys.readouterr().out
    assert f"{result.objective}" in said
    assert "started 3 of 3 requests, 16 nodes" in said
    assert str(result_file) in said


def test_an_empty_queue_is_fine_and_nothing_is_written_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["place", str(write_small(tmp_path, queue=[])), *METHOD]) == 0
    assert "started 0 of 0 requests" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["snapshot.json"]


@pytest.mark.parametrize("command", ["place", "check", "compare", "show", "convert"])
def test_json_is_one_document_on_stdout(
    command: str, result_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = result_file.parent
    snapshot, picture, log = folder / "snapshot.json", folder / "f.png", folder / "log.swf"
    log.write_text(SWF)
    args = {
        "place": [snapshot, *METHOD],
        "check": [result_file],
        "compare": [result_file, "--methods", "best-fit"],
        "show": [result_file, "--png", picture],
        "convert": [log, "--from", "swf", "-o", folder / "made.json", "--on", "torus:4x4x4"],
    }[command]
    capsys.readouterr()
    assert run([command, *map(str, args), "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["schema"].startswith("topoplace.")
    assert captured.err != ""
    if command == "place":
        assert PlacementResult.model_validate_json(captured.out).objective == 16
    if command == "show":
        assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    if command == "convert":
        assert "1 job queued" in captured.err
        made = json.loads((folder / "made.json").read_text())
        assert [request["nodes"] for request in made["queue"]] == [4]


def test_check_exits_5_when_a_claim_fails(
    result_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(result_file.read_text())
    document["objective"] += 1
    document["levels"][0]["objective"] += 1
    result_file.write_text(json.dumps(document))
    assert run(["check", str(result_file)]) == ExitCode.CHECK_FAILED
    assert "FAILS" in capsys.readouterr().out


def test_check_prints_what_the_checker_reports(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report((Claim("nodes", True, "3 jobs"), Claim("links", False, "link 7 twice")))
    monkeypatch.setattr("topoplace.front.checking.check_file", lambda path, instance: report)
    assert run(["check", "r.json", "--json"]) == ExitCode.CHECK_FAILED
    captured = capsys.readouterr()
    assert "FAILS  links: link 7 twice" in captured.err
    claim = {"name": "nodes", "holds": True, "by_search": False, "detail": "3 jobs"}
    assert json.loads(captured.out)["claims"][0] == claim


def test_compare_writes_its_table_as_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    args = ["compare", str(write_small(tmp_path)), "--methods", "first-fit,alps-2y"]
    assert run([*args, "--csv", str(table)]) == 0
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows] == ["first-fit", "alps-2y"]
    assert rows[0]["nodes"] == "16"
    assert rows[0]["nodes bound"] == ""  # absent is empty, never 0
    assert "alps-2y *" in capsys.readouterr().out


def test_exit_codes_of_a_solve(result_file: Path) -> None:
    result = PlacementResult.model_validate_json(result_file.read_text())
    codes = [exit_code_of(result.model_copy(update={"status": status})) for status in Status]
    known = {Status.INFEASIBLE: ExitCode.INFEASIBLE, Status.UNKNOWN: ExitCode.NO_SOLUTION}
    assert codes == [known.get(status, ExitCode.DONE) for status in Status]


def test_an_unexpected_failure_is_one_line_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> Outcome:
        raise ZeroDivisionError("a bug\nof two lines")

    monkeypatch.setattr("topoplace.front.placing.solve", broken)
    args = ["place", str(write_small(tmp_path)), *METHOD, "-o", str(tmp_path / "r.json")]
    assert run(args) == ExitCode.INTERNAL
    plain = capsys.readouterr().err
    assert plain.startswith("topoplace: error: internal error, ZeroDivisionError: a bug of two")
    assert plain.count("\n") == 1
    assert not (tmp_path / "r.json").exists()
    assert run(["--debug", *args]) == ExitCode.INTERNAL
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("TOPOPLACE_DEBUG", "1")
    assert run(args) == ExitCode.INTERNAL
    assert "Traceback" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"topoplace {__version__}\n"


def test_help_waits_for_no_solver(tmp_path: Path) -> None:
    script = (
        "import sys; from topoplace.cli import run; run(['--help']); "
        "heavy = {'numba', 'numpy', 'ortools', 'matplotlib', 'pydantic'} & set(sys.modules); "
        "light = {'cli', 'clock', 'errors', 'interrupts', 'kinds', 'rescue', 'shipped'}; "
        "light |= {'given', 'importing', 'options', 'version'}; "
        "ours = {name for name in sys.modules if name.startswith('topoplace.')}; "
        "ours = {name for name in ours if not hasattr(sys.modules[name], '__path__')}; "
        "heavy |= {name for name in ours if name.split('.')[1] not in light}; "
        "heavy = {name for name in heavy if not name.endswith('.kind')}; "
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = signalled(["-c", script], tmp_path, None)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("given", "number"), [({}, "1"), ({entry.ONE_THREAD: "2"}, "2")])
def test_commands_have_one_thread_for_linear_algebra(given, number, monkeypatch) -> None:
    """On a busy machine, several take many times as long; what somebody sets counts."""
    monkeypatch.delenv(entry.ONE_THREAD, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(entry, "_open_streams", lambda: None)
    said = []
    monkeypatch.setattr(entry, "run", lambda _: said.append(os.environ[entry.ONE_THREAD]) or 0)
    monkeypatch.setattr(entry.signal, "signal", lambda *_: None)
    monkeypatch.setattr(entry.gc, "freeze", lambda: None)
    before = gc.get_threshold()
    try:
        with pytest.raises(SystemExit):
            entry.main()
    finally:
        gc.set_threshold(*before)
    assert said == [number]
