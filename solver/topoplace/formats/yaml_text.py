"""YAML and JSON texts as plain values that remember their lines, for errors that name them."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from topoplace.errors import InputError, blamed_on
from topoplace.formats.text import text_of
from topoplace.snapshot.faults import faults_of
from topoplace.snapshot.files import parse_object
from topoplace.snapshot.schema import Model

Document = TypeVar("Document", bound=BaseModel)


class YamlModel(Model):
    """Base of documents in YAML; built when first read, as most commands read none."""

    model_config = ConfigDict(defer_build=True)


_MAX_VALUES = 20_000_000
_MAX_DEPTH = 100

# Those of YAML 1.2: `no` and `1:30` are texts, as Slurm and Kubernetes take them.
_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)?\.[0-9]+([eE][-+]?[0-9]+)?")
_OUR_TAGS = (None, "!", *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq")))

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True)
class Parsed:
    """A value of a text, and in which line each of its parts stands.

    Attributes
    ----------
    value
        Made of mappings, lists, texts, numbers, booleans and None.
    lines
        By the identity of a mapping or list and a key in it, the line of what is there; empty
        for JSON.
    """

    value: Any
    lines: dict[tuple[int, object], int]

    def validated(self, model: type[Document]) -> Document:
        """Return the document that the value is, or raise all its faults with their lines."""
        try:
            return model.model_validate(self.value)
        except ValidationError as error:
            raise self.placed(faults_of(error, model, self.value)) from None

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """Name the line of its field in an `InputError` that the block raises."""
        try:
            yield
        except InputError as error:
            raise self.placed(error) from None

    def placed(self, error: InputError) -> InputError:
        """Return an error with the line of its field before that."""
        for fault in error.faults:
            fault.field = self.place_of(fault.field or "") or fault.field
        return error

    def place_of(self, field: str) -> str:
        """Return a field such as ``items[3].name`` with its line before it, if that is known."""
        line = self.line_of(field)
        return ", ".join(filter(None, ("" if line is None else f"line {line}", field)))

    def line_of(self, field: str) -> int | None:
        """Return the line of a field such as ``items[3].name``, or of the nearest one above."""
        value: Any = self.value if self.lines else None
        line: int | None = None
        while field and isinstance(value, dict | list):
            key, field = _step(value, field)
            line = self.lines.get((id(value), key), line)
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                break
        return line


def value_at(value: Any, field: str) -> Any:
    """Return what stands at a field such as ``spec.tasks[0]``, which has to be there."""
    while field:
        key, field = _step(value, field)
        value = value[key]
    return value


def _step(value: dict[str, Any] | list[Any], field: str) -> tuple[Any, str]:
    """Return the key that a field begins with, and the rest; keys may have dots in them."""
    field = field.removeprefix(".")
    if isinstance(value, dict):
        heads = [key for key in value if field == key or field.startswith((f"{key}.", f"{key}["))]
        if heads:
            key = max(heads, key=len)
            return key, field[len(key) :]
    match = _STEP.match(field)
    if match is None:
        return None, ""
    return (match[2] if match[1] is None else int(match[1])), field[match.end() :]


def read_parsed(path: str | Path) -> list[Parsed]:
    """Return the documents of a file: of JSON objects, or of YAML.

    Raises
    ------
    InputError
        With line and column, for what is neither, names a key twice, or is too large or deep.
    """
    text = text_of(path, or_json=True)
    with blamed_on(path):
        return parsed_text(text)


@contextlib.contextmanager
def only_document(path: str | Path, model: type[Document]) -> Iterator[Document]:
    """Yield the only document of a file, and name file and line of what the block raises."""
    with blamed_on(path):
        documents = read_parsed(path)
        if len(documents) > 1:
            raise InputError("one YAML document", found=str(len(documents)))
        document = documents[0].validated(model)
        with documents[0].blamed():
            yield document


def parsed_text(text: str) -> list[Parsed]:
    """Return the documents of a text, as `read_parsed`."""
    if text.lstrip().startswith("{"):
        found = [Parsed(value, {}) for value in _json_objects(text)]
    else:
        found = _documents(text)
    if not found:
        raise InputError("a YAML document", found="an empty file")
    return found


def _json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield JSON objects that stand one after another, as several calls of a program leave them."""
    decoder = json.JSONDecoder()
    start = _next_in(text, 0)
    ends: list[int] = []
    try:
        while start < len(text):
            _, end = decoder.raw_decode(text, start)
            ends.append(end)
            start = _next_in(text, end)
    except (ValueError, RecursionError):
        if not ends or not text.startswith("{", start):
            ends = [len(text)]  # whose fault is told by the reader of documents
        else:
            ends.append(len(text))
    start = 0
    for end in ends:
        yield parse_object(text[start:end].encode(), "")
        start = end


def _next_in(text: str, at: int) -> int:
    """Return where a text goes on after blanks; without a copy, as it may have many objects."""
    found = _NO_BLANK.search(text, at)
    return len(text) if found is None else found.start()


_NO_BLANK = re.compile(r"\S")


# ---- YAML, event by event: no recursion, no objects but plain values -----------------------------


def _documents(text: str) -> list[Parsed]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        field = None if mark is None else _position(mark)
        raise InputError(f"YAML ({error.problem or error.context})", field=field) from None
    except yaml.YAMLError as error:
        raise InputError(f"YAML ({' '.join(str(error).split())})") from None
    return builder.documents


def _position(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


class _Builder:
    """Makes values of the events of a parser."""

    def __init__(self) -> None:
        self.documents: list[Parsed] = []
        self._lines: dict[tuple[int, object], int] = {}
        self._open: list[tuple[Any, str | None, int]] = []  # container, anchor, values before it
        self._keys: list[str | None] = []  # of every open container the key that waits
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.DocumentStartEvent):
            self._lines, self._anchors = {}, {}
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._begin(event, {} if isinstance(event, yaml.MappingStartEvent) else [])
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._end()
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _begin(self, event: Any, container: Any) -> None:
        if len(self._open) >= _MAX_DEPTH:
            expected = f"YAML of at most {_MAX_DEPTH} levels"
            raise InputError(expected, field=_position(event.start_mark))
        _require_plain_tag(event)
        self._put(container, event, 1)
        self._open.append((container, event.anchor, self._count))
        self._keys.append(None)

    def _end(self) -> None:
        container, anchor, before = self._open.pop()
        self._keys.pop()
        if anchor is not None:
            self._anchors[anchor] = container, self._count - before + 1

    def _scalar(self, event: Any) -> None:
        if self._open and isinstance(self._open[-1][0], dict) and self._keys[-1] is None:
            self._keys[-1] = self._key(event)
            return
        value = _value(event)
        self._put(value, event, 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, 1

    def _key(self, event: Any) -> str:
        key = str(event.value)
        container = self._open[-1][0]
        if event.implicit[0] and key == "<<":
            raise InputError("YAML without merge keys (<<)", field=_position(event.start_mark))
        if key in container:
            expected = f"YAML with every key once, not {key} twice"
            raise InputError(expected, field=_position(event.start_mark))
        return key

    def _alias(self, event: Any) -> None:
        value, count = self._anchors.get(event.anchor, (None, 0))
        if not count:
            expected = "an alias of what stands before it"
            raise InputError(expected, field=_position(event.start_mark), value=event.anchor)
        self._put(value, event, count)

    def _put(self, value: Any, event: Any, count: int) -> None:
        """Put a value of `count` parts where the next one goes."""
        self._count += count
        if self._count > _MAX_VALUES:
            expected = f"at most {_MAX_VALUES} values, aliases written out"
            raise InputError(expected, field=_position(event.start_mark))
        if not self._open:
            self._count = 0
            self.documents.append(Parsed(value, self._lines))
            return
        container = self._open[-1][0]
        if isinstance(container, list):
            key: object = len(container)
            container.append(value)
        else:
            key, self._keys[-1] = self._keys[-1], None
            if key is None:
                expected = "a text as key of a YAML mapping"
                raise InputError(expected, field=_position(event.start_mark))
            container[key] = value
        self._lines[id(container), key] = event.start_mark.line + 1


def _require_plain_tag(event: Any) -> None:
    if event.tag not in _OUR_TAGS:
        expected = "YAML without tags of its own"
        raise InputError(expected, field=_position(event.start_mark), value=event.tag)


def _value(event: Any) -> object:
    """Return what a scalar stands for; only plain ones are anything but text."""
    plain, _ = event.implicit
    if not plain:
        _require_plain_tag(event)
        return event.value
    text = event.value
    if _NULL.fullmatch(text):
        return None
    match = _BOOL.fullmatch(text)
    if match is not None:
        return match[1] is not None
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text
