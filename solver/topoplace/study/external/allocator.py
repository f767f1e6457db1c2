"""An external allocator: a command or a Python entry point, its run, and how it may fail.

Its run is limited in time and output, and leaves nothing behind. Worker processes read this before
they have set their environment: nothing here imports numpy.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import json
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace import clock
from topoplace.errors import ExitCode, InputError, TopoplaceError, unknown_name
from topoplace.given import plain
from topoplace.interrupts import ended_in_time, is_asked
from topoplace.study.external.call import GROUP

if TYPE_CHECKING:
    from topoplace.snapshot.schema import MappingInstance, Snapshot

DEFAULT_SECONDS = 120.0
"""Time limit if the user sets none: that of the exact method."""

Function = Callable[[dict[str, Any], float], Any]
"""An allocator in Python: it gets an instance and the seconds that it may take."""

_NAMED = re.compile(r"([A-Za-z0-9_.-]{1,64})=(.+)", re.DOTALL)


@dataclass(frozen=True)
class Allocator:
    """A program, or a function of Python in this process, that places queues.

    Attributes
    ----------
    arguments
        The program and its arguments; ``{seconds}`` stands for the time limit.
    source
        The program that was run, for the result's `versions`.
    environment
        Variables to set for it.
    in_prisms
        In a replay on a torus: whether a job fits only if a prism can hold it.
    function
        Is called in place of a program.
    """

    name: str
    arguments: tuple[str, ...]
    source: str
    environment: dict[str, str] = field(default_factory=dict)
    in_prisms: bool = False
    function: Function | None = None


def function_allocator(function: Function, ours: Collection[str] = ()) -> Allocator:
    """Return the allocator of a function, called as that; `InputError` if a method of ours is."""
    called = getattr(function, "__qualname__", type(function).__qualname__)
    name = re.sub(r"\W+", "", called.rpartition(".")[2]) or "function"
    if name in ours:
        raise InputError("a function with a name no other method has", field="method", value=name)
    return Allocator(name, (), f"{function.__module__}.{called}", function=function)


def command_allocator(text: str, default_name: str = "command") -> Allocator:
    """Return the allocator of a command line such as ``prog args`` or ``NAME=prog args``."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"a command line ({error})", field="command", value=text) from None
    if not words or not words[0]:
        raise InputError("a program and its arguments", field="command", value=text)
    named = _NAMED.fullmatch(words[0])
    name = default_name
    if named is not None:
        name, words[0] = named[1], named[2]
    return Allocator(name, tuple(words), shlex.join(words))


def command_allocators(texts: Iterable[str], ours: Collection[str]) -> list[Allocator]:
    """Return the allocators of several command lines; raise `InputError` if two have one name."""
    found: dict[str, Allocator] = {}
    for idx, text in enumerate(texts):
        allocator = command_allocator(text, f"command-{idx + 1}" if idx else "command")
        if allocator.name in found or allocator.name in ours:
            raise InputError("a name no other method has", field="command", value=allocator.name)
        found[allocator.name] = allocator
    return list(found.values())


def entry_point_names() -> list[str]:
    """Return the names of the installed allocators, without importing them."""
    return sorted(entry_points(group=GROUP).names)


def chosen(method: str | Function, command: str | None, ours: Collection[str]) -> str | Allocator:
    """Return the one that places: a method of ours by name, or an allocator."""
    if command is not None:
        return command_allocators([command], ours)[0]
    if not isinstance(method, str):
        return function_allocator(method, ours)
    return method if method in ours else _installed(method, ours)


def fingerprint(method: str | None, command: str | None) -> str | None:
    """Return what an allocator's answers depend on, as far as it is known; None for our methods.

    That is the command line with a hash of every file it names, or the entry point and the version
    of its package. A change of a package without a new version is not detected.
    """
    if command is None:
        if method is None or method not in entry_point_names():
            return None
        return _installed(method, ()).source
    allocator = command_allocator(command)
    parts = [allocator.source]
    for word in allocator.arguments:
        path = Path(shutil.which(word) or word)
        if path.is_file():
            with path.open("rb") as stream:
                parts.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return " ".join(parts)


def _installed(name: str, ours: Collection[str]) -> Allocator:
    entries = entry_points(group=GROUP)
    if name not in entries.names:
        raise unknown_name(name, [*ours, *entry_point_names()], field="method")
    entry = entries[name]
    # -P: a file json.py in the current folder is not the standard library's
    arguments = (sys.executable, "-P", "-m", "topoplace.study.external.call", name, "{seconds}")
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    version = "" if entry.dist is None else f" ({entry.dist.name} {entry.dist.version})"
    return Allocator(name, arguments, f"{entry.value}{version}", {"PYTHONPATH": path})


# ---- Running an untrusted program ----------------------------------------------------------------


MAX_ANSWER_BYTES = 16 << 20
"""A program that prints more is killed: a million node names on a tree take 15 MiB."""

MAX_STDERR_BYTES = 256 << 10
"""Bytes of the end of a program's stderr that are kept."""

GRACE_SECONDS = 0.5
"""A program that obeys its time limit needs a moment to print its answer."""

_LOOK_AGAIN_SECONDS = 0.05
_CHUNK_BYTES = 1 << 16

# Loaded here, as little as possible must happen between fork and exec.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


class End(StrEnum):
    """How a run ended: by itself, by an exception, or killed because of its time or its output."""

    EXITED = "exited"
    RAISED = "raised"
    TIME_OUT = "time-out"
    TOO_MUCH = "too-much"


@dataclass(frozen=True)
class Run:
    """The run of a program, and its seconds of wall time.

    `code` is the negated number of a signal that ended it. It has all of stdout, up to a byte above
    `MAX_ANSWER_BYTES`, and the end of stderr. A function has an `error` if it raised one.
    """

    end: End
    code: int
    stdout: bytes
    stderr: str
    seconds: float
    error: BaseException | None = None


def placements_of(answer: Any) -> Any:
    """Return the document of placements that the answer of a function stands for.

    That is such a document, its list of placements, or by request its nodes, or the other fields
    of its placement.
    """
    if isinstance(answer, Mapping) and "placements" not in answer:
        answer = [
            {"request": name, **(own if isinstance(own, Mapping) else {"nodes": own})}
            for name, own in answer.items()
        ]
    if isinstance(answer, list):
        answer = {"placements": answer}
    return {"schema": "topoplace.placements/1"} | answer if isinstance(answer, dict) else answer


@dataclass(frozen=True)
class _Answer:
    """What a function returned or raised, as `ended_in_time` takes it; an `Outcome` loads numpy."""

    solution: bytes | Exception | None


def run_function(
    function: Function,
    document: dict[str, Any],
    seconds: float,
    form: Callable[[Any], Any] = lambda answer: answer,
) -> Run:
    """Call a function on a document, and return what it did as a program would.

    It is in a thread that is left behind `GRACE_SECONDS` after `seconds`. Its answer, in which
    numbers and arrays of numpy are those of Python, is brought into a form that JSON has.
    """

    def called() -> Any:
        try:
            return _Answer(json.dumps(form(plain(function(document, seconds)))).encode())
        except Exception as error:
            return _Answer(error)

    late: Any = _Answer(None)
    began = clock.ticks()
    limit = seconds + GRACE_SECONDS
    ended = ended_in_time(called, lambda: None if is_asked() else late, limit, lambda: None)
    took, found = clock.ticks() - began, ended.solution
    if isinstance(found, Exception):
        said = "".join(traceback.format_exception(found))
        return Run(End.RAISED, 1, b"", said, took, found)
    return Run(End.TIME_OUT if ended is late else End.EXITED, 0, found or b"", "", took)


def run_program(
    arguments: Sequence[str],
    text: bytes,
    seconds: float,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Run a program on a text, without a shell, and return what it did.

    It and all its children that stay in its process group are dead on return: they are killed
    `GRACE_SECONDS` after `seconds`. `environment` adds to the inherited one.

    Raises
    ------
    InputError
        If there is no such program, or it cannot be started.
    """
    # A file, not a pipe: a program that never reads its stdin must not block the writer.
    with tempfile.TemporaryFile() as stdin:
        stdin.write(text)
        stdin.seek(0)
        began = time.perf_counter()
        try:
            process = subprocess.Popen(
                arguments,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                preexec_fn=_end_with_parent if _LIBC is not None else None,  # noqa: PLW1509
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise InputError(
                f"a program that can be run ({reason})", field="command", value=arguments[0]
            ) from None
    stdout, stderr = bytearray(), bytearray()
    with process:
        try:
            end = _listen(process, clock.deadline(seconds + GRACE_SECONDS), stdout, stderr)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    took = time.perf_counter() - began
    return Run(end, code, bytes(stdout), stderr.decode(errors="replace"), took)


def _end_with_parent() -> None:
    """Have the system kill this process when its parent dies; called in the new process.

    A parent that is killed itself, as a worker of a batch may be, has no chance to do so.
    """
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _listen(
    process: subprocess.Popen[bytes], deadline: float, stdout: bytearray, stderr: bytearray
) -> End:
    """Collect the output of a process until it ends or has to be ended."""
    with selectors.DefaultSelector() as selector:
        for pipe, kept in ((process.stdout, stdout), (process.stderr, stderr)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, kept)
        while selector.get_map():
            left = deadline - clock.now()
            if left <= 0:
                return End.TIME_OUT
            ready = selector.select(min(left, _LOOK_AGAIN_SECONDS))
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK_BYTES)
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
            if len(stdout) > MAX_ANSWER_BYTES:
                return End.TOO_MUCH
            if len(stderr) > MAX_STDERR_BYTES:
                del stderr[:-MAX_STDERR_BYTES]
            if not ready and process.poll() is not None:
                break  # only programs that it left running hold the pipes open
    try:
        process.wait(max(0.0, deadline - clock.now()))
    except subprocess.TimeoutExpired:
        return End.TIME_OUT
    return End.EXITED


# ---- Faults of its answer, and their exit codes --------------------------------------------------


VERDICT_SCHEMA = "topoplace.verdict/1"

MAX_BREACHES = 100
"""An answer that breaks more rules is not read any further."""

_SHOWN_CHARACTERS = 200


class Fault(StrEnum):
    """How an allocator failed: by the content of its answer, its form, or by no answer."""

    BREACH = "breach"
    BAD_OUTPUT = "bad-output"
    FAILED = "failed"
    TIME_OUT = "time-out"


@dataclass(frozen=True)
class Breach:
    """A rule that an answer breaks.

    `text` is one sentence that names the job and the node, router or link at fault; the others say
    the same for programs. A node is a number on a torus, a name on a tree.
    """

    text: str
    request: str | None = None
    node: int | str | None = None
    link: int | None = None

    @property
    def line(self) -> str:
        """The sentence without control characters for terminals."""
        return printable(self.text)


class VerdictError(TopoplaceError):
    """Raised if an allocator gets a verdict in place of a result; `document` has it whole.

    `snapshot` is its input. The exit code is 4 if time ran out, else 5.
    """

    def __init__(
        self,
        snapshot: Snapshot | MappingInstance,
        allocator: str,
        stderr: str,
        fault: Fault,
        text: str,
        breaches: Sequence[Breach] = (),
    ) -> None:
        self.snapshot, self.fault, self.breaches = snapshot, fault, breaches
        timed_out = fault is Fault.TIME_OUT
        self.exit_code = ExitCode.NO_SOLUTION if timed_out else ExitCode.CHECK_FAILED
        self.document: dict[str, object] = {
            "schema": VERDICT_SCHEMA,
            "snapshot": snapshot.name,
            "method": allocator,
            "fault": fault,
            "text": text,
            "breaches": [dataclasses.asdict(breach) for breach in breaches],
            "stderr": stderr,
        }
        super().__init__(printable(f"{snapshot.name}: {allocator}: {fault}: {text}"))


def printable(text: str) -> str:
    """Return a text of unknown origin without control characters for terminals."""
    return "".join(c if c.isprintable() else " " for c in text)


def last_words(stderr: str) -> str:
    """Return the last line a program wrote, short and free of control characters."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    line = printable(lines[-1]).strip() if lines else ""
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
