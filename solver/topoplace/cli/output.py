"""Where a command's words go: the answer to stdout, or JSON there and the words to stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from topoplace import front, rescue
from topoplace.errors import visible

if TYPE_CHECKING:
    from topoplace.solving.outcome import Display
    from topoplace.study.external.allocator import VerdictError
    from topoplace.study.external.trial import Trial

QUIET, USUAL, VERBOSE = range(3)
WIDTH = 100
"""Characters of a line where the width of the terminal is not known."""

_verbosity = [USUAL]
_as_json = [False]


def set_verbosity(level: int) -> None:
    """Set how much commands say, from `QUIET` to `VERBOSE`; warnings of the log are on stderr.

    With `VERBOSE` all of the log is there.
    """
    _verbosity[0] = level
    log = logging.getLogger("topoplace")
    for handler in [h for h in log.handlers if isinstance(h, logging.StreamHandler)]:
        log.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.DEBUG if level == VERBOSE else logging.WARNING)
    log.addHandler(handler)
    log.setLevel((logging.CRITICAL, logging.NOTSET, logging.DEBUG)[level])


def set_json(wanted: bool) -> None:
    """Set whether stdout belongs to a JSON document."""
    _as_json[0] = wanted


def json_wanted() -> bool:
    """Return whether stdout belongs to a JSON document."""
    return _as_json[0]


def say(text: str, *, aside: bool = False) -> None:
    """Print talk: to stdout, or to stderr when stdout belongs to a document."""
    if _verbosity[0] != QUIET:
        print(visible(text), file=sys.stderr if aside or _as_json[0] else sys.stdout)


def say_note(note: str | None) -> None:
    """Say on stderr what a person should know of what was done, if there is something."""
    if note is not None:
        say(note, aside=True)


def say_files(files: Mapping[str, object]) -> None:
    """Say where what was asked for is, by what it is; None was not asked for."""
    for label, path in files.items():
        if path is not None:
            say(f"{label}: {rescue.place_of(str(path))}")


def print_json(document: dict[str, Any]) -> None:
    """Print a JSON document on stdout, if one is asked for."""
    if _as_json[0]:
        print(json_text(document))


def json_text(document: dict[str, Any]) -> str:
    """Return a document as one line of JSON."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def end_with(found: Any, files: Mapping[str, object], more: Sequence[str] = ()) -> NoReturn:
    """Say what came of a solve and where it is written, print it if asked for, and end the command.

    `more` are lines about it that it does not have inside.
    """
    say(front.writing.text_of(found, shutil.get_terminal_size((WIDTH, 24)).columns))
    for line in more:
        say(line)
    say_files(files)
    if _as_json[0]:
        print(found.model_dump_json())
    raise typer.Exit(front.writing.exit_code_of(found))


PATIENCE = 10.0
"""Seconds after which a solve says what it does, where nothing else shows its progress."""


@contextlib.contextmanager
def shown(asked: bool | None = None, *, once: bool = False) -> Iterator[Display | None]:
    """Yield what shows the progress of solves on stderr; None if nobody wants to see it.

    That is a live line at a terminal; with `VERBOSE`, or elsewhere if asked for, plain lines; and
    elsewhere `once` after `PATIENCE`, unless it is to be quiet.
    """
    verbose, live = _verbosity[0] == VERBOSE, sys.stderr.isatty()
    if asked is None:
        asked = _verbosity[0] != QUIET and (live or verbose)
        once = once and _verbosity[0] != QUIET and not asked
        if once:
            yield front.documents.Display(live=False, once=PATIENCE)
            return
    if not asked:
        yield None
        return
    with front.documents.Display(live=live and not verbose) as display:
        yield display


@contextlib.contextmanager
def counted(label: str) -> Iterator[Callable[..., None]]:
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


# ---- What external allocators were found to do ---------------------------------------------------

_MOST_SHOWN = 10


def tell_trials(trials: Sequence[Trial], stderr: Path | None, *, verdicts: bool = False) -> None:
    """Say what allocators broke or said besides; what they wrote to stderr goes to a file if asked.

    The line of a verdict is left to who ends with it, unless `verdicts` are to be told here.
    """
    for trial in trials:
        if trial.refusal is not None:
            if verdicts:
                say(str(trial.refusal))
            tell_breaches(trial.refusal)
        elif trial.stderr:
            say(f"{trial.snapshot}: {trial.allocator} said: {trial.last_words}")
    if stderr is not None:
        parts = [f"== {trial.allocator} on {trial.snapshot}\n{trial.stderr}" for trial in trials]
        front.writing.write_text(stderr, "\n".join(parts))


def tell_breaches(refused: VerdictError) -> None:
    """Say which rules are broken besides the one in the line of a verdict."""
    for breach in refused.breaches[1:_MOST_SHOWN]:
        say(f"  {breach.line}")
