"""Traffic between tasks as other libraries have it: arrays, data frames, sparse matrices, graphs.

Objects are known by what they offer; no library but numpy is imported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import WHOLE, InputError, number_of, visible
from topoplace.given import plain
from topoplace.types import IntArray

AnyArray = NDArray[Any]

EXPECTED = (
    "a square matrix, triples of source, target and bytes, a data frame of one of these, a sparse "
    "matrix or a graph of NetworkX"
)
_ENDS = ("source", "target")
_WEIGHTS = ("bytes", "weight")
COLUMNS = "columns source, target and bytes (or weight)"
_MOST = 1 << 53  # larger floats may have lost a digit


log = logging.getLogger("topoplace")


class Traffic(NamedTuple):
    """Messages: their ends and sizes, and of how many tasks, if that is known.

    Tasks have names if they are not just numbers from 0.
    """

    sources: Sequence[int] | AnyArray
    targets: Sequence[int] | AnyArray
    sizes: AnyArray
    num_tasks: int | None = None
    names: Sequence[str] | None = None


def is_foreign(given: object) -> bool:
    """Return whether something is an object of a library that may hold traffic."""
    known = isinstance(given, np.ndarray) or hasattr(given, "tocoo")
    return known or is_graph(given) or _is_frame(given)


def is_graph(given: object) -> bool:
    """Return whether something is a graph such as those of NetworkX."""
    return hasattr(given, "is_directed") and hasattr(given, "edges")


def is_series(given: object) -> bool:
    """Return whether something is a series such as those of pandas: values with labels."""
    return hasattr(given, "index") and hasattr(given, "to_numpy") and not _is_frame(given)


def _is_frame(given: object) -> bool:
    return hasattr(given, "columns") and hasattr(given, "to_numpy")


def traffic_of(given: Any, field: str) -> Traffic:
    """Return the traffic of what is given.

    Entry ``[i, j]`` of a matrix is what task i sends to task j. An edge of a graph without
    directions is one message, so that hop-bytes count it once.

    Raises
    ------
    InputError
        Naming the field, and the place in it, for what is no traffic in whole numbers.
    """
    if is_graph(given):
        return _of_graph(given, field)
    if hasattr(given, "tocoo"):
        entries = given.tocoo()
        _require_square(entries.shape, field)
        sizes = _whole(entries.data, lambda k: f"{field}[{entries.row[k]}, {entries.col[k]}]")
        return Traffic(entries.row, entries.col, sizes, entries.shape[0])
    if _is_frame(given):
        return _of_frame(given, field)
    return _of_array(given, field)


def matrix_of(given: Any, field: str) -> IntArray:
    """Return a square matrix of whole numbers."""
    _require_unmasked(given, field)
    table = np.asarray(given)
    _require_square(table.shape, field)
    num = len(table)
    return _whole(table.ravel(), lambda k: f"{field}[{k // num}, {k % num}]").reshape(num, num)


def _of_array(given: Any, field: str) -> Traffic:
    is_array = isinstance(given, np.ndarray)
    _require_unmasked(given, field)
    if not is_array and (isinstance(given, str) or not isinstance(given, Iterable)):
        raise InputError(EXPECTED, field=field, value=given)
    try:
        table = np.asarray(given if is_array else list(given))
    except ValueError:
        raise InputError(EXPECTED, field=field, found="lists of several lengths") from None
    if table.shape == (0,):
        table = table.reshape(0, 3)
    if is_array and table.ndim == 2 and len(table) == table.shape[1]:
        return _of_matrix(table, field)
    if table.ndim != 2 or table.shape[1] != 3:
        raise InputError(EXPECTED, field=field, found=f"an array of shape {table.shape}")
    whole = _whole(table.ravel(), lambda k: f"{field}[{k // 3}, {k % 3}]").reshape(-1, 3)
    return Traffic(whole[:, 0], whole[:, 1], whole[:, 2])


def _of_matrix(table: AnyArray, field: str, names: Sequence[str] | None = None) -> Traffic:
    whole = matrix_of(table, field)
    sources, targets = np.nonzero(whole)
    return Traffic(sources, targets, whole[sources, targets], len(whole), names)


def columns_of(names: Sequence[Any]) -> tuple[int, int, int | None] | None:
    """Return where a list of messages has its source, target and bytes; None if it is no such list.

    The columns may be in any order, with others between them. Bytes are those of the column
    ``bytes``, else ``weight``; a list with neither, and no other column, has none.

    Raises
    ------
    InputError
        If some of these columns are there and others missing, or one is there twice.
    """
    weights = [one for one in _WEIGHTS if one in names]
    if not {*_ENDS, *_WEIGHTS} & {*names}:
        return None
    is_list = {*_ENDS} <= {*names} and (bool(weights) or {*names} <= {*_ENDS, ""})
    if not is_list or len(set(names)) < len(names):
        found = f"columns {', '.join(map(str, names[:8]))}"
        raise InputError(f"{COLUMNS}, each once", found=found)
    source, target, *size = (list(names).index(one) for one in (*_ENDS, *weights[:1]))
    return source, target, size[0] if size else None


def note_silent(file: str, silent: int, total: int, what: str) -> None:
    """Log how many messages of a list have no bytes, and are taken to have one."""
    if silent:
        which = "" if silent == total else f" in {number_of(silent, what)}"
        log.warning("%s", visible(f"{file}: no bytes given{which}, 1 each"))


class Labels(NamedTuple):
    """The rows and the columns of a labelled matrix in the order of its tasks, and their names."""

    rows: IntArray
    columns: IntArray
    names: list[str] | None


def aligned(rows: Sequence[Any], across: Sequence[Any], field: str) -> Labels:
    """Return where the tasks of a labelled matrix stand in its rows and columns.

    Both have the same labels, in any order, or one of them is counted from 0 and the other has
    labels that are no integers. Tasks are in the order of the rows, and named so; where the labels
    are the numbers of the tasks, from 0, they are in that order instead.

    Raises
    ------
    InputError
        If rows and columns have different labels, or one of them twice.
    """
    first, second, numbers = [*map(str, rows)], [*map(str, across)], [*range(len(rows))]
    if {*first} != {*second}:
        counted, named = (rows, across) if [*rows] == numbers else (across, rows)
        if [*counted] != numbers or any(isinstance(one, int) for one in named):
            missing = next(iter(sorted({*first} ^ {*second})))
            found = f"{missing} as one of them alone"
            raise InputError("the same tasks as rows and as columns", field=field, found=found)
        first = second = [*map(str, named)]
    place = {name: k for k, name in enumerate(second)}
    if first != second and len(place) < len(second):
        raise InputError("the same tasks as rows and as columns, each once", field=field)
    columns = [*numbers] if first == second else [place[name] for name in first]
    order, is_numbered = numbers, {*first} == {*map(str, numbers)}
    if is_numbered:
        own = {name: k for k, name in enumerate(first)}
        order = [own[str(k)] for k in numbers]
    across_order = np.array([columns[k] for k in order], dtype=np.int64)
    names = None if is_numbered else first
    return Labels(np.array(order, dtype=np.int64), across_order, names)


def _of_frame(frame: Any, field: str) -> Traffic:
    columns = list(frame.columns)
    try:
        found = columns_of(columns)
    except InputError as error:
        raise error.at(field) from None
    if found is None:
        if len(frame) != len(columns):
            expected = f"{COLUMNS}, or as many columns as rows"
            shown = ", ".join(map(str, columns[:8]))
            raise InputError(expected, field=field, found=f"columns {shown}")
        labels = aligned(plain(list(frame.index)), plain(columns), field)
        table = frame.to_numpy()[np.ix_(labels.rows, labels.columns)]
        return _of_matrix(table, field, labels.names)
    weight = None if found[2] is None else columns[found[2]]
    if weight is None:
        note_silent(field, len(frame), len(frame), "row")
        sizes = np.ones(len(frame), dtype=np.int64)
    else:
        sizes = _whole(np.asarray(frame[weight]), lambda k: f"{field}.{weight}[{k}]")
    ends = [plain(frame[name].tolist()) for name in _ENDS]
    for name, own in zip(_ENDS, ends, strict=True):
        for k, end in enumerate(own):
            if end is None or isinstance(end, float):  # pandas has nan for what is missing
                raise InputError("a task", field=f"{field}.{name}[{k}]", found=str(end))
    sources, targets, names = _numbered(*ends)
    return Traffic(sources, targets, sizes, None if names is None else len(names), names)


def _of_graph(graph: Any, field: str) -> Traffic:
    labels = list(graph.nodes)
    edges = list(graph.edges(data=True))
    for source, target, own in edges:
        if own and not {*_WEIGHTS} & {*own}:
            at, found = f"{field}.edges[{source!r}, {target!r}]", ", ".join(map(str, own))
            raise InputError("bytes or weight as an attribute", field=at, found=found)
    weights = [own.get("bytes", own.get("weight", 1)) for *_, own in edges]
    note_silent(field, sum(not own for *_, own in edges), len(edges), "edge")
    sizes = _whole(
        np.array(weights or [0][:0]),
        lambda k: f"{field}.edges[{edges[k][0]!r}, {edges[k][1]!r}]",
    )
    numbers, names = plain(labels), None
    if any(not isinstance(one, int) for one in numbers) or {*numbers} != {*range(len(numbers))}:
        numbers, names = list(range(len(labels))), [str(label) for label in labels]
    number = dict(zip(labels, numbers, strict=True))
    sources, targets = ([number[edge[k]] for edge in edges] for k in (0, 1))
    return Traffic(sources, targets, sizes, len(labels), names)


def _numbered(
    sources: list[Any], targets: list[Any]
) -> tuple[list[int], list[int], list[str] | None]:
    """Return the numbers of tasks, and their names in the order in which they first occur."""
    ends = [end for pair in zip(sources, targets, strict=True) for end in pair]
    if all(isinstance(end, int) for end in ends):
        return sources, targets, None
    names = {name: k for k, name in enumerate(dict.fromkeys(map(str, ends)))}
    first, second = ([names[str(end)] for end in part] for part in (sources, targets))
    return first, second, list(names)


def _require_unmasked(given: Any, field: str) -> None:
    if isinstance(given, np.ma.MaskedArray) and np.any(given.mask):
        expected = "an array without masked entries (filled(0) makes them 0)"
        raise InputError(expected, field=field, found=f"{np.count_nonzero(given.mask)} of them")


def _require_square(shape: tuple[int, ...], field: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError("a square matrix", field=field, found=f"an array of shape {shape}")


def _whole(values: AnyArray, at: Callable[[int], str]) -> IntArray:
    """Return values as integers; `at` says where one stands that is none, or below 0.

    Floats are what numpy and pandas make of numbers by default: those that are whole are taken.
    """
    if values.dtype.kind not in "biuf":
        for k, value in enumerate(plain(values)):
            if not isinstance(value, int):
                raise InputError(WHOLE, field=at(k), found=repr(value))
        values = np.array(plain(values), dtype=object)
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~((np.rint(values) == values) & (abs(values) < _MOST)))
        if len(wrong):
            raise InputError(WHOLE, field=at(int(wrong[0])), found=f"{values[wrong[0]]:g}")
    below = np.flatnonzero(values < 0)
    if len(below):
        found = str(int(values[below[0]]))
        raise InputError(f"{WHOLE} of at least 0", field=at(int(below[0])), found=found)
    return values.astype(np.int64) if values.dtype.kind in "bf" else values
