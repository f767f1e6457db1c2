"""Runs of allocators that are not ours: time, output, crashes, Python functions, comparisons."""

from __future__ import annotations

import json
import re
import resource
import time
from pathlib import Path

import pytest

from batch_runs import alive, wait_until
from external_answers import (
    FIRST,
    answer_of,
    command_printing,
    tree_document,
    verdict_of,
    write_document,
)
from topoplace.certify import check_document
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.result import PlacementResult
from topoplace.study.external.allocator import (
    command_allocator,
    command_allocators,
)
from topoplace.study.external.program import MAX_STDERR_BYTES, run_program


def shell(script: str) -> str:
    return f"sh -c '{script}'"


@pytest.mark.parametrize(
    ("script", "code", "named"),
    [
        ("exit 3", 5, "failed: exit code 3"),
        ("echo no database >&2; exit 3", 5, 'failed: exit code 3; it said "no database"'),
        ("kill -SEGV $$", 5, "failed: ended by signal 11"),
        ("kill -36 $$", 5, "failed: ended by signal 36"),
        ("true", 5, "bad-output: answer: expected a JSON document"),
        ('printf "\\033[2Jbye" >&2; exit 1', 5, 'failed: exit code 1; it said "[2Jbye"'),
    ],
)
def test_programs_that_fail(
    script: str, code: int, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, said = verdict_of(tmp_path, shell(script), capsys)
    assert found == code
    assert f"small: command: {named}" in said


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_program_that_hangs_is_killed_with_its_children(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = tmp_path / "pid"
    began = time.perf_counter()
    command = shell(f"sleep 60 & echo $! > {pid}; wait")
    code, said = verdict_of(tmp_path, command, capsys, None, "--time-limit", "1")
    assert code == ExitCode.NO_SOLUTION
    assert "small: command: time-out: no answer within the time limit" in said
    assert time.perf_counter() - began < 20
    wait_until(lambda: not alive(int(pid.read_text())), 10)


def test_what_is_printed_before_the_time_limit_counts(tmp_path: Path) -> None:
    path, output = write_document(tmp_path), tmp_path / "r.json"
    printing = command_printing(tmp_path, answer_of([FIRST]))
    command = shell(f"{printing}; sleep 60")
    args = ["place", str(path), "--command", command, "--time-limit", "0.3", "-o", str(output)]
    assert run(args) == ExitCode.DONE
    result = PlacementResult.model_validate_json(output.read_text())
    assert result.limits.hit
    assert result.objective == 8
    assert check_document(result).holds


def test_what_a_program_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    printing = command_printing(tmp_path, answer_of([]))
    command = shell(f"{printing}; sleep 60 &")
    began = time.perf_counter()
    assert run(["place", str(write_document(tmp_path)), "--command", command]) == ExitCode.DONE
    assert time.perf_counter() - began < 20


def test_a_program_that_prints_a_gigabyte_is_cut_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict_of(tmp_path, "true", capsys)  # what is imported counts for neither
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    code, said = verdict_of(tmp_path, "head -c 1000000000 /dev/zero", capsys)
    assert code == ExitCode.CHECK_FAILED
    assert "small: command: bad-output: it printed more than 16 MiB" in said
    assert time.perf_counter() - began < 20
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100 << 10  # KiB


def test_of_a_long_stderr_the_end_is_kept() -> None:
    done = run_program(["sh", "-c", "head -c 9000000 /dev/zero >&2; echo last >&2"], b"", 9)
    assert len(done.stderr) == MAX_STDERR_BYTES
    assert done.stderr.endswith("\0last\n")


def test_a_program_that_never_reads_blocks_nobody() -> None:
    done = run_program(["true"], b"x" * (8 << 20), 9)
    assert (done.code, done.stdout) == (0, b"")


@pytest.mark.parametrize("command", ["no-such-program-here", "/", "", "'", "a=", "exact=true"])
def test_commands_that_cannot_be_run_are_bad_input(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = verdict_of(tmp_path, command, capsys)
    assert code == ExitCode.BAD_INPUT
    assert "command: " in said


def test_names_of_commands() -> None:
    named = command_allocator("mine=perl -w 'a b.pl' x=1")
    assert (named.name, named.arguments) == ("mine", ("perl", "-w", "a b.pl", "x=1"))
    names = [one.name for one in command_allocators(["true", "b=true", "true"], ["exact"])]
    assert names == ["command", "b", "command-3"]
    with pytest.raises(InputError, match="a name no other method has"):
        command_allocators(["b=true", "b=false"], [])


def test_method_and_command_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = verdict_of(tmp_path, "true", capsys, None, "--method", "exact")
    assert code == ExitCode.BAD_INPUT
    assert "either --method or --command" in said


def test_the_program_is_told_the_options(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"echo $TOPOPLACE_TIME_LIMIT $TOPOPLACE_INTERFERENCE $TOPOPLACE_SEED > {told}"
    more = ["--time-limit", "7", "--interference", "off", "--seed", "5"]
    args = ["place", str(write_document(tmp_path)), "--command", shell(script), *more]
    assert run(args) == ExitCode.CHECK_FAILED
    assert told.read_text() == "7 off 5\n"


def test_stderr_is_kept_and_its_end_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printing = command_printing(tmp_path, answer_of([FIRST]))
    command, kept = shell(f"echo one >&2; echo two >&2; {printing}"), tmp_path / "stderr.txt"
    args = ["place", str(write_document(tmp_path)), "--command", command, "--stderr", str(kept)]
    assert run(args) == ExitCode.DONE
    assert "small: command said: two" in capsys.readouterr().out
    assert kept.read_text() == "== command on small\none\ntwo\n"


def test_compare_goes_on_and_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = command_printing(tmp_path, answer_of([FIRST]))
    args = ["compare", str(write_document(tmp_path)), "--methods", "exact"]
    args += ["--command", f"good={good}", "--command", "false", "--time-limit", "0.3"]
    assert run([*args, "--command", "slow=sleep 60"]) == ExitCode.CHECK_FAILED
    said = capsys.readouterr().out
    assert re.search(r"\n +good +8 +16 +100.00 % .* 1/3 +0 +feasible", said), said
    assert re.search(r"\n +command-2 +- +16 +- ", said)
    assert "\nsmall: command-2: failed: exit code 1\n" in said
    assert "\nsmall: slow: time-out: no answer within the time limit\n" in said
    assert run([*args[:5], f"good={good}", "--command", "slow=sleep 60", *args[-2:], "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    rows = {row["method"]: row for row in document["rows"]}
    assert (rows["good"]["levels"][0]["bound"], rows["good"]["conforming"]) == (16, True)
    assert rows["slow"]["levels"][0]["objective"] is None
    assert [verdict["fault"] for verdict in document["verdicts"]] == ["time-out"]


def test_compare_on_a_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_document(tmp_path, tree_document())
    placements = [{"request": "talks", "nodes": ["n4", "n5", "n6"]}]
    command = command_printing(tmp_path, answer_of(placements))
    args = ["compare", str(path), "--methods", "default", "--command", command]
    assert run(args) == ExitCode.DONE
    assert re.search(r"\n +command +3 ", capsys.readouterr().out)
