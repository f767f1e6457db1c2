"""Numbers in text files, and files of numbers only: CSV matrices and QAPLIB instances."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topoplace.errors import InputError, blamed_on, number_of, unknown_name
from topoplace.formats.text import integer, lines_of, name_of
from topoplace.machine.matrix import MAX_DISTANCE, MAX_PLACES
from topoplace.snapshot.schema import GraphApplication, MatrixModel
from topoplace.traffic import COLUMNS, aligned, columns_of
from topoplace.types import IntArray

# ---- Numbers in text files: exact, not negative, bounded; errors name file, line and value -------

MAX_BYTES = 1 << 53
"""Most bytes of one message, as `GraphApplication` takes them: exact in 64 bits and in JSON."""


def split_fields(line: str) -> list[str]:
    """Return the fields of a line, separated by commas, else by semicolons, else by blanks."""
    for separator in ",;":
        if separator in line:
            return [field.strip() for field in line.split(separator)]
    return line.split()


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf)", re.IGNORECASE)


def is_header(fields: Sequence[str]) -> bool:
    """Return whether the fields of a first line are names: none is a number, only the first empty.

    Numbers after an empty field are the names of columns too, as pandas writes them.
    """
    named = fields[1:] if fields[:1] == [""] else fields
    if len(named) < len(fields):
        return bool(named) and all(named)
    return bool(named) and all(field and not _NUMBER.fullmatch(field) for field in named)


def list_header(fields: Sequence[str], file: str, line: str) -> tuple[int, int, int | None]:
    """Return where a list of messages has source, target and bytes, by its line of names."""
    with contextlib.suppress(InputError):
        found = columns_of(fields)
        if found is not None:
            return found
    expected = f"{COLUMNS}, or a matrix with labels of rows and columns"
    raise InputError(expected, file=file, field=line, value=",".join(fields))


class Tokens:
    """The numbers of some lines (names and texts), one after the other, across line ends."""

    def __init__(self, file: str, lines: Iterable[tuple[str, str]], line: str = "line 1") -> None:
        self.file, self.line = file, line
        self._texts = ((name, text) for name, whole in lines for text in whole.split())
        self._next = next(self._texts, None)

    @property
    def more(self) -> bool:
        """Whether there is another number."""
        return self._next is not None

    def take(self, what: str, most: int, least: int = 0) -> int:
        """Return the next number; `what` says in errors what was expected."""
        if self._next is None:
            raise InputError(f"{what}, not the end", file=self.file, field=self.line)
        (self.line, text), self._next = self._next, next(self._texts, None)
        return integer(text, least, most, file=self.file, field=f"{self.line}, {what}")

    def flags(self, what: str) -> tuple[bool, bool, bool]:
        """Return three digits 0 or 1; digits may be missing at the front."""
        value = self.take(what, 111)
        if not set(str(value)) <= {"0", "1"}:
            raise self.error("three digits 0 or 1", what, value)
        return value >= 100, value % 100 >= 10, value % 10 == 1

    def end(self) -> None:
        """Raise `InputError` if there is more."""
        if self._next is not None:
            line, text = self._next
            raise InputError("the end of the file", file=self.file, field=line, value=text)

    def error(self, expected: str, what: str, value: object) -> InputError:
        """Return an error about the last number taken."""
        return InputError(expected, file=self.file, field=f"{self.line}, {what}", value=value)


# ---- Square tables of numbers: bytes between tasks, or distances between routers -----------------


def graph_of(
    num_tasks: int, messages: IntArray, names: list[str] | None = None
) -> GraphApplication:
    """Return the graph of messages, an array of three rows: source, target and bytes."""
    sources, targets, sizes = messages.tolist()
    return GraphApplication(
        num_tasks=num_tasks, sources=sources, targets=targets, bytes=sizes, names=names
    )


def graph_of_matrix(matrix: IntArray, names: list[str] | None = None) -> GraphApplication:
    """Return the messages of a matrix of bytes, row by row.

    Entry ``[i, j]`` is one message of that number of bytes from task i to task j; zeros are no
    messages and the diagonal is ignored.
    """
    sources, targets = np.nonzero(matrix * ~np.eye(len(matrix), dtype=bool))
    return graph_of(len(matrix), np.stack([sources, targets, matrix[sources, targets]]), names)


def read_csv_graph(path: str | Path) -> GraphApplication:
    """Read a square CSV matrix of directed bytes: row i, column j is what task i sends to j.

    Numbers are separated by commas, semicolons or blanks; empty lines and lines that start with
    ``#`` are left out. The diagonal is ignored. A first line and a first column may have labels, as
    a data frame has (`aligned`).
    """
    file, lines = str(path), list(lines_of(path, "#"))
    first = split_fields(lines[0][1]) if lines else []
    across = [one for one in first if one] if has_labels(first, len(lines)) else None
    rows: list[str] = []
    begin, num = (0, len(lines)) if across is None else (1, len(across))
    is_named = len(split_fields(lines[begin][1])) == num + 1 if lines[begin:] else False
    if is_named and across is None:
        is_named = not _NUMBER.fullmatch(first[0])

    def fields() -> Iterator[tuple[str, list[str]]]:
        for line, text in lines[begin:]:
            label, *own = split_fields(text) if is_named else ("", *split_fields(text))
            rows.append(label)
            yield line, own

    matrix = _read_square(fields(), file, MAX_BYTES)
    if across is None and not is_named:
        return graph_of_matrix(matrix)
    labels = [own for own in (rows, across) if own and any(own)]
    with blamed_on(file):
        tasks = aligned(labels[0], labels[-1], "labels")
    return graph_of_matrix(matrix[np.ix_(tasks.rows, tasks.columns)], tasks.names)


def has_labels(first: Sequence[str], num_lines: int) -> bool:
    """Return whether the first line of a matrix has the labels of its columns.

    A line of three names alone is none: it may be that of a list of messages with other names.
    """
    if is_header(first):
        return first[0] == "" or (len(first) > _OF_LIST and num_lines == len(first) + 1)
    return first == [str(k) for k in range(len(first))] and num_lines == len(first) + 1


_OF_LIST = 3
"""Columns of a list of messages."""


def read_matrix_machine(path: str | Path) -> MatrixModel:
    """Read a machine as a square CSV matrix of distances: row from, column to.

    The format is that of `read_csv_graph`, with zeros on the diagonal.
    """
    lines = ((line, split_fields(text)) for line, text in lines_of(path, "#"))
    return _matrix_model(_read_square(lines, str(path), MAX_DISTANCE), path)


def _matrix_model(distances: IntArray, path: str | Path) -> MatrixModel:
    """Return the machine of a matrix of distances; `InputError` unless its diagonal is zero."""
    off = np.flatnonzero(np.diag(distances))
    if len(off):
        at = int(off[0])
        raise InputError(
            "zeros on the diagonal of the distances",
            file=str(path),
            field=f"row {at + 1}",
            value=int(distances[at, at]),
        )
    return MatrixModel(
        kind="matrix", name=name_of(path), distances=distances.tolist(), source=Path(path).name
    )


def _read_square(lines: Iterable[tuple[str, list[str]]], file: str, most: int) -> IntArray:
    """Read a square table of integers from 0 to `most`, of at most `MAX_PLACES` rows."""
    rows: list[IntArray] = []
    for line, fields in lines:
        row = _row(fields, most, file, line)
        width = len(rows[0]) if rows else len(row)
        if len(row) != width or len(rows) == width:
            expected = _square(width)
            found = number_of(len(row), "number") if len(row) != width else f"row {len(rows) + 1}"
            raise InputError(expected, file=file, field=line, value=found)
        if width > MAX_PLACES:
            raise InputError(f"at most {MAX_PLACES} columns", file=file, field=line, value=width)
        rows.append(np.array(row, dtype=np.int64))
    if not rows or len(rows) < len(rows[0]):
        width = len(rows[0]) if rows else 0
        expected = _square(width) if rows else "a matrix"
        raise InputError(expected, file=file, value=number_of(len(rows), "row"))
    return np.stack(rows)


def _square(width: int) -> str:
    return f"a square matrix, {number_of(width, 'row')} of {number_of(width, 'number')}"


def _row(texts: list[str], most: int, file: str, line: str) -> list[int]:
    """Return the integers of a line; errors say which one (`field 3`) is wrong."""
    # One test of the whole line: a matrix of 4,096 rows has 16 million entries.
    joined = "".join(texts)
    shorter = max(map(len, texts)) < len(str(most))
    if joined.isascii() and joined.isdigit() and all(texts) and shorter:
        return list(map(int, texts))
    return [
        integer(_plain(text), 0, most, file=file, field=f"{line}, field {number}")
        for number, text in enumerate(texts, start=1)
    ]


_FLOAT = re.compile(r"\d+\.\d*(?:[eE][-+]?\d{1,2})?", re.ASCII)


def _plain(text: str) -> str:
    """Return a whole number as digits where it is written as numpy writes floats; others as is."""
    if _FLOAT.fullmatch(text):
        value = float(text)
        if value.is_integer() and value < MAX_BYTES:
            return str(int(value))
    return text


# ---- QAPLIB instances: one matrix of flows, one of distances -------------------------------------
# The file holds n and two n x n matrices A and B, its objective being the sum of ``a[i, j] *
# b[p(i), p(j)]`` over all ordered pairs i, j. With A as directed bytes and B as directed distances
# (or the other way round) that sum is hop-bytes as we define it, so that objectives are the listed
# values. Where both matrices are symmetric, every unordered pair counts twice in both.

FLOWS = ("first", "second")


@dataclass(frozen=True)
class Qaplib:
    """A QAPLIB instance: two matrices of shape ``(n, n)``, not negative, and their file."""

    file: str
    flows: IntArray
    distances: IntArray

    @property
    def graph(self) -> GraphApplication:
        """The flows as directed bytes between tasks; their diagonal is ignored."""
        return graph_of_matrix(self.flows)

    @property
    def machine(self) -> MatrixModel:
        """The distances as a machine; `InputError` if they do not suit one."""
        largest = int(self.distances.max())
        if largest > MAX_DISTANCE:
            raise InputError(
                f"distances up to {MAX_DISTANCE}", file=self.file, field="distances", value=largest
            )
        return _matrix_model(self.distances, self.file)


def read_qaplib(path: str | Path, flow: str | None = None) -> Qaplib:
    """Read a QAPLIB ``.dat`` file: n, then two n x n matrices; line ends mean nothing.

    `flow` says which matrix is the flows, ``first`` or ``second``, the other one being the
    distances. The two matrices are in no fixed order; by default the flows are the one with more
    zeros off the diagonal, or the second if both have the same number.
    """
    if flow is not None and flow not in FLOWS:
        raise unknown_name(flow, FLOWS, field="--flow")
    tokens = Tokens(str(path), lines_of(path))
    size = tokens.take("the size n", MAX_PLACES, least=1)
    first, second = (_matrix(tokens, size, name) for name in FLOWS)
    tokens.end()
    if flow is None:
        flow = "first" if _zeros(first) > _zeros(second) else "second"
    return Qaplib(str(path), *((first, second) if flow == "first" else (second, first)))


def _matrix(tokens: Tokens, size: int, name: str) -> IntArray:
    what = f"entry of the {name} {size} x {size} matrix"
    entries = [tokens.take(what, MAX_BYTES) for _ in range(size * size)]
    return np.array(entries, dtype=np.int64).reshape(size, size)


def _zeros(matrix: IntArray) -> int:
    return int((matrix == 0).sum() - (np.diag(matrix) == 0).sum())
