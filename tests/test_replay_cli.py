"""`topoplace replay` on tiny logs, worked out by hand."""

from __future__ import annotations

import csv
import io
import json
import shlex
import signal
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from batch_runs import signalled
from external_answers import answer_of, command_printing
from test_replay import GAP, HALF, TWO_CLASSES, empty, log_of, spans
from topoplace.certify import check_document
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.snapshot.machines import load_any, load_snapshot
from topoplace.snapshot.schema import TreeObjective
from topoplace.solving import Options, solve
from topoplace.study.external.allocator import Allocator, command_allocator
from topoplace.study.replay import LogJob, Replay, Setup

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


def test_backfilling_and_the_five_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path, [(j, 100 + s, t, n) for j, s, t, n in reversed(QUEUED)])
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
    by_cost = TreeObjective.CONTENTION
    states = [load_any(folder / f"log-000{k}.json", by_cost) for k in (1, 2, 3)]
    assert [[job.id for job in state.running] for state in states] == [["1"], ["1", "3"], []]
    queues = [[request.id for request in state.requests] for state in states]
    assert queues == [["2"], ["2", "4"], ["4"]]
    jobs = [job for state in states for job in (*state.running, *state.requests)]
    assert len({job.id for job in jobs if job.intensive}) == 2
    document = replayed(capsys, *common, "--at", "4,10,99")  # nobody decides between 4 and 10
    (path,) = document["snapshots"]
    (starts,) = solve(load_any(path, by_cost), "default").solution.allocations
    assert starts.request == "2"


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


def test_an_interrupted_replay_reports_what_it_got_to(tmp_path: Path) -> None:
    write_log(tmp_path, QUEUED)
    args = ["replay", "log.swf", "--on", "tree:2x4", "--method", "sleepy", "--against", "sleepy"]
    args += ["--snapshots", "s", "--every", "1", "--csv", "jobs.csv", "-o", "out.json"]
    done = signalled(["-c", PROGRAM, *args], tmp_path, signal.SIGINT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "interrupted: jobs left out: " in done.stdout
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["interrupted"]
    assert len((tmp_path / "jobs.csv").read_text().splitlines()) == 2
    assert [p.name for p in (tmp_path / "s").iterdir()] == ["log-0001.json"]
    assert [job.id for job in load_any(tmp_path / "s" / "log-0001.json").running] == ["1"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, line = tmp_path / "snapshots", tmp_path / "line.csv"
    log = write_log(tmp_path, [(1, 0, 10, 8), (2, 1, 5, 16), (3, 2, 8, 4), (4, 3, 8, 4)])
    args = ["replay", log, "--on", "torus:4x4", "--method", "best-fit", "--against", "first-fit"]
    args += ["--intensive", "100", "--snapshots", str(folder), "--every", "1"]
    args += ["--timeline", str(line), "--csv", str(tmp_path / "jobs.csv")]
    assert run([*args, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first, best = document["runs"]
    assert (first["method"], best["method"]) == ("first-fit", "best-fit")
    assert document["against"] is None
    assert document["interference"] == "strict"
    assert best["efficiency"]["utilisation"] == pytest.approx(224 / 368)
    assert best["efficiency"]["application"] == 1
    rows = list(csv.DictReader(io.StringIO(line.read_text())))
    assert [r["at"] for r in rows if r["method"] == "first-fit"] == [*"0123", "10", "15", "23"]
    assert {r["nodes"] for r in rows} == {"16"}
    assert len(document["snapshots"]) == 3
    for path in document["snapshots"]:
        assert check_document(solve(load_snapshot(path), "first-fit")).holds
    assert run([*args[:6], "--fill-interior"]) == 0
    assert "application efficiency (E_AVE) 100.00 %" in " ".join(capsys.readouterr().out.split())


# ---- Allocators that are not ours ----------------------------------------------------------------

# Gives the first free nodes by number, node 0 whatever runs there, or a prism at 0 if nothing runs;
# the late one at its second chance.
ALLOCATOR = """
import json, os, sys, time
mode, snapshot = sys.argv[1], json.load(sys.stdin)
(request,), running = snapshot["queue"], snapshot["running"]
with open(os.path.join(os.path.dirname(__file__), "asked"), "a+") as stream:
    stream.write(request["id"] + "\\n")
    stream.seek(0)
    if mode == "late" and stream.read().split().count(request["id"]) == 1:
        time.sleep(60)
taken = set()
for job in running:
    for part in job["nodes"].split(","):
        low, _, high = part.partition("-")
        taken.update(range(int(low), int(high or low) + 1))
free = [str(n) for n in range(16) if n not in taken][: request["nodes"]]
placed = {"request": request["id"], "nodes": ",".join(free)}
if mode == "stubborn":
    placed["nodes"] = "0"
elif mode == "prism":
    placed["prism"] = {"origin": [0], "extents": [request["nodes"]]}
placements = [] if mode == "prism" and running else [placed]
print(json.dumps({"schema": "topoplace.placements/1", "placements": placements}))
"""


def allocator(folder: Path, mode: str) -> Allocator:
    path = folder / "allocator.py"
    path.write_text(ALLOCATOR)
    return command_allocator(f"mine={shlex.join([sys.executable, '-I', str(path), mode])}")


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text().split()


def test_an_allocator_of_ones_own_is_replayed_by_the_same_rules(tmp_path: Path) -> None:
    replay = Replay(Setup(empty(), log_of(*GAP)), allocator(tmp_path, "numbers"))
    replay.run()
    assert spans(replay) == {"a": (0, 10), "c": (2, 10), "b": (10, 15), "d": (15, 23)}
    assert replay.decisions is not None
    assert replay.decisions.asked == len(asked(tmp_path)) == 4
    assert replay.snapshot("end").running == []


def test_prisms_are_kept_and_decide_what_fits_if_asked_for(tmp_path: Path) -> None:
    # On a ring of 6 a prism of 4 uses all links: b fits by nodes, but has no prism.
    jobs = [LogJob("a", 4, 0, 10, 10, HALF), LogJob("b", 2, 1, 5, 5, HALF)]
    mine = allocator(tmp_path, "prism")
    for in_prisms, questions in ((False, ["a", "b", "b"]), (True, ["a", "b"])):
        one = Allocator(mine.name, mine.arguments, mine.source, in_prisms=in_prisms)
        replay = Replay(Setup(empty("torus:6"), jobs), one)
        replay.run(until=0)
        (job,) = replay.snapshot("now").running
        assert job.prism is not None
        assert (job.prism.origin, job.prism.extents) == ([0], [4])
        replay.run()
        assert spans(replay)["b"][0] == spans(replay)["a"][1]
        assert asked(tmp_path) == questions
        (tmp_path / "asked").unlink()


def test_a_breach_ends_the_replay_with_what_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path, [(1, 0, 10, 1), (2, 1, 5, 1)])
    command, folder = f"mine={allocator(tmp_path, 'stubborn').source}", tmp_path / "snapshots"
    args = ["replay", log, "--on", "torus:4x4", "--command", command]
    args += ["--intensive", "0", "--snapshots", str(folder), "--every", "1"]
    assert run([*args, "--json", "-o", str(tmp_path / "r.json")]) == ExitCode.CHECK_FAILED
    said = capsys.readouterr()
    verdict = json.loads(said.out)
    assert (verdict["fault"], verdict["breaches"][0]["node"]) == ("breach", 0)
    assert "job-2: mine: breach: 2 has node 0 on router 0, held by running job 1" in said.err
    assert not (tmp_path / "r.json").exists()
    again = ["place", str(folder / "job-2-refused.json"), "--command", command]
    assert run(again) == ExitCode.CHECK_FAILED
    assert verdict["text"] in capsys.readouterr().err


def test_who_starts_nothing_on_an_empty_machine_ends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = command_printing(tmp_path, answer_of([]))
    args = ["replay", write_log(tmp_path, QUEUED), "--on", "tree:2x4", "--command", command]
    assert run(args) == ExitCode.INTERNAL
    assert "the method found no nodes for job 1" in capsys.readouterr().err


def test_an_answer_too_late_starts_nothing_now(tmp_path: Path) -> None:
    jobs = log_of((4, 0, 10, 10), (4, 1, 5, 5), (4, 2, 5, 5))
    mine = allocator(tmp_path, "late")
    replay = Replay(Setup(empty(), jobs, options=Options(time_limit=0.5)), mine)
    replay.run()
    # Everybody is asked again at the next event, of which there is none after c came.
    assert spans(replay) == {"a": (1, 11), "b": (2, 7), "c": (7, 12)}
    assert replay.decisions is not None
    assert replay.decisions.timed_out == replay.decisions.nowhere == 3


def test_jobs_that_look_alike_are_one_question_while_nothing_changes() -> None:
    # b fits when a ends; every c would then be in its way.
    jobs = [(8, 0, 10, 10), (14, 1, 5, 5), *[(2, 2, 99, 99)] * 8]
    replay = Replay(Setup(empty(), log_of(*jobs)), "first-fit")
    replay.run(until=9)
    assert replay.decisions is not None
    assert replay.decisions.asked == 2
    replay.run()
    starts = [start for start, _ in spans(replay).values()]
    assert sorted(starts) == [0, 10, *[15] * 8]


def test_exact_says_which_of_its_decisions_it_proved() -> None:
    replay = Replay(Setup(empty(), log_of(*GAP), options=Options(time_limit=20)), "exact")
    replay.run()
    assert replay.decisions is not None
    assert replay.decisions.proven == replay.decisions.asked == 4


# Job 1 needs a whole row, so that it waits for job 0 although as many nodes are free; job 2 ends in
# time. Job 3 fits in no way.
TRACE = """\
#job id,arrival time (sec),topology,shape,size,duration (sec)
0,100.0,T2D,2x2,4,9.5
1,101,T2D,1x4,4,5
2,102,T2D,2x2,4,8
3,103,T2D,1x8,8,1
"""


def test_what_a_replay_does_not_keep_to_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Path(write_log(tmp_path, QUEUED))
    first, *others = log.read_text().splitlines()
    after = others[0].split()
    after[16] = "1"
    log.write_text("\n".join([first, " ".join(after), *others[1:]]) + "\n")
    options = (str(log), "--on", "tree:2x4", "--method", "default", "--intensive", "0")
    assert replayed(capsys, *options)["not_modelled"] == {"preceding-job": 1}
    assert run(["replay", *options]) == 0
    assert "not modelled: preceding-job 1" in " ".join(capsys.readouterr().out.split())


def test_classes_and_priorities_of_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jobs of partition 2 run on the other class; the job of queue 3 waits before the others."""
    log, machine = tmp_path / "log.swf", tmp_path / "two.json"
    jobs = [(1, 0, 8, 1, 1), (2, 0, 8, 2, 1), (3, 1, 8, 1, 1), (4, 2, 8, 1, 3), (5, 3, 8, 7, 1)]
    log.write_text(
        "".join(
            f"{j} {at} 0 10 {n} -1 -1 {n} 10 -1 1 -1 -1 -1 {queue} {partition} -1 -1\n"
            for j, at, n, partition, queue in jobs
        )
    )
    machine.write_text(TWO_CLASSES.model_dump_json(by_alias=True))
    table = tmp_path / "jobs.csv"
    args = [str(log), "--on", str(machine), "--method", "best-fit", "--csv", str(table)]
    more = ["--partitions", "1=compute,2=xk", "--queues", "3=10", "--whole-queue"]
    found = replayed(capsys, *args, *more)
    assert found["not_modelled"] == {"partition": 1}
    rows = {row["job"]: row for row in csv.DictReader(table.open())}
    assert {job: int(row["start"]) for job, row in rows.items()} == {
        "1": 0, "2": 0, "4": 10, "3": 20, "5": 30,
    }  # fmt: skip
    assert (rows["2"]["class"], rows["4"]["priority"]) == ("xk", "10")
    for wrong in (["--partitions", "1"], ["--queues", "1=high"], ["--partitions", "1=gpu"]):
        assert run(["replay", *args, *wrong]) == 2
        assert wrong[1].removeprefix("1=") in capsys.readouterr().err


@pytest.mark.parametrize("method", ["first-fit", "exact"])
def test_jobs_of_a_trace_have_their_shapes(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, table, kept = tmp_path / "trace.csv", tmp_path / "jobs.csv", tmp_path / "kept"
    trace.write_text(TRACE)
    document = replayed(
        capsys, str(trace), "--on", "mesh:4x2", "--method", method, "--intensive", "0",
        "--csv", str(table), "--snapshots", str(kept), "--at", "1",
    )  # fmt: skip
    with table.open() as stream:
        rows = {row["job"]: (row["start"], row["end"]) for row in csv.DictReader(stream)}
    assert rows == {"0": ("0", "10"), "1": ("10", "15"), "2": ("2", "10")}
    assert document["jobs_unknown"] == 1
    (waiting,) = load_snapshot(document["snapshots"][0]).queue
    assert [(waiting.id, shape.extents) for shape in waiting.geometries] == [("1", (4, 1))]


def test_nodes_in_any_order_need_no_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE)
    args = [str(trace), "--on", "mesh:4x2", "--method", "random-nodes", "--intensive", "0"]
    assert replayed(capsys, *args)["runs"][0]["wait"] == 6 - 2  # of job 2


def test_a_trace_needs_a_torus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE)
    assert run(["replay", str(trace), "--on", "tree:4x4", "--method", "default"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "expected a torus or mesh for a trace of RFold" in said


def test_a_replay_begins_with_the_jobs_of_a_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One job leaves half of the machine at 50 s, another stays on a quarter of it."""
    snapshot = {
        "schema": "topoplace.snapshot/1",
        "name": "now",
        "machine": "torus:4x4",
        "running": [
            {"id": "leaves", "nodes": "0-7", "ends": 50,
             "prism": {"origin": [0, 0], "extents": [2, 4]}},
            {"id": "stays", "nodes": "8-11", "prism": {"origin": [2, 0], "extents": [1, 4]}},
        ],
    }  # fmt: skip
    path, table = tmp_path / "now.json", tmp_path / "jobs.csv"
    path.write_text(json.dumps(snapshot))
    log = write_log(tmp_path, [(1, 0, 10, 8), (2, 0, 10, 4), (3, 60, 10, 12)])
    args = ["--on", str(path), "--method", "first-fit", "--csv", str(table)]
    document = replayed(capsys, log, *args)
    assert document["runs"][0]["num_jobs"] == 3
    starts = {row["job"]: int(row["start"]) for row in csv.DictReader(table.open())}
    assert starts == {"1": 50, "2": 0, "3": 60}
    path.write_text(json.dumps({**snapshot, "machine": "tree:2x4", "running": []}))
    assert run(["replay", log, *args]) == 2
    assert "a snapshot of a torus or mesh" in capsys.readouterr().err
