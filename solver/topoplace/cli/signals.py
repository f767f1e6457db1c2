"""Ctrl-C and SIGTERM end a run soon and in order, also inside a solver's native code.

A search that looks at `topoplace.clock` is told that its time is up, so that its answer is
delivered with the bound that is proven so far. Anything else is interrupted. What heeds neither
within `GRACE_SECONDS` is ended the hard way.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from topoplace import clock

GRACE_SECONDS = 1.7
"""How long a run may take to unwind (delete temporary files) before it is ended the hard way."""

STOP_SECONDS = 1.6
"""How long a search may take to end once the clock is stopped, before it is interrupted."""

_LOOK_AGAIN_SECONDS = 0.1

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """A signal asked the run to end. Not an `Exception`: nothing should swallow it."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal.Signals(signal_number).name)


def interrupt_told_by(error: Exception) -> Interrupted | None:
    """Return the interrupt that a library made an error of, None if the error is its own.

    Pydantic's serializer turns whatever is raised in it, signals included, into an error that only
    quotes it.
    """
    told = (Interrupted(number) for number in _SIGNALS)
    return next((i for i in told if f"{type(i).__name__}: {i}" in str(error)), None)


class TimeUp(BaseException):
    """The time limit has passed and there is an answer to return."""


class Rescue:
    """What an interrupted run still has to say, said once.

    Parameters
    ----------
    answer
        Delivers the best answer so far and returns the exit code; None if there is none.
    """

    def __init__(self, answer: Callable[[], int | None]) -> None:
        self.answer = answer
        self._claimed = threading.Lock()

    def claim(self) -> bool:
        """Tell whether the caller is the first who wants to deliver the answer."""
        return self._claimed.acquire(blocking=False)


_rescue: Rescue | None = None
_seen = 0  # signals since the run began


@contextlib.contextmanager
def rescued(answer: Callable[[], int | None]) -> Iterator[Rescue]:
    """Let Ctrl-C end with an answer while the block runs.

    The block catches `Interrupted`, claims the rescue and delivers. If it does not come to that
    within `GRACE_SECONDS`, because it is inside native code, the watcher of `interruptible` claims
    the rescue and delivers in its own thread.
    """
    global _rescue  # noqa: PLW0603 - signals are global
    _rescue = Rescue(answer)
    try:
        yield _rescue
    finally:
        _rescue = None


@contextlib.contextmanager
def ended_after(seconds: float, ready: Callable[[], bool]) -> Iterator[None]:
    """Raise `TimeUp` in the block after some seconds, or as soon after as `ready` says yes.

    Does nothing if the seconds are infinite, and outside the main thread, where Python has no
    signals.
    """
    if seconds == math.inf or threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(number: int, frame: FrameType | None) -> None:
        if ready():
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise TimeUp

    before = signal.signal(signal.SIGALRM, expire)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), _LOOK_AGAIN_SECONDS)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` on SIGINT and SIGTERM while the block runs.

    Python runs signal handlers between bytecodes only, so a long call into a solver would
    postpone them. The interpreter's wake-up descriptor is written at once, though: a thread that
    reads it gives the main thread `GRACE_SECONDS` to unwind and then ends the process. Outside
    the main thread, where Python has no signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _seen  # noqa: PLW0603 - signals are global
    _seen = 0
    clock.start()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(ours, done), daemon=True)
    before = {number: signal.signal(number, _take) for number in _SIGNALS}
    wakeup = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        theirs.close()  # ends the watcher's read
        watcher.join()
        ours.close()


def _take(number: int, frame: FrameType | None) -> None:
    """Stop the clock of a search that heeds it; interrupt anything else, and whoever insists."""
    global _seen  # noqa: PLW0603 - signals are global
    _seen += 1
    # the watcher may have stopped the clock already, and the search be over
    if _seen == 1 and (clock.is_heeded() or clock.is_stopped()):
        clock.stop()
        return
    raise Interrupted(number)


def _ends_by_itself(done: threading.Event) -> bool:
    """Stop the clock of a search that heeds it, and tell whether it ends soon."""
    if not clock.is_heeded():
        return False
    clock.stop()
    end = time.monotonic() + STOP_SECONDS
    while clock.is_heeded() and time.monotonic() < end:
        if done.wait(_LOOK_AGAIN_SECONDS / 5):
            return True
    return not clock.is_heeded()


def _watch(wakeup: socket.socket, done: threading.Event) -> None:
    excused = told = False
    while received := wakeup.recv(1):
        number = received[0]
        if number not in _SIGNALS:
            continue
        if not told and clock.is_heeded() and not _ends_by_itself(done):
            signal.pthread_kill(threading.main_thread().ident or 0, number)
        told = True
        if done.wait(GRACE_SECONDS / 2):
            continue
        if not clock.is_stopped() and _rescue is None:
            # nothing is being delivered: a library, in its import, say, swallowed the interrupt
            signal.pthread_kill(threading.main_thread().ident or 0, number)
        if done.wait(GRACE_SECONDS / 2):
            continue
        rescue = _rescue
        if number != signal.SIGINT or rescue is None or excused:
            os._exit(128 + number)
        if rescue.claim():
            code = None
            try:
                code = rescue.answer()
                sys.stdout.flush()
            finally:
                os._exit(128 + number if code is None else code)
        excused = True  # the main thread is delivering; a second Ctrl-C does not wait for it
