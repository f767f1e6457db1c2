"""The clock of all searches, which can be told that the time is up.

A signal does not tear a search apart. It stops the clock: from then on every look at it finds later
than any deadline, so that each part ends in its own way, as when its time is over, and the answer
comes with the bound that is proven so far.

It stands still while it is held, for what is no part of a search.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator

_LEAP = 1e9
"""Seconds by which the clock leaps at every look once it is stopped."""

_NEVER = 1e8
"""Seconds to a deadline that only a stopped clock passes."""

ENDLESS = 1e6
"""Seconds: who has more left has no time limit."""


class OutOfTimeError(Exception):
    """The time is up in the middle of a step, which has no answer then."""


_stopped = threading.Event()
_leaps = itertools.count(1)
_native: dict[int, Callable[[], object]] = {}
_holding = threading.Lock()
_hold: tuple[float, float | None] = (0.0, None)
"""Seconds that the clock was held for, and since when it is held now: read at once."""


def ticks() -> float:
    """Return the seconds of a clock that nothing stops, and that stands still while it is held."""
    held, since = _hold
    return (time.perf_counter() if since is None else since) - held


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Let the clock stand still during the block, for all threads; of several, one has it."""
    global _hold  # noqa: PLW0603 - all threads have one clock
    with _holding:
        before, since = _hold[0], time.perf_counter()
        _hold = before, since
        try:
            yield
        finally:
            _hold = before + time.perf_counter() - since, None


def now() -> float:
    """Return the seconds of a clock that only goes forward; a stopped one is past all deadlines."""
    if _stopped.is_set():
        return ticks() + _LEAP * next(_leaps)
    return ticks()


def deadline(time_limit: float | None) -> float:
    """Return when a time limit is over that begins now; without one, when the clock is stopped."""
    return ticks() + (_NEVER if time_limit is None else time_limit)


def check(deadline: float) -> None:
    """Raise once a deadline is past.

    Raises
    ------
    OutOfTimeError
        If it is.
    """
    if now() >= deadline:
        raise OutOfTimeError


def is_stopped() -> bool:
    """Tell whether the clock has been stopped."""
    return _stopped.is_set()


def stop() -> None:
    """Have all searches end, those in native code too."""
    _stopped.set()
    for end in list(_native.values()):
        end()


def start() -> None:
    """Let the clock go on."""
    _stopped.clear()


@contextlib.contextmanager
def ended_by(end: Callable[[], object]) -> Iterator[None]:
    """Have `stop` call a function while the block is in native code."""
    key = id(end)
    _native[key] = end
    try:
        if is_stopped():
            end()
        yield
    finally:
        del _native[key]
