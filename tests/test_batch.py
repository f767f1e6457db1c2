"""Batches: every instance solved once, whatever happens on the way."""

from __future__ import annotations

import csv
import ctypes
import io
import itertools
import json
import random
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from batch_runs import (
    FIRST_FIT,
    PROGRAM,
    alive,
    pool,
    quick_batch,
    results,
    stamps,
    started,
    wait_until,
    without_times,
    write_named,
    write_snapshots,
)
from batch_solvers import POISONS
from external_answers import FIRST, answer_of
from small_snapshot import small_document
from test_cli_bad_input import one_line_error
from tiny_instances import random_grid
from tiny_objects import tiny_objects
from topoplace.certify import check_file
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError, TopoplaceError
from topoplace.snapshot.files import write_document
from topoplace.snapshot.machines import load_any
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.run import Batch, Row, run_batch
from topoplace.study.batch.store import read_instance
from topoplace.study.batch.task import Limits, Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_snapshots(tmp_path_factory.mktemp("batch") / "in", 24)


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.usefixtures("batches_here")
def test_a_row_and_a_result_for_every_file(folder: Path, tmp_path: Path) -> None:
    whole = run_batch([folder], tmp_path, FIRST_FIT)
    files = sorted(folder.iterdir())
    assert [row.file for row in whole.rows] == [path.as_posix() for path in files]
    for row, path in zip(whole.rows, files, strict=True):
        result = tmp_path / row.result
        assert result.name == f"{path.stem}-{row.key}.json"
        assert check_file(result).holds
        document = json.loads(result.read_text())
        assert document["instance"] == load_any(path).snapshot.model_dump(mode="json")
        assert row.objective == str(document["objective"])
        assert row.queued == len(document["instance"]["queue"])
    assert len(results(tmp_path)) == len(files) == whole.num_solved
    assert whole.exit_code == ExitCode.DONE
    table = rows_of(whole.table)
    assert [row["key"] for row in table] == [row.key for row in whole.rows]
    assert list(table[0])[-1] == "seconds"


def test_killed_and_resumed_it_has_the_same_table(folder: Path, tmp_path: Path) -> None:
    """Killed at a random moment: nothing that was there is written again."""
    whole, out = quick_batch([folder], tmp_path / "whole"), tmp_path / "out"
    before: dict[str, tuple[int, int]] = {}
    for target in (random.Random(6).randrange(1, 22), None):
        process = started("-c", PROGRAM, folder, out, "slow", "0")
        if target is not None:
            wait_until(lambda: process.poll() is not None or len(results(out)) >= target)  # noqa: B023
            process.kill()
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == ((0, "") if target is None else (-9, err))
        after = stamps(out)
        assert before.items() <= after.items()
        assert (len(after) == 24) == (target is None)
        before = after
    assert without_times(out / "table.csv") == without_times(whole.table)
    assert [path.name for path in (out / "results").iterdir() if path.name[0] == "."] == []


def told(outdir: Path, what: str) -> list[str]:
    """Return what results tell of the process that they come from, in the order they came."""
    paths = sorted(results(outdir), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_text())["versions"][what] for path in paths]


def test_processes_start_once_and_load_once(tmp_path: Path) -> None:
    """What starting takes is shared by all instances, and is no more than their method needs."""
    files = [write_named(tmp_path, f"copy{number}") for number in range(12)]
    executor = Pool("telling_solver:solve_task", 2, Limits())
    run_batch(files, tmp_path / "out", FIRST_FIT, executor=executor)
    processes = told(tmp_path / "out", "process")
    assert len(processes) == 12
    assert 1 <= len(set(processes)) <= 2
    loaded = zip(processes, told(tmp_path / "out", "loaded"), strict=True)
    busy = [process for process, modules in loaded if modules]
    assert len(busy) == len(set(busy))  # with the first task of each at the most
    assert set(told(tmp_path / "out", "packing")) == {"False"}


def test_what_shares_out_the_tasks_loads_no_solver(folder: Path, tmp_path: Path) -> None:
    tell = "\n    print({'numba', 'ortools', 'scipy'} & set(sys.modules))\n"
    process = started("-c", PROGRAM.rstrip() + tell, folder, tmp_path, "quick", "0")
    assert process.communicate(timeout=60) == ("set()\n", "")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not with this C library")
def test_what_instances_leave_behind_does_not_count_against_later_ones(
    folder: Path, tmp_path: Path
) -> None:
    limited = pool("hoarding", memory=200 << 20)
    batch = run_batch(sorted(folder.iterdir())[:4], tmp_path, FIRST_FIT, executor=limited)
    assert batch.counts == {"feasible": 4}
    there = [int(memory) >> 20 for memory in told(tmp_path, "there")]
    assert all(60 <= later - before < 100 for before, later in itertools.pairwise(there)), there


@pytest.mark.usefixtures("batches_here")
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


@pytest.mark.usefixtures("batches_here")
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


@pytest.mark.usefixtures("batches_here")
def test_trees_and_mappings_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = random_grid(random.Random(11), 12)
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
    out = tmp_path / "out"  # the results in it are no instances
    args = ["batch", str(tmp_path), "-o", str(out), "--json"]
    assert run([*args, "--method", "default"]) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["table"]) == ("topoplace.batch/1", str(out / "table.csv"))
    counts = [document[key] for key in ("instances", "solved", "kept", "left", "exit_code")]
    assert (counts, document["statuses"]) == ([2, 2, 0, 0, 0], {"feasible": 2})
    rows = {row["name"]: row for row in rows_of(out / "table.csv")}
    assert (rows["grid"]["problem"], rows["tree"]["problem"]) == ("mapping", "allocation")
    assert rows["tree"]["objective"] == "4"
    assert rows["tree"]["objective_2"] != ""
    assert int(rows["grid"]["objective"]) >= int(rows["grid"]["bound"]) >= 0
    assert Settings().method_for("placement") == "exact"
    capsys.readouterr()
    assert run([*args, "--command", "true"]) == ExitCode.BAD_INPUT
    assert "mapping.json" in one_line_error(capsys)


def test_ctrl_c_stops_it_cleanly(folder: Path, tmp_path: Path) -> None:
    arguments = [folder, "-o", tmp_path, "--method", "first-fit", "--jobs", "1"]
    process = started("-m", "topoplace", "batch", *arguments)
    wait_until(lambda: len(results(tmp_path)) >= 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    complaints = [line for line in err.splitlines() if not line.startswith("compiling kernels")]
    assert (process.returncode, complaints) == (0, [])
    assert re.search(r"interrupted: \d+ instances left out; the same command goes on", out)
    assert len((tmp_path / "table.csv").read_text().splitlines()) > 3
    hidden = [path for path in tmp_path.rglob(".*") if path.name != ".lock"]
    assert hidden == []
    assert quick_batch([folder], tmp_path).num_kept >= 3


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--method", "no-such", "one of exact, cp-sat, first-fit, "),
        ("--interference", "off", "no interference rule"),
    ],
)
def test_what_no_file_of_a_kind_can_take_ends_it_at_once(
    option: str, value: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tmp_path / "tree.json"
    tree.write_text('{"schema": "topoplace.snapshot/1", "name": "t", "machine": "tree:2x2"}')
    args = ["batch", str(tree), "-o", str(tmp_path / "out"), option, value]
    assert run(args) == ExitCode.BAD_INPUT
    assert f"{option}: expected {expected}" in one_line_error(capsys)


def test_the_exit_code_is_the_lowest_of_all_but_0() -> None:
    for statuses, code in (
        (["optimal", "feasible"], ExitCode.DONE),
        (["optimal", "infeasible", "unknown"], ExitCode.INFEASIBLE),
        (["timeout", "optimal"], ExitCode.NO_SOLUTION),
        (["timeout", "bad-input", "infeasible"], ExitCode.BAD_INPUT),
        (["bad-input", "out-of-memory"], ExitCode.INTERNAL),
    ):
        rows = [Row(status=status) for status in statuses]
        assert Batch(rows, Path(), 0, 0, 0, 0.0).exit_code == code


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("batches_here")
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


def test_objects_are_mapped_as_tasks_are(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    write_document(path, tiny_objects(0).instance)
    assert read_instance(path).problem == "mapping"


def test_poisoned_instances_are_recorded_and_the_rest_goes_on(folder: Path, tmp_path: Path) -> None:
    inside, out = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    for name in POISONS:
        write_named(inside, name)
    (inside / "no-json.json").write_text("{")
    good = sorted(folder.iterdir())[:6]
    sources = [inside, *good]

    def attempt(solver: str, retry_failed: bool = False) -> Batch:
        limits = pool(solver, 2, kill_after=1.5, memory=1 << 30)
        return run_batch(sources, out, FIRST_FIT, executor=limits, retry_failed=retry_failed)

    batch = attempt("poisoned")
    rows = {Path(row.file).stem: row for row in batch.rows}
    message = {stem: (row.status, row.message) for stem, row in rows.items() if row.failed}
    broken = message.pop("broken")
    assert broken[0] == "error"
    assert broken[1].startswith("the method returned no result")
    no_json = message.pop("no-json")
    assert no_json[0] == "bad-input"
    assert "no-json.json" in no_json[1]
    assert message == {
        "killed": (
            "crash",
            "the worker process was killed by SIGKILL from outside, perhaps for want of memory",
        ),
        "segfault": ("crash", "the worker process was killed by SIGSEGV"),
        "leaves": ("crash", "the worker process ended with exit code 7"),
        "exits": ("error", "SystemExit: gone"),
        "fails": ("error", "ValueError: a bug on two lines"),
        "hogs": ("out-of-memory", "the instance needs more memory"),
        "hogs-natively": ("out-of-memory", "the instance needs more memory"),
        "hangs": ("timeout", "killed after 1.5 s"),
    }
    assert {rows[path.stem].status for path in good} == {"feasible"}
    assert batch.exit_code == ExitCode.INTERNAL
    failure = json.loads((out / "failures" / f"fails-{rows['fails'].key}.json").read_text())
    assert "Traceback" in failure["detail"]

    again = attempt("poisoned")
    assert again.num_solved == 0
    assert without_times(again.table) == without_times(batch.table)
    assert again.table.read_text() == attempt("quick").table.read_text()

    cured = attempt("quick", retry_failed=True)
    assert cured.num_solved == len(POISONS)
    assert cured.counts == {"bad-input": 1, "feasible": len(POISONS) + len(good)}
    assert cured.exit_code == ExitCode.BAD_INPUT
    assert list((out / "failures").iterdir()) == []


def test_workers_that_do_not_start_end_the_batch(tmp_path: Path) -> None:
    path = write_named(tmp_path, "any")
    with pytest.raises(TopoplaceError, match=r"first instance: .*no_such_solver"):
        run_batch(
            [path], tmp_path / "out", FIRST_FIT, executor=Pool("no_such_solver:solve", 1, Limits())
        )


@pytest.mark.parametrize("kill_after", [0, 2], ids=["parent-killed", "worker-killed"])
def test_nothing_outlives_the_batch(kill_after: int, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    path = write_named(tmp_path, "any", source=str(pids))
    process = started("-c", PROGRAM, path, tmp_path / "out", "hanging", str(kill_after))
    try:
        wait_until(pids.exists)
        worker, program = map(int, pids.read_text().split())
        assert kill_after or (alive(worker) and alive(program))
        if not kill_after:
            with pytest.raises(InputError, match="no other batch"):
                quick_batch([path], tmp_path / "out")
        if kill_after:
            assert process.wait(30) == 0
    finally:
        process.kill()
    process.communicate(timeout=60)
    wait_until(lambda: not alive(worker) and not alive(program), 10)
    assert quick_batch([path], tmp_path / "out").num_solved == 1 - bool(kill_after)


# Answers by the name of the snapshot: as in the file beside it, late, or not at all.
ALLOCATOR = """
import json, os, sys, time
name = json.load(sys.stdin)["name"]
if name == "dies":
    sys.exit("no database")
if name == "late":
    time.sleep(60)
with open(os.path.join(os.path.dirname(__file__), name + ".answer")) as stream:
    print(stream.read())
"""


@pytest.mark.usefixtures("batches_here")
def test_every_verdict_is_stored_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside, out, allocator = tmp_path / "in", tmp_path / "out", tmp_path / "allocator.py"
    inside.mkdir()
    busy = {"request": "first", "nodes": "24-31"}
    for name, answer in (("dies", None), ("good", FIRST), ("late", None), ("wrong", busy)):
        (inside / f"{name}.json").write_text(json.dumps(small_document() | {"name": name}))
        if answer is not None:
            (tmp_path / f"{name}.answer").write_text(answer_of([answer]))
    twice = small_document() | {"name": "twice", "queue": 2 * small_document()["queue"]}
    (inside / "twice.json").write_text(json.dumps(twice))
    allocator.write_text(ALLOCATOR)
    command = f"mine={shlex.join([sys.executable, '-I', str(allocator)])}"
    args = ["batch", str(inside), "-o", str(out), "--command", command, "--jobs", "1"]
    args += ["--time-limit", "1"]
    assert run(args) == ExitCode.BAD_INPUT
    told = "1 bad-input, 1 breach, 1 failed, 1 feasible, 1 timeout"
    assert told in capsys.readouterr().out
    dies, good, late, contrary, wrong = rows_of(out / "table.csv")
    assert {row["method"] for row in (dies, good, late, contrary, wrong)} == {"mine"}
    assert "each job once" in contrary["message"]
    assert dies["message"] == 'mine: exit code 1; it said "no database"'
    assert late["message"] == "mine: no answer within the time limit"
    assert good["objective"] == "8"
    assert check_file(out / good["result"]).holds
    (path,) = (out / "failures").glob("wrong-*.json")
    verdict = json.loads(path.read_text())["verdict"]
    assert verdict["schema"] == "topoplace.verdict/1"
    assert verdict["breaches"][0]["request"] == "first"
    assert verdict["breaches"][0]["text"] in wrong["message"]
    # What is done stays done until the program, a file on the command line, changes.
    assert run(args) == ExitCode.BAD_INPUT
    assert "solved 0, kept 5" in capsys.readouterr().out
    allocator.write_text(ALLOCATOR + "# changed\n")
    assert run(args) == ExitCode.BAD_INPUT
    assert "solved 5, kept 0" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of this")
def test_a_program_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60"
    text = (
        "from topoplace.study.external.allocator import run_program\n"
        f"run_program(['sh', '-c', {script!r}], b'', 60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", text]) as parent:
        wait_until(pid.exists)
        child = int(pid.read_text())
        assert alive(child)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not alive(child))
    assert not alive(child)
