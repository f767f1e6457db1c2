"""The budget of a search: seconds if there is a time limit, else work.

Searches share their time between bounds and placements. With a time limit they look at the clock
for that, without one at the *work* done so far, so that the same input and seed give the same
answer on any machine, no matter how busy it is. Work is counted in nominal seconds, which are
estimated from sizes: the times of the parts of a search on the machine where they were measured.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from topoplace import clock

T = TypeVar("T")
R = TypeVar("R")

USUAL_WORK = 300.0
"""Nominal seconds of work without a time limit."""

LATER_WORK = 10.0
"""Nominal seconds of work on the later levels together without a time limit, if they are large."""

_LONGEST_RESERVE, _RESERVE_SHARE = 0.5, 0.05  # seconds, and of the limit: to write the result

# enough for searches within searches, two at once, which wait for each other and for heuristics
_second_thread = ThreadPoolExecutor(64, thread_name_prefix="packing")


@dataclass
class _Shared:
    """The thread that a search began in, and the work that it has done."""

    thread: int
    spent: float = 0.0


class Budget:
    """Time or work of a search, and of the searches within it.

    Parameters
    ----------
    time_limit
        Seconds; None to count work.

    Attributes
    ----------
    start, end
        When the search began and has to end, in the budget's own time (see `now`).
    deadline
        When it has to end by `topoplace.clock`: code that looks only at the clock ends there.
    """

    def __init__(self, time_limit: float | None) -> None:
        self.counts_work = time_limit is None
        self._lane, self._shared = threading.local(), _Shared(threading.get_ident())
        if time_limit is None:
            self.start, self.end = 0.0, USUAL_WORK
            self.limit = self.deadline = clock.deadline(None)
            return
        self.start = clock.now()
        self.limit = self.start + time_limit
        self.end = self.limit - min(_LONGEST_RESERVE, _RESERVE_SHARE * time_limit)
        self.deadline = self.end

    def within(self, seconds: float) -> Budget:
        """Return the budget of a search within this one, with a given share of it."""
        inner = Budget.__new__(Budget)
        inner.counts_work, inner._lane = self.counts_work, self._lane
        inner._shared = self._shared
        if threading.get_ident() != self._shared.thread:  # work in other threads waits for this one
            inner._shared = _Shared(threading.get_ident(), self.now())
        inner.start = self.now()
        inner.end = min(self.end, inner.start + seconds)
        inner.deadline = inner.limit = self.deadline if self.counts_work else inner.end
        return inner

    @property
    def length(self) -> float:
        """The whole budget."""
        return self.end - self.start

    def now(self) -> float:
        """Return the present time, by the clock or the work done; past any end once stopped."""
        if self.counts_work and not clock.is_stopped():
            spent: float = getattr(self._lane, "spent", 0.0)
            return spent
        return clock.now()

    def spend(self, work: float) -> None:
        """Count some work, in nominal seconds, of the thread that calls."""
        if self.counts_work:
            self._reach(getattr(self._lane, "spent", 0.0) + work)

    def _reach(self, spent: float) -> None:
        self._lane.spent = spent
        if threading.get_ident() == self._shared.thread:
            self._shared.spent = spent

    @property
    def front(self) -> float:
        """The work that the thread has done in which the budget was made."""
        return math.inf if clock.is_stopped() else self._shared.spent

    def is_over(self) -> bool:
        """Return whether the budget is spent."""
        return self.now() >= self.end

    def seconds(self, most: float, until: float) -> float:
        """Return how many seconds of the clock are left until some time, up to a limit.

        Where work counts, there is no end.
        """
        return math.inf if self.counts_work else min(most, max(0.05, until - clock.now()))

    def aside(self, work: Callable[[], R]) -> Future[tuple[R, float]]:
        """Begin some work in another thread, from now on; returns it and when it was done."""
        began = self.now()

        def run() -> tuple[R, float]:
            self._lane.spent = began
            return work(), self.now()

        return _second_thread.submit(run)

    def awaited(self, future: Future[tuple[R, float]]) -> R:
        """Return the result of what was begun aside; the time is at least that when it was done."""
        found, end = future.result()
        if self.counts_work and not clock.is_stopped():
            self._reach(max(self.now(), end))
        return found

    def shared(self, work: Callable[[T], object], items: Sequence[T]) -> None:
        """Do some work on every item, in this thread and another one: each takes the next item.

        For all items the time begins now. Afterwards half of it has gone that all of them took, or
        that of the longest, no matter which thread did which.
        """
        began, left, took = self.now(), iter(items), list[float]()

        def in_turn() -> None:
            for item in left:
                self._lane.spent = began
                work(item)
                took.append(self.now() - began)

        self.at_once(lambda _: in_turn(), range(min(2, len(items))))
        if self.counts_work and not clock.is_stopped():
            self._reach(began + max(*took, sum(took) / 2))

    def at_once(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Do some work on every item, the first in this thread and others in threads of their own.

        All begin now, and afterwards the time is that at which the last one is done. After an
        exception, all others are awaited.
        """
        first, *rest = items
        others = [self.aside(partial(work, item)) for item in rest]
        try:
            found = [work(first)]
        finally:
            done = [other.result() for other in others]
        latest = max([self.now(), *(end for _, end in done)])
        if self.counts_work and not clock.is_stopped():
            self._reach(latest)
        return found + [result for result, _ in done]
