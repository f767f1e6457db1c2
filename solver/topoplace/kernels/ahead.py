"""Compilation of kernels ahead of a solve, announced on stderr."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable

from topoplace.kernels import compile_all, groups_of, missing

WORDS = "compiling kernels, once for this installation:"


def compile_for(problem: str, methods: Iterable[str]) -> float:
    """Compile what methods of a kind of problem need and was never compiled; mostly nothing.

    Call it before any clock starts: compiling is not solving. Returns the seconds it took.
    """
    began = time.perf_counter()
    compile_groups(groups_of(problem, methods))
    return time.perf_counter() - began


def compile_groups(groups: Iterable[str]) -> int:
    """Compile those of some groups that are not compiled yet; return how many kernels they have.

    A line on stderr tells how far it is: rewritten at a terminal, elsewhere printed in the
    beginning and in the end.
    """
    wanted = missing(groups)
    if not wanted:
        return 0
    line = _Line()
    compile_all(wanted, line.show)
    return line.total


class _Line:
    def __init__(self) -> None:
        self.total = 0
        self._began = time.perf_counter()

    def show(self, done: int, total: int) -> None:
        """Show how many of how many kernels are compiled."""
        self.total = total
        if not logging.getLogger("topoplace").isEnabledFor(logging.ERROR):
            return
        over = done == total
        text = f"{WORDS} {done} of {total}"
        if over:
            text += f", {time.perf_counter() - self._began:.1f} s"
        if sys.stderr.isatty():
            print(f"\r{text}", end="\n" if over else "", file=sys.stderr, flush=True)
        elif over or done == 0:
            print(text, file=sys.stderr, flush=True)
