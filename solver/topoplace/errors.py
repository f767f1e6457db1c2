"""Errors that reach the user, the exit code each one carries, and how messages count things."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

MAX_FAULTS = 20
"""Most lines that are told of one document."""

_MOST_COMPARED = 100  # characters
_FEW_NAMES = 7  # whose order says more than which is near
_MOST_NAMES = 5000


class ExitCode(IntEnum):
    """Exit codes of every `topoplace` command."""

    DONE = 0
    INTERNAL = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    NO_SOLUTION = 4
    CHECK_FAILED = 5
    REGRET = 6


_IRREGULAR = {"leaf": "leaves", "axis": "axes", "vertex": "vertices", "index": "indices"}


def number_of(number: int, noun: str) -> str:
    """Return a number of things as text, such as ``1 request`` or ``1,024 free nodes``."""
    if number == 1:
        return f"1 {noun}"
    *before, last = noun.split(" ")
    return " ".join([f"{number:,}", *before, plural_of(last)])


def plural_of(noun: str) -> str:
    """Return the plural of a noun, such as ``racks`` or ``leaves``."""
    if noun[-1:] == "y" and noun[-2:-1] not in (*"aeiou", ""):
        return f"{noun[:-1]}ies"
    ending = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return _IRREGULAR.get(noun, noun + ending)


WHOLE = "a whole number"
"""What Python expects where it finds a fraction; it takes 2.0 for 2, which documents do not."""


class TopoplaceError(Exception):
    """Base class of all errors topoplace raises on purpose."""

    exit_code: ExitCode = ExitCode.INTERNAL


class InputError(TopoplaceError):
    """Input that cannot be used: a line that names file, field, what was expected and what found.

    A document may have several faults: then the text has a line for each of the first
    `MAX_FAULTS` (see `together`), and the attributes are those of the first.

    Parameters
    ----------
    expected
        What would have been accepted.
    file, field
        Where the offending value stands, when known; the file ``-`` is named stdin.
    value
        The value found; shortened in the message.
    found
        What to say was found, instead of the value.
    known
        The names that would have been accepted: the message asks whether the closest was meant.
    meant
        What was most likely meant, where no list of names tells.
    """

    exit_code = ExitCode.BAD_INPUT

    def __init__(
        self,
        expected: str,
        *,
        file: str | None = None,
        field: str | None = None,
        value: object = None,
        found: str | None = None,
        known: Iterable[str] = (),
        meant: str | None = None,
    ) -> None:
        self.expected = expected
        self.file = None if file is None else named_file(file)
        self.field = field
        self.value = value
        self.found = found
        self.meant = meant or closest(value, known)
        self.others: tuple[InputError, ...] = ()
        super().__init__(expected)

    @classmethod
    def together(cls, faults: Sequence[InputError]) -> InputError:
        """Return one error of several: the first, which tells of the others too."""
        faults[0].others = tuple(faults[1:])
        return faults[0]

    @property
    def faults(self) -> tuple[InputError, ...]:
        """All faults, this one first."""
        return (self, *self.others)

    @property
    def lines(self) -> list[str]:
        """A line for each fault, or for each of the first and one that counts the rest."""
        if len(self.faults) <= MAX_FAULTS:
            return [fault._line for fault in self.faults]
        shown = [fault._line for fault in self.faults[: MAX_FAULTS - 1]]
        rest = f"and {number_of(len(self.faults) - len(shown), 'more fault')}"
        return [*shown, f"{self.file}: {rest}" if self.file else rest]

    @property
    def brief(self) -> str:
        """The first fault and the number of the others, for where there is one line only."""
        more = len(self.others)
        return self._line + (f" (and {number_of(more, 'more fault')})" if more else "")

    def located(self, file: str) -> InputError:
        """Return the same error, naming the file it was found in."""
        for fault in self.faults:
            fault.file = fault.file or named_file(file)
        return self

    def inside(self, prefix: str) -> InputError:
        """Return the same error, its field inside another one: ``shape`` of ``machine``."""
        for fault in self.faults:
            fault.field = ".".join(filter(None, (prefix, fault.field)))
        return self

    def at(self, field: str) -> InputError:
        """Return the same error, blamed on this field."""
        for fault in self.faults:
            fault.field = field
        return self

    @property
    def _line(self) -> str:
        text = f"expected {self.expected}"
        if self.found is not None:
            text += f", found {self.found}"
        elif self.value is not None:
            text += f", found {_shorten(self.value)}"
        if self.meant is not None:
            text += f" (did you mean {self.meant!r}?)"
        line = ": ".join([*(part for part in (self.file, self.field) if part), text])
        return line.translate(_ESCAPED)

    def __str__(self) -> str:
        return "\n".join(self.lines)


@contextlib.contextmanager
def blamed_on(
    file: object = None, place: str | None = None, *, inside: str | None = None
) -> Iterator[None]:
    """Name the file, a place in it, and what fields are inside of, in an `InputError` of the block.

    Each fault keeps its own field.
    """
    try:
        yield
    except InputError as error:
        for fault in error.faults:
            field = ".".join(filter(None, (inside, fault.field)))
            fault.field = ", ".join(filter(None, (place, field))) or None
        raise (error if file is None else error.located(str(file))) from None


class Faults:
    """Collects the faults of a document, so that all are told at once.

    Examples
    --------
    >>> faults = Faults()
    >>> for text in ("1", "x", "y"):
    ...     with faults.collected():
    ...         if not text.isdigit():
    ...             raise InputError("a number", value=text)
    >>> len(faults.found)
    2
    """

    def __init__(self) -> None:
        self.found: list[InputError] = []

    @contextlib.contextmanager
    def collected(self) -> Iterator[None]:
        """Keep the `InputError` that the block raises; what follows the block runs all the same."""
        try:
            yield
        except InputError as error:
            self.found.extend(error.faults)

    def require_none(self) -> None:
        """Raise what was collected as one `InputError`, if anything was."""
        if self.found:
            raise InputError.together(self.found)


class MissingToolError(TopoplaceError):
    """An external program that a method needs is not installed."""

    exit_code = ExitCode.BAD_INPUT


def unknown_name(
    value: object, known: Iterable[str], *, field: str, file: str | None = None
) -> InputError:
    """Return the error of a name that is none of those known.

    Of many, the nearest are listed first, and not all.
    """
    names = list(known)
    if len(names) > _FEW_NAMES:
        near = _nearest(value, names, MAX_FAULTS)
        names = [*near, *(name for name in names if name not in near)]
    shown = ", ".join(names[:MAX_FAULTS]) + (", ..." if len(names) > MAX_FAULTS else "")
    return InputError(f"one of {shown}", file=file, field=field, value=value, known=names)


def closest(value: object, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one is most likely meant to be; None if none is near."""
    near = _nearest(value, known, 1)
    return near[0] if near and near[0] != value else None


def _nearest(value: object, known: Iterable[str], most: int) -> list[str]:
    """Return some known names that are near to a value, the nearest first."""
    names = {name.lower(): str(name) for name in known}
    if not isinstance(value, str) or not 0 < len(names) <= _MOST_NAMES:
        return []
    import difflib  # noqa: PLC0415 - only when something is wrong

    text = value[:_MOST_COMPARED].lower()
    return [names[name] for name in difflib.get_close_matches(text, names, n=most, cutoff=0.6)]


def named_file(file: str) -> str:
    """Return a file as messages name it."""
    return "stdin" if file == "-" else file


UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Control characters, and those that turn the direction of text, as a class of a pattern has them.

They steer a terminal or hide what a line says: no name has them, and none is printed.
"""

_ESCAPED = {
    ord(one): repr(one)[1:-1] for one in re.findall(f"[{UNSEEN}]", "".join(map(chr, range(0x206A))))
}
"""How a line shows them; a line feed in a name would make two lines."""

_ESCAPED_IN_TEXT = {code: shown for code, shown in _ESCAPED.items() if chr(code) not in "\n\t"}


def visible(text: str) -> str:
    """Return a text with what is not seen of it escaped, except ends of lines and tabs."""
    return text.translate(_ESCAPED_IN_TEXT)


def _shorten(value: object, limit: int = 80) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def refuse(expected: str, **given: object) -> None:
    """Raise `InputError` for the first of some options that is given where it is out of place."""
    for name, value in given.items():
        if value:
            shown = None if value is True else str(value)
            raise InputError(expected, field=f"--{name.replace('_', '-')}", value=shown)
