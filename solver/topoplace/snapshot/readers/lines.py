"""Text files and their lines of fields, with errors that name file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from topoplace.errors import InputError
from topoplace.snapshot.files import read_bytes
from topoplace.snapshot.kinds import kind_of_json


def name_of(path: str | Path) -> str:
    """Return a file's stem as a name a document accepts."""
    return re.sub(r"[\s,;]+", "-", Path(path).stem)[:128] or "unnamed"


def text_of(path: str | Path, *, or_json: bool = False) -> str:
    """Return the content of a text file, which is no JSON document unless that will do too.

    Raises
    ------
    InputError
        If the file cannot be read or is not text.
    """
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError:
        raise InputError("a text file in UTF-8", file=str(path)) from None
    found = None if or_json else kind_of_json(text)
    if found is not None:
        raise InputError("a text file, not JSON", file=str(path), found=found)
    return text


def field_lines(path: str | Path, comment: str) -> Iterator[tuple[str, list[str]]]:
    """Yield ``("line 7", fields)`` for every line that is not empty and not a comment.

    Raises
    ------
    InputError
        If the file cannot be read or is not text.
    """
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith(comment):
            yield f"line {number}", stripped.split()


def integer(text: str, least: int, *, field: str, file: str | None = None) -> int:
    """Return a decimal integer of at most 18 digits that is not below `least`.

    Raises
    ------
    InputError
        If the text is anything else.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18) or int(text) < least:
        raise InputError(f"an integer from {least}", file=file, field=field, value=text)
    return int(text)
