"""Graphs and machines from files of matrices: CSV and QAPLIB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.machine.matrix import MAX_DISTANCE, MAX_PLACES
from topoplace.mapping.graph import IntArray
from topoplace.snapshot.readers.tables import name_of, text_of
from topoplace.snapshot.schema import GraphApplication, MatrixModel

# ---- Counts in text files: exact, not negative, bounded; errors name file, line and value --------

MAX_BYTES = 1 << 53
"""Most bytes of one message, as `GraphApplication` takes them: exact in 64 bits and in JSON."""


def count(text: str, most: int, *, file: str, field: str) -> int:
    """Return a decimal integer from 0 to `most`.

    Raises
    ------
    InputError
        That says whether the text is no integer, negative or too large.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise InputError("an integer, 0 or more", file=file, field=field, value=text)
    if text.startswith("-") and digits.strip("0"):
        raise InputError("0 or more, not a negative number", file=file, field=field, value=text)
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(most)) or int(digits) > most:
        raise InputError(f"at most {most}", file=file, field=field, value=text)
    return int(digits)


def counts(texts: Sequence[str], most: int, *, file: str, line: str) -> list[int]:
    """Return the integers of a line; errors say which one (`field 3`) is wrong."""
    # One test of the whole line: a matrix of 4,096 rows has 16 million entries.
    joined = "".join(texts)
    shorter = max(map(len, texts)) < len(str(most))
    if joined.isascii() and joined.isdigit() and all(texts) and shorter:
        return list(map(int, texts))
    return [
        count(text, most, file=file, field=f"{line}, field {number}")
        for number, text in enumerate(texts, start=1)
    ]


@dataclass
class Tokens:
    """The numbers of a file in which line ends mean nothing, one after the other."""

    file: str
    _fields: Iterator[tuple[str, str]]
    line: str = "line 1"

    @classmethod
    def of(cls, path: str | Path) -> Tokens:
        """Return the numbers of a file."""
        lines = enumerate(text_of(path).splitlines(), start=1)
        return cls(
            str(path), ((f"line {number}", text) for number, line in lines for text in line.split())
        )

    def take(self, what: str, most: int, least: int = 0) -> int:
        """Return the next number; `what` says in errors what was expected."""
        self.line, text = next(self._fields, (self.line, ""))
        if not text:
            raise InputError(f"{what}, not the end of the file", file=self.file, field=self.line)
        value = count(text, most, file=self.file, field=f"{self.line}, {what}")
        if value < least:
            raise self.error(f"at least {least}", what, value)
        return value

    def end(self) -> None:
        """Raise `InputError` if there is more."""
        for line, text in self._fields:
            raise InputError("the end of the file", file=self.file, field=line, value=text)

    def error(self, expected: str, what: str, value: object) -> InputError:
        """Return an error about the number taken last."""
        return InputError(expected, file=self.file, field=f"{self.line}, {what}", value=value)


# ---- Square tables of numbers: bytes between tasks, or distances between routers -----------------


def graph_of_matrix(matrix: IntArray) -> GraphApplication:
    """Return the messages of a matrix of bytes, row by row.

    Entry ``[i, j]`` is one message of so many bytes from task i to task j; zeros are no messages
    and the diagonal is ignored.
    """
    bytes_between = matrix.copy()
    np.fill_diagonal(bytes_between, 0)
    sources, targets = np.nonzero(bytes_between)
    return GraphApplication(
        num_tasks=len(matrix),
        sources=sources.tolist(),
        targets=targets.tolist(),
        bytes=bytes_between[sources, targets].tolist(),
    )


def read_csv_graph(path: str | Path) -> GraphApplication:
    """Read a square CSV matrix of directed bytes: row i, column j is what task i sends to j.

    Numbers are separated by commas, semicolons or blanks; empty lines and lines that start with
    ``#`` are left out. The diagonal is ignored.

    Raises
    ------
    InputError
        Naming file, line, field and value.
    """
    return graph_of_matrix(read_square(path, MAX_BYTES))


def read_matrix_machine(path: str | Path) -> MatrixModel:
    """Read a machine as a square CSV matrix of distances: row from, column to.

    Written as `read_csv_graph` reads it; zeros on the diagonal.

    Raises
    ------
    InputError
        Naming file, line, field and value.
    """
    distances = read_square(path, MAX_DISTANCE)
    return matrix_model(distances, name_of(path), str(path))


def matrix_model(distances: IntArray, name: str, file: str) -> MatrixModel:
    """Return the machine of a matrix of distances; `InputError` unless its diagonal is zero."""
    off = np.flatnonzero(np.diag(distances))
    if len(off):
        at = int(off[0])
        raise InputError(
            "zeros on the diagonal of the distances",
            file=file,
            field=f"row {at + 1}",
            value=int(distances[at, at]),
        )
    return MatrixModel(
        kind="matrix", name=name, distances=distances.tolist(), source=Path(file).name
    )


def read_square(path: str | Path, most: int) -> IntArray:
    """Read a square table of integers from 0 to `most`.

    Returns
    -------
    ndarray
        Shape ``(n, n)``, with n from 1 to `MAX_PLACES`.

    Raises
    ------
    InputError
        Naming file, line, field and value.
    """
    file = str(path)
    rows: list[IntArray] = []
    for number, text in enumerate(text_of(path).splitlines(), start=1):
        stripped = text.strip()
        if not stripped or stripped.startswith("#"):
            continue
        line = f"line {number}"
        row = counts(split_fields(stripped), most, file=file, line=line)
        width = len(rows[0]) if rows else len(row)
        if len(row) != width or len(rows) == width:
            expected = f"a square matrix, {width} rows of {width} numbers"
            found = f"{len(row)} numbers" if len(row) != width else f"row {len(rows) + 1}"
            raise InputError(expected, file=file, field=line, value=found)
        if width > MAX_PLACES:
            raise InputError(f"at most {MAX_PLACES} columns", file=file, field=line, value=width)
        rows.append(np.array(row, dtype=np.int64))
    if not rows or len(rows) < len(rows[0]):
        width = len(rows[0]) if rows else 0
        expected = f"a square matrix, {width} rows of {width} numbers" if rows else "a matrix"
        raise InputError(expected, file=file, value=f"{len(rows)} rows")
    return np.stack(rows)


def split_fields(line: str) -> list[str]:
    """Return the fields of a line, separated by commas, else by semicolons, else by blanks."""
    for separator in ",;":
        if separator in line:
            return [field.strip() for field in line.split(separator)]
    return line.split()


# ---- QAPLIB instances: one matrix of flows, one of distances -------------------------------------
# The file holds n and two n x n matrices A and B, its objective being the sum of ``a[i, j] *
# b[p(i), p(j)]`` over all ordered pairs i, j. With A as directed bytes and B as directed distances
# (or the other way round) that sum is hop-bytes as we define it, so that objectives are the listed
# values. Where both matrices are symmetric, every unordered pair counts twice in both.

FLOWS = ("first", "second")


@dataclass(frozen=True)
class Qaplib:
    """A QAPLIB instance.

    Attributes
    ----------
    file
        Where it was read from.
    flows, distances
        The two matrices, shape ``(n, n)``, not negative.
    """

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
        return matrix_model(self.distances, name_of(self.file), self.file)


def read_qaplib(path: str | Path, flow: str | None = None) -> Qaplib:
    """Read a QAPLIB ``.dat`` file: n, then two n x n matrices; line ends mean nothing.

    Parameters
    ----------
    path
        The file.
    flow
        ``first`` or ``second``: which matrix is the flows, the other one being the distances. The
        files keep to no order; by default the flows are the matrix with more zeros off the
        diagonal, of equally many the second.

    Raises
    ------
    InputError
        Naming file, line and value.
    """
    if flow is not None and flow not in FLOWS:
        raise unknown_name(flow, FLOWS, field="--flow")
    tokens = Tokens.of(path)
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
