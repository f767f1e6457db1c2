"""Read and write JSON documents: bounded, strict, atomic; and what topoplace ships."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from topoplace.errors import InputError, closest
from topoplace.rescue import rescue
from topoplace.snapshot.faults import faults_of, kind_named, kind_of_document, kind_of_text
from topoplace.snapshot.foreign import foreign_kind

# ---- What topoplace ships: folders, and snapshots by name ----------------------------------------


def data_folder(name: str) -> Path:
    """Return a shipped folder (`instances` or `models`): the wheel's, else the checkout's."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / name, package.parent.parent / name):
        if folder.is_dir():
            return folder
    raise InputError(f"an installation with its {name} folder")


def machine_names() -> list[str]:
    """Return the names of the shipped machines."""
    return _names("machines")


def snapshot_names() -> list[str]:
    """Return the names of the shipped snapshots."""
    return _names("snapshots")


def file_meant(path: str | Path) -> Path:
    """Return the file that a path or the name of a shipped snapshot stands for; files go first."""
    if not Path(path).exists() and str(path) in snapshot_names():
        return data_folder("instances") / "snapshots" / f"{path}.json"
    return Path(path)


def _names(folder: str) -> list[str]:
    return sorted(p.stem for p in (data_folder("instances") / folder).glob("*.json"))


# ---- Read and write JSON documents: bounded, strict, atomic --------------------------------------

MAX_DOCUMENT_BYTES = 64 << 20
"""Documents above this size are refused unread."""

_SHORTHAND = re.compile(r"(torus|mesh|tree|hierarchy|cubes):\d")
"""How the shorthand of a machine begins."""


class ForeignError(InputError):
    """A file of another tool's that is not read."""


STDIN = "-"
"""The file that stands for standard input."""

Document = TypeVar("Document", bound=BaseModel)


def read_document(path: str | Path, model: type[Document], schema: str) -> Document:
    """Read a JSON document of the given schema (see `read_bytes` for what the path may be).

    Raises
    ------
    InputError
        Naming the file, the field, the value and what was expected.
    """
    return parse_document(read_bytes(path), model, schema, str(path))


def parse_document(text: bytes, model: type[Document], schema: str, source: str) -> Document:
    """Return the document of the given schema that a text is; `source` names it in errors."""
    raw = parse_object(text, source)
    if raw.get("schema") != schema:
        found = kind_of_document(raw)
        raise InputError(kind_named(schema), file=source, field="schema", found=found)
    problem = model.model_fields.get("problem")
    wanted = () if problem is None else get_args(problem.annotation)
    if wanted and "problem" in raw and raw["problem"] not in wanted:  # whose fields would not suit
        found = f"that of a {raw['problem']}"
        raise InputError(f"the result of a {wanted[0]}", file=source, field="problem", found=found)
    return validated(text, raw, model, source)


def validated(text: bytes, raw: object, model: type[Document], source: str) -> Document:
    """Return the document that a text is, which was parsed already, or raise all its faults."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":  # such as one that is too deep for pydantic alone
            raise InputError(f"a JSON document ({first['ctx']['error']})", file=source) from None
        raise faults_of(error, model, raw).located(source) from None


def parse_object(text: bytes, source: str) -> dict[str, Any]:
    """Return the JSON object that a text is; `source` names it in errors.

    Refused is what names a key twice (readers differ on which counts), or has a number that is
    none: NaN, Infinity, or one beyond all floats.
    """
    try:
        raw = json.loads(
            text, object_pairs_hook=_once_each, parse_constant=_finite, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        found = kind_of_text(text) or (None if text.strip() else "an empty file")
        raise json_fault(error, found).located(source) from None
    except InputError as error:  # what JSON readers disagree on
        raise error.located(source) from None
    except (ValueError, RecursionError) as error:
        raise json_fault(error).located(source) from None
    if not isinstance(raw, dict):
        raise InputError("a JSON object", file=source, value=raw)
    return raw


def json_fault(error: Exception, found: str | None = None) -> InputError:
    """Return what is wrong with a text that `json` could not read."""
    detail = "not text or too deep"
    if isinstance(error, json.JSONDecodeError):
        detail = f"{error.msg.removesuffix(' at')} at line {error.lineno}"
    return InputError(f"a JSON document ({detail})", found=found)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, times in counts.items() if times > 1)
        raise InputError(f"a JSON document (with every key once, not {twice} twice)")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InputError(f"a JSON document (with finite numbers, not {text})")
    return number


def read_bytes(path: str | Path, *, any_kind: bool = False) -> bytes:
    """Return a file's content, refusing what cannot be read or is too large to be a document.

    A path that is no file may be the name of a shipped snapshot; ``-`` stands for standard input.
    A file of a foreign kind is refused, unless `any_kind` will do.
    """
    if str(path) == STDIN:
        text = _content_of(sys.stdin.buffer)
    else:
        text = _read(file_meant(path), MAX_DOCUMENT_BYTES + 1)
    what = None if any_kind else foreign_kind(text)
    if what is not None:
        raise ForeignError("a file of a kind that topoplace reads", file=str(path), found=what)
    return _as_utf8(text, str(path))


def _read(path: Path, most: int) -> bytes:
    """Return the first bytes of a file; what a pipe has is kept, as commands look at it twice."""
    try:
        if path.is_dir():
            raise InputError("a file", file=str(path), found="a folder")
        if path.is_file():
            with path.open("rb") as stream:
                return stream.read(most)
        about = path.stat()
        key = about.st_dev, about.st_ino
        if key not in _piped:
            with path.open("rb") as stream:
                _piped[key] = stream.read(MAX_DOCUMENT_BYTES + 1)
        return _piped[key][:most]
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise InputError(f"a readable file ({error.strerror})", file=str(path)) from None


_piped: dict[tuple[int, int], bytes] = {}


_BEGINNING = 1 << 16


def beginning_of(path: str | Path) -> str:
    """Return the first 65,536 bytes of a file as text: what shows which tool wrote it."""
    if str(path) == STDIN:
        return _content_of(sys.stdin.buffer)[:_BEGINNING].decode(errors="replace")
    start = _read(file_meant(path), _BEGINNING)
    return start.removeprefix(codecs.BOM_UTF8).decode(errors="replace")


def missing_file(path: str | Path, expected: str = "a file that exists") -> InputError:
    """Return the error of a path at which there is nothing, with the name most like it."""
    if str(path) in machine_names() or _SHORTHAND.match(str(path)):
        return InputError(expected, file=str(path), found="a machine, which the option --on takes")
    meant = likely_meant(path, snapshot_names())
    return InputError(expected, file=str(path), found="nothing there", meant=meant)


def likely_meant(path: str | Path, shipped: Sequence[str]) -> str | None:
    """Return the shipped name, or else the file in the same folder, most like a wrong path."""
    folder, name = Path(path).parent, Path(path).name
    near = closest(str(path), shipped)
    if near is None:
        with contextlib.suppress(OSError):
            near = closest(name, [p.name for p in folder.iterdir()])
        near = near and str(folder / near)
    return near


@lru_cache(maxsize=1)
def _content_of(stream: BinaryIO) -> bytes:
    """Return what a stream has, also if it was read before: commands look at a document twice."""
    return stream.read(MAX_DOCUMENT_BYTES + 1)


def _as_utf8(text: bytes, file: str) -> bytes:
    """Return a content without the byte order mark that some editors put before UTF-8."""
    if len(text) > MAX_DOCUMENT_BYTES:
        raise InputError(f"at most {MAX_DOCUMENT_BYTES >> 20} MiB", file=file, found="more")
    first = [byte == 0 for byte in text[:4]]
    if text.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise InputError("text in UTF-8", file=file, found="UTF-32")
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or first in _OF_UTF16:
        raise InputError("text in UTF-8", file=file, found="UTF-16")
    return text.removeprefix(codecs.BOM_UTF8)


_OF_UTF16 = ([True, False, True, False], [False, True, False, True])
"""Which of the first bytes are 0 in UTF-16 without a mark."""


def text_of_document(document: BaseModel) -> str:
    """Return a document as the text of its file."""
    return document.model_dump_json() + "\n"


def write_document(path: str | Path, document: BaseModel) -> None:
    """Write a document so that a reader sees the old file or the whole new one, never a part.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written.
    """
    write_text(path, text_of_document(document))


def write_text(path: str | Path, text: str) -> None:
    """Write text atomically (see `write_document`)."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file atomically (see `write_document`); of a link, the file that it leads to.

    What a command cannot write is put into a temporary folder (`topoplace.rescue`).
    """
    target = Path(os.path.realpath(path))
    # Named before it exists: a signal may raise between any two steps, and whatever is there goes.
    temporary = target.parent / f".{target.name}.{os.urandom(8).hex()}"
    try:
        with contextlib.suppress(FileNotFoundError):
            target.stat()  # fails on a link that leads to itself, which would be replaced
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
            rescue(path, content, InputError(expected, file=str(path)))
            return
        raise


def make_folder(folder: Path | None, field: str, *, parents: bool = True) -> None:
    """Make a folder, if there is none; `InputError` names the option or argument if that fails."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=parents, exist_ok=True)
    except OSError as error:
        expected = f"a folder that can be made ({error.strerror})"
        raise InputError(expected, field=field, value=str(folder)) from None


def csv_of(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV with a header line; what is None is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()
