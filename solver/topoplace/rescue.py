"""Answers that cannot be written where they were wanted, and go to a temporary folder instead.

A command that has worked for its answer should not lose it to a disk that filled up meanwhile. It
calls `begin` before it works; `topoplace.snapshot.files` then puts what it cannot write elsewhere,
and the command goes on; in the end `rescued` says what that was.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from topoplace.errors import InputError

rescued: list[InputError] = []
"""What to say of each file that could not be written."""

_begun = [False]
_elsewhere: dict[str, Path] = {}


def begin(*, wanted: bool = True) -> None:
    """From now on, rescue what cannot be written, or do so no longer; forget what was."""
    _begun[0] = wanted
    rescued.clear()
    _elsewhere.clear()


def rescue(path: str | Path, content: bytes, error: InputError) -> None:
    """Put a content that cannot be written into a temporary folder; raise the error before `begin`.

    Without room there either, the content is lost, and that is said.
    """
    if not _begun[0]:
        raise error
    error.found = "none, and no temporary folder either: it is lost"
    with contextlib.suppress(OSError):
        other = Path(tempfile.mkdtemp(prefix="topoplace-")) / Path(path).name
        other.write_bytes(content)
        _elsewhere[str(path)] = other
        error.found = f"none: it is in {other}"
    rescued.append(error)


def place_of(path: str | Path) -> Path:
    """Return where the content meant for a path is."""
    return _elsewhere.get(str(path), Path(path))
