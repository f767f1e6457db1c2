"""Traffic between tasks as other libraries have it: arrays, data frames, sparse matrices, graphs.

Objects are known by what they offer; no library but numpy is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import WHOLE, InputError
from topoplace.given import plain
from topoplace.types import IntArray

AnyArray = NDArray[Any]

EXPECTED = (
    "a square matrix, triples of source, target and bytes, a data frame of one of these, a sparse "
    "matrix or a graph of NetworkX"
)
_WEIGHTS = ("weight", "bytes")
_MOST = 1 << 53  # larger floats may have lost a digit


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
    table = np.asarray(given)
    _require_square(table.shape, field)
    num = len(table)
    return _whole(table.ravel(), lambda k: f"{field}[{k // num}, {k % num}]").reshape(num, num)


def _of_array(given: Any, field: str) -> Traffic:
    is_array = isinstance(given, np.ndarray)
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


def _of_frame(frame: Any, field: str) -> Traffic:
    columns = list(frame.columns)
    if {"source", "target"} <= {*columns}:
        weight = next((name for name in _WEIGHTS if name in columns), None)
        sizes = np.ones(len(frame), dtype=np.int64)
        if weight is not None:
            sizes = _whole(np.asarray(frame[weight]), lambda k: f"{field}.{weight}[{k}]")
        ends = [plain(frame[name].tolist()) for name in ("source", "target")]
        for name, own in zip(("source", "target"), ends, strict=True):
            for k, end in enumerate(own):
                if end is None or isinstance(end, float):  # pandas has nan for what is missing
                    raise InputError("a task", field=f"{field}.{name}[{k}]", found=str(end))
        sources, targets, names = _numbered(*ends)
        return Traffic(sources, targets, sizes, None if names is None else len(names), names)
    if len(frame) != len(columns) or {"source", "target", *_WEIGHTS} & {*columns}:
        found = f"columns {', '.join(map(str, columns[:8]))}"
        expected = "columns source, target and weight, or as many columns as rows"
        raise InputError(expected, field=field, found=found)
    labels, across = plain(list(frame.index)), plain(columns)
    numbers = list(range(len(labels)))
    if numbers not in (labels, across) and labels != across:
        raise InputError("the same tasks as rows and as columns", field=field, found="others")
    named = next((one for one in (labels, across) if one != numbers), None)
    return _of_matrix(frame.to_numpy(), field, named and [str(name) for name in named])


def _of_graph(graph: Any, field: str) -> Traffic:
    labels = list(graph.nodes)
    given = {name for *_, own in graph.edges(data=True) for name in own}
    weight = next((name for name in _WEIGHTS if name in given), _WEIGHTS[0])
    edges = list(graph.edges(data=weight, default=1))
    sizes = _whole(
        np.array([weight for *_, weight in edges] or [0][:0]),
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
