"""Batches in which instances, workers or whole runs fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batch_runs import (
    FIRST_FIT,
    PROGRAM,
    alive,
    pool,
    quick_batch,
    started,
    wait_until,
    without_times,
    write_named,
    write_snapshots,
)
from batch_solvers import POISONS
from topoplace.errors import ExitCode, InputError, TopoplaceError
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.run import Batch, run_batch
from topoplace.study.batch.task import Limits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_snapshots(tmp_path / "snapshots", 6)


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


def test_an_instance_that_contradicts_itself_is_bad_input(tmp_path: Path) -> None:
    path = write_named(tmp_path, "twice")
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"queue": document["queue"] * 2}))
    batch = run_batch([path], tmp_path / "out", FIRST_FIT)
    (row,) = batch.rows
    assert (row.status, row.method) == ("bad-input", "first-fit")
    assert "each job once" in row.message
    assert batch.exit_code == ExitCode.BAD_INPUT


def test_what_is_no_result_is_an_error(tmp_path: Path) -> None:
    path = write_named(tmp_path, "any")
    broken = pool("broken")
    (row,) = run_batch([path], tmp_path / "out", FIRST_FIT, executor=broken).rows
    assert row.status == "error"
    assert row.message.startswith("the method returned no result")


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
    process = started(path, tmp_path / "out", "hanging", str(kill_after), program=PROGRAM)
    try:
        wait_until(pids.exists)
        worker, program = map(int, pids.read_text().split())
        assert kill_after or (alive(worker) and alive(program))
        if kill_after:
            assert process.wait(30) == 0
    finally:
        process.kill()
    process.communicate()
    wait_until(lambda: not alive(worker) and not alive(program), 10)


def test_one_batch_at_a_time(folder: Path, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    path = write_named(tmp_path, "any", source=str(pids))
    process = started(path, tmp_path / "out", "hanging", "0", program=PROGRAM)
    try:
        wait_until(pids.exists)
        with pytest.raises(InputError, match="no other batch"):
            quick_batch([folder], tmp_path / "out")
    finally:
        process.kill()
        process.communicate()
    assert quick_batch([path], tmp_path / "out").num_solved == 1
