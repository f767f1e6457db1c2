"""A method that is left behind while a kernel compiles leaves the compiler to others."""

from __future__ import annotations

import threading

import pytest
from numba.core.compiler_lock import global_compiler_lock

from topoplace.interrupts import ended_in_time, left_behind
from topoplace.solving import Outcome


@pytest.mark.parametrize("compiling", [False, True])
def test_a_method_that_compiles_is_not_torn_apart(compiling: bool) -> None:
    begun, go_on, unharmed = threading.Event(), threading.Event(), threading.Event()

    def method() -> Outcome:
        if compiling:
            with global_compiler_lock:
                begun.set()
                go_on.wait(60)
        else:
            begun.set()
            go_on.wait(60)
        for _ in range(1000):  # where what ends a thread would reach it
            pass
        unharmed.set()
        return Outcome(None)

    known = Outcome([])
    found = ended_in_time(method, lambda: known if begun.is_set() else None, 0.1, lambda: None)
    assert found is known
    go_on.set()
    left_behind[-1].join(60)
    assert unharmed.is_set() is compiling
    assert global_compiler_lock._lock.acquire(blocking=False), "it is free"
    global_compiler_lock._lock.release()
