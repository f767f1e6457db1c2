"""A progress bar on stderr, for people only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import typer


@contextlib.contextmanager
def progress_bar(total: int, label: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that is told how much is done; silent where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    with typer.progressbar(length=total, label=label, file=sys.stderr) as bar:
        yield lambda done: bar.update(done - bar.pos)
