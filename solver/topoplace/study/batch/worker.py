"""A worker process: solves one task at a time until its parent has no more, or is gone."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path

from topoplace.errors import InputError
from topoplace.study.batch.task import Answer, Failure, FailureStatus, Outcome, Task
from topoplace.study.external.verdict import Fault, VerdictError

READY = "ready"
"""What a worker sends before its first task, when everything is loaded."""

MAX_DETAIL = 4000

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def serve(tasks: Connection, log: Connection, solver: str, memory: int | None) -> None:
    """Answer tasks until there are no more; the target of a worker process.

    Parameters
    ----------
    tasks
        Where tasks come from and outcomes go to.
    log
        The file that takes what the process prints.
    solver
        ``module:function`` that turns a `Task` into the text of a result.
    memory
        See `Limits.memory`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.setsid()  # one group for the worker and all programs it runs: they are killed together
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for stream in (1, 2):
        os.dup2(log.fileno(), stream)
    for name in _THREAD_VARIABLES:
        os.environ.setdefault(name, "1")  # there is a process for every core already
    # It is daemonic, lest it outlive its parent; that alone would forbid a method any children.
    multiprocessing.current_process().daemon = False
    solve = function_named(solver)
    if memory is not None:
        most = _address_space() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    tasks.send(READY)
    while True:
        try:
            task = tasks.recv()
        except EOFError:
            return
        tasks.send(_outcome(solve, task))


def function_named(name: str) -> Callable[[Task], str]:
    """Return the function that ``module:function`` names."""
    module, _, function = name.partition(":")
    found: Callable[[Task], str] = getattr(importlib.import_module(module), function)
    return found


def _outcome(solve: Callable[[Task], str], task: Task) -> Outcome:
    """Solve, and turn whatever is raised into a failure."""
    began = time.perf_counter()
    try:
        return Answer(solve(task))
    except VerdictError as error:
        return _refused(error, round(time.perf_counter() - began, 3))
    except InputError as error:
        status, message, detail = FailureStatus.BAD_INPUT, error.brief, ""
    except MemoryError:
        status, message = FailureStatus.OUT_OF_MEMORY, "the instance needs more memory"
        detail = traceback.format_exc()
    except (Exception, SystemExit) as error:
        status, message = FailureStatus.ERROR, f"{type(error).__name__}: {error}"
        detail = traceback.format_exc()
    seconds = round(time.perf_counter() - began, 3)
    return Failure(status, " ".join(message.split())[:300], seconds, detail[-MAX_DETAIL:])


def _refused(error: VerdictError, seconds: float) -> Failure:
    """Return the failure of an allocator whose answer does not count."""
    timed_out = error.fault is Fault.TIME_OUT
    status = FailureStatus.TIMEOUT if timed_out else FailureStatus(error.fault)
    message = f"{error.document['method']}: {error.document['text']}"
    return Failure(status, " ".join(message.split())[:300], seconds, verdict=error.document)


def _end_with_parent() -> None:
    """Kill the group when the parent is gone, even if it had no time to say so."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)


def _address_space() -> int:
    """Return the bytes of address space in use; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()
