"""Where a command's words go: the answer to stdout, or JSON there and the words to stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topoplace.solving import Display

QUIET, USUAL, VERBOSE = range(3)
_verbosity = [USUAL]


def set_verbosity(level: int) -> None:
    """Set how much commands say, from `QUIET` to `VERBOSE`: then the log is on stderr too."""
    _verbosity[0] = level
    log = logging.getLogger("topoplace")
    for handler in [h for h in log.handlers if isinstance(h, logging.StreamHandler)]:
        log.removeHandler(handler)
    if level == VERBOSE:
        log.addHandler(logging.StreamHandler(sys.stderr))
    log.setLevel((logging.CRITICAL, logging.NOTSET, logging.DEBUG)[level])


def is_quiet() -> bool:
    """Tell whether commands say nothing but errors and JSON."""
    return _verbosity[0] == QUIET


def say(text: str, *, as_json: bool) -> None:
    """Print talk: to stdout, or to stderr when stdout belongs to a JSON document."""
    if not is_quiet():
        print(text, file=sys.stderr if as_json else sys.stdout)


def print_json(document: object) -> None:
    """Print a JSON document on stdout."""
    print(json_text(document))


def json_text(document: object) -> str:
    """Return a document as one line of JSON."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


@contextlib.contextmanager
def shown(asked: bool | None = None) -> Iterator[Display | None]:
    """Yield what shows the progress of solves on stderr; None if nobody wants to see it.

    That is a live line at a terminal; with `VERBOSE`, or elsewhere if asked for, plain lines.
    """
    from topoplace.solving import Display  # noqa: PLC0415 - heavy

    verbose, live = _verbosity[0] == VERBOSE, sys.stderr.isatty()
    if asked is None:
        asked = not is_quiet() and (live or verbose)
    if not asked:
        yield None
        return
    with Display(live=live and not verbose) as display:
        yield display


@contextlib.contextmanager
def counted(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield what shows how many of how many are done, their rate, and how long the rest takes."""
    began = time.perf_counter()
    with shown() as display:

        def show(done: int, total: int) -> None:
            spent = time.perf_counter() - began
            left = f", {spent * (total - done) / done:,.0f} s left" if done else ""
            if display is not None:
                text = f"{label}: {done:,} of {total:,}, {done / spent:,.1f}/s{left}"
                display.show(text)

        yield show
