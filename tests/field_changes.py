"""Other legal values for every field of a document, found by walking its models."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import EnumType
from typing import Any, Literal, get_args

from pydantic import BaseModel, ValidationError

from scripts_of_the_project import script

PAGE = script("build_checked_fields")

Document = dict[str, Any]
Path = tuple[str | int, ...]
Model = type[BaseModel]

_ANY = (
    0,
    1,
    7,
    0.5,
    True,
    "x",
    "0",
    [0],
    [[0]],
    [[0, 0, 0, 0]],
    ["x"],
    [True],
    {"x": "0"},
    {"x": 1},
)
"""Something for what is null or empty."""

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Field:
    """A field of a model somewhere in a document.

    Attributes
    ----------
    path
        Where its value is.
    holders
        Models and names of the fields on the way down, this one last.
    """

    path: Path
    holders: tuple[tuple[Model, str], ...]

    @property
    def key(self) -> tuple[Model, str]:
        return self.holders[-1]


@dataclass(frozen=True)
class Change:
    """A field, and another value for it; `MISSING` leaves it out."""

    field: Field
    value: Any

    def of(self, document: Document) -> Document:
        """Return the document with the change; what it leaves alone is not copied."""
        changed = copy.copy(document)
        at: Any = changed
        for step in self.field.path[:-1]:
            at[step] = at = copy.copy(at[step])
        if self.value is MISSING:
            at.pop(self.field.path[-1], None)
        else:
            at[self.field.path[-1]] = copy.deepcopy(self.value)
        return changed

    @property
    def text(self) -> str:
        """What is changed, for messages."""
        where = ".".join(map(str, self.field.path))
        return f"{where} = {'left out' if self.value is MISSING else repr(self.value)[:200]}"


MISSING = object()


def fields(instance: BaseModel) -> Iterator[Field]:
    """Yield every field of a model and of all models in it."""
    yield from _fields(instance, (), ())


def _fields(value: Any, path: Path, holders: tuple[tuple[Model, str], ...]) -> Iterator[Field]:
    if isinstance(value, BaseModel):
        for name, info in type(value).model_fields.items():
            at = (*path, info.alias or name)
            through = (*holders, (type(value), name))
            yield Field(at, through)
            yield from _fields(getattr(value, name), at, through)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _fields(item, (*path, number), holders)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _fields(item, (*path, key), holders)


class Changer:
    """Finds other values for fields of one document.

    Parameters
    ----------
    models
        Documents of models met anywhere, to be put where one may stand.
    """

    def __init__(self, instance: BaseModel, models: Mapping[Model, list[Document]]) -> None:
        self.root = type(instance)
        self._read = instance
        self.document: Document = json.loads(instance.model_dump_json())
        self._models = models
        self._names = sorted(_names(self.document))

    def changes(self, field: Field) -> Iterator[tuple[Change, BaseModel]]:
        """Yield the changes of a field that leave the document legal but not as it was.

        With each comes the changed document.
        """
        model, name = field.key
        old = _at(self.document, field.path)
        is_required = model.model_fields[name].is_required()
        values = self._values(PAGE.types_of(model)[name], old)
        seen = [json.dumps(old)]
        for value in [*values, *([] if is_required else [MISSING])]:
            text = "" if value is MISSING else json.dumps(value)
            if text in seen:
                continue
            seen.append(text)
            change = Change(field, value)
            try:
                found = self.root.model_validate_json(json.dumps(change.of(self.document)))
            except ValidationError:
                continue
            if found != self._read:
                yield change, found

    def _values(self, annotation: Any, old: Any) -> Iterator[Any]:
        """Yield other values, whether legal or not."""
        yield None
        yield from _members(annotation)
        for model in _models_in(annotation):
            for document in self._models.get(model, [])[:2]:
                yield from (document, [document], {"x": [document]})
        if old:
            yield from self._others(old)
        else:
            yield from (*self._others(old), *_ANY)

    def _others(self, old: Any) -> Iterator[Any]:
        if isinstance(old, bool):
            yield not old
        elif isinstance(old, int):
            yield from (old + 1, old - 1, 0, 2 * old, -old, -1, 1 << 70)
        elif isinstance(old, float):
            yield from (old + 1, old / 2, 0.0, -1.0 - old, 1e300, float("inf"), float("nan"))
        elif isinstance(old, str):
            yield from self._texts(old)
        elif isinstance(old, list):
            yield from self._lists(old)
        elif isinstance(old, dict):
            yield from self._dicts(old)

    def _texts(self, old: str) -> Iterator[str]:
        yield from (old + "x", "x", "", old[:-1], old[::-1])
        for found in list(_NUMBER.finditer(old))[:: max(1, old.count(" ") // 3)][:4]:
            for number in (int(found[0]) + 1, max(0, int(found[0]) - 1), 2 * int(found[0])):
                yield f"{old[: found.start()]}{number}{old[found.end() :]}"
        yield from self._names

    def _lists(self, old: list[Any]) -> Iterator[list[Any]]:
        yield from (old[:-1], old[1:], [], old[::-1], old[1:] + old[:1])
        yield from ([*old, item] for item in old[:1] + old[-1:])
        for idx in sorted({0, len(old) // 2, len(old) - 1} & set(range(len(old)))):
            if not isinstance(old[idx], dict):  # models have changes of their own
                for value in self._others(old[idx]):
                    yield [*old[:idx], value, *old[idx + 1 :]]
            for other in range(idx + 1, min(len(old), idx + 3)):
                turned = old.copy()
                turned[idx], turned[other] = old[other], old[idx]
                yield turned

    def _dicts(self, old: Document) -> Iterator[Document]:
        for name in list(old)[:2]:
            rest = {key: value for key, value in old.items() if key != name}
            yield rest
            yield rest | {name + "x": old[name]}
            if isinstance(old[name], str):
                yield from (old | {name: value} for value in self._texts(old[name]))


def _at(document: Any, path: Path) -> Any:
    for step in path:  # documents leave out some fields that are null
        document = document.get(step) if isinstance(document, dict) else document[step]
    return document


def _names(value: Any) -> Iterator[str]:
    """Yield what other fields of the document are called by."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("id", "name", "request") and isinstance(item, str):
                yield item
            yield from _names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)


def _members(annotation: Any) -> Iterator[Any]:
    """Yield the members of enumerations and literals, also in lists."""
    if isinstance(annotation, EnumType):
        yield from (member.value for member in annotation)
    for argument in get_args(annotation):
        if getattr(annotation, "__origin__", None) is Literal:
            yield argument
        else:
            yield from _members(argument)


def _models_in(annotation: Any) -> Iterator[Model]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def models_of(instances: list[BaseModel]) -> dict[Model, list[Document]]:
    """Return documents of all models that instances hold, short ones first."""
    found: dict[Model, dict[str, Document]] = {}
    todo: list[Any] = list(instances)
    while todo:
        value = todo.pop()
        if isinstance(value, BaseModel):
            text = value.model_dump_json()
            found.setdefault(type(value), {})[text] = json.loads(text)
            todo += [getattr(value, name) for name in type(value).model_fields]
        elif isinstance(value, list | tuple):
            todo += value
        elif isinstance(value, Mapping):
            todo += value.values()
    return {
        model: [texts[text] for text in sorted(texts, key=lambda text: (len(text), text))]
        for model, texts in found.items()
    }
