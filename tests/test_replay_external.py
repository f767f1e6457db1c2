"""Replays through allocators that are not ours, and how often a method is asked."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from test_cli_bad_input import one_line_error
from test_replay import log_of, spans
from test_replay_cli import QUEUED, write_log
from test_replay_torus import GAP, HALF, empty
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator, command_allocator
from topoplace.study.external.verdict import VerdictError
from topoplace.study.replay import LogJob, Replay

ANSWER = """
import json, os, sys, time
snapshot = json.load(sys.stdin)
(request,) = snapshot["queue"]
with open(os.path.join(os.path.dirname(__file__), "asked"), "a") as stream:
    stream.write(request["id"] + "\\n")
def answer(*placements):
    print(json.dumps({"schema": "topoplace.placements/1", "placements": placements}))
"""

NUMBERS = """
taken = set()
for job in snapshot["running"]:
    for part in job["nodes"].removeprefix("n").strip("[]").split(","):
        low, _, high = part.partition("-")
        taken.update(range(int(low), int(high or low) + 1))
free = [str(n) for n in range(16) if n not in taken][: request["nodes"]]
"""

# The first free nodes by number, of a machine with a node per router.
BY_NUMBER = ANSWER + NUMBERS + 'answer({"request": request["id"], "nodes": ",".join(free)})'

# A prism at 0, if nothing runs.
ALONE = (
    ANSWER
    + """
n = request["nodes"]
prism = {"origin": [0], "extents": [n]}
placement = {"request": request["id"], "nodes": f"0-{n - 1}", "prism": prism}
answer(*[] if snapshot["running"] else [placement])
"""
)

# Always node 0.
STUBBORN = ANSWER + 'answer({"request": request["id"], "nodes": "0"})'

# Too late the first time it is asked for a job.
SLOW_AT_FIRST = BY_NUMBER.replace(
    "taken = set()",
    """if open(__file__.replace("allocator.py", "asked")).read().split().count(request["id"]) == 1:
    time.sleep(60)
taken = set()""",
)

# The same on a tree.
LEAVES = ANSWER + NUMBERS + 'answer({"request": request["id"], "nodes": ["n" + n for n in free]})'


def program(folder: Path, text: str) -> str:
    """Return the command line of a Python program."""
    path = folder / "allocator.py"
    path.write_text(text)
    return shlex.join([sys.executable, "-I", str(path)])


def allocator(folder: Path, text: str) -> Allocator:
    return command_allocator(f"mine={program(folder, text)}")


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text().split()


def test_an_allocator_of_ones_own_is_replayed_by_the_same_rules(tmp_path: Path) -> None:
    replay = Replay(empty(), log_of(*GAP), allocator(tmp_path, BY_NUMBER))
    replay.run()
    assert spans(replay) == {"a": (0, 10), "c": (2, 10), "b": (10, 15), "d": (15, 23)}
    assert replay.decisions is not None
    assert replay.decisions.asked == len(asked(tmp_path)) == 4
    assert replay.snapshot("end").running == []


def test_prisms_are_kept_and_decide_what_fits_if_asked_for(tmp_path: Path) -> None:
    # On a ring of 6 a prism of 4 uses all links: b fits by nodes, but has no prism.
    jobs = [LogJob("a", 4, 0, 10, 10, HALF), LogJob("b", 2, 1, 5, 5, HALF)]
    mine = allocator(tmp_path, ALONE)
    for in_prisms, questions in ((False, ["a", "b", "b"]), (True, ["a", "b"])):
        one = Allocator(mine.name, mine.arguments, mine.source, in_prisms=in_prisms)
        replay = Replay(empty("torus:6"), jobs, one)
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
    command, folder = program(tmp_path, STUBBORN), tmp_path / "snapshots"
    args = ["replay", log, "--on", "torus:4x4", "--command", f"mine={command}"]
    args += ["--intensive", "0", "--snapshots", str(folder), "--every", "1"]
    assert run([*args, "--json", "-o", str(tmp_path / "r.json")]) == ExitCode.CHECK_FAILED
    said = capsys.readouterr()
    verdict = json.loads(said.out)
    assert (verdict["fault"], verdict["breaches"][0]["node"]) == ("breach", 0)
    assert "job-2: mine: breach: 2 has node 0 on router 0, held by running job 1" in said.err
    assert not (tmp_path / "r.json").exists()
    again = ["place", str(folder / "job-2-refused.json"), "--command", f"mine={command}"]
    assert run(again) == ExitCode.CHECK_FAILED
    assert verdict["text"] in capsys.readouterr().err


@pytest.mark.parametrize("script", ["exit 3", "echo nonsense"])
def test_a_failure_ends_the_replay(script: str) -> None:
    one = command_allocator(f"mine=sh -c {shlex.quote(script)}")
    with pytest.raises(VerdictError) as caught:
        Replay(empty(), log_of((1, 0, 1, 1)), one).run()
    assert caught.value.exit_code is ExitCode.CHECK_FAILED


def test_an_answer_too_late_starts_nothing_now(tmp_path: Path) -> None:
    jobs = log_of((4, 0, 10, 10), (4, 1, 5, 5), (4, 2, 5, 5))
    mine = allocator(tmp_path, SLOW_AT_FIRST)
    replay = Replay(empty(), jobs, mine, Options(time_limit=0.5))
    replay.run()
    # Everybody is asked again at the next event, of which there is none after c came.
    assert spans(replay) == {"a": (1, 11), "b": (2, 7), "c": (7, 12)}
    assert replay.decisions is not None
    assert replay.decisions.timed_out == replay.decisions.nowhere == 3


def test_on_a_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path, QUEUED)
    args = ["replay", log, "--on", "tree:2x4", "--intensive", "0", "--command"]
    args += [program(tmp_path, LEAVES)]
    assert run([*args, "--json"]) == ExitCode.DONE
    default, mine = json.loads(capsys.readouterr().out)["runs"]
    assert (default["method"], mine["method"]) == ("default", "command")
    assert mine["wait"] == default["wait"] > 0
    assert mine["decisions"]["asked"] == len(asked(tmp_path))
    assert run([*args, "--protocol", "individual"]) == ExitCode.BAD_INPUT
    assert "individual runs" in one_line_error(capsys)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], "--method"),
        (["--method", "best-fit", "--command", "true"], "--command"),
        (["--method", "best-fit", "--prisms"], "--prisms"),
        (["--method", "no-such"], "method"),
        (["--command", "no-such-program-here"], "command"),
    ],
)
def test_bad_options(
    options: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path, QUEUED)
    assert run(["replay", log, "--on", "torus:4x4", *options]) == ExitCode.BAD_INPUT
    assert named in one_line_error(capsys)


def test_jobs_that_look_alike_are_one_question_while_nothing_changes() -> None:
    # b fits when a ends; every c would then be in its way.
    jobs = [(8, 0, 10, 10), (14, 1, 5, 5), *[(2, 2, 99, 99)] * 8]
    replay = Replay(empty(), log_of(*jobs), "first-fit")
    replay.run(until=9)
    assert replay.decisions is not None
    assert replay.decisions.asked == 2
    replay.run()
    starts = [start for start, _ in spans(replay).values()]
    assert sorted(starts) == [0, 10, *[15] * 8]


def test_exact_says_which_of_its_decisions_it_proved() -> None:
    replay = Replay(empty(), log_of(*GAP), "exact", Options(time_limit=20))
    replay.run()
    assert replay.decisions is not None
    assert replay.decisions.proven == replay.decisions.asked == 4
