"""Signals and time limits end a solve with the best it has, whatever code is running.

Python answers signals in its main thread, and there between two of its own instructions: a long
call into native code would postpone them. So a method runs in a thread of its own, and the thread
that asked for it waits. A signal stops `topoplace.clock`, and the method ends as when its time is
over. One that does not is left behind, and what it has reported is the answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from topoplace import clock

if TYPE_CHECKING:
    from topoplace.solving.outcome import Outcome

SIGNALS = (signal.SIGINT, signal.SIGTERM)

STOP_SECONDS = 1.0
"""How long a method may take to end once the clock is stopped, before it is left behind."""

_LOOK_SECONDS = 0.1


class Interrupted(BaseException):
    """A signal asked a solve to end that had no answer yet."""


@dataclass
class Interrupt:
    """What signals ask of the solves of a block: the first one, and when methods must end."""

    number: int | None = None
    due: float = math.inf

    def __bool__(self) -> bool:
        return self.number is not None


_heeding: Interrupt | None = None

answered = threading.Event()
"""Set when a block of `heeded` ends, as there is an answer to deliver."""

left_behind: list[threading.Thread] = []
"""Methods that did not end in time; some may still be at work."""


def is_asked() -> bool:
    """Tell whether a signal has come inside a block of `heeded`."""
    return _heeding is not None and bool(_heeding)


@contextlib.contextmanager
def heeded() -> Iterator[Interrupt]:
    """Have SIGINT and SIGTERM end the solves of the block, and not the block itself.

    A loop of solves looks at what is yielded, which is true after a signal, and begins no other.
    A second signal, and one after which a solve has no answer (`Interrupted`), goes where it would
    have gone without the block: mostly it raises `KeyboardInterrupt`. Blocks inside one another are
    one. Outside the main thread, which alone has signals, this does nothing.
    """
    global _heeding  # noqa: PLW0603 - signals are global
    if threading.current_thread() is not threading.main_thread():
        yield Interrupt()
        return
    if _heeding is not None:
        yield _heeding
        return
    interrupt = Interrupt()
    known = [(int(number), signal.getsignal(number)) for number in SIGNALS]
    before = {number: old for number, old in known if old not in (None, signal.SIG_IGN)}

    def take(number: int, frame: FrameType | None) -> None:
        if interrupt.number is None:
            interrupt.number, interrupt.due = number, time.monotonic() + STOP_SECONDS
            clock.stop()
        else:
            signal.signal(number, before[number])
            signal.raise_signal(number)

    _heeding = interrupt
    cut_short = False
    try:
        for number in before:
            signal.signal(number, take)
        yield interrupt
        answered.set()
    except Interrupted:
        cut_short = True
    finally:
        _heeding = None
        for number, handler in before.items():
            signal.signal(number, handler)
        clock.start()
    if cut_short and interrupt.number is not None:
        signal.raise_signal(interrupt.number)
        raise KeyboardInterrupt


def ended_in_time(
    method: Callable[[], Outcome],
    reported: Callable[[], Outcome | None],
    limit: float,
    look: Callable[[], None],
) -> Outcome:
    """Return what a method returns, or what it has reported if it does not end when it has to.

    Parameters
    ----------
    method
        Looks at `topoplace.clock`, if it can.
    reported
        Returns the best outcome reported so far; None if there is none.
    limit
        Seconds after which what is reported is enough.
    look
        Called some times a second.

    Raises
    ------
    Interrupted
        If a signal asked the method to end and there is no solution.
    """
    ends: list[Outcome | BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            ends.append(method())
        except BaseException as error:
            ends.append(error)
        done.set()

    with heeded() as interrupt:
        if interrupt:
            raise Interrupted
        thread = threading.Thread(target=work, name="topoplace", daemon=True)
        late = clock.ticks() + limit
        thread.start()
        try:
            while not done.wait(_LOOK_SECONDS):
                look()
                is_due = time.monotonic() > interrupt.due
                if (is_due or clock.ticks() > late) and (known := reported()):
                    return known
                if is_due:
                    raise Interrupted
        finally:
            if not done.is_set():
                _leave_behind(thread)
        (end,) = ends
        if interrupt and (isinstance(end, BaseException) or end.solution is None):
            if known := reported():
                return known
            raise Interrupted
        if isinstance(end, BaseException):
            raise end
        return end


def _leave_behind(thread: threading.Thread) -> None:
    """End a thread as soon as it is back from native code, unless it may be compiling.

    What ends it there would leave numba's lock closed, and every later kernel waiting for it.
    """
    left_behind.append(thread)
    numba = sys.modules.get("numba.core.compiler_lock")
    lock = numba and numba.global_compiler_lock._lock
    if lock is None or lock.acquire(blocking=False):
        ended = ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ended)
        if lock is not None:
            lock.release()
