"""Read and write JSON documents: bounded, strict, atomic."""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from topoplace.errors import InputError

MAX_DOCUMENT_BYTES = 64 << 20
"""Documents above this size are refused unread."""

Document = TypeVar("Document", bound=BaseModel)


def read_document(path: str | Path, model: type[Document], schema: str) -> Document:
    """Read a JSON document of the given schema.

    Raises
    ------
    InputError
        Naming the file, the field, the value and what was expected.
    """
    return parse_document(read_bytes(path), model, schema, str(path))


def parse_document(text: bytes, model: type[Document], schema: str, source: str) -> Document:
    """Return the document of the given schema that a text is; `source` names it in errors.

    Raises
    ------
    InputError
        Naming the source, the field, the value and what was expected.
    """
    raw = parse_object(text, source)
    if raw.get("schema") != schema:
        raise InputError(f'"{schema}"', file=source, field="schema", value=raw.get("schema"))
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise _first_problem(error, source) from None


def parse_object(text: bytes, source: str) -> dict[str, Any]:
    """Return the JSON object that a text is; `source` names it in errors.

    Raises
    ------
    InputError
        If it is none, names a key twice (readers differ on which counts), or has a number that is
        none: NaN, Infinity, or one beyond all floats.
    """
    try:
        raw = json.loads(
            text, object_pairs_hook=_once_each, parse_constant=_finite, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        detail = f"{error.msg} at line {error.lineno}"
        raise InputError(f"a JSON document ({detail})", file=source) from None
    except _FaultError as error:
        raise InputError(f"a JSON document ({error})", file=source) from None
    except (ValueError, RecursionError):
        raise InputError("a JSON document (not text or too deep)", file=source) from None
    if not isinstance(raw, dict):
        raise InputError("a JSON object", file=source, value=raw)
    return raw


class _FaultError(ValueError):
    """What JSON readers disagree on; the message says what and where."""


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _FaultError(f"with every key once, not {twice} twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _FaultError(f"with finite numbers, not {text}")
    return number


def read_bytes(path: str | Path) -> bytes:
    """Return a file's content, refusing what cannot be read or is too large to be a document."""
    try:
        if Path(path).is_dir():
            raise InputError("a file, not a folder", file=str(path))
        with Path(path).open("rb") as stream:
            text = stream.read(MAX_DOCUMENT_BYTES + 1)
    except FileNotFoundError:
        raise InputError("a file that exists", file=str(path)) from None
    except OSError as error:
        raise InputError(f"a readable file ({error.strerror})", file=str(path)) from None
    if len(text) > MAX_DOCUMENT_BYTES:
        raise InputError(f"at most {MAX_DOCUMENT_BYTES >> 20} MiB", file=str(path))
    return text


def text_of_document(document: BaseModel) -> str:
    """Return a document as the text of its file."""
    return document.model_dump_json(by_alias=True, exclude_none=False) + "\n"


def write_document(path: str | Path, document: BaseModel) -> None:
    """Write a document so that a reader sees the old file or the whole new one, never a part."""
    write_text(path, text_of_document(document))


def write_text(path: str | Path, text: str) -> None:
    """Write text atomically (see `write_bytes`)."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file atomically (see `write_document`).

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written.
    """
    target = Path(path)
    # Named before it exists: a signal may raise between any two steps, and whatever is there goes.
    temporary = target.parent / f".{target.name}.{os.urandom(8).hex()}"
    try:
        if target.exists() and not target.is_file():  # a pipe or a device: nothing to replace
            target.write_bytes(content)
            return
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            expected = f"a folder that can be written ({error.strerror})"
            raise InputError(expected, file=str(path)) from None
        raise


def _first_problem(error: ValidationError, file: str) -> InputError:
    problem = error.errors(include_url=False)[0]
    field = ""
    for part in problem["loc"]:
        field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else str(part)
    expected = problem["msg"][:1].lower() + problem["msg"][1:]
    return InputError(expected, file=file, field=field, value=problem.get("input"))
