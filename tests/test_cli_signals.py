"""Ctrl-C and SIGTERM: a run ends soon, with its exit code, and leaves no part of a file."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from small_snapshot import write_small
from topoplace.certify import check_file
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.snapshot.files import write_text

COMMAND = ["place", "snapshot.json", "--method", "sleepy", "-o", "r.json", "--png", "r.png"]

PROGRAM = """
import hashlib, sys, time
from pathlib import Path
from topoplace.cli import main
from topoplace.solving import register

@register("placement", "sleepy", "never ends")
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
from topoplace.solving import register

class Document(BaseModel):
    number: int = 0

    @field_serializer("number")
    def interrupted(self, number: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)  # ends the search
        os.kill(os.getpid(), signal.SIGINT)  # insists
        return number

@register("placement", "sleepy", "interrupted while it writes JSON")
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


SHIPPED = Path(__file__).resolve().parent.parent / "instances" / "snapshots"


def a_long_solve(name: str, folder: Path) -> Path:
    """Return a snapshot that takes longer to prove than a test waits."""
    if name == "torus":
        return SHIPPED / "blue_waters_20.json"
    rng = random.Random("a long solve")
    nodes = [f"n{k}" for k in range(384)]
    switches = [
        {"name": f"s{k}", "nodes": ",".join(nodes[16 * k : 16 * k + 16])} for k in range(24)
    ]
    root = {"name": "root", "switches": ",".join(switch["name"] for switch in switches)}
    rng.shuffle(nodes)
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "long",
        "machine": {"kind": "tree", "name": "tree", "switches": [*switches, root]},
        "running": [
            {"id": "a", "nodes": ",".join(nodes[:70])},
            {"id": "b", "nodes": ",".join(nodes[70:140]), "communication": "none"},
        ],
        "queue": [
            {"id": f"q{k}", "nodes": 60 + k, "patterns": [{"pattern": "binomial"}]}
            for k in range(3)
        ],
    }
    file = folder / "long.json"
    file.write_text(json.dumps(document))
    return file


def interrupted(name: str, number: signal.Signals, seconds: float, folder: Path) -> int:
    """Interrupt a solve after some seconds, check what it leaves, and return its exit code."""
    snapshot = a_long_solve(name, folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "topoplace", "place", str(snapshot), "-o", "r.json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        time.sleep(seconds)
        assert process.poll() is None, process.communicate()
        begun = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    print(f"{name}, {number.name} after {seconds:.2f} s: {time.monotonic() - begun:.2f} s")
    assert "internal error" not in err
    left = {file.name for file in folder.iterdir()} - {"long.json"}
    if process.returncode:
        assert process.returncode == 128 + number
        assert not left
        return process.returncode
    assert left == {"r.json"}
    report = check_file(folder / "r.json")
    assert report.holds, report.failures
    document = json.loads((folder / "r.json").read_text())
    assert document["limits"]["hit"]
    assert document["solution"] is not None
    return 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("name", ["torus", "tree"])
def test_an_interrupted_solve_returns_its_best_answer(
    name: str, number: signal.Signals, tmp_path: Path
) -> None:
    assert interrupted(name, number, 8.0, tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torus", "tree"])
def test_a_solve_can_be_interrupted_at_any_moment(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    for turn in range(100):
        folder = tmp_path / str(turn)
        folder.mkdir()
        number = rng.choice([signal.SIGINT, signal.SIGTERM])
        interrupted(name, number, rng.uniform(0.05, 12.0), folder)
