"""Text files and their lines of fields, with errors that name file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from topoplace.errors import UNSEEN, InputError
from topoplace.snapshot.faults import kind_of_json
from topoplace.snapshot.files import read_bytes

Key = TypeVar("Key")


def name_of(path: str | Path) -> str:
    """Return a file's stem as a name a document accepts."""
    return re.sub(rf"[\s,;{UNSEEN}]+", "-", Path(path).stem)[:128] or "unnamed"


def text_of(path: str | Path, *, or_json: bool = False) -> str:
    """Return the content of a text file, which is no JSON document unless that will do too."""
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError:
        raise InputError("a text file in UTF-8", file=str(path)) from None
    found = None if or_json else kind_of_json(text)
    if found is not None:
        raise InputError("a text file, not JSON", file=str(path), found=found)
    return text


def lines_of(path: str | Path, comments: str = "") -> Iterator[tuple[str, str]]:
    """Yield ``("line 7", line)`` for every line, stripped, but empty ones and comments.

    A comment begins with one of the letters of `comments`.
    """
    for number, text in enumerate(text_of(path).splitlines(), start=1):
        line = text.strip()
        if line and line[0] not in comments:
            yield f"line {number}", line


def field_lines(path: str | Path, comment: str) -> Iterator[tuple[str, list[str]]]:
    """Yield ``("line 7", fields)`` as `lines_of`."""
    for place, line in lines_of(path, comment):
        yield place, line.split()


def require_once(
    place_of: dict[Key, str], key: Key, place: str, what: str, *, field: str | None = None
) -> None:
    """Raise `InputError` if a job, a switch, a node has a place in the file already."""
    if key in place_of:
        expected = f"each {what} once (it stands at {place_of[key]} too)"
        raise InputError(expected, field=field, value=key)
    place_of[key] = place


def integer(
    text: str, least: int, most: int | None = None, *, field: str, file: str | None = None
) -> int:
    """Return a decimal integer of at most 18 digits that is in a range."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 18:
        number = int(text)
        if number >= least and (most is None or number <= most):
            return number
    until = "" if most is None else f" to {most}"
    raise InputError(f"an integer from {least}{until}", file=file, field=field, value=text)
