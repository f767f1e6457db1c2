"""`topoplace replay` on tiny logs, worked out by hand."""

from __future__ import annotations

import csv
import io
import json
import signal
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from batch_runs import started, wait_until
from real_files import real_file
from scripts_of_the_project import script
from test_cli_bad_input import one_line_error
from topoplace.cli import run
from topoplace.cli.output import counted
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.tree_state import TreeState, prepare_tree
from topoplace.solving import solve

TOPOLOGY = "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-5]\nSwitchName=top Switches=s[0-1]"
# Job 2 waits for job 1 until 10; job 3 ends by then; job 4 would not, and job 2 leaves no node.
QUEUED = [(1, 0, 10, 6), (2, 1, 5, 8), (3, 2, 8, 2), (4, 3, 8, 2)]


def write_log(folder: Path, jobs: list[tuple[int, int, int, int]]) -> str:
    """Write jobs (number, submission, run time, nodes) that ask for the time they run."""
    path = folder / "log.swf"
    path.write_text(
        "".join(f"{j} {s} 0 {t} {n} -1 -1 {n} {t} {'-1 ' * 9}\n" for j, s, t, n in jobs)
    )
    return str(path)


def replayed(capsys: pytest.CaptureFixture[str], *args: str) -> dict:
    assert run(["replay", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def load(path: Path) -> TreeState:
    return prepare_tree(Snapshot.model_validate_json(path.read_text()))


def who_starts(state: TreeState) -> list[str]:
    return [allocation.request for allocation in solve(state, "default").solution.allocations]


def test_backfilling_and_the_five_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path, QUEUED)
    table = tmp_path / "jobs.csv"
    document = replayed(
        capsys, log, "--on", "tree:2x4", "--method", "default", "--intensive", "0",
        "--csv", str(table), "-o", str(tmp_path / "out.json"),
    )  # fmt: skip
    (found,) = document["runs"]
    assert found == {
        "method": "default",
        "num_jobs": 4,
        "execution": 10 + 5 + 8 + 8,
        "wait": 0 + 9 + 0 + 12,
        "turnaround": 10 + 14 + 8 + 20,
        "node_seconds": 6 * 10 + 8 * 5 + 2 * 8 + 2 * 8,
        "cost": "0",
        "percent_saved": None,
    }
    assert json.loads((tmp_path / "out.json").read_text()) == document
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert [(r["job"], r["start"], r["end"]) for r in rows] == [
        ("1", "0", "10"),
        ("3", "2", "10"),
        ("2", "10", "15"),
        ("4", "15", "23"),
    ]


# 6 ranks on leaves of 2 and 4 nodes, all of one job: 4 hops inside a leaf, 4 (1 + 1 + 1 + 1/2) =
# 14 across. Slurm's default has ranks 0 and 1 on the leaf of 2: of the pairs (0, 1) (2, 3), then
# (1, 3) (4, 5), then (1, 4) (3, 5), then the first again, those of the second and third step
# cross. Balanced takes 3 and 1, then 1 and 1, so that ranks 3 and 4 are there: all steps cross.
DEFAULT_COST, BALANCED_COST = 4 + 14 + 14 + 4, 14 + 14 + 14 + 14


@pytest.mark.parametrize("protocol", ["continuous", "individual"])
@pytest.mark.parametrize(
    ("method", "against", "base", "other"),
    [
        ("balanced", "default", DEFAULT_COST, BALANCED_COST),
        ("default", "balanced", BALANCED_COST, DEFAULT_COST),
    ],
)
def test_run_times_by_equation_7(
    method: str,
    against: str,
    base: int,
    other: int,
    protocol: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    machine = tmp_path / "topology.conf"
    machine.write_text(TOPOLOGY)
    document = replayed(
        capsys, write_log(tmp_path, [(7, 100, 3600, 6)]), "--on", str(machine),
        "--method", method, "--against", against, "--protocol", protocol, "--occupancy", "0",
        "--pattern", "rd", "--share", "50", "--intensive", "100",
    )  # fmt: skip
    reference, found = document["runs"]
    assert (reference["method"], found["method"]) == (against, method)
    assert (reference["execution"], reference["cost"]) == (3600, str(base // 2))
    assert found["execution"] == round(1800 + Fraction(1800 * other, base))
    assert found["cost"] == str(other // 2)
    assert found["wait"] == 0
    assert found["percent_saved"]["cost"] == pytest.approx(100 * (base - other) / base)


def test_snapshots_hold_what_the_allocator_is_about_to_see(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "snapshots"
    common = [write_log(tmp_path, QUEUED), "--on", "tree:2x4", "--method", "default"]
    common += ["--intensive", "50", "--snapshots", str(folder)]
    document = replayed(capsys, *common, "--every", "1")
    # After the first start at 1, the second at 3, and the third at 15.
    assert document["snapshots"] == [str(folder / f"log-000{k}.json") for k in (1, 2, 3)]
    states = [load(folder / f"log-000{k}.json") for k in (1, 2, 3)]
    assert [[job.id for job in state.running] for state in states] == [["1"], ["1", "3"], []]
    queues = [[request.id for request in state.requests] for state in states]
    assert queues == [["2"], ["2", "4"], ["4"]]
    assert [who_starts(state) for state in states] == [[], [], ["4"]]
    intensive = {job.id: job.intensive for state in states for job in state.running}
    intensive |= {request.id: request.intensive for state in states for request in state.requests}
    assert sorted(intensive) == ["1", "2", "3", "4"]
    assert sum(intensive.values()) == 2
    document = replayed(capsys, *common, "--at", "4,10,99")  # nobody decides between 4 and 10
    assert len(document["snapshots"]) == 1
    assert who_starts(load(folder / "log-0001.json")) == ["2"]


def test_the_table_says_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path, [(1, 0, 3600, 4), (2, 0, 10, 9), (3, 0, -1, 1), (4, 0, 1, 1)])
    args = [log, "--on", "tree:2x4", "--method", "greedy", "--mix", "C", "--limit", "2"]
    assert run(["replay", *args]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    cells = [line.split() for line in captured.out.splitlines()]
    assert ["jobs", "1", "1"] in cells
    assert ["execution,", "h", "1.00", "1.00", "0.00", "%"] in cells
    assert ["node-hours", "4.00", "4.00", "0.00", "%"] in cells
    assert "jobs without room: 1\n" in captured.out
    assert "jobs of unknown size or times: 1\n" in captured.out


def test_jobs_are_drawn_by_the_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path, [(k, 10 * k, 5, 5) for k in range(1, 21)])
    args = [log, "--on", "tree:2x4", "--method", "random", "--intensive", "50"]
    first, again, other = (replayed(capsys, *args, "--seed", seed)["runs"] for seed in "334")
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--on", "torus:4x4x4"], "method"),
        (["--on", "no-such-machine"], "machine"),
        (["--method", "no-such-method"], "method"),
        (["--against", "no-such-method"], "method"),
        (["--protocol", "both"], "--protocol"),
        (["--mix", "F"], "--mix"),
        (["--mix", "A", "--pattern", "rd"], "--mix"),
        (["--pattern", "gossip"], "--pattern"),
        (["--share", "50"], "--share"),
        (["--pattern", "rd", "--share", "101"], "--share"),
        (["--intensive", "101"], "--intensive"),
        (["--occupancy", "-1"], "--occupancy"),
        (["--limit", "0"], "--limit"),
        (["--seed", "-1"], "--seed"),
        (["--time-limit", "nan"], "--time-limit"),
        (["--every", "5"], "--every"),
        (["--at", "5"], "--at"),
        (["--snapshots", "{out}/s"], "--snapshots"),
        (["--snapshots", "{out}/s", "--at", "1,x"], "--at"),
        (["--snapshots", "{out}/s/s", "--every", "1"], "--snapshots"),
        (["--snapshots", "{out}/s", "--every", "1", "--protocol", "individual"], "--snapshots"),
        (["--csv", "{out}/no/such.csv"], "--csv"),
        (["-o", "{out}"], "--output"),
        (["--timeline", "no/such/file"], "--timeline"),
        (["--fill-interior"], "--fill-interior"),
        (["--interference", "off"], "--interference"),
        (["--interference", "some"], "--interference"),
        (["--protocol", "individual", "--timeline", "F"], "--timeline"),
        (["--on", "torus:4x4", "--method", "best-fit", "--protocol", "individual"], "--protocol"),
        (["--on", "torus:4x4", "--method", "best-fit", "--against", "greedy"], "method"),
    ],
    ids=" ".join,
)
def test_bad_options(
    options: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    args = [write_log(tmp_path, QUEUED), "--on", "tree:2x4", "--method", "default"]
    assert run(["replay", *args, *(option.format(out=out) for option in options)]) == 2
    assert named in one_line_error(capsys)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("1 2 3\n", "line 1"),
        ("; nothing but a comment\n", "at least one job"),
        (f"1 x 0 9 4 -1 -1 4 9 {'-1 ' * 9}\n", "field 2"),
    ],
)
def test_a_bad_log(
    content: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "bad.swf"
    log.write_text(content)
    assert run(["replay", str(log), "--on", "tree:2x4", "--method", "default"]) == 2
    error = one_line_error(capsys)
    assert "bad.swf" in error
    assert named in error


def test_progress_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal in (False, True):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda answer=is_terminal: answer)
        monkeypatch.setattr(sys, "stderr", stream)
        with counted("greedy") as progress:
            progress(3, 4)
        assert ("greedy: 3 of 4" in stream.getvalue()) is is_terminal


PROGRAM = """
import time
from pathlib import Path
import numpy as np
from topoplace.cli import main
from topoplace.solving import Outcome
from topoplace.solving import register

@register("allocation", "sleepy", "never places job 3")
def sleepy(problem, options):
    if problem.requests[0].id == "3":
        Path("started").touch()
        time.sleep(600)
    return Outcome({0: np.flatnonzero(problem.state.free)[: problem.requests[0].nodes]})

main()
"""


def test_an_interrupted_replay_reports_what_it_got_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, QUEUED)
    args = ["replay", "log.swf", "--on", "tree:2x4", "--method", "sleepy", "--against", "sleepy"]
    args += ["--snapshots", "s", "--every", "1", "--csv", "jobs.csv", "-o", "out.json"]
    monkeypatch.chdir(tmp_path)
    process = started(*args, program=PROGRAM)
    try:
        wait_until((tmp_path / "started").exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    assert "interrupted: jobs left out: " in out
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["interrupted"]
    assert len((tmp_path / "jobs.csv").read_text().splitlines()) == 2
    assert [p.name for p in (tmp_path / "s").iterdir()] == ["log-0001.json"]
    assert [job.id for job in load(tmp_path / "s" / "log-0001.json").running] == ["1"]


def test_the_study_of_mishra_2020(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = str(real_file("theta/theta_1000.swf"))
    document = tmp_path / "mishra2020.md"
    monkeypatch.syspath_prepend(Path(__file__).resolve().parent.parent / "scripts")
    study = script("study_mishra2020")
    monkeypatch.setattr(study, "SETS", {"RHVD": study.SETS["RHVD"]})
    document.write_text(f"# By hand\n\n{study.BEGIN}\nold\n{study.END}\n\nThe reading.\n")
    args = ["--methods", "default", "greedy", "--seeds", "2", "--limit", "40", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["study", log, *args])
    study.main()
    text = document.read_text()
    assert text.startswith("# By hand\n")
    assert text.endswith("\n\nThe reading.\n")
    assert "old" not in text
    assert "| 16 | continuous | RHVD | 20.5 / 22.3 / 24.0 |" in text
    rows = list(csv.DictReader(io.StringIO((tmp_path / "mishra2020.csv").read_text())))
    assert len(rows) == 2 * 3 * 2 * 2  # machines, protocols, seeds, methods
    assert all(float(r["execution_percent_saved"]) == 0 for r in rows if r["method"] == "default")
    assert {study.leaves_of(4392, n).tree.num_leaves for n in (16, 366)} == {275, 12}
