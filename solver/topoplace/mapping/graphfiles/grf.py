"""Graphs in Scotch's format (Scotch user's guide, "Graph files"): undirected, free of lines."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.mapping.graphfiles._fields import MAX_BYTES, Tokens
from topoplace.mapping.graphfiles._undirected import Edges
from topoplace.snapshot.application import MAX_TASKS, GraphApplication


def read_grf_graph(path: str | Path) -> GraphApplication:
    """Read a Scotch ``.grf`` file; an edge of load w is one message of w bytes.

    The message goes from the lower to the higher task, so that hop-bytes counts an edge once. The
    file has the version 0, the numbers of vertices and of arcs (twice the edges), the base value
    and three flag digits: vertex labels, edge loads, vertex loads. Each vertex has its label, its
    load, its number of arcs, and for each arc the load and the other end. Without loads every edge
    has one byte; vertex loads are read and ignored. Tasks are the labels, else the numbers of the
    vertices, less the base value.

    Raises
    ------
    InputError
        Naming file, line and value: also if an edge is not listed at both of its ends with one
        load, or labels are not the vertex numbers in some order.
    """
    tokens = Tokens.of(path)
    if tokens.take("the version 0", MAX_TASKS):
        raise InputError("version 0 of the format", file=tokens.file, field="line 1")
    num_tasks = tokens.take("the number of vertices", MAX_TASKS, least=1)
    num_arcs = tokens.take("the number of arcs", MAX_BYTES)
    base = tokens.take("the base value", 1)
    flags = tokens.take("three flag digits", 111)
    if not set(str(flags)) <= {"0", "1"}:
        raise tokens.error("digits 0 or 1", "flags", flags)
    labelled, weighted, loaded = (digit == "1" for digit in f"{flags:03d}")
    edges = Edges(tokens.file, num_tasks, base)
    seen: set[int] = set()
    arcs = 0
    for vertex in range(num_tasks):
        task = vertex
        if labelled:
            task = _vertex(tokens, "vertex label", base, num_tasks)
            if task in seen:
                raise tokens.error("each label once", "vertex label", task + base)
            seen.add(task)
        if loaded:
            tokens.take("vertex load", MAX_BYTES)
        degree = tokens.take("number of arcs", num_tasks)
        for _ in range(degree):
            load = tokens.take("edge load", MAX_BYTES) if weighted else 1
            other = _vertex(tokens, "end of an arc", base, num_tasks)
            edges.add(task, other, load, tokens.line)
        arcs += degree
    tokens.end()
    if arcs != num_arcs:
        raise InputError(
            f"{arcs}, the number of arcs listed",
            file=tokens.file,
            field="number of arcs",
            value=num_arcs,
        )
    return edges.graph()


def _vertex(tokens: Tokens, what: str, base: int, num_tasks: int) -> int:
    """Return the next number as a vertex counted from 0."""
    number = tokens.take(what, num_tasks - 1 + base, least=base)
    return number - base
