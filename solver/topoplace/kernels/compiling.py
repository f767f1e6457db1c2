"""Compilation ahead of a solve, in processes of its own that share numba's cache on disk.

Numba compiles one kernel of a process at a time, so that two cores need two processes.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from topoplace.kernels.stamps import stamp
from topoplace.kernels.table import Entry, entries_of

Announce = Callable[[int, int], None]
"""Told how many of how many kernels are compiled."""

_MOST = 4  # processes: each takes a few hundred MB
_ROOT = str(Path(__file__).resolve().parent.parent.parent)

Worker = subprocess.Popen[str]


def compile_all(groups: Iterable[str], announce: Announce, processes: int | None = None) -> None:
    """Compile the kernels of some groups, those that take longest first.

    What cannot be compiled ahead is left to its first call, which says why.

    Parameters
    ----------
    announce
        Called before the first kernel, and after each.
    processes
        How many to work with; default one per core, at most four.
    """
    groups = list(groups)
    entries = [entry for group in groups for entry in entries_of(group)]
    entries.sort(key=lambda entry: -entry.seconds)
    announce(0, len(entries))
    with _workers(min(processes or _num_cores(), len(entries))) as workers:
        for done, _ in enumerate(_compiled(entries, workers), start=1):
            announce(done, len(entries))
    for group in groups:
        stamp(group)


def _compiled(entries: list[Entry], workers: list[Worker]) -> Iterator[str]:
    """Hand every worker one entry after the other; yield their answers, as they come."""
    waiting = iter(entries)
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            if worker.stdout is not None and _hand(worker, waiting):
                selector.register(worker.stdout, selectors.EVENT_READ, worker)
        while selector.get_map():
            for key, _ in selector.select():
                answer = key.data.stdout.readline()
                yield answer
                if not answer or not _hand(key.data, waiting):
                    selector.unregister(key.fileobj)


def _hand(worker: Worker, waiting: Iterator[Entry]) -> bool:
    """Give a worker the next entry; tell whether there is one."""
    entry = next(waiting, None)
    if entry is None or worker.stdin is None:
        return False
    line = json.dumps([entry.module, entry.function, entry.types])
    worker.stdin.write(line + "\n")
    worker.stdin.flush()
    return True


@contextmanager
def _workers(num: int) -> Iterator[list[Worker]]:
    """Start processes that compile, and end them whatever happens."""
    path = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))
    workers: list[Worker] = []
    try:
        for _ in range(num):
            workers.append(
                subprocess.Popen(
                    [sys.executable, "-m", "topoplace.kernels.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env={**os.environ, "PYTHONPATH": path},
                )
            )
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    pipe.close()


def _num_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return min(_MOST, len(os.sched_getaffinity(0)))
    return min(_MOST, os.cpu_count() or 1)
