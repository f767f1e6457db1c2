"""Arguments from Python: numbers and arrays of other libraries made plain, and their types checked.

The types are those that are declared, as texts; nothing heavy is imported here.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from topoplace.errors import WHOLE, InputError, number_of

P = ParamSpec("P")
R = TypeVar("R")

_EXPECTED = {
    "bool": "True or False",
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "Path": "a path",
    "File": "a path",
    **dict.fromkeys(("Sequence", "tuple"), "a list"),
    "Mapping": "a dictionary",
    **dict.fromkeys(("Callable", "Watch", "KeepRow"), "a function"),
    "None": "",
}
"""What is expected of a declared type; types that are not here are checked where they are used."""


def plain(value: Any) -> Any:
    """Return numbers and arrays of numpy as Python's, and whole floats as integers.

    So are those inside lists, dictionaries, tuples and ranges (which become lists); all else stays.
    """
    if isinstance(value, Mapping):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(one) for one in value]
    if isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return plain(value.tolist()) if hasattr(value, "dtype") and hasattr(value, "tolist") else value


def fitting(value: Any, declared: str, field: str) -> Any:
    """Return a plain value of a declared type such as ``Sequence[int] | None``.

    Raises
    ------
    InputError
        Naming the field, if it is of none of the types.
    """
    types = list(_parts(declared, "|"))
    matches = [re.fullmatch(r"(\w+)(?:\[(.*)\])?", one) for one in types]
    named = {match[1]: match[2] for match in matches if match is not None}
    if len(named) < len(types) or not named.keys() <= _EXPECTED.keys():
        return value
    is_float = isinstance(value, float) and "int" not in named
    value = float(value) if is_float else plain(value)
    for name, inner in named.items():
        is_name = name == "Sequence" and "str" in _parts(inner or "", "|")  # a list of one
        if _is(value, name) or (is_name and isinstance(value, str)):
            return _inside(value, name, inner, field)
    if "int" in named and isinstance(value, float):
        raise InputError(WHOLE, field=field, value=value)
    expected = " or ".join(dict.fromkeys(filter(None, (_EXPECTED[name] for name in named))))
    raise InputError(
        expected, field=field, value=value, found=None if value is not None else "None"
    )


def _is(value: Any, name: str) -> bool:
    kinds: dict[str, Any] = {
        "bool": bool,
        "int": int,
        "float": Real,
        "str": str,
        "Path": str | Path,
        "File": str | Path,
        "Sequence": list,
        "tuple": list,
        "Mapping": Mapping,
        "None": type(None),
    }
    if name not in kinds:
        return callable(value)
    return isinstance(value, kinds[name]) and (name == "bool" or not isinstance(value, bool))


def _inside(value: Any, name: str, inner: str | None, field: str) -> Any:
    """Return a value of a type with its parts checked, paths as such."""
    if name == "Path":
        return Path(value)
    if name == "Sequence" and inner and isinstance(value, list):
        return [fitting(one, inner, f"{field}[{k}]") for k, one in enumerate(value)]
    if name == "tuple" and inner:
        parts = list(_parts(inner, ","))
        if len(value) != len(parts):
            raise InputError(number_of(len(parts), "value"), field=field, value=value)
        pairs = enumerate(zip(value, parts, strict=True))
        return tuple(fitting(one, part, f"{field}[{k}]") for k, (one, part) in pairs)
    if name == "Mapping" and inner:
        to = list(_parts(inner, ","))[-1]
        return {key: fitting(one, to, f"{field}[{key}]") for key, one in value.items()}
    return value


def _parts(text: str, separator: str) -> Iterator[str]:
    """Yield the parts of a text between separators outside of brackets."""
    depth, begin = 0, 0
    for k, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == separator and not depth:
            yield text[begin:k].strip()
            begin = k + 1
    yield text[begin:].strip()


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose arguments are made plain, and of the types that it declares.

    Raises
    ------
    InputError
        When it is called, naming the argument that is of another type.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(*args: P.args, **given: P.kwargs) -> R:
        bound = signature.bind(*args, **given)
        for name, value in bound.arguments.items():
            declared = str(signature.parameters[name].annotation)
            bound.arguments[name] = fitting(value, declared, name)
        return function(*bound.args, **bound.kwargs)

    return run


def parse_extents(text: str, field: str) -> tuple[int, ...]:
    """Return the numbers of a text such as ``32x32x32``; an `InputError` names `field`."""
    if not re.fullmatch(r"[1-9]\d{0,6}(?:x[1-9]\d{0,6})*", text):
        raise InputError("positive sizes such as 32x32x32", field=field, value=text)
    return tuple(map(int, text.split("x")))


def parse_count(text: str, field: str) -> int:
    """Return a number of bytes; an `InputError` names `field`."""
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise InputError("bytes, 0 or more, such as 8", field=field, value=text)
    return int(text)


def parse_bytes(text: str, num_dims: int, field: str) -> list[list[int]]:
    """Return bytes up and down per dimension: ``8/4,8,8``, or one number for all of them."""
    parts = text.split(",")
    if len(parts) == 1:
        parts *= num_dims
    if len(parts) != num_dims:
        expected = f"{number_of(num_dims, 'number')} of bytes, one for each dimension"
        raise InputError(expected, field=field, value=text)
    found = []
    for part in parts:
        ways = [parse_count(way, field) for way in part.split("/")]
        if len(ways) > 2:
            raise InputError("one number, or two such as 8/4", field=field, value=part)
        found.append([ways[0], ways[-1]])
    return found
