"""Counts in text files: exact, not negative, bounded; errors name file, line and value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError
from topoplace.snapshot.readers.lines import text_of

MAX_BYTES = 1 << 53
"""Most bytes of one message, as `GraphApplication` takes them: exact in 64 bits and in JSON."""


def count(text: str, most: int, *, file: str, field: str) -> int:
    """Return a decimal integer from 0 to `most`.

    Raises
    ------
    InputError
        That says whether the text is no integer, negative or too large.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise InputError("an integer, 0 or more", file=file, field=field, value=text)
    if text.startswith("-") and digits.strip("0"):
        raise InputError("0 or more, not a negative number", file=file, field=field, value=text)
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(most)) or int(digits) > most:
        raise InputError(f"at most {most}", file=file, field=field, value=text)
    return int(digits)


def counts(texts: Sequence[str], most: int, *, file: str, line: str) -> list[int]:
    """Return the integers of a line; errors say which one (`field 3`) is wrong."""
    # One test of the whole line: a matrix of 4,096 rows has 16 million entries.
    joined = "".join(texts)
    shorter = max(map(len, texts)) < len(str(most))
    if joined.isascii() and joined.isdigit() and all(texts) and shorter:
        return list(map(int, texts))
    return [
        count(text, most, file=file, field=f"{line}, field {number}")
        for number, text in enumerate(texts, start=1)
    ]


@dataclass
class Tokens:
    """The numbers of a file in which line ends mean nothing, one after the other."""

    file: str
    _fields: Iterator[tuple[str, str]]
    line: str = "line 1"

    @classmethod
    def of(cls, path: str | Path) -> Tokens:
        """Return the numbers of a file."""
        lines = enumerate(text_of(path).splitlines(), start=1)
        return cls(
            str(path), ((f"line {number}", text) for number, line in lines for text in line.split())
        )

    def take(self, what: str, most: int, least: int = 0) -> int:
        """Return the next number; `what` says in errors what was expected."""
        self.line, text = next(self._fields, (self.line, ""))
        if not text:
            raise InputError(f"{what}, not the end of the file", file=self.file, field=self.line)
        value = count(text, most, file=self.file, field=f"{self.line}, {what}")
        if value < least:
            raise self.error(f"at least {least}", what, value)
        return value

    def end(self) -> None:
        """Raise `InputError` if there is more."""
        for line, text in self._fields:
            raise InputError("the end of the file", file=self.file, field=line, value=text)

    def error(self, expected: str, what: str, value: object) -> InputError:
        """Return an error about the number taken last."""
        return InputError(expected, file=self.file, field=f"{self.line}, {what}", value=value)
