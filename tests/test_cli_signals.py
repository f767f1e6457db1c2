"""Ctrl-C and SIGTERM: a run ends soon, with its exit code, and leaves no part of a file."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from small_snapshot import write_small
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.snapshot.files import write_text

COMMAND = ["place", "snapshot.json", "--method", "sleepy", "-o", "r.json", "--png", "r.png"]

PROGRAM = """
import hashlib, sys, time
from pathlib import Path
from topoplace.cli import main
from topoplace.placement.solve import register

@register("sleepy", "never ends")
def sleepy(problem, options):
    Path("started").touch()
    if {native}:  # one long call into native code, deaf to Python's signal handlers
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
    time.sleep(600)

main()
"""


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_during_a_solve(
    number: signal.Signals, code: int, native: bool, tmp_path: Path
) -> None:
    write_small(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(native=native), *COMMAND],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    assert native or err == "topoplace: interrupted\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["snapshot.json", "started"]


def ended(program: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own to its end."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=120,
        check=False,
    )


INSIDE_PYDANTIC = """
import os, signal
from pydantic import BaseModel, field_serializer
from topoplace.cli import main
from topoplace.placement.solve import register

class Document(BaseModel):
    number: int = 0

    @field_serializer("number")
    def interrupted(self, number: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return number

@register("sleepy", "interrupted while it writes JSON")
def sleepy(problem, options):
    Document().model_dump_json()
    raise AssertionError("the signal went unheard")

main()
"""


def test_a_signal_that_pydantic_makes_an_error_of(tmp_path: Path) -> None:
    write_small(tmp_path)
    process = ended(INSIDE_PYDANTIC, tmp_path, *COMMAND)
    assert (process.returncode, process.stderr) == (130, "topoplace: interrupted\n")
    assert [p.name for p in tmp_path.iterdir()] == ["snapshot.json"]


AT_ANY_STEP = """
import sys
from pathlib import Path
from topoplace.snapshot.files import write_text

def interrupted_at(step):  # raise before that bytecode of a write; was it reached?
    def trace(frame, event, argument):
        nonlocal step
        frame.f_trace_opcodes = True
        if event == "opcode":
            step -= 1
            if step == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        write_text("r.json", "new")
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False

path, seen, step, reached = Path("r.json"), set(), 0, True
while reached:
    step += 1
    path.write_text("old")
    reached = interrupted_at(step)
    assert [p.name for p in Path().iterdir()] == ["r.json"], step
    seen.add(path.read_text())
assert step > 50 and seen == {"old", "new"}, (step, seen)
print("done")
"""


def test_an_interrupt_at_any_step_of_a_write_leaves_a_whole_file(tmp_path: Path) -> None:
    process = ended(AT_ANY_STEP, tmp_path)
    assert process.stdout == "done\n", process.stderr


def test_the_handlers_are_put_back() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    assert run(["--version"]) == 0
    assert {number: signal.getsignal(number) for number in before} == before


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(InputError, match="a folder that can be written"):
            write_text(path, "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize("path", [".", "/", ""])
def test_a_folder_is_no_file_to_write(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="a folder that can be written"):
        write_text(path, "new")
