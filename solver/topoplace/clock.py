"""The clock of all searches, which can be told that the time is up.

A signal does not tear a search apart. It stops the clock: from then on every look at it finds later
than any deadline, so that each part ends in its own way, as when its time is over, and the answer
comes with the bound that is proven so far.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator

_LEAP = 1e9
"""Seconds by which the clock leaps at every look once it is stopped."""

_stopped = threading.Event()
_leaps = itertools.count(1)
_listening = 0
_native: dict[int, Callable[[], object]] = {}


def now() -> float:
    """Return the seconds of a clock that only goes forward; a stopped one is past all deadlines."""
    if _stopped.is_set():
        return time.perf_counter() + _LEAP * next(_leaps)
    return time.perf_counter()


def is_stopped() -> bool:
    """Tell whether the clock has been stopped."""
    return _stopped.is_set()


def is_heeded() -> bool:
    """Tell whether a search is under way that looks at the clock."""
    return _listening > 0


def stop() -> None:
    """Have all searches end, those in native code too."""
    _stopped.set()
    for end in list(_native.values()):
        end()


def start() -> None:
    """Let the clock go on."""
    _stopped.clear()


@contextlib.contextmanager
def heeded() -> Iterator[None]:
    """Say that what runs in the block looks at the clock."""
    global _listening  # noqa: PLW0603 - signals are global
    _listening += 1
    try:
        yield
    finally:
        _listening -= 1


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
