"""Ctrl-C and SIGTERM: a run ends soon, with its exit code, and leaves no part of a file."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from batch_runs import environment, signalled
from small_snapshot import write_small
from topoplace import interrupts
from topoplace.certify import check_file
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.snapshot.files import write_text

PROGRAM = """
import hashlib, sys, time
from pathlib import Path
import numpy as np
from topoplace.cli import main
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.mapped import Mapped
from topoplace.solving import register

@register("mapping", "endless", "reports, if it is told to, and never ends")
def endless(problem, options):
    if {reports}:
        for answer in (np.array([0, 2, 1, 3]), np.array([3, 1, 2, 0])):
            options.report(Mapped(answer), [hop_bytes(problem, answer)])
    Path("started").touch()
    if {native}:  # one long call into native code, deaf to Python's signal handlers
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
    time.sleep(600)

main()
"""


def endless(
    folder: Path, number: signal.Signals | None, *more: str, native: bool, reports: bool
) -> tuple[int, list[str]]:
    """Map by what never ends; return the exit code and what is said on stderr."""
    (folder / "square.csv").write_text("0,9,0,9\n9,0,9,0\n0,9,0,9\n9,0,9,0\n")
    program = PROGRAM.format(native=native, reports=reports)
    words = ["map", "--graph", "square.csv", "--on", "torus:4", "--method", "endless"]
    words += ["-o", "r.json", "--csv", "r.csv", *more]
    done = signalled(["-c", program, *words], folder, number)
    assert (done.stdout == "") == (done.returncode != 0)
    said = done.stderr.splitlines()
    return done.returncode, [line for line in said if not line.startswith("compiling kernels")]


@pytest.mark.parametrize(("number", "native"), [(signal.SIGINT, False), (signal.SIGTERM, True)])
def test_a_signal_before_any_answer(number: signal.Signals, native: bool, tmp_path: Path) -> None:
    found = endless(tmp_path, number, native=native, reports=False)
    assert found == (128 + number, ["topoplace: interrupted"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["square.csv", "started"]


@pytest.mark.parametrize(("limit", "native"), [(None, True), (1, True), (1, False)])
def test_the_best_so_far_is_the_answer(limit: int | None, native: bool, tmp_path: Path) -> None:
    """A method that does not end by itself is left behind, also past its time limit."""
    number, more = (None, ("--time-limit", "1")) if limit else (signal.SIGINT, ())
    assert endless(tmp_path, number, *more, native=native, reports=True) == (0, [])
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["limits"] == {"time_limit": limit, "hit": True, "first_level": None}
    assert found["seconds"] < 3 or not limit  # one more than promised, for a machine that is busy
    assert (found["objective"], found["bound"]) == (108, 72)
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 5
    assert check_file(tmp_path / "r.json").holds


INSIDE_PYDANTIC = """
import os, signal
from pydantic import BaseModel, field_serializer
from topoplace.cli import main
from topoplace.cli.app import app

class Document(BaseModel):
    number: int = 0

    @field_serializer("number")
    def interrupted(self, number: int) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return number

@app.command()
def dump() -> None:
    Document().model_dump_json()
    raise AssertionError("the signal went unheard")

main()
"""


def test_a_signal_that_pydantic_makes_an_error_of(tmp_path: Path) -> None:
    process = signalled(["-c", INSIDE_PYDANTIC, "dump"], tmp_path, None)
    assert (process.returncode, process.stderr) == (143, "topoplace: interrupted\n")


WHILE_WRITING = """
import os, signal
from topoplace.cli import main
from topoplace.snapshot import files

def write(path, document, before=files.write_document):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    before(path, document)

files.write_document = write
main()
"""


def test_a_signal_during_writing_does_not_lose_the_answer(tmp_path: Path) -> None:
    write_small(tmp_path)
    command = ["place", "snapshot.json", "--method", "first-fit", "-o", "r.json"]
    process = signalled(["-c", WHILE_WRITING, *command], tmp_path, None)
    assert process.returncode == 0
    assert check_file(tmp_path / "r.json").holds


IN_PYTHON = """
import os, signal, threading, time
from topoplace.snapshot.machines import load_any
from topoplace.solving import Interrupted, Options, heeded, register, solve

@register("placement", "sleepy", "has one answer and never ends")
def sleepy(problem, options):
    if options.seed:
        options.report([], [0, 0, 0])
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)

state = load_any("snapshot.json")
before = signal.getsignal(signal.SIGINT)
assert solve(state, "sleepy", Options(seed=1)).limits.hit
assert signal.getsignal(signal.SIGINT) is before
try:
    solve(state, "sleepy")
except KeyboardInterrupt:
    print("interrupted")
assert signal.getsignal(signal.SIGINT) is before
with heeded() as interrupt:
    solve(state, "sleepy", Options(seed=1))
    assert interrupt
    try:
        solve(state, "first-fit")
    except Interrupted:
        print("no other solve is begun")
assert not solve(state, "first-fit").limits.hit
"""


def test_a_solve_in_python_ends_with_its_best(tmp_path: Path) -> None:
    write_small(tmp_path)
    process = signalled(["-c", IN_PYTHON], tmp_path, None)
    assert process.stdout == "interrupted\nno other solve is begun\n", process.stderr


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
    process = signalled(["-c", AT_ANY_STEP], tmp_path, None)
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
    for folder in (tmp_path, "/", ""):
        with pytest.raises(InputError, match="a folder that can be written"):
            write_text(folder, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def through_a_shell(words: str, folder: Path, unbuffered: str = "") -> tuple[int, list[str]]:
    """Run topoplace with redirections; return the exit code and what is said on stderr."""
    done = subprocess.run(
        ["/bin/bash", "-c", f'"$0" -m topoplace {words}', sys.executable],
        cwd=folder,
        env=environment() | {"PYTHONUNBUFFERED": unbuffered},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_ends_the_command_in_silence(unbuffered: str, tmp_path: Path) -> None:
    write_small(tmp_path)
    words = "convert snapshot.json --from snapshot | true; exit ${PIPESTATUS[0]}"
    assert through_a_shell(words, tmp_path, unbuffered) == (141, [])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_is_full_is_one_line(unbuffered: str, tmp_path: Path) -> None:
    told = "topoplace: error: stdout: expected an output that can be written (No space left on "
    found = through_a_shell("--version > /dev/full", tmp_path, unbuffered)
    assert found == (2, [f"{told}device)"])


def test_closed_streams_are_empty_ones(tmp_path: Path) -> None:
    write_small(tmp_path)
    words = "convert snapshot.json --from snapshot -o made.json"
    assert through_a_shell(f"{words} >&- <&-", tmp_path) == (0, [])
    assert json.loads((tmp_path / "made.json").read_text())["name"] == "small"
    assert through_a_shell("check nowhere.json 2>&-", tmp_path) == (2, [])
    told = (
        "topoplace: error: stdin: expected a JSON document (Expecting value at line 1), found an "
    )
    assert through_a_shell("check - <&-", tmp_path) == (2, [f"{told}empty file"])


def test_a_link_goes_on_leading_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "latest").symlink_to("runs/1")
    write_text(tmp_path / "latest", "new")
    assert (tmp_path / "latest").is_symlink()
    assert [p.read_text() for p in (tmp_path / "runs").iterdir()] == ["new"]


SHIPPED = Path(__file__).resolve().parent.parent / "instances" / "snapshots"


def long_tree(folder: Path) -> None:
    """Write a snapshot of a tree that takes longer to prove than a test waits."""
    rng = random.Random("a long solve")
    nodes = [f"n{k}" for k in range(384)]
    rng.shuffle(nodes)
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "long",
        "machine": "tree:24x16",
        "running": [
            {"id": "a", "nodes": ",".join(nodes[:70])},
            {"id": "b", "nodes": ",".join(nodes[70:140]), "communication": "none"},
        ],
        "queue": [
            {"id": f"q{k}", "nodes": 60 + k, "patterns": [{"pattern": "binomial"}]}
            for k in range(3)
        ],
    }
    (folder / "long.json").write_text(json.dumps(document))


def long_graph(folder: Path) -> None:
    """Write a graph whose mapping takes longer to bound than a test waits."""
    rng = random.Random("a long map")
    pairs = sorted({(rng.randrange(400), rng.randrange(400)) for _ in range(3000)})
    rows = [f"{i},{j},{rng.randint(1, 9)}" for i, j in pairs if i != j]
    (folder / "graph.csv").write_text("\n".join(["source,target,bytes", *rows]) + "\n")


BLUE = str(SHIPPED / "blue_waters_20.json")
LONG = {
    "torus": ["place", BLUE, "-o", "r.json"],
    "tree": ["place", "long.json", "-o", "r.json"],
    "map": ["map", "--graph", "graph.csv", "--on", "torus:8x8x8", "-o", "r.json"],
    "compare": ["compare", BLUE, "--results", ".", "--methods", "exact,best-fit,alps-o2"],
}
AT_WORK = {"torus": "prices", "tree": "bounds of each", "map": "annealing", "compare": "prices"}
"""What the log says when there is something to answer, or soon will be."""


def interrupted(name: str, number: signal.Signals, seconds: float, folder: Path, at: str) -> int:
    """Interrupt a command some seconds after it says a word; check what it leaves.

    Returns its exit code.
    """
    long_tree(folder)
    long_graph(folder)
    known = {file.name for file in folder.iterdir()}
    arguments = ["-m", "topoplace", *LONG[name], "-v"]
    process = signalled(arguments, folder, number, at, seconds)
    left = sorted(file for file in folder.iterdir() if file.name not in known)
    print(f"{name}, {number.name} at {seconds:.2f} s: {process.returncode}, {left}")
    assert "internal error" not in process.stderr
    assert "Traceback" not in process.stderr
    if process.returncode:
        assert process.returncode in (128 + number, -number), process.stderr
        assert not left
        return process.returncode
    for file in left:
        report = check_file(file)
        assert report.holds, report.failures
        document = json.loads(file.read_text())
        assert document["limits"]["hit"] or name == "compare"
        assert document["solution"] is not None
    assert left
    return 0


@pytest.mark.parametrize(("name", "number"), list(zip(LONG, 2 * interrupts.SIGNALS, strict=True)))
def test_an_interrupted_command_has_its_best_answer(
    name: str, number: signal.Signals, tmp_path: Path
) -> None:
    assert interrupted(name, number, 0.5, tmp_path, AT_WORK[name]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_a_command_can_be_interrupted_at_any_moment(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    for turn in range(100 if "place" in LONG[name] else 30):
        folder = tmp_path / str(turn)
        folder.mkdir()
        interrupted(name, rng.choice(interrupts.SIGNALS), rng.uniform(0.05, 12.0), folder, "")


def test_tests_started_in_the_background_of_a_script_can_be_interrupted() -> None:
    """There SIGINT is ignored, and `conftest` hears it again."""
    heard = "import conftest, signal; print(signal.getsignal(signal.SIGINT).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", heard],
        cwd=Path(__file__).parent,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "default_int_handler\n"


# ---- While the command starts --------------------------------------------------------------------

WHILE_IMPORTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{signal})

sys.meta_path.insert(0, Interrupting())
from topoplace.__main__ import main
main()
"""


STARTING = ("topoplace.cli", "typer", "topoplace.cli.place", "pydantic")


@pytest.mark.parametrize(
    ("module", "number"), list(zip(STARTING, 2 * interrupts.SIGNALS, strict=True))
)
def test_a_signal_while_the_command_starts(
    module: str, number: signal.Signals, tmp_path: Path
) -> None:
    write_small(tmp_path)
    program = WHILE_IMPORTING.format(module=module, signal=number.name)
    done = signalled(["-c", program, "place", "snapshot.json"], tmp_path, None)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr == "topoplace: interrupted\n"


def test_little_is_imported_before_signals_are_heard() -> None:
    """A signal before that is Python's, which shows a traceback."""
    listed = "import sys; import topoplace.__main__; print('typing' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", listed],
        env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "False\n"


# ---- Outputs that cannot be written as they are --------------------------------------------------


THREE = """
import sys
from topoplace.cli import main

for more in (["--json"], [], ["--help"]):
    sys.argv[1:] = ["place", "named.json", "--method", "first-fit", *more]
    try:
        main()
    except SystemExit as left:
        assert left.code == 0, more
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_is_not_utf8(encoding: str, tmp_path: Path) -> None:
    name = "größe→🙂"
    document = json.loads(write_small(tmp_path).read_text()) | {"name": name}
    (tmp_path / "named.json").write_text(json.dumps(document))
    done = subprocess.run(
        [sys.executable, "-c", THREE],
        cwd=tmp_path,
        env=environment() | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown, _ = json.JSONDecoder().raw_decode(done.stdout.decode(encoding))
    assert shown["instance"]["name"] == name
    assert b"Traceback" not in done.stderr


def test_a_link_that_leads_to_itself_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = write_small(tmp_path)
    (tmp_path / "r.json").symlink_to("other.json")
    (tmp_path / "other.json").symlink_to("r.json")
    assert run(["place", str(snapshot), "--method", "first-fit", "-o", f"{tmp_path}/r.json"]) == 2
    told = "--output: expected a file in a folder that can be written (Too many levels of symbolic"
    assert told in capsys.readouterr().err
    with pytest.raises(InputError, match="Too many levels of symbolic links"):
        write_text(tmp_path / "r.json", "new")
    assert (tmp_path / "r.json").is_symlink()


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("is_room", [True, False])
def test_an_answer_that_cannot_be_written_is_not_lost(
    is_room: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    snapshot, wanted = write_small(tmp_path), tmp_path / "r.json"
    monkeypatch.setattr("topoplace.snapshot.files.os.fsync", full_disk)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    if is_room:
        (tmp_path / "temporary").mkdir()
    words = ["place", str(snapshot), "--method", "first-fit", "-o", str(wanted)]
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.out.startswith("small: ")
    found = list(tmp_path.glob("temporary/topoplace-*/r.json"))
    assert len(found) == is_room
    expected = f"{wanted}: expected a folder that can be written (No space left on device), found "
    found_text = f"none: it is in {found[0]}" if is_room else "none, and no temporary folder either"
    assert f"topoplace: error: {expected}{found_text}" in said.err
    if is_room:
        assert check_file(found[0]).holds
        assert f"result: {found[0]}" in said.out
    with pytest.raises(InputError):  # Python has the error
        write_text(wanted, "new")
