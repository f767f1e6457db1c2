"""A pool of worker processes in which a dead worker costs one task, and what such a process does.

`concurrent.futures` gives up the whole pool when one of its processes dies, and cannot kill the one
that overruns its time. Here every worker has one task at a time and its own pipe, so that it is
known which task a worker died of, and all others go on. A worker imports this before it has set
its environment, so that nothing here imports numpy.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import multiprocessing
import os
import resource
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from topoplace.errors import InputError, TopoplaceError
from topoplace.interrupts import is_asked
from topoplace.study.batch.task import Answer, Ending, Failure, FailureStatus, Limits, Task
from topoplace.study.external.verdict import Fault, VerdictError

_MEMORY_WORDS = ("bad_alloc", "MemoryError", "Cannot allocate memory", "out of memory")
"""What native code says before it dies of a failed allocation."""


_LOOK_SECONDS = 0.2


class Pool:
    """Worker processes, started as tasks come.

    Parameters
    ----------
    solver
        ``module:function`` that turns a `Task` into the text of a result.
    jobs
        Most workers at a time.
    limits
        What ends a task the hard way.
    """

    def __init__(self, solver: str, jobs: int, limits: Limits) -> None:
        self._solver, self._jobs, self._limits = solver, jobs, limits
        self._workers: list[_Worker] = []

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Ending]]:
        """Yield every task with its outcome, as they come, until a signal asks to end.

        Raises
        ------
        TopoplaceError
            If a worker does not even start.
        """
        coming = iter(tasks)
        waiting = next(coming, None)
        while not is_asked() and (waiting or any(worker.task for worker in self._workers)):
            for worker in list(self._workers):
                if worker.idle and not worker.alive:
                    worker.kill()
                    self._workers.remove(worker)
                elif worker.idle and waiting is not None:
                    worker.give(waiting)
                    waiting = next(coming, None)
            if waiting is not None and len(self._workers) < self._jobs:
                self._workers.append(_Worker(self._solver, self._limits))
                continue
            for worker in self._woken():
                task, outcome = worker.task, worker.take()
                if worker.dead:
                    self._workers.remove(worker)
                if task is not None and outcome is not None:
                    yield task, outcome

    def close(self) -> None:
        """Kill all workers, whatever they are doing."""
        for worker in self._workers:
            worker.kill()
        self._workers = []

    def _woken(self) -> list[_Worker]:
        """Wait until a worker has something to say or has overrun its time; return such ones."""
        at_work = [worker for worker in self._workers if not worker.idle]
        first = min((worker.deadline for worker in at_work), default=math.inf)
        left = max(0.0, min(_LOOK_SECONDS, first - time.perf_counter()))  # for signals as well
        heard = wait([worker.pipe for worker in at_work], left)
        now = time.perf_counter()
        return [worker for worker in at_work if worker.pipe in heard or worker.deadline <= now]


class _Worker:
    """One process, seen from its parent: starting, idle, at a task, or dead."""

    def __init__(self, solver: str, limits: Limits) -> None:
        self._limits = limits
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the worker
        self.pipe, theirs = multiprocessing.Pipe()
        # A connection is the form in which a descriptor reaches a spawned process.
        log = Connection(os.dup(self._log.fileno()), readable=False)
        self._process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(theirs, log, solver, limits.memory), daemon=True
        )
        with _interrupts_blocked():
            self._process.start()
        theirs.close()
        log.close()
        self.idle = self.dead = False
        self.task: Task | None = None
        self.deadline = math.inf

    @property
    def alive(self) -> bool:
        """Whether the process is there; the system may have ended it while it was idle."""
        return self._process.is_alive()

    def give(self, task: Task) -> None:
        """Send a task to the idle worker."""
        self._log.seek(0)  # the worker shares the position
        self._log.truncate()
        self.task, self.idle = task, False
        self._began = time.perf_counter()
        self.deadline = self._began + (self._limits.kill_after or math.inf)
        with contextlib.suppress(OSError):  # one that just died: `take` will notice
            self.pipe.send(task)

    def take(self) -> Ending | None:
        """Return the outcome of the worker's task; None if it has only become ready.

        Raises
        ------
        TopoplaceError
            If the worker died before its first task.
        """
        if not self.pipe.poll():
            return self._killed(FailureStatus.TIMEOUT, self._overrun())
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            return self._died()
        self.idle, self.task, self.deadline = True, None, math.inf
        if message == READY:
            return None
        outcome: Ending = message
        if isinstance(outcome, Failure) and outcome.status is FailureStatus.OUT_OF_MEMORY:
            self.kill()  # what the heap looks like now is not what the next task should start from
        return outcome

    def kill(self) -> None:
        """End the process and all programs it runs."""
        self.dead = True
        assert self._process.pid is not None
        # The group may outlive its leader, and its number is not given away while it does.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self.pipe.close()
        self._log.close()

    def _overrun(self) -> str:
        return f"killed after {self._limits.kill_after:g} s"

    def _died(self) -> Failure:
        starting = self.task is None
        self._process.join(1.0)  # the pipe is closed a moment before the process is gone
        code = self._process.exitcode
        how = f"ended with exit code {code}"
        if code is None or code < 0:
            how = f"was killed by {signal.Signals(-(code or -signal.SIGKILL)).name}"
        words = self._last_words()
        if starting:
            self.kill()
            last = words.strip().rpartition("\n")[2]
            raise TopoplaceError(f"a worker process {how} before its first instance: {last}")
        if self._limits.memory is not None and any(word in words for word in _MEMORY_WORDS):
            return self._killed(FailureStatus.OUT_OF_MEMORY, "the instance needs more memory")
        if code == -signal.SIGKILL:
            how += " from outside, perhaps for want of memory"
        return self._killed(FailureStatus.CRASH, f"the worker process {how}")

    def _killed(self, status: FailureStatus, message: str) -> Failure:
        seconds = round(time.perf_counter() - self._began, 3)
        failure = Failure(status, message, seconds, self._last_words())
        self.kill()
        return failure

    def _last_words(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - MAX_DETAIL))
        return self._log.read().decode(errors="replace")


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Keep Ctrl-C away from a process being started, until it ignores it by itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


READY = "ready"
"""What a worker sends before its first task, when everything is loaded."""

MAX_DETAIL = 4000

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def serve(tasks: Connection, log: Connection, solver: str, memory: int | None) -> None:
    """Answer `tasks` until there are no more; the target of a worker process.

    What it prints goes to `log`; `solver` and `memory` are those of `Pool` and `Limits`.
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
    module, _, function = solver.partition(":")
    solve: Callable[[Task], str] = getattr(importlib.import_module(module), function)
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


def _outcome(solve: Callable[[Task], str], task: Task) -> Ending:
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
