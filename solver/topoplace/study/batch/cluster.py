"""A batch on a Dask cluster that exists already (extra ``dask``).

Every thread of a cluster's worker has a `Pool` of one process, so that limits and crashes are dealt
with there as on one machine. A task whose Dask worker dies is given to another by the scheduler.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from topoplace import __version__
from topoplace.errors import InputError, MissingToolError, TopoplaceError
from topoplace.interrupts import is_asked
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.task import Ending, Failure, FailureStatus, Limits, Task

CONNECT_SECONDS = 10

_AHEAD = 2
"""Tasks per thread that are with the cluster: enough to keep it busy, few to keep in memory."""
_LEAST_AHEAD = 16
_LOOK_SECONDS = 0.1

_own = threading.local()


class Cluster:
    """A Dask cluster as something that runs tasks.

    Its scheduler's `address` is such as ``tcp://node17:8786``; solver and limits are as in `Pool`.

    Raises
    ------
    MissingToolError
        If the extra is not installed.
    InputError
        If no scheduler answers.
    """

    def __init__(self, address: str, solver: str, limits: Limits) -> None:
        self._solver, self._limits = solver, limits
        self._client = _connected(address)

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Ending]]:
        """Yield every task with its outcome, as they come, until a signal asks to end.

        Raises
        ------
        TopoplaceError
            If the scheduler is lost, or a worker cannot run what it gets.
        """
        from distributed import as_completed  # noqa: PLC0415 - optional

        coming = iter(tasks)
        running = as_completed(loop=self._client.loop)
        at_work: dict[str, Task] = {}
        self._submit(coming, running, at_work)
        while at_work and not is_asked():
            if not running.has_ready():
                time.sleep(_LOOK_SECONDS)
                continue
            future = next(running)
            task = at_work.pop(future.key)
            yield task, _outcome(future)
            self._submit(coming, running, at_work)

    def close(self) -> None:
        """Leave the cluster; it drops what has not begun."""
        self._client.close(timeout=1)

    def _submit(self, coming: Iterator[Task], running: Any, at_work: dict[str, Task]) -> None:
        """Send as many more tasks as the cluster can use now; it may have grown."""
        threads = sum(self._client.nthreads().values())
        room = max(_LEAST_AHEAD, _AHEAD * threads) - len(at_work)
        for task in islice(coming, room):
            # Not pure: a task of the same key that another client gave up must not answer for it.
            future = self._client.submit(
                solve_in_child, task, self._solver, self._limits, pure=False
            )
            at_work[future.key] = task
            running.add(future)


def solve_in_child(task: Task, solver: str, limits: Limits) -> Ending:
    """Solve a task in a process below this one, which the next task of this thread finds again.

    Raises
    ------
    TopoplaceError
        If this is another version of topoplace than the task's key speaks of.
    """
    if task.version != __version__:
        raise TopoplaceError(f"a worker has topoplace {__version__}, the batch {task.version}")
    # Dask's workers are daemonic processes, which may not have children unless they say so.
    multiprocessing.current_process().daemon = False
    if getattr(_own, "asked", None) != (solver, limits):
        if hasattr(_own, "pool"):
            _own.pool.close()
        _own.pool, _own.asked = Pool(solver, 1, limits), (solver, limits)
    pool: Pool = _own.pool
    return next(outcome for _, outcome in pool.outcomes([task]))


def _connected(address: str) -> Any:
    try:
        from distributed import Client  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingToolError("--dask needs the extra: pip install 'topoplace[dask]'") from None
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        text = f"the address of a Dask scheduler ({type(error).__name__})"
        raise InputError(text, field="--dask", value=address) from None


def _outcome(future: Any) -> Ending:
    from distributed import CancelledError, KilledWorker  # noqa: PLC0415 - optional

    try:
        outcome: Ending = future.result()
    except KilledWorker:
        message = "every cluster worker that took it died"
        return Failure(FailureStatus.CRASH, message)
    except CancelledError:
        raise TopoplaceError("the Dask scheduler is gone; the same command goes on later") from None
    return outcome
