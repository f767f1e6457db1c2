"""Ctrl-C and SIGTERM end a run at once and in order, also inside a solver's native code."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType

GRACE_SECONDS = 2.0
"""How long a run may take to unwind (delete temporary files) before it is ended the hard way."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """A signal asked the run to end. Not an `Exception`: nothing should swallow it."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal.Signals(signal_number).name)


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
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(ours, done), daemon=True)
    before = {number: signal.signal(number, _raise) for number in _SIGNALS}
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


def _raise(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)


def _watch(wakeup: socket.socket, done: threading.Event) -> None:
    while received := wakeup.recv(1):
        number = received[0]
        if number in _SIGNALS and not done.wait(GRACE_SECONDS):
            os._exit(128 + number)
