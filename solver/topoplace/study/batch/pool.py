"""The executors of a batch: processes of this machine, or of a Dask cluster (extra ``dask``).

Every task under way has a thread that waits for a process that solves it. On a cluster these are
the threads of Dask's workers, so limits and crashes are handled there as on one machine; a task
whose Dask worker dies is given to another by the scheduler.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures import ThreadPoolExecutor as Threads
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from topoplace.errors import InputError, MissingToolError, TopoplaceError
from topoplace.interrupts import is_asked
from topoplace.study.batch.task import Ending, Failure, FailureStatus, Limits, Task
from topoplace.study.batch.worker import Workers
from topoplace.version import __version__

CONNECT_SECONDS = 10
_LOOK_SECONDS = 0.2
_AHEAD = 2
"""Tasks per process that are under way: enough to keep it busy, few to keep in memory."""
_LEAST_AHEAD = 16  # on a cluster, which may grow


class Pool:
    """Worker processes of this machine, at most `jobs`, started as tasks come.

    `solver` and `limits` are those of `topoplace.study.batch.worker.Workers`.
    """

    def __init__(self, solver: str, jobs: int, limits: Limits) -> None:
        self._workers = Workers(solver, limits)
        self._executor: Executor = Threads(jobs)
        self._jobs = jobs

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Ending]]:
        """Yield every task with its outcome, as they come, until a signal asks to end.

        Raises `TopoplaceError` if a worker does not even start, or a cluster's scheduler is lost.
        """
        coming = iter(tasks)
        running: dict[Future[Ending], Task] = {}
        while not is_asked():
            for task in islice(coming, max(0, self._most_under_way() - len(running))):
                running[self._submit(task)] = task
            if not running:
                return
            for future in wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                yield running.pop(future), self._ending(future)

    def close(self) -> None:
        """Kill all workers at once."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._workers.close()

    def _most_under_way(self) -> int:
        return _AHEAD * self._jobs

    def _submit(self, task: Task) -> Future[Ending]:
        return self._executor.submit(self._workers.solve, task)

    def _ending(self, future: Future[Ending]) -> Ending:
        return future.result()


class Cluster(Pool):
    """A Dask cluster whose scheduler has an address such as ``tcp://node17:8786``.

    Raises `MissingToolError` if the extra is not installed, `InputError` if no scheduler answers.
    """

    def __init__(self, address: str, solver: str, limits: Limits) -> None:
        self._asked = solver, limits
        try:
            from distributed import Client  # noqa: PLC0415 - optional

            self._client: Any = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except ImportError:
            text = "--dask needs the extra: pip install '.[dask]' in a checkout"
            raise MissingToolError(text) from None
        except (OSError, ValueError) as error:
            text = f"the address of a Dask scheduler ({type(error).__name__})"
            raise InputError(text, field="--dask", value=address) from None

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Ending]]:
        """Yield every task with its outcome (see `Pool.outcomes`)."""
        try:
            yield from super().outcomes(tasks)
        except (CancelledError, asyncio.CancelledError, OSError, RuntimeError) as error:
            text = f"the Dask scheduler is gone ({error}); the same command goes on later"
            raise TopoplaceError(text) from None

    def close(self) -> None:
        """Leave the cluster; it drops tasks that have not begun."""
        self._client.close(timeout=1)

    def _most_under_way(self) -> int:
        return max(_LEAST_AHEAD, _AHEAD * int(sum(self._client.nthreads().values())))

    def _submit(self, task: Task) -> Future[Ending]:
        # Not pure: a task of the same key that another client gave up must not answer for it.
        at_work = self._client.submit(solve_below, task, *self._asked, pure=False)
        ending: Future[Ending] = Future()
        at_work.add_done_callback(partial(_hand_over, ending))
        return ending

    def _ending(self, future: Future[Ending]) -> Ending:
        from distributed import KilledWorker  # noqa: PLC0415 - optional

        try:
            return future.result()
        except KilledWorker:
            return Failure(FailureStatus.CRASH, "every cluster worker that took it died")


def _hand_over(ending: Future[Ending], at_work: Any) -> None:
    """Copy the outcome of a task of a cluster to its future here.

    Dask's own executor fails at this: if the scheduler is lost meanwhile, it ends with a
    `ValueError`.
    """
    try:
        ending.set_result(at_work.result())
    except BaseException as error:  # any exception is the outcome
        ending.set_exception(error)


def solve_below(task: Task, solver: str, limits: Limits) -> Ending:
    """Solve a task in a process below this one, which later tasks find again."""
    if task.version != __version__:
        raise TopoplaceError(f"a worker has topoplace {__version__}, the batch {task.version}")
    # Dask's workers are daemonic processes, which may not have children unless they say so.
    multiprocessing.current_process().daemon = False
    return _workers_here(solver, limits).solve(task)


@lru_cache(maxsize=1)
def _workers_here(solver: str, limits: Limits) -> Workers:
    """Return this process's workers; those of an earlier batch end when the last is done."""
    return Workers(solver, limits)
