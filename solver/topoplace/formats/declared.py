"""What readers do with each field of another tool's file: declared in tables.

A field is read, neutral (it says nothing on where or when a job may run), or it restricts a job
and is not modelled. A job with a value that restricts is held (`topoplace.snapshot.held`). The
pages "What is read of ..." of the documentation are made from these tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from topoplace.snapshot.schema import LeftOut

MAX_VALUE = 200
"""Characters of a value that a snapshot keeps."""


class Use(StrEnum):
    """What a reader does with a field."""

    READ = "read"
    NEUTRAL = "neutral"
    RESTRICTS = "restricts"


Given = Callable[[Any], str]
"""Returns a value that restricts a job as text, or nothing if it does not."""

_DEPENDS = "depends"


def given_text(value: Any) -> str:
    """Return what a field says as text: nothing where it is empty, zero or false."""
    if isinstance(value, list):
        return ",".join(map(given_text, value))
    if isinstance(value, dict) and value:
        return json.dumps(value, separators=(",", ":"))
    return str(value) if value else ""


@dataclass(frozen=True)
class Field:
    """A field of a file.

    Attributes
    ----------
    name
        In the file; dots lead into objects, and ``[]`` into the entries of a list.
    use
        What is done with it.
    about
        In a few words, for the documentation: what it says, or in which case it holds a job.
    option
        What the job is held by, if the field restricts; by default the last part of the name.
    given
        Returns the value that restricts a job as text, or nothing if it does not. None if the
        reader finds out by other means, as it depends on more than this field.
    """

    name: str
    use: Use
    about: str = ""
    option: str = ""
    given: Given | None = given_text

    @property
    def held_by(self) -> str:
        """The option that a job is held by."""
        return self.option or re.split(r"[./]", self.name.removesuffix("[]"))[-1]


@dataclass(frozen=True)
class Table:
    """What is read of one source, such as ``squeue --json``, or of one kind of object in it.

    Attributes
    ----------
    title
        The source, as it is called in the documentation.
    fields
        Every field that is known, in the order of the page.
    """

    title: str
    fields: tuple[Field, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The fields that are known."""
        return frozenset(field.name for field in self.fields)

    @cached_property
    def _steps(self) -> frozenset[str]:
        """What the names of fields begin with: objects and lists that have fields inside.

        Whatever is inside of one that is neutral is neutral, too.
        """
        every = {name[:k] for name in self.names for k, at in enumerate(name) if at in ".["}
        return frozenset(every - {field.name for field in self.fields if field.use is Use.NEUTRAL})

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
        for field, given, first in self._holding:
            if first in raw or field.name in raw:
                values = map(given, values_at(raw, field.name))
                value = ",".join(dict.fromkeys(filter(None, values)))
                if value:
                    found.append(left_out(field.held_by, value, f"{place}.{field.name}"))
        return found

    @cached_property
    def _holding(self) -> list[tuple[Field, Given, str]]:
        """The fields that hold a job by their value, with what their names begin with."""
        return [
            (field, field.given, field.name.partition(".")[0].removesuffix("[]"))
            for field in self.fields
            if field.use is Use.RESTRICTS and field.given is not None
        ]

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Return, sorted, the fields that the table does not know: a newer version has them."""
        return sorted(set(names) - self.names)

    def unknown_in(self, raw: Mapping[str, Any]) -> list[str]:
        """Return the fields of an object that the table does not know, sorted, each once."""
        return sorted({*_unknown(raw, "", self.names, self._steps)})


def _unknown(value: Any, path: str, names: frozenset[str], steps: Set[str]) -> Iterator[str]:
    """Yield the fields below a path that are neither known nor on the way to one that is."""
    if isinstance(value, list):
        for item in value:
            yield from _unknown(item, f"{path}[]", names, steps)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            own = f"{path}.{key}" if path else key
            if own in steps:
                yield from _unknown(item, own, names, steps)
            elif own not in names:
                yield own


def values_at(raw: Any, name: str) -> Iterator[Any]:
    """Yield what stands at the name of a field; a key with dots in it counts as it is."""
    if isinstance(raw, Mapping) and name in raw:
        yield raw[name]
        return
    head, _, rest = name.partition(".")
    bare = head.removesuffix("[]")
    if not isinstance(raw, Mapping) or bare not in raw:
        return
    inside = raw[bare] if bare != head else [raw[bare]]
    for item in inside if isinstance(inside, list) else []:
        if rest:
            yield from values_at(item, rest)
        elif bare != head:
            yield item


UNKNOWN = "unknown-fields"
"""The option, of no request, that stands for fields that no table knows."""

_MAX_TEXT = 1000


def unknown_fields(names: Iterable[str]) -> list[LeftOut]:
    """Return fields that no table knows as one line of what is left out; nothing if there are none.

    They hold nobody, as nobody knows what they say.
    """
    text = ", ".join(sorted({*names}))
    short = text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3]}..."
    return [LeftOut(option=UNKNOWN, value=short)] if text else []


def left_out(option: str, value: str, where: str) -> LeftOut:
    """Return an option that restricts a job, of no request yet; a long value is cut."""
    short = value if len(value) <= MAX_VALUE else f"{value[: MAX_VALUE - 3]}..."
    return LeftOut(option=option, value=short, where=where[:_MAX_TEXT])


def of_request(request: str, options: Iterable[LeftOut]) -> list[LeftOut]:
    """Return options as those of a request."""
    return [one.model_copy(update={"request": request}) for one in options]


def table(title: str, text: str, given: Mapping[str, Given] | None = None) -> Table:
    """Return a table written as lines ``USE NAME, NAME -> OPTION: ABOUT``.

    All fields of a line have the same use, option and text. A field has the use `restricts` if its
    value alone says whether it restricts a job. It has the use `depends` if this depends on more
    than its value, and the reader finds out. Some fields do not restrict a job whenever they have
    a value. For these, `given` has the function that returns the value that restricts.
    """
    fields = []
    for line in filter(None, (" ".join(own.split()) for own in text.splitlines())):
        head, _, about = line.partition(": ")
        use, _, names = head.partition(" ")
        names, _, option = names.partition(" -> ")
        for name in names.split(", "):
            says = None if use == _DEPENDS else (given or {}).get(name, given_text)
            own = Use.RESTRICTS if use == _DEPENDS else Use(use)
            fields.append(Field(name, own, about, option, says))
    return Table(title, tuple(fields))
