"""Running an untrusted program: limited in time and output, and never left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from topoplace import clock
from topoplace.errors import InputError

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
    """How a run ended: by itself, or killed because of its time or its output."""

    EXITED = "exited"
    TIME_OUT = "time-out"
    TOO_MUCH = "too-much"


@dataclass(frozen=True)
class Run:
    """The run of a program, and its seconds of wall time.

    `code` is the negated number of a signal that ended it. It has all of stdout, up to a byte above
    `MAX_ANSWER_BYTES`, and the end of stderr.
    """

    end: End
    code: int
    stdout: bytes
    stderr: str
    seconds: float


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
