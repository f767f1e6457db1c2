"""Graphs from files that list them: edge lists, Scotch's and METIS's."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from topoplace.errors import InputError, number_of, visible
from topoplace.formats.text import integer, lines_of, text_of
from topoplace.mapping.graphfiles.numbers import (
    MAX_BYTES,
    Tokens,
    graph_of,
    is_header,
    list_header,
    split_fields,
)
from topoplace.snapshot.schema import MAX_TASKS, GraphApplication
from topoplace.traffic import note_silent
from topoplace.types import BoolArray

# ---- Lists of messages: source, target and bytes, one message per line ---------------------------

_DIRECTIVE = "# tasks "

log = logging.getLogger("topoplace")


def read_edge_list(path: str | Path) -> GraphApplication:
    """Read lines ``source target bytes``, separated by blanks or by commas; tasks from 0.

    Every line is one directed message; without the third number it has one byte. A pair may occur
    more than once: its messages add up. A first line of names says which columns are source, target
    and bytes (or weight), in any order and with others between them (`columns_of`). Empty lines and
    comments (``#``, ``%``) are left out. The number of tasks follows from
    the highest number, or from a line ``# tasks N``, so that the last tasks may be silent. What
    was guessed or left out is logged as a warning.
    """
    file = str(path)
    num_tasks = 0
    rows: list[tuple[str, list[str]]] = []
    for line, text in lines_of(path):
        if text.startswith(_DIRECTIVE):
            told = text.removeprefix(_DIRECTIVE).strip()
            num_tasks = integer(told, 0, MAX_TASKS, file=file, field=f"{line}, tasks")
        if text[0] not in "#%":
            rows.append((line, split_fields(text)))
    if rows and is_header(rows[0][1]):
        rows = [*_as_named(rows[1:], rows[0], file)]
    messages = [_message(fields, file, line) for line, fields in rows]
    _note(file, [fields for _, fields in rows], messages)
    most = max((max(source, target) + 1 for source, target, _ in messages), default=0)
    if num_tasks and most > num_tasks:
        raise InputError(f"tasks below {num_tasks}, as said", file=file, value=most - 1)
    if not (num_tasks or most):
        raise InputError("lines of source, target and bytes", file=file)
    kept = np.array([one for one in messages if one[0] != one[1] and one[2]], dtype=np.int64)
    return graph_of(num_tasks or most, kept.reshape(-1, 3).T)


def _as_named(
    rows: Sequence[tuple[str, list[str]]], header: tuple[str, list[str]], file: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the source, target and bytes of every row, by the names of the columns."""
    line, names = header
    columns = list_header(names, file, line)
    kept = [at for at in columns if at is not None]
    for place, fields in rows:
        if len(fields) != len(names) and not _lacks_last(fields, kept):
            expected = f"{number_of(len(names), 'field')}, as in {line}"
            raise InputError(expected, file=file, field=place, value=" ".join(fields))
        yield place, [fields[at] for at in kept if at < len(fields)]


def _lacks_last(fields: Sequence[str], kept: Sequence[int]) -> bool:
    """Return whether a line of source, target and bytes has no bytes."""
    return kept == [0, 1, 2] and len(fields) == _ENDS


def _note(file: str, rows: Sequence[list[str]], messages: Sequence[tuple[int, int, int]]) -> None:
    """Log what a person should know of an edge list: what was guessed, and left out."""
    silent = sum(len(fields) == _ENDS for fields in rows)
    note_silent(file, silent, len(rows), "line")
    own = sum(source == target for source, target, _ in messages)
    if own:
        told = f"{number_of(own, 'message')} of tasks to themselves left out"
        log.warning("%s", visible(f"{file}: {told}"))


SHORT = 15
"""Digits of numbers that are below all limits."""

_ENDS = 2
"""Fields of a line without bytes: source and target."""


def _message(fields: list[str], file: str, line: str) -> tuple[int, int, int]:
    if not 2 <= len(fields) <= 3:
        raise InputError("source, target and bytes", file=file, field=line, value=" ".join(fields))
    source, target = (
        integer(text, 0, MAX_TASKS - 1, file=file, field=f"{line}, {name}")
        for text, name in zip(fields, ("source", "target"), strict=False)
    )
    size = integer(fields[2], 0, MAX_BYTES, file=file, field=f"{line}, bytes") if fields[2:] else 1
    return source, target, size


# ---- Undirected graphs whose files list every edge at both of its ends ---------------------------


class _Edges:
    """The arcs read so far, between vertices from 0; `base` is the file's first number."""

    def __init__(self, file: str, base: int) -> None:
        self.file, self.base = file, base
        self._sources, self._targets, self._weights = list[int](), list[int](), list[int]()
        self._ends, self._fields = list[int](), list[str]()

    def add(self, source: int, targets: list[int], weights: list[int], field: str) -> None:
        """Add the arcs from a vertex that stand in a field of the file."""
        self._sources += [source] * len(targets)
        self._targets += targets
        self._weights += weights
        self._ends.append(len(self._sources))
        self._fields.append(field)

    def graph(self, num_tasks: int) -> GraphApplication:
        """Return one message per edge, of its weight in bytes, from its lower to its higher end.

        Raises `InputError` if an arc is a loop, repeated, or different from its reverse.
        """
        each = (self._sources, self._targets, self._weights)
        source, target, weight = (np.array(own, dtype=np.int64) for own in each)
        key = source * num_tasks + target
        order = np.argsort(key, kind="stable")
        found = key[order]
        reverse = target * num_tasks + source
        backward = np.argsort(reverse, kind="stable")  # a sorted search is ten times as fast
        where = np.minimum(np.searchsorted(found, reverse[backward]), max(0, len(order) - 1))
        back = np.empty_like(order)
        back[backward] = order[where]
        repeated = np.zeros(len(order), dtype=bool)
        repeated[order[1:]] = found[1:] == found[:-1]
        self._refuse(source == target, "no edge from a vertex to itself")
        self._refuse(repeated, "each edge once at each of its ends")
        self._refuse(key[back] != reverse, "each edge at both of its ends")
        unlike = np.flatnonzero((weight != weight[back]) & (back < np.arange(len(back))))
        if len(unlike):
            at = int(unlike[0])
            expected = f"the same weight at both ends of edge {self._name(int(back[at]))}"
            value = f"{weight[back[at]]} and {weight[at]}"
            raise InputError(expected, file=self.file, field=self._field(at), value=value)
        once = order[(source < target)[order]]
        return graph_of(num_tasks, np.stack([source, target, weight])[:, once])

    def _refuse(self, wrong: BoolArray, expected: str) -> None:
        """Raise `InputError` if an arc is wrong."""
        if wrong.any():
            at = int(wrong.argmax())
            where = self._field(at)
            raise InputError(expected, file=self.file, field=where, value=self._name(at))

    def _field(self, at: int) -> str:
        return self._fields[bisect_right(self._ends, at)]

    def _name(self, at: int) -> str:
        return f"{self._sources[at] + self.base}-{self._targets[at] + self.base}"


# ---- Graphs in Scotch's format (Scotch user's guide, "Graph files"): undirected, free of lines ---


def read_grf_graph(path: str | Path) -> GraphApplication:
    """Read a Scotch ``.grf`` file; an edge of load w is one message of w bytes.

    The message goes from the lower to the higher task, so that hop-bytes counts an edge once. The
    file has the version 0, the numbers of vertices and of arcs (twice the edges), the base value
    and three flag digits: vertex labels, edge loads, vertex loads. Each vertex has its label, its
    load, its number of arcs, and for each arc the load and the other end. Without loads every edge
    has one byte; vertex loads are read and ignored. Tasks are the labels, else the numbers of the
    vertices, less the base value.

    An edge must be listed at both of its ends with one load, and labels must be the vertex
    numbers in some order.
    """
    tokens = Tokens(str(path), lines_of(path))
    if tokens.take("the version 0", MAX_TASKS):
        raise InputError("version 0 of the format", file=tokens.file, field="line 1")
    num_tasks = tokens.take("the number of vertices", MAX_TASKS, least=1)
    num_arcs = tokens.take("the number of arcs", MAX_BYTES)
    base = tokens.take("the base value", 1)
    labelled, weighted, loaded = tokens.flags("flags")
    edges = _Edges(tokens.file, base)
    seen: set[int] = set()
    arcs = 0
    for vertex in range(num_tasks):
        task = vertex
        if labelled:
            task = tokens.take("vertex label", num_tasks - 1 + base, least=base) - base
            if task in seen:
                raise tokens.error("each label once", "vertex label", task + base)
            seen.add(task)
        if loaded:
            tokens.take("vertex load", MAX_BYTES)
        degree = tokens.take("number of arcs", num_tasks)
        for _ in range(degree):
            load = tokens.take("edge load", MAX_BYTES) if weighted else 1
            other = tokens.take("end of an arc", num_tasks - 1 + base, least=base) - base
            edges.add(task, [other], [load], tokens.line)
        arcs += degree
    tokens.end()
    if arcs != num_arcs:
        expected = f"{arcs}, the number of arcs listed"
        raise InputError(expected, file=tokens.file, field="number of arcs", value=num_arcs)
    return edges.graph(num_tasks)


# ---- Graphs in the format of METIS (and of Chaco): undirected, one line per vertex ---------------


def read_metis_graph(path: str | Path) -> GraphApplication:
    """Read a METIS graph file; an edge of weight w is one message of w bytes.

    The message goes from the lower to the higher task, so that hop-bytes counts an edge once.
    Vertices are numbered from 1 in the file, tasks from 0. Without edge weights (the units of
    ``fmt``) every edge has one byte; vertex sizes and weights are read and ignored. ``%`` starts a
    comment line; an empty line is a vertex without edges.

    An edge must be listed at both of its ends with one weight, and their number must be that of
    the header.
    """
    file = str(path)
    lines = [
        (f"line {number}", text)
        for number, text in enumerate(text_of(path).splitlines(), start=1)
        if not text.lstrip().startswith("%")
    ]
    while lines and not lines[0][1].strip():
        lines.pop(0)
    header = Tokens(file, lines[:1])
    num_tasks = header.take("number of vertices", MAX_TASKS, least=1)
    num_edges = header.take("number of edges", MAX_BYTES)
    sizes, weights, weighted = header.flags("fmt") if header.more else (False,) * 3
    constraints = header.take("ncon", MAX_TASKS) if header.more else 1
    header.end()
    skipped = sizes + (constraints if weights else 0)
    del lines[0]
    while len(lines) > num_tasks and not lines[-1][1].strip():
        lines.pop()
    if len(lines) != num_tasks:
        expected = f"{number_of(num_tasks, 'line')}, one for each vertex"
        raise InputError(expected, file=file, value=number_of(len(lines), "line"))
    edges = _Edges(file, 1)
    for task, (line, text) in enumerate(lines):
        others, loads = _plain(text, skipped, weighted, num_tasks) or _arcs(
            Tokens(file, [(line, text)], line), skipped, weighted, num_tasks
        )
        edges.add(task, others, loads, line)
    graph = edges.graph(num_tasks)
    if len(graph.bytes) != num_edges:
        expected = f"{len(graph.bytes)}, the number of edges listed"
        raise header.error(expected, "edges", num_edges)
    return graph


def _plain(
    text: str, skipped: int, weighted: bool, num_tasks: int
) -> tuple[list[int], list[int]] | None:
    """Return the other ends and weights of a line at once; None if something is unusual in it."""
    fields = text.split()
    if not (text.isascii() and "".join(fields).isdigit() and max(map(len, fields)) <= SHORT):
        return None
    numbers = list(map(int, fields[skipped:]))
    ends = numbers[::2] if weighted else numbers
    loads = numbers[1::2] if weighted else [1] * len(ends)
    fits = len(fields) > skipped and len(loads) == len(ends)
    if not (fits and min(ends) >= 1 and max(ends) <= num_tasks):
        return None
    return [end - 1 for end in ends], loads


def _arcs(
    tokens: Tokens, skipped: int, weighted: bool, num_tasks: int
) -> tuple[list[int], list[int]]:
    """Return the other ends and weights of a line; errors name what is wrong."""
    ends, loads = list[int](), list[int]()
    for _ in range(skipped):
        tokens.take("size or weight of a vertex", MAX_BYTES)
    while tokens.more:
        ends.append(tokens.take("neighbour", num_tasks, least=1) - 1)
        loads.append(tokens.take("weight", MAX_BYTES) if weighted else 1)
    return ends, loads
