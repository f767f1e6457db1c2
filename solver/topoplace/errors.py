"""Errors that reach the user, and the exit code each one carries."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every `topoplace` command."""

    DONE = 0
    INTERNAL = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    NO_SOLUTION = 4
    CHECK_FAILED = 5


class TopoplaceError(Exception):
    """Base class of all errors topoplace raises on purpose."""

    exit_code: ExitCode = ExitCode.INTERNAL


class InputError(TopoplaceError):
    """Input that cannot be used: one line that names file, field, value and what was expected.

    Parameters
    ----------
    expected
        What would have been accepted.
    file, field
        Where the offending value stands, when known.
    value
        The value found; shortened in the message.
    """

    exit_code = ExitCode.BAD_INPUT

    def __init__(
        self,
        expected: str,
        *,
        file: str | None = None,
        field: str | None = None,
        value: object = None,
    ) -> None:
        self.expected = expected
        self.file = file
        self.field = field
        self.value = value
        super().__init__(expected)

    def located(self, file: str) -> InputError:
        """Return the same error, naming the file it was found in."""
        return InputError(self.expected, file=self.file or file, field=self.field, value=self.value)

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.field) if part)
        found = "" if self.value is None else f" (found {_shorten(self.value)})"
        return f"{where}: {self.expected}{found}" if where else f"{self.expected}{found}"


class MissingToolError(TopoplaceError):
    """An external program that a method needs is not installed."""

    exit_code = ExitCode.BAD_INPUT


def _shorten(value: object, limit: int = 80) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
