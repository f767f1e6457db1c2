"""Solvers for worker processes, light to load: answers without work, and ways to fail."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from topoplace.study.batch.task import Task


def quick(task: Task) -> str:
    """Answer without a solver, so that a worker is there at once: nothing starts."""
    head = {"status": "feasible", "objective": int(task.key, 16) % 100, "bound": None}
    head |= {"gap": None, "proof": "none"}
    return json.dumps(
        {
            "schema": "topoplace.result/4",
            "problem": "placement",
            "method": task.settings.method,
            **head,
            "seconds": time.perf_counter(),
            "limits": {},
            "seed": task.settings.seed,
            "versions": {},
            "levels": [{"name": "nodes", "sense": "max", **head}],
            "solution": None,
            "instance": json.loads(task.document),
        }
    )


def slow(task: Task) -> str:
    """Answer after a twentieth of a second."""
    time.sleep(0.05)
    return quick(task)


def poisoned(task: Task) -> str:
    """Answer, unless the name of the instance says how to fail."""
    made = POISONS.get(json.loads(task.document)["name"], lambda: None)()
    return made if isinstance(made, str) else quick(task)


def poisoned_slowly(task: Task) -> str:
    """The same, after a tenth of a second."""
    time.sleep(0.1)
    return poisoned(task)


def hoarding(task: Task) -> str:
    """Keep 64 MB for good, take as much in pieces; answer with the memory held before."""
    there = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    _HOARD.append(b"x" * (64 << 20))
    pieces = [bytes(1 << 10) for _ in range(64 << 10)]
    _HOARD.append(pieces.pop())  # it lies above the others
    return json.dumps(json.loads(quick(task)) | {"versions": {"there": str(there)}})


def hanging(task: Task) -> str:
    """Never end; the pids of the process and of a program it runs are in the source's file."""
    program = subprocess.Popen(["sleep", "600"])
    source = Path(json.loads(task.document)["source"])
    source.with_suffix(".part").write_text(f"{os.getpid()} {program.pid}")
    source.with_suffix(".part").rename(source)
    ctypes.CDLL(None).sleep(600)
    raise AssertionError("the process should have been killed")


_HOARD: list[bytes] = []


def _end_by(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _raise(error: BaseException) -> None:
    raise error


def _hog_natively() -> None:
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


POISONS: dict[str, Callable[[], object]] = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: _end_by(signal.SIGSEGV),
    "leaves": lambda: os._exit(7),
    "exits": lambda: _raise(SystemExit("gone")),
    "fails": lambda: _raise(ValueError("a bug\non two lines")),
    "hogs": lambda: bytearray(1 << 34),
    "hogs-natively": _hog_natively,
    "hangs": lambda: time.sleep(600),
    "broken": lambda: '{"schema": "topoplace.result/4"}',
}
