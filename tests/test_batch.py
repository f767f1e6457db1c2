"""Batches: every instance solved once, whatever happens on the way."""

from __future__ import annotations

import csv
import functools
import io
import json
import random
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from batch_runs import (
    FIRST_FIT,
    PROGRAM,
    killed_and_resumed,
    quick_batch,
    results,
    stamps,
    started,
    wait_until,
    without_times,
    write_named,
    write_snapshots,
)
from random_grids import random_grid
from topoplace.certify import check_file
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.snapshot import load_any
from topoplace.study.batch.run import Batch, run_batch
from topoplace.study.batch.table import Row
from topoplace.study.batch.task import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_snapshots(tmp_path_factory.mktemp("batch") / "in", 24)


@pytest.fixture(scope="module")
def whole(folder: Path) -> Batch:
    """An uninterrupted run."""
    return run_batch([folder], folder.parent / "whole", FIRST_FIT)


def test_a_row_and_a_result_for_every_file(folder: Path, whole: Batch) -> None:
    files = sorted(folder.iterdir())
    assert [row.file for row in whole.rows] == [path.as_posix() for path in files]
    for row, path in zip(whole.rows, files, strict=True):
        result = whole.table.parent / row.result
        assert result.name == f"{path.stem}-{row.key}.json"
        assert check_file(result).holds
        document = json.loads(result.read_text())
        assert document["instance"] == load_any(path).snapshot.model_dump(mode="json")
        assert row.objective == str(document["objective"])
        assert row.queued == len(document["instance"]["queue"])
    assert len(results(whole.table.parent)) == len(files) == whole.num_solved
    assert whole.exit_code == ExitCode.DONE
    with whole.table.open() as stream:
        table = list(csv.DictReader(stream))
    assert [row["key"] for row in table] == [row.key for row in whole.rows]
    assert list(table[0])[-1] == "seconds"


def test_killed_and_resumed_it_has_the_same_table(folder: Path, tmp_path: Path) -> None:
    whole = quick_batch([folder], tmp_path / "whole")
    out = tmp_path / "out"
    start = functools.partial(started, folder, out, "slow", "0", program=PROGRAM)
    killed_and_resumed(start, out, 24, 2, random.Random(6))
    assert without_times(out / "table.csv") == without_times(whole.table)
    assert [path.name for path in (out / "results").iterdir() if path.name[0] == "."] == []


@pytest.mark.slow
def test_a_thousand_snapshots_killed_and_resumed(tmp_path: Path) -> None:
    number = 1000
    folder = write_snapshots(tmp_path / "in", number, first_seed=1000)
    arguments = [folder, "--method", "first-fit", "--jobs", "2", "-o"]
    process = started(*arguments, tmp_path / "whole")
    process.communicate()
    assert process.returncode == 0
    out = tmp_path / "out"
    start = functools.partial(started, *arguments, out)
    killed_and_resumed(start, out, number, 5, random.Random(1))
    table = without_times(out / "table.csv")
    assert table == without_times(tmp_path / "whole" / "table.csv")
    assert len(table) == number + 1


def test_what_is_done_is_kept_and_what_is_damaged_done_again(folder: Path, tmp_path: Path) -> None:
    files = sorted(folder.iterdir())[:4]
    first = quick_batch(files, tmp_path)
    before = stamps(tmp_path)
    cut, other, third = results(tmp_path)[:3]
    cut.write_bytes(cut.read_bytes()[:-100])
    other.write_bytes(third.read_bytes())  # a result, but of another instance
    leftovers = [tmp_path / "results" / f".{cut.name}.x7_b", tmp_path / ".table.csv.x7_b"]
    for path in leftovers:
        path.write_text("half a")
    second = quick_batch(files, tmp_path)
    assert (second.num_solved, second.num_kept) == (2, 2)
    assert not any(path.exists() for path in leftovers)
    changed = {name for name, stamp in stamps(tmp_path).items() if before[name] != stamp}
    assert changed == {cut.name, other.name}
    assert [row.objective for row in second.rows] == [row.objective for row in first.rows]


def test_the_address_is_of_the_content(folder: Path, tmp_path: Path) -> None:
    source, out = sorted(folder.iterdir())[0], tmp_path / "out"
    inside = tmp_path / "in"
    inside.mkdir()
    document = json.loads(source.read_text())
    (inside / "a.json").write_text(json.dumps(document))
    assert quick_batch([inside], out).num_solved == 1
    (inside / "a.json").write_text(json.dumps(document, indent=4, sort_keys=True))
    (inside / "b.json").write_bytes((inside / "a.json").read_bytes())
    again = quick_batch([inside], out)
    assert (again.num_solved, again.num_kept) == (0, 1)
    assert [row.result for row in again.rows] == [again.rows[0].result] * 2
    assert quick_batch([inside], out, seed=1).num_solved == 1
    (inside / "a.json").write_text(json.dumps(document | {"name": "other"}))
    assert quick_batch([inside], out).num_solved == 1
    assert len(results(out)) == 3


def test_trees_and_mappings_too(tmp_path: Path) -> None:
    grid = random_grid(np.random.default_rng(3), 12)
    mapping = {
        "schema": "topoplace.mapping/1",
        "name": "grid",
        "machine": {"name": "m", "shape": [4, 4], "wrap": [True, True], "bandwidth": [1, 1]},
        "nodes": "0-15",
        "tasks_per_node": 1,
        "application": grid.model_dump(mode="json"),
    }
    tree = {
        "schema": "topoplace.snapshot/1",
        "name": "tree",
        "machine": "tree:2x3",
        "queue": [{"id": "q", "nodes": 4, "patterns": [{"pattern": "rd"}]}],
    }
    for name, document in (("mapping", mapping), ("tree", tree)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    batch = run_batch([tmp_path], tmp_path / "out", Settings("default"))
    rows = {row.name: row for row in batch.rows}
    assert len(batch.rows) == 2, "the results inside the folder are no instances"
    assert (rows["grid"].problem, rows["tree"].problem) == ("mapping", "allocation")
    assert rows["tree"].objective == "4"
    assert rows["tree"].objective_2 != ""
    assert int(rows["grid"].objective) >= int(rows["grid"].bound) >= 0
    assert Settings().method_for("placement") == "exact"


def test_ctrl_c_stops_it_cleanly(folder: Path, tmp_path: Path) -> None:
    arguments = [folder, "-o", tmp_path, "--method", "first-fit", "--jobs", "1"]
    process = started(*arguments)
    wait_until(lambda: len(results(tmp_path)) >= 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert re.search(r"interrupted: \d+ instances left out; the same command goes on", out)
    assert len((tmp_path / "table.csv").read_text().splitlines()) > 3
    hidden = [path for path in tmp_path.rglob(".*") if path.name != ".lock"]
    assert hidden == []
    assert quick_batch([folder], tmp_path).num_kept >= 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["none"], "a file or folder that exists"),
        (["."], "at least one *.json file"),
        (["a.json", "--method", "no-such"], "--method: expected one of exact, "),
        (["tree.json", "--interference", "off"], "--interference: expected no interference rule"),
        (["a.json", "--time-limit", "-1"], "--time-limit"),
        (["a.json", "--jobs", "0"], "--jobs: expected a number of at least 1, found '0'"),
        (["a.json", "--jobs", "2", "--dask", "tcp://x:1"], "--jobs"),
        (["a.json", "-o", "file"], "a folder that can be written"),
    ],
)
def test_bad_options_end_it_at_once(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments != ["."]:
        write_named(tmp_path, "a")
        tree = {"schema": "topoplace.snapshot/1", "name": "t", "machine": "tree:2x2"}
        (tmp_path / "tree.json").write_text(json.dumps(tree))
    (tmp_path / "file").write_text("")
    assert run(["batch", "-o", "out", *arguments]) == ExitCode.BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1


def test_the_summary_as_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(sorted(folder.iterdir())[0])
    arguments = ["batch", file, "-o", str(tmp_path), "--method", "first-fit", "--json"]
    assert run(arguments) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert document.pop("seconds") >= 0
    assert document == {
        "schema": "topoplace.batch/1",
        "table": str(tmp_path / "table.csv"),
        "instances": 1,
        "statuses": {"feasible": 1},
        "solved": 1,
        "kept": 0,
        "left": 0,
        "exit_code": 0,
    }


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["optimal", "feasible"], ExitCode.DONE),
        (["optimal", "infeasible"], ExitCode.INFEASIBLE),
        (["timeout", "optimal"], ExitCode.NO_SOLUTION),
        (["unknown", "infeasible"], ExitCode.INFEASIBLE),
        (["timeout", "bad-input", "infeasible"], ExitCode.BAD_INPUT),
        (["bad-input", "out-of-memory"], ExitCode.INTERNAL),
    ],
)
def test_the_exit_code_is_the_lowest_of_all(statuses: list[str], code: ExitCode) -> None:
    batch = Batch([Row(status=status) for status in statuses], Path(), 0, 0, 0, 0.0)
    assert batch.exit_code == code


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_rate_and_remaining_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    files = [str(path) for path in sorted(folder.iterdir())[:3]]
    assert run(["batch", *files, "-o", str(tmp_path), "--method", "first-fit"]) == ExitCode.DONE
    shown = terminal.getvalue()
    assert re.search(r"batch: 2 of 3, [0-9.]+/s, [0-9]+ s left", shown)
    assert shown.endswith("\r\x1b[K")
