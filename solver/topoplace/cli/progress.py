"""Progress of a mapping on stderr: seconds, incumbent, bound."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from topoplace.mapping.best import BestSoFar

QUIET_SECONDS = 0.5
"""Least time between two lines."""


def progress_wanted(asked: bool | None) -> bool:
    """Tell whether to show progress: as asked, else only to a person at a terminal."""
    return sys.stderr.isatty() if asked is None else asked


class Progress:
    """Prints improvements and what methods say, not more often than every `QUIET_SECONDS`.

    An improvement that came too soon is printed with the next one, or by `close`; other words
    that come too soon are dropped.

    Parameters
    ----------
    stream
        Where to print; stderr by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._began = time.perf_counter()
        self._printed = float("-inf")
        self._waiting: str | None = None

    def improved(self, best: BestSoFar) -> None:
        """Say what is known now."""
        value = "none yet" if best.value is None else f"{best.value:,}"
        bound = "none yet" if best.bound is None else f"{best.bound.value:,}"
        self._waiting = self._line(f"hop-bytes {value}, bound {bound}")
        self._flush()

    def say(self, text: str) -> None:
        """Say what a method tells of its work."""
        self._flush()
        if self._due():
            self._print(self._line(text))

    def close(self) -> None:
        """Print the improvement that still waits, if any."""
        if self._waiting is not None:
            self._print(self._waiting)

    def _flush(self) -> None:
        if self._due():
            self.close()

    def _due(self) -> bool:
        return time.perf_counter() - self._printed >= QUIET_SECONDS

    def _line(self, text: str) -> str:
        return f"{time.perf_counter() - self._began:8.1f} s  {text}"

    def _print(self, line: str) -> None:
        self._printed, self._waiting = time.perf_counter(), None
        print(line, file=self._stream or sys.stderr, flush=True)
