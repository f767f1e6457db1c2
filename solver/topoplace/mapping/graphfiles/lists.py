"""Graphs from files that list them: edge lists, Scotch's and METIS's."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from topoplace.errors import InputError, number_of, visible
from topoplace.formats.text import integer, lines_of, text_of
from topoplace.mapping.graphfiles.numbers import MAX_BYTES, Tokens, graph_of, split_fields
from topoplace.snapshot.schema import MAX_TASKS, GraphApplication

# ---- Lists of messages: source, target and bytes, one message per line ---------------------------

_DIRECTIVE = "# tasks "

log = logging.getLogger("topoplace")


def read_edge_list(path: str | Path) -> GraphApplication:
    """Read lines ``source target bytes``, separated by blanks or by commas; tasks from 0.

    Every line is one directed message; without the third number it has one byte. A pair may occur
    more than once: its messages add up. A first line of names, such as ``source,target,bytes``, is
    left out, and so are empty lines and comments (``#``, ``%``). The number of tasks follows from
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
    if rows and all(field[:1].isalpha() for field in rows[0][1]):
        rows.pop(0)
    messages = [_message(fields, file, line) for line, fields in rows]
    _note(file, [fields for _, fields in rows], messages)
    most = max((max(source, target) + 1 for source, target, _ in messages), default=0)
    if num_tasks and most > num_tasks:
        raise InputError(f"tasks below {num_tasks}, as said", file=file, value=most - 1)
    if not (num_tasks or most):
        raise InputError("lines of source, target and bytes", file=file)
    return graph_of(num_tasks or most, ((s, t, size) for s, t, size in messages if s != t and size))


def _note(file: str, rows: Sequence[list[str]], messages: Sequence[tuple[int, int, int]]) -> None:
    """Log what a person should know of an edge list: what was guessed, and left out."""
    silent = sum(len(fields) == _ENDS for fields in rows)
    if silent:
        which = "" if silent == len(rows) else f" in {number_of(silent, 'line')}"
        log.warning("%s", visible(f"{file}: no bytes given{which}, 1 each"))
    own = sum(source == target for source, target, _ in messages)
    if own:
        told = f"{number_of(own, 'message')} of tasks to themselves left out"
        log.warning("%s", visible(f"{file}: {told}"))


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
        self._arcs: dict[tuple[int, int], tuple[int, str]] = {}

    def add(self, source: int, target: int, weight: int, field: str) -> None:
        """Add an arc; `InputError` if it is a loop, repeated, or different from its reverse."""
        if source == target:
            raise self._error("no edge from a vertex to itself", field, source, target)
        if (source, target) in self._arcs:
            raise self._error("each edge once at each of its ends", field, source, target)
        back, _ = self._arcs.get((target, source), (weight, field))
        if back != weight:
            edge = self._name(*sorted((source, target)))
            expected = f"the same weight at both ends of edge {edge}"
            raise InputError(expected, file=self.file, field=field, value=f"{back} and {weight}")
        self._arcs[source, target] = weight, field

    def graph(self, num_tasks: int) -> GraphApplication:
        """Return one message per edge, of its weight in bytes, from its lower to its higher end."""
        for (source, target), (_, field) in self._arcs.items():
            if (target, source) not in self._arcs:
                raise self._error("each edge at both of its ends", field, source, target)
        arcs = sorted((s, t, weight) for (s, t), (weight, _) in self._arcs.items() if s < t)
        return graph_of(num_tasks, arcs)

    def _error(self, expected: str, field: str, source: int, target: int) -> InputError:
        return InputError(expected, file=self.file, field=field, value=self._name(source, target))

    def _name(self, source: int, target: int) -> str:
        return f"{source + self.base}-{target + self.base}"


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
            edges.add(task, other, load, tokens.line)
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
        tokens = Tokens(file, [(line, text)], line)
        for _ in range(skipped):
            tokens.take("size or weight of a vertex", MAX_BYTES)
        while tokens.more:
            other = tokens.take("neighbour", num_tasks, least=1) - 1
            edges.add(task, other, tokens.take("weight", MAX_BYTES) if weighted else 1, line)
    graph = edges.graph(num_tasks)
    if len(graph.bytes) != num_edges:
        expected = f"{len(graph.bytes)}, the number of edges listed"
        raise header.error(expected, "edges", num_edges)
    return graph
