"""What readers do with each field of another tool's file: declared in tables.

A field is read, neutral (it says nothing on where or when a job may run), or it restricts a job
and is not modelled. A job with a value that restricts is held (`topoplace.snapshot.held`). The
pages "What is read of ..." of the documentation are made from these tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from topoplace.snapshot.schema import LeftOut

MAX_VALUE = 200
"""Characters of a value that a snapshot keeps."""


class Use(StrEnum):
    """What a reader does with a field."""

    READ = "read"
    NEUTRAL = "neutral"
    RESTRICTS = "restricts"


def given_text(value: Any) -> str:
    """Return what a field says as text: nothing where it is empty, zero or false."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value) if value else ""


@dataclass(frozen=True)
class Field:
    """A field of a file.

    Attributes
    ----------
    name
        In the file; dots lead into objects.
    use
        What is done with it.
    about
        In a few words, for the documentation: what it says, or in which case it holds a job.
    option
        What the job is held by, if the field restricts; by default the last part of the name.
    given
        Returns the value that restricts a job as text, or nothing if it does not.
    """

    name: str
    use: Use
    about: str = ""
    option: str = ""
    given: Callable[[Any], str] = given_text

    @property
    def held_by(self) -> str:
        """The option that a job is held by."""
        return self.option or self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Table:
    """What is read of one source, such as ``squeue --json``.

    Attributes
    ----------
    title
        The source, as its page in the documentation is called.
    fields
        Every field that is known, in the order of the page.
    """

    title: str
    fields: tuple[Field, ...]

    @property
    def names(self) -> frozenset[str]:
        """The fields that are known."""
        return frozenset(field.name for field in self.fields)

    def left_out(self, raw: Mapping[str, Any], place: str) -> list[LeftOut]:
        """Return what restricts a job and is not modelled, of no request yet.

        Parameters
        ----------
        raw
            The job, by names of fields.
        place
            Where it stands in the file.
        """
        found = []
        for field in self.fields:
            if field.use is Use.RESTRICTS and field.name in raw:
                value = field.given(raw[field.name])
                if value:
                    found.append(left_out(field.held_by, value, f"{place}.{field.name}"))
        return found

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Return the fields that no table knows, sorted: a newer version of the tool has them."""
        return sorted(set(names) - self.names)


def left_out(option: str, value: str, where: str) -> LeftOut:
    """Return an option that restricts a job, of no request yet; a long value is cut."""
    short = value if len(value) <= MAX_VALUE else f"{value[: MAX_VALUE - 3]}..."
    return LeftOut(option=option, value=short, where=where)


def of_request(request: str, options: Iterable[LeftOut]) -> list[LeftOut]:
    """Return options as those of a request."""
    return [one.model_copy(update={"request": request}) for one in options]


def read(*names: str, about: str = "") -> tuple[Field, ...]:
    """Return fields that are read."""
    return tuple(Field(name, Use.READ, about) for name in names)


def neutral(*names: str, about: str = "") -> tuple[Field, ...]:
    """Return fields that say nothing on where or when a job may run."""
    return tuple(Field(name, Use.NEUTRAL, about) for name in names)


def restricts(
    name: str,
    about: str = "",
    option: str = "",
    given: Callable[[Any], str] = given_text,
) -> tuple[Field, ...]:
    """Return a field that can keep a job from nodes, or from starting now."""
    return (Field(name, Use.RESTRICTS, about, option, given),)
