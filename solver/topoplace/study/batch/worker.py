"""Worker processes: one task at a time, so a death costs that task, and it is known which.

`concurrent.futures` gives up its whole pool when one of its processes dies, and cannot kill one
that overruns its time. A process imports this before it has set its environment, so nothing here
imports numpy.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path

from topoplace.errors import InputError, TopoplaceError
from topoplace.memory import return_memory
from topoplace.study.batch.task import Ending, Failure, FailureStatus, Limits, Task
from topoplace.study.external.allocator import Fault, VerdictError

MAX_DETAIL = 4000

_MEMORY_WORDS = ("bad_alloc", "MemoryError", "Cannot allocate memory", "out of memory")
"""The output of native code before it dies of a failed allocation."""

_TOO_LARGE = "the instance needs more memory"
_GUARD = 'a script has to call this under if __name__ == "__main__":'
"""What helps where a process ended without a word: it imports the script that made it."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CHILDREN = threading.Lock()
"""`multiprocessing` keeps its list of children without one."""


class Workers:
    """The processes of a batch on one machine, as many as there are threads that call `solve`.

    `solver` is the ``module:function`` that turns a `Task` into the text of a result. If its module
    has a function `prepare`, that loads what a task needs before the clock of the task starts.
    """

    def __init__(self, solver: str, limits: Limits) -> None:
        self._solver, self._limits = solver, limits
        self._lock = threading.Lock()
        self._all: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._closed = False

    def solve(self, task: Task) -> Ending:
        """Solve a task in an idle process or a new one; `TopoplaceError` if it does not start."""
        worker = self._take()
        try:
            outcome = worker.run(task)
        finally:
            with self._lock:
                if worker.alive:
                    self._idle.append(worker)
                else:
                    self._all.discard(worker)
        return outcome

    def close(self) -> None:
        """Kill all processes at once; no other starts."""
        with self._lock:
            self._closed = True
            for worker in self._all:
                worker.kill()

    __del__ = close

    def _take(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.kill()  # the system ended it, but not the programs it started
                self._all.discard(worker)
            if self._closed:
                raise TopoplaceError("the batch has ended")
            worker = _Worker(self._solver, self._limits)
            self._all.add(worker)
            return worker


class _Worker:
    """One process, seen from its parent."""

    def __init__(self, solver: str, limits: Limits) -> None:
        self._limits = limits
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the worker
        self._pipe, theirs = multiprocessing.Pipe()
        # A connection is the form in which a descriptor reaches a spawned process.
        log = Connection(os.dup(self._log.fileno()), readable=False)
        self._process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(theirs, log, solver, limits.memory), daemon=True
        )
        # Ctrl-C is kept away from it until it ignores it on its own.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        with _CHILDREN:
            self._process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        log.close()
        self._is_ready = False

    @property
    def alive(self) -> bool:
        with _CHILDREN:
            return self._process.is_alive()

    def run(self, task: Task) -> Ending:
        self._wait_until_ready()
        self._log.seek(0)  # the process shares the position
        self._log.truncate()
        began = time.perf_counter()
        try:
            self._pipe.send(task)
            self._pipe.recv()  # everything it needs is loaded
            began = time.perf_counter()
            if self._pipe.poll(self._limits.kill_after):
                ending: Ending = self._pipe.recv()
                if isinstance(ending, Failure) and ending.status is FailureStatus.OUT_OF_MEMORY:
                    self.kill()  # the next task should not start from the present heap
                return ending
            why = FailureStatus.TIMEOUT, f"killed after {self._limits.kill_after:g} s"
        except (EOFError, OSError):
            why = self._cause_of_death()
        seconds = round(time.perf_counter() - began, 3)
        self.kill()
        return Failure(*why, seconds, self._last_words())

    def kill(self) -> None:
        """End the process and all programs it runs."""
        assert self._process.pid is not None
        # The group may outlive its leader, and its number is not reused while it does.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        wait([self._process.sentinel])
        with _CHILDREN:
            self._process.join()

    def _wait_until_ready(self) -> None:
        """Wait until the process has started."""
        try:
            self._is_ready = self._is_ready or self._pipe.recv()
        except (EOFError, OSError):
            how, last = self._how_it_ended()[0], self._last_words().strip().rpartition("\n")[2]
            self.kill()
            text = f"a worker process {how} before its first instance: {last or _GUARD}"
            raise TopoplaceError(text) from None

    def _how_it_ended(self) -> tuple[str, int]:
        wait([self._process.sentinel], 1.0)  # its pipe is closed a moment before it is gone
        with _CHILDREN:
            self._process.join(1.0)
            code = self._process.exitcode
        if code is None:
            code = -signal.SIGKILL
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}", code
        return f"ended with exit code {code}", code

    def _cause_of_death(self) -> tuple[FailureStatus, str]:
        how, code = self._how_it_ended()
        words = self._last_words()
        if self._limits.memory is not None and any(word in words for word in _MEMORY_WORDS):
            return FailureStatus.OUT_OF_MEMORY, _TOO_LARGE
        if code == -signal.SIGKILL:
            how += " from outside, perhaps for want of memory"
        return FailureStatus.CRASH, f"the worker process {how}"

    def _last_words(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - MAX_DETAIL))
        return self._log.read().decode(errors="replace")


def serve(tasks: Connection, log: Connection, solver: str, memory: int | None) -> None:
    """Answer `tasks` until there are no more, and print to `log`; this is a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.setsid()  # one group for the worker and all programs it runs: they are killed together
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for stream in (1, 2):
        os.dup2(log.fileno(), stream)
    for name in _THREAD_VARIABLES:
        os.environ.setdefault(name, "1")  # there is a process for every core already
    # It is daemonic, so that it does not outlive its parent; this alone would forbid a method to
    # have children.
    multiprocessing.current_process().daemon = False
    name, _, function = solver.partition(":")
    module = importlib.import_module(name)
    solve: Callable[[Task], str] = getattr(module, function)
    prepare: Callable[[Task], None] = getattr(module, "prepare", lambda task: None)
    tasks.send(True)
    with contextlib.suppress(EOFError):
        while True:
            task: Task = tasks.recv()
            with contextlib.suppress(Exception):  # which comes again, as the outcome
                prepare(task)
            if memory is not None:
                _limit_memory(_address_space() + memory)
            tasks.send(True)
            tasks.send(_outcome(solve, task))
            _limit_memory(None)
            return_memory()


def _outcome(solve: Callable[[Task], str], task: Task) -> Ending:
    """Solve, and turn every exception into a failure."""
    began = time.perf_counter()
    detail, verdict = "", None
    try:
        return solve(task)
    except VerdictError as error:
        timed_out = error.fault is Fault.TIME_OUT
        status = FailureStatus.TIMEOUT if timed_out else FailureStatus(error.fault)
        verdict, message = error.document, f"{error.document['method']}: {error.document['text']}"
    except InputError as error:
        status, message = FailureStatus.BAD_INPUT, error.brief
    except MemoryError:
        status, message, detail = FailureStatus.OUT_OF_MEMORY, _TOO_LARGE, traceback.format_exc()
    except (Exception, SystemExit) as error:
        status, message = FailureStatus.ERROR, f"{type(error).__name__}: {error}"
        detail = traceback.format_exc()
    seconds = round(time.perf_counter() - began, 3)
    return Failure(status, " ".join(message.split())[:300], seconds, detail[-MAX_DETAIL:], verdict)


def _end_with_parent() -> None:
    """Kill the group when the parent is gone, even if it was killed itself."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)


def _limit_memory(most: int | None) -> None:
    """Limit the address space; None for no limit except the inherited one."""
    _, hardest = resource.getrlimit(resource.RLIMIT_AS)
    if most is None or (hardest != resource.RLIM_INFINITY and most > hardest):
        most = hardest
    resource.setrlimit(resource.RLIMIT_AS, (most, hardest))


def _address_space() -> int:
    """Return the bytes of address space in use; 0 where the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()
