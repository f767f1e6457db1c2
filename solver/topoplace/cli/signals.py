"""SIGINT and SIGTERM end a command soon and in order.

A solve takes care of itself (`topoplace.interrupts`), and once there is an answer, a signal does
not keep it from being delivered. Anything else is interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from topoplace import interrupts

AGAIN_SECONDS = 0.8
"""When a command that goes on after an interrupt is interrupted again, and then ended."""


class Interrupted(BaseException):
    """A signal asked the run to end. Not an `Exception`: nothing should swallow it."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal.Signals(signal_number).name)


_raised: list[Interrupted] = []


def swallowed_interrupt() -> Interrupted | None:
    """Return the interrupt of this run, of which a library may have made an error; else None."""
    return next(iter(_raised), None)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` on SIGINT and SIGTERM in the block, as long as there is no answer.

    Outside the main thread, where Python has no signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _raised.clear()
    interrupts.answered.clear()
    before = {number: signal.signal(number, _take) for number in interrupts.SIGNALS}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _insist)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _take(number: int, frame: FrameType | None) -> None:
    if not interrupts.answered.is_set():
        _raised.append(Interrupted(number))
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
        raise _raised[0]


def _insist(number: int, frame: FrameType | None) -> None:
    """Raise the interrupt again, which some library has swallowed; the next time, end the run."""
    _raised.append(_raised[0])
    if len(_raised) > 2:
        os._exit(128 + _raised[0].signal_number)
    raise _raised[0]
