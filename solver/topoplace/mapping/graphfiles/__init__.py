"""Graphs, and machines as matrices, from other tools' files (docs/reference/formats.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from topoplace.errors import InputError, unknown_name
from topoplace.mapping.graphfiles.lists import (
    read_edge_list,
    read_grf_graph,
    read_metis_graph,
)
from topoplace.mapping.graphfiles.numbers import (
    Qaplib,
    has_labels,
    is_header,
    read_csv_graph,
    read_matrix_machine,
    read_qaplib,
    split_fields,
)
from topoplace.formats.text import lines_of
from topoplace.snapshot.schema import GraphApplication

__all__ = [
    "GRAPH_FORMATS",
    "Qaplib",
    "graph_format",
    "read_graph",
    "read_matrix_machine",
    "read_qaplib",
]

_READERS: dict[str, Callable[[str | Path], GraphApplication]] = {
    "csv": read_csv_graph,
    "qaplib": lambda path: read_qaplib(path).graph,
    "metis": read_metis_graph,
    "grf": read_grf_graph,
    "edges": read_edge_list,
}

GRAPH_FORMATS = tuple(_READERS)
"""Names of the formats of graph files."""

_ENDINGS = {
    ".dat": "qaplib",
    ".graph": "metis",
    ".metis": "metis",
    ".grf": "grf",
    ".src": "grf",
    ".edges": "edges",
    ".edgelist": "edges",
    ".el": "edges",
}


def read_graph(
    path: str | Path, format: str | None = None, *, flow: str | None = None
) -> GraphApplication:
    """Read a communication graph.

    The format is one of `GRAPH_FORMATS`: ``csv`` (a square matrix of directed bytes), ``qaplib``
    (its flows), ``metis``, ``grf`` (Scotch) or ``edges`` (a list); by default that of
    `graph_format`. `flow` says which matrix of QAPLIB has the flows (`read_qaplib`).

    Raises `InputError`, naming the file, the line or field, and the value at fault.
    """
    known = format or graph_format(path)
    if known not in _READERS:
        raise unknown_name(known, GRAPH_FORMATS, field="graph format")
    if flow is None:
        return _READERS[known](path)
    if known != "qaplib":
        raise InputError("a QAPLIB file with --flow", file=str(path), field="--flow", value=flow)
    return read_qaplib(path, flow).graph


def graph_format(path: str | Path) -> str:
    """Return the name of a graph file's format.

    The endings ``.dat`` (QAPLIB), ``.graph`` and ``.metis``, ``.grf`` and ``.src`` (Scotch),
    ``.edges``, ``.edgelist`` and ``.el`` are known. In a ``.csv`` file a first line with the names
    source and target starts an edge list, anything else is a matrix, perhaps with labels. Other
    files are recognised by their first lines: ``%`` starts METIS, a line of names an edge list or
    the labels of a matrix, one number alone QAPLIB or, if it is 0 and two numbers follow, Scotch; a
    line of as many fields as the file has lines starts a matrix, and one of two or three fields an
    edge list. `InputError` if it looks like none of these.
    """
    ending = Path(path).suffix.lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    lines = [text for _, text in lines_of(path, "#")]
    found = _by_lines(lines, ending) if lines else None
    if found is None:
        expected = f"a graph file of a known form (or --graph-format {', '.join(GRAPH_FORMATS)})"
        raise InputError(expected, file=str(path), value=lines[0] if lines else "")
    return found


def _by_lines(lines: list[str], ending: str) -> str | None:
    if lines[0].startswith("%"):
        return "metis"
    first = split_fields(lines[0])
    width = len(first)
    if is_header(first):
        is_list = {"source", "target"} <= {*first} or not has_labels(first, len(lines))
        return "edges" if is_list else "csv"
    if ending == ".csv":
        return "csv"  # never a list: a matrix without one of its rows would become one
    if width == 1 and len(lines) > 1:
        return "grf" if first == ["0"] and len(split_fields(lines[1])) == 2 else "qaplib"
    if len(lines) == width:
        return "csv"
    return "edges" if width in (2, 3) else None
