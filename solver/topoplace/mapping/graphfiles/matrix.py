"""Square tables of numbers: bytes between tasks, or distances between routers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.machine.matrix import MAX_DISTANCE, MAX_PLACES
from topoplace.mapping.graph import IntArray
from topoplace.mapping.graphfiles._fields import MAX_BYTES, counts
from topoplace.snapshot.application import GraphApplication, MatrixModel
from topoplace.snapshot.readers.lines import name_of, text_of


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
